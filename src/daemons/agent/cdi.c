// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/cdi.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const control_names[] = { "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools",
					     "nvidia-modeset" };

const char *cdi_control_name(size_t i)
{
	return i < ARRAY_COUNT(control_names) ? control_names[i] : NULL;
}

// The root without the slashes at its end, so that "/" gives "".
static struct str root_of(const char *given)
{
	struct str root = str_of(given);
	while (root.len > 0 && root.data[root.len - 1] == '/')
		root.len--;
	return root;
}

static const char *host_root(const struct cdi_config *config)
{
	return config->host_root != NULL ? config->host_root : config->driver_root;
}

void cdi_host_path(const char *root, const char *name, char out[CDI_NODE_PATH_BYTES])
{
	(void)snprintf(out, CDI_NODE_PATH_BYTES, STR_FMT "/dev/%s", STR_ARG(root_of(root)), name);
}

static void put_node(struct buf *out, const struct cdi_config *config, const char *name,
		     const struct cdi_node *node)
{
	char path[CDI_NODE_PATH_BYTES];
	cdi_host_path(config->host_dev_root != NULL ? config->host_dev_root : host_root(config),
		      name, path);
	buf_printf(out, "{\"path\":\"/dev/%s\",\"hostPath\":", name);
	buf_put_json(out, str_of(path));
	if (node->exists)
		buf_printf(out, ",\"type\":\"c\",\"major\":%" PRIu32 ",\"minor\":%" PRIu32,
			   node->major, node->minor);
	buf_put_c(out, ",\"permissions\":\"rw\"}");
}

// What a mount is for: a GPU, or one of its MIG devices.
struct subject {
	const struct gpu_info *gpu;
	const char *uuid;
	bool is_mig;
};

static bool expand_one(struct buf *out, const char *text, size_t *i, const struct subject *of)
{
	struct str rest = str_of(text + *i);
	if (str_starts(rest, STR("{index}")))
		buf_printf(out, "%" PRIu32, of->gpu->index);
	else if (str_starts(rest, STR("{minor}")))
		buf_printf(out, "%" PRIu32, of->gpu->minor);
	else if (str_starts(rest, STR("{uuid}")))
		buf_put_c(out, of->uuid);
	else
		return false;
	*i += str_starts(rest, STR("{uuid}")) ? 6 : 7;
	return true;
}

static void put_expanded(struct buf *out, const char *text, const struct subject *of)
{
	AUTO(buf_done) struct buf path = { .limit = CDI_PATH_BYTES * 2 };
	for (size_t i = 0; text[i] != '\0';) {
		if (!expand_one(&path, text, &i, of))
			buf_put_byte(&path, text[i++]);
	}
	buf_put_json(out, buf_str(&path));
}

static void put_options(struct buf *out, const char *const *options, size_t count)
{
	static const char *const defaults[] = { "ro", "nosuid", "nodev", "bind" };
	if (count == 0) {
		options = defaults;
		count = ARRAY_COUNT(defaults);
	}
	buf_put_c(out, ",\"options\":[");
	for (size_t i = 0; i < count; i++) {
		buf_put_c(out, i == 0 ? "" : ",");
		buf_put_json(out, str_of(options[i]));
	}
	buf_put_c(out, "]}");
}

static void put_mounts(struct buf *out, const struct cdi_config *config, const struct subject *of)
{
	const char *before = ",\"mounts\":[";
	for (size_t i = 0; i < config->mount_count; i++) {
		const struct cdi_mount *mount = &config->mounts[i];
		if (mount->is_of_mig != of->is_mig)
			continue;
		buf_printf(out, "%s{\"hostPath\":", before);
		put_expanded(out, mount->host_path, of);
		buf_put_c(out, ",\"containerPath\":");
		put_expanded(out, mount->container_path, of);
		put_options(out, mount->options, mount->option_count);
		before = ",";
	}
	if (before[1] == '\0')
		buf_put_c(out, "]");
}

static void put_device(struct buf *out, const struct cdi_config *config, const struct gpu_info *gpu,
		       const struct cdi_node *node)
{
	char name[32];
	(void)snprintf(name, sizeof name, "nvidia%" PRIu32, gpu->minor);
	buf_put_c(out, "{\"name\":");
	if (config->share != NULL)
		buf_put_json(out, str_of(config->share->name));
	else if (config->by_index)
		buf_printf(out, "\"%" PRIu32 "\"", gpu->index);
	else
		buf_put_json(out, str_of(gpu->uuid));
	buf_put_c(out, ",\"containerEdits\":{\"deviceNodes\":[");
	put_node(out, config, name, node);
	buf_put_c(out, "]");
	put_mounts(out, config, &(struct subject){ gpu, gpu->uuid, false });
	buf_put_c(out, "}}");
}

