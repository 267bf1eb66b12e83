// SPDX-License-Identifier: Apache-2.0
// The part of CDI that touches the disk: what the driver root holds, and the file.
#include "daemons/agent/cdi.h"
#include "sys/fs.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { SPEC_MAX_BYTES = 1024 * 1024, MIGS_MAX = GPU_MAX * MIG_INSTANCES_MAX };

static const char *const folders[] = { "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
				       "/usr/lib64", "/lib/x86_64-linux-gnu", "/usr/lib" };
static const char *const libraries[] = { "libnvidia-ml.so.1", "libcuda.so.1",
					 "libnvidia-ptxjitcompiler.so.1" };

struct cdi_node cdi_look(const char *driver_root, const char *name)
{
	char path[PATH_MAX];
	struct stat info;
	(void)snprintf(path, sizeof path, "%.2000s/dev/%.200s", driver_root, name);
	if (stat(path, &info) != 0 || !S_ISCHR(info.st_mode))
		return (struct cdi_node){ 0 };
	return (struct cdi_node){ .exists = true,
				  .major = major(info.st_rdev),
				  .minor = minor(info.st_rdev) };
}

// The first folder of the root that has the library.
static bool find_library(const struct cdi_config *config, const char *name,
			 char ret_path[CDI_PATH_BYTES])
{
	for (size_t i = 0; i < ARRAY_COUNT(folders); i++) {
		char path[PATH_MAX];
		(void)snprintf(ret_path, CDI_PATH_BYTES, "%s/%s", folders[i], name);
		(void)snprintf(path, sizeof path, "%.2000s%s", config->driver_root, ret_path);
		if (access(path, R_OK) == 0)
			return true;
	}
	return false;
}

// Temporary files of a life that was ended in the middle.
static void remove_leftovers(const char *dir)
{
	DIR *stream = opendir(dir);
	if (stream == NULL)
		return;
	for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
		if (str_starts(str_of(entry->d_name), STR(CDI_FILE ".tmp-")))
			(void)unlinkat(dirfd(stream), entry->d_name, 0);
	}
	(void)closedir(stream);
}

// A capability is opened by its numbers, whether somebody has made its node or not.
static void look_at_caps(const struct cdi_config *config, const struct cdi_parts *parts,
			 struct cdi_node ret_nodes[][2])
{
	for (size_t i = 0; i < parts->mig_count; i++) {
		const struct mig_device *mig = &parts->migs[i];
		for (size_t j = 0; j < 2; j++) {
			uint32_t cap = j == 0 ? mig->gi_cap : mig->ci_cap;
			char name[MIG_CAPS_NAME_BYTES];
			ret_nodes[i][j] = cdi_look(config->driver_root, mig_caps_name(cap, name));
			if (!ret_nodes[i][j].exists && config->caps_major != 0)
				ret_nodes[i][j] =
					(struct cdi_node){ true, config->caps_major, cap };
		}
	}
}

bool cdi_path(const struct cdi_config *config, char *out, size_t out_bytes)
{
	int n = config->share == NULL ? snprintf(out, out_bytes, "%s/" CDI_FILE, config->dir)
				      : snprintf(out, out_bytes, "%s/" CDI_SHARE_PREFIX "%s.json",
						 config->dir, config->share->name);
	return n > 0 && (size_t)n < out_bytes;
}

void cdi_sweep(const char *dir, struct str prefix, bool (*is_kept)(void *arg, struct str name),
	       void *arg)
{
	DIR *stream = opendir(dir);
	if (stream == NULL)
		return;
	for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
		struct str name = str_of(entry->d_name);
		if (!str_starts(name, prefix))
			continue;
		name = str_slice(name, prefix.len, name.len);
		bool is_whole = str_ends(name, STR(".json"));
		name = str_slice(name, 0, name.len - (is_whole ? strlen(".json") : 0));
		if (!is_whole || !is_kept(arg, name))
			(void)unlinkat(dirfd(stream), entry->d_name, 0);
	}
	(void)closedir(stream);
}

err_status cdi_write(const struct cdi_config *config, struct cdi_parts *parts, struct err *err)
{
	struct err local;
	err = err == NULL ? &local : err;
	char path[PATH_MAX], library_paths[ARRAY_COUNT(libraries)][CDI_PATH_BYTES];
	AUTO(buf_done) struct buf text = { .limit = SPEC_MAX_BYTES };
	AUTO(buf_done) struct buf old = { 0 };
	struct cdi_node nodes[GPU_MAX], cap_nodes[MIGS_MAX][2];
	ASSERT(parts->gpu_count <= GPU_MAX && parts->mig_count <= MIGS_MAX);
	for (size_t i = 0; i < parts->gpu_count; i++) {
		char name[32];
		(void)snprintf(name, sizeof name, "nvidia%" PRIu32, parts->gpus[i].minor);
		nodes[i] = cdi_look(config->driver_root, name);
	}
	look_at_caps(config, parts, cap_nodes);
	parts->nodes = nodes;
	parts->cap_nodes = (const struct cdi_node(*)[2])cap_nodes;
	for (size_t i = 0; cdi_control_name(i) != NULL; i++)
		parts->control[i] = cdi_look(config->driver_root, cdi_control_name(i));
	parts->library_count = 0;
	for (size_t i = 0; i < ARRAY_COUNT(libraries); i++) {
		char *found = library_paths[parts->library_count];
		if (find_library(config, libraries[i], found))
			parts->libraries[parts->library_count++] = found;
	}
	err_status status = cdi_render(&text, config, parts, err);
	parts->nodes = NULL;
	parts->cap_nodes = NULL;
	if (status != ERR_OK)
		return status;
	if (!cdi_path(config, path, sizeof path))
		return err_set(err, ERR_INVALID, "path of the CDI folder is too long");
	if (fs_mkdirs(config->dir, 0755, err) != ERR_OK)
		return err_wrap(err, "CDI folder");
	if (config->share == NULL)
		remove_leftovers(config->dir);
	if (fs_read(path, SPEC_MAX_BYTES, &old, NULL) == ERR_OK &&
	    str_eq(buf_str(&old), buf_str(&text)))
		return ERR_OK;
	return fs_write_atomic(path, buf_str(&text), 0644, err);
}
