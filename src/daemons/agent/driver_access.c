// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/driver_access.h"

#include "daemons/agent/kubelet_dir.h"
#include "daemons/agent/plugin.h"

#include <inttypes.h>
#include <stdio.h>

enum { MINORS_MAX = 32, MIG_CONFIG_CAP = 1, MIG_MONITOR_CAP = 2 };
static const uint64_t LOOK_NS = 1000 * UINT64_C(1000000);

struct access {
	const struct agent_config *config;
	struct dp_config dp;
	struct loop *loop;
	struct plugin *plugin;
	struct kubelet_dir *dir;
	struct loop_timer *timer;
};

static void add(const char *root, const char *name, char ret[][32], size_t *count)
{
	ASSERT(*count < DRIVER_ACCESS_NODES_MAX);
	if (cdi_look(root, name).exists)
		(void)snprintf(ret[(*count)++], 32, "%.31s", name);
}

size_t driver_access_nodes(const char *driver_root, char ret[DRIVER_ACCESS_NODES_MAX][32])
{
	char name[MIG_CAPS_NAME_BYTES];
	size_t count = 0;
	add(driver_root, cdi_control_name(0), ret, &count);
	if (count == 0)
		return 0; // without it there is nobody to talk to
	for (uint32_t minor = 0; minor < MINORS_MAX; minor++) {
		(void)snprintf(name, sizeof name, "nvidia%" PRIu32, minor);
		add(driver_root, name, ret, &count);
	}
	// Whether MIG is read or laid out, the agent's files say and a node's label, not ours.
	add(driver_root, mig_caps_name(MIG_CONFIG_CAP, name), ret, &count);
	add(driver_root, mig_caps_name(MIG_MONITOR_CAP, name), ret, &count);
	return count;
}

static void show(struct access *access)
{
	char nodes[DRIVER_ACCESS_NODES_MAX][32];
	AUTO(buf_done) struct buf list = { 0 };
	// Until the driver is there the agent's pod waits, instead of running without its nodes.
	const struct dp_device device = {
		.id = STR("driver"),
		.is_healthy = driver_access_nodes(access->config->driver_root, nodes) > 0,
		.numa_node = -1
	};
	dp_put_list(&list, &device, 1);
	plugin_set_list(access->plugin, buf_str(&list));
}

static void on_look(void *arg)
{
	struct access *access = arg;
	show(access);
	loop_timer_set(access->timer, LOOK_NS);
}

static plugin_choice on_prefer(void *arg, const char *resource, const struct dp_preferred *request,
			       bool is_last, struct str *ret_ids)
{
	(void)arg;
	(void)resource;
	(void)is_last;
	for (int64_t i = 0; i < request->size; i++)
		ret_ids[i] = request->available.items[i];
	return PLUGIN_CHOSEN;
}

static err_status on_allocate(void *arg, const char *resource,
			      const struct dp_allocate_list *request, struct buf *out,
			      struct err *err)
{
	struct access *access = arg;
	char names[DRIVER_ACCESS_NODES_MAX][32];
	char inside[DRIVER_ACCESS_NODES_MAX][64],
		host[DRIVER_ACCESS_NODES_MAX][CDI_NODE_PATH_BYTES];
	struct dp_node nodes[DRIVER_ACCESS_NODES_MAX];
	size_t count = driver_access_nodes(access->config->driver_root, names);
	const char *root = access->dp.dev_root[0] != '\0' ? access->dp.dev_root
							  : access->config->driver_root;
	(void)resource;
	if (count == 0)
		return err_set(err, ERR_UNAVAILABLE, "%s/dev has no %s; load the driver",
			       access->config->driver_root, cdi_control_name(0));
	for (size_t i = 0; i < count; i++) {
		(void)snprintf(inside[i], sizeof inside[i], "/dev/%s", names[i]);
		cdi_host_path(root, names[i], host[i]);
		nodes[i] = (struct dp_node){ str_of(inside[i]), str_of(host[i]) };
	}
	for (size_t i = 0; i < request->count; i++)
		dp_put_allocated(out,
				 &(struct dp_allocated){ .nodes = nodes, .node_count = count });
	log_kv(LOG_INFO, "driver access is granted", "nodes", names[count - 1], NULL);
	return buf_ok(out) ? ERR_OK : err_set(err, ERR_LIMIT, "no memory for the answer");
}

static void on_kubelet(void *arg)
{
	struct access *access = arg;
	plugin_restart(access->plugin);
}

static void on_any(void *arg)
{
	struct access *access = arg;
	if (plugin_has_lost_socket(access->plugin))
		plugin_restart(access->plugin);
}

static void nothing(void *arg) { (void)arg; }

static err_status start(struct access *access, struct err *err)
{
	const struct plugin_config plugin = { .dir = access->config->device_plugin_dir,
					      .resource = DRIVER_ACCESS_RESOURCE,
					      .arg = access,
					      .prefer = on_prefer,
					      .allocate = on_allocate };
	const struct kubelet_dir_config dir = { .dir = access->config->device_plugin_dir,
						.arg = access,
						.on_kubelet = on_kubelet,
						.on_any = on_any,
						.on_checkpoint = nothing };
	dp_config_init(&access->dp);
	err_status status = dp_config_overlay(&access->dp, access->config->dp_flags, err);
	if (status == ERR_OK)
		status = loop_new(&access->loop, err);
	if (status == ERR_OK)
		status = loop_handle_signals(access->loop, nothing, access, err);
	if (status == ERR_OK)
		status = plugin_new(access->loop, &plugin, &access->plugin, err);
	if (status != ERR_OK)
		return status;
	access->timer = loop_timer_new(access->loop, on_look, access);
	loop_timer_set(access->timer, LOOK_NS);
	show(access);
	return kubelet_dir_new(access->loop, &dir, &access->dir, err);
}

int driver_access_run(const struct agent_config *config)
{
	struct access access = { .config = config };
	struct err err = { 0 };
	log_init("driver-access", config->log_level);
	bool is_started = start(&access, &err) == ERR_OK;
	if (is_started)
		loop_run(access.loop);
	else
		log_err(LOG_ERROR, "driver access is not served", &err);
	kubelet_dir_free(access.dir);
	plugin_free(access.plugin);
	loop_timer_free(access.timer);
	loop_free(access.loop);
	return is_started ? 0 : 1;
}
