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

enum { SPEC_MAX_BYTES = 1024 * 1024 };

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

err_status cdi_write(const struct cdi_config *config, const struct gpu_info *gpus, size_t count,
		     struct err *err)
{
	struct err local;
	err = err == NULL ? &local : err;
	char path[PATH_MAX], library_paths[ARRAY_COUNT(libraries)][CDI_PATH_BYTES];
	AUTO(buf_done) struct buf text = { .limit = SPEC_MAX_BYTES };
	AUTO(buf_done) struct buf old = { 0 };
	struct cdi_node nodes[GPU_MAX];
	struct cdi_parts parts = { .gpus = gpus, .nodes = nodes, .gpu_count = count };
	ASSERT(count <= GPU_MAX);
	for (size_t i = 0; i < count; i++) {
		char name[32];
		(void)snprintf(name, sizeof name, "nvidia%" PRIu32, gpus[i].minor);
		nodes[i] = cdi_look(config->driver_root, name);
	}
	for (size_t i = 0; cdi_control_name(i) != NULL; i++)
		parts.control[i] = cdi_look(config->driver_root, cdi_control_name(i));
	for (size_t i = 0; i < ARRAY_COUNT(libraries); i++) {
		char *found = library_paths[parts.library_count];
		if (find_library(config, libraries[i], found))
			parts.libraries[parts.library_count++] = found;
	}
	if (cdi_render(&text, config, &parts, err) != ERR_OK)
		return err->status;
	int n = snprintf(path, sizeof path, "%s/%s", config->dir, CDI_FILE);
	if (n < 0 || (size_t)n >= sizeof path)
		return err_set(err, ERR_INVALID, "path of the CDI folder is too long");
	if (fs_mkdirs(config->dir, 0755, err) != ERR_OK)
		return err_wrap(err, "CDI folder");
	remove_leftovers(config->dir);
	if (fs_read(path, SPEC_MAX_BYTES, &old, NULL) == ERR_OK &&
	    str_eq(buf_str(&old), buf_str(&text)))
		return ERR_OK;
	return fs_write_atomic(path, buf_str(&text), 0644, err);
}