static void put_mig(struct buf *out, const struct cdi_config *config, const struct mig_device *mig,
		    const struct cdi_node *node, const struct cdi_node caps[2])
{
	char name[MIG_CAPS_NAME_BYTES];
	const char *uuid = mig->instance->uuid;
	(void)snprintf(name, sizeof name, "nvidia%" PRIu32, mig->gpu->minor);
	buf_put_c(out, "{\"name\":");
	if (config->by_index)
		buf_printf(out, "\"%" PRIu32 ":%" PRIu32 "\"", mig->gpu->index,
			   mig->instance->index);
	else
		buf_put_json(out, str_of(uuid));
	buf_put_c(out, ",\"containerEdits\":{\"deviceNodes\":[");
	put_node(out, config, name, node);
	if (mig->has_caps) {
		buf_put_c(out, ",");
		put_node(out, config, mig_caps_name(mig->gi_cap, name), &caps[0]);
		buf_put_c(out, ",");
		put_node(out, config, mig_caps_name(mig->ci_cap, name), &caps[1]);
	}
	buf_put_c(out, "]");
	put_mounts(out, config, &(struct subject){ mig->gpu, uuid, true });
	buf_put_c(out, "}}");
}

static const struct cdi_node *node_of(const struct cdi_parts *parts, const struct mig_device *mig)
{
	static const struct cdi_node none;
	for (size_t i = 0; i < parts->gpu_count; i++) {
		if (strcmp(parts->gpus[i].uuid, mig->gpu->uuid) == 0)
			return &parts->nodes[i];
	}
	return &none;
}

static void put_control(struct buf *out, const struct cdi_config *config,
			const struct cdi_parts *parts)
{
	const char *before = ",\"deviceNodes\":[";
	for (size_t i = 0; cdi_control_name(i) != NULL; i++) {
		if (!parts->control[i].exists)
			continue;
		buf_put_c(out, before);
		put_node(out, config, cdi_control_name(i), &parts->control[i]);
		before = ",";
	}
	if (*before == ',' && before[1] == '\0')
		buf_put_c(out, "]");
}

static void put_libraries(struct buf *out, const struct cdi_config *config,
			  const struct cdi_parts *parts)
{
	for (size_t i = 0; i < parts->library_count; i++) {
		char path[CDI_PATH_BYTES * 2];
		const char *library = parts->libraries[i];
		ASSERT(library[0] == '/');
		(void)snprintf(path, sizeof path, STR_FMT "%s", STR_ARG(root_of(host_root(config))),
			       library);
		buf_put_c(out, i == 0 ? ",\"mounts\":[{\"hostPath\":" : ",{\"hostPath\":");
		buf_put_json(out, str_of(path));
		buf_put_c(out, ",\"containerPath\":");
		buf_put_json(out, str_of(library));
		put_options(out, NULL, 0);
	}
	if (parts->library_count > 0)
		buf_put_c(out, "]");
}

static void put_envs(struct buf *out, const struct cdi_share *share)
{
	// Runtimes with a hook of their own must add nothing to what is granted here.
	buf_put_c(out, "\"env\":[\"NVIDIA_VISIBLE_DEVICES=void\"");
	for (size_t i = 0; share != NULL && i < share->env_count; i++) {
		buf_put_byte(out, ',');
		buf_put_json(out, str_of(share->envs[i]));
	}
	buf_put_byte(out, ']');
}

err_status cdi_render(struct buf *out, const struct cdi_config *config,
		      const struct cdi_parts *parts, struct err *err)
{
	if (parts->gpu_count == 0)
		return err_set(err, ERR_INVALID, "a CDI specification needs at least one device");
	buf_printf(out, "{\"cdiVersion\":\"0.5.0\",\"kind\":\"%s\",\"devices\":[",
		   config->share == NULL ? CDI_KIND : CDI_SHARE_KIND);
	for (size_t i = 0; i < parts->gpu_count; i++) {
		buf_put_c(out, i == 0 ? "\n" : ",\n");
		put_device(out, config, &parts->gpus[i], &parts->nodes[i]);
	}
	for (size_t i = 0; i < parts->mig_count; i++) {
		const struct mig_device *mig = &parts->migs[i];
		buf_put_c(out, ",\n");
		put_mig(out, config, mig, node_of(parts, mig), parts->cap_nodes[i]);
	}
	buf_put_c(out, "\n],\"containerEdits\":{");
	put_envs(out, config->share);
	put_control(out, config, parts);
	put_libraries(out, config, parts);
	buf_put_c(out, "}}\n");
	return buf_ok(out) ? ERR_OK : err_set(err, ERR_LIMIT, "CDI specification is too large");
}
