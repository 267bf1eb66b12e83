// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/agent_dra.h"

#include "daemons/agent/agent.h"
#include "sys/log.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// Until PodResources shows a claim that was prepared; it does within moments as a rule.
static const uint64_t SHOW_NS = 5000 * UINT64_C(1000000);

struct agent_dra {
	bool is_served;         // else only what is prepared from before is known
	struct dra_table *left; // then
	struct dra *dra;
	struct dra_publish *publish;
	char path[PATH_MAX];
	char driver_version[NVML_TEXT_BYTES]; // kept while the driver does not answer
	uint32_t cuda_version;
	struct dra_gpu gpus[GPU_MAX]; // of the last view
};

bool agent_is_dra(const struct agent *agent)
{
	struct str rest = str_of(agent->config.dra_nodes), name;
	if (strcmp(agent->config.mode, "dra") == 0)
		return true;
	while (str_split_next(&rest, ',', &name)) {
		if (str_eq_c(str_trim(name), agent->config.node_name))
			return true;
	}
	return false;
}

static const struct dra_table *table_of(const struct agent *agent)
{
	const struct agent_dra *own = agent->dra;
	if (own == NULL)
		return NULL;
	return own->is_served ? dra_table_of(own->dra) : own->left;
}

static const struct dra_claim *claim_of(const struct agent *agent, const char *uuid)
{
	const struct dra_table *table = table_of(agent);
	return table == NULL ? NULL : dra_table_holder(table, uuid);
}

bool agent_dra_holds(const struct agent *agent, const char *uuid)
{
	return claim_of(agent, uuid) != NULL;
}

err_status agent_dra_check(const struct agent *agent, const struct dp_config *config,
			   struct err *err)
{
	if (!agent_is_dra(agent) || (config->shared_count == 0 && config->mig == DP_MIG_NONE))
		return ERR_OK;
	return err_set(err, ERR_UNSUPPORTED,
		       "mode dra gives whole GPUs to claims; leave out sharing and migStrategy, or "
		       "use mode device-plugin on this node");
}

// The root of the PCIe tree that the GPU is in, as sysfs names it.
static void find_root(const struct agent *agent, const struct gpu_info *info,
		      char out[DRA_ROOT_BYTES])
{
	char path[PATH_MAX], target[PATH_MAX], address[GPU_PCI_BYTES];
	out[0] = '\0';
	dra_pci_address(info->pci_bus_id, address);
	(void)snprintf(path, sizeof path, "%.3000s/bus/pci/devices/%s", agent->config.sys_root,
		       address);
	ssize_t length = readlink(path, target, sizeof target - 1);
	if (length <= 0)
		return;
	struct str rest = { target, (size_t)length }, part;
	while (str_split_next(&rest, '/', &part)) {
		if (!str_starts(part, STR("pci")) || str_find_byte(part, ':', 0) == SIZE_MAX ||
		    part.len >= DRA_ROOT_BYTES)
			continue;
		(void)snprintf(out, DRA_ROOT_BYTES, STR_FMT, STR_ARG(part));
		return;
	}
}

static bool on_view(void *arg, struct dra_view *ret)
{
	struct agent *agent = arg;
	struct agent_dra *own = agent->dra;
	const struct nvml_hello *driver = monitor_driver(agent->monitor);
	size_t count = 0;
	if (!monitor_is_ready(agent->monitor) || agent->offer.count == 0)
		return false;
	if (driver->driver_version[0] != '\0') {
		memcpy(own->driver_version, driver->driver_version, sizeof own->driver_version);
		own->cuda_version = driver->cuda_version;
	}
	for (uint32_t slot = 0; slot < monitor_count(agent->monitor); slot++) {
		const struct monitor_gpu *gpu = monitor_gpu(agent->monitor, slot);
		if (!gpu->is_known || gpu->info.mig_enabled)
			continue; // its parts are given by the device plugin alone
		struct dra_gpu *to = &own->gpus[count++];
		bool is_offered = health_is_offered(&gpu->health);
		*to = (struct dra_gpu){
			.info = &gpu->info,
			.fault = is_offered ? NULL : health_fault_name(gpu->health.fault),
			.held_back = agent->held_back[slot],
		};
		find_root(agent, &gpu->info, to->pcie_root);
	}
	*ret = (struct dra_view){ .node = agent->config.node_name,
				  .driver_version = own->driver_version,
				  .cuda_version = own->cuda_version,
				  .effect = agent->config.dra_effect,
				  .gpus = own->gpus,
				  .count = count };
	return true;
}

static err_status check_gpu(struct agent *agent, const char *uuid, bool tolerates, struct err *err)
{
	uint32_t slot = 0;
	const struct monitor_gpu *gpu = monitor_find(agent->monitor, str_of(uuid), &slot);
	if (gpu == NULL || !gpu->is_known)
		return err_set(err, ERR_UNAVAILABLE, "GPU %s is not on this node now", uuid);
	if (gpu->info.mig_enabled)
		return err_set(err, ERR_UNAVAILABLE, "GPU %s is in MIG mode", uuid);
	if (agent->held_back[slot] != NULL)
		return err_set(err, ERR_UNAVAILABLE, "GPU %s: %s", uuid, agent->held_back[slot]);
	if (!health_is_offered(&gpu->health) && !tolerates)
		return err_set(err, ERR_UNAVAILABLE, "GPU %s is not healthy: %s", uuid,
			       gpu->health.reason);
	return ERR_OK;
}

static err_status on_check(void *arg, const struct dra_claim *claim, struct err *err)
{
	struct agent *agent = arg;
	agent_offer(agent); // what holds a GPU back may just have ended
	for (size_t i = 0; i < claim->count; i++) {
		const struct dra_device *device = &claim->devices[i];
		if (check_gpu(agent, device->uuid, device->tolerates, err) != ERR_OK)
			return err->status;
	}
	return ERR_OK;
}

static bool on_cdi_name(void *arg, const char *uuid, char ret_name[GPU_UUID_BYTES])
{
	const struct agent *agent = arg;
	uint32_t slot = 0;
	const struct monitor_gpu *gpu = monitor_find(agent->monitor, str_of(uuid), &slot);
	if (gpu == NULL)
		return false;
	if (agent->dp.ids_by_index)
		(void)snprintf(ret_name, GPU_UUID_BYTES, "%" PRIu32, gpu->info.index);
	else
		memcpy(ret_name, gpu->info.uuid, GPU_UUID_BYTES);
	return true;
}

static void on_prepared(void *arg, const struct dra_claim *claim)
{
	struct agent *agent = arg;
	(void)claim;
	holders_expect(agent->holders);
}

static void show(struct agent *agent, const struct dra_claim *claim, const char *uuid)
{
	const struct usage_holder holder = {
		.pod_uid = str_of(claim->pod_uid),
		.namespace_ = str_of(claim->namespace_),
		.pod = str_of(claim->pod),
		.gpu = str_of(uuid),
		.is_of_claim = true,
	};
	if (claim->pod_uid[0] != '\0')
		usage_show(meter_usage(agent->meter), &holder,
			   world_wall_s(loop_world(agent->loop)));
}

static bool is_known(const struct agent *agent, const struct dra_claim *claim, const char *uuid)
{
	const struct usage *usage = meter_usage(agent->meter);
	for (size_t i = 0; i < usage_count(usage); i++) {
		const struct usage_allocation *item = usage_at(usage, i);
		if (strcmp(item->gpu, uuid) == 0 && strcmp(item->pod_uid, claim->pod_uid) == 0)
			return true;
	}
	return false;
}

// A pod that came and went between two looks has held it all the same.
static void on_release(void *arg, const struct dra_claim *claim)
{
	struct agent *agent = arg;
	for (size_t i = 0; i < claim->count; i++) {
		if (!is_known(agent, claim, claim->devices[i].uuid))
			show(agent, claim, claim->devices[i].uuid);
	}
	loop_defer(agent->loop, agent_offer_later, agent);
}

void agent_dra_show(struct agent *agent)
{
	const struct agent_dra *own = agent->dra;
	if (own == NULL || !own->is_served)
		return;
	const struct dra_table *table = dra_table_of(own->dra);
	for (size_t i = 0; i < dra_table_count(table); i++) {
		const struct dra_claim *claim = dra_table_at(table, i);
		uint64_t now_ns = loop_now_ns(agent->loop);
		if (claim->prepared_ns != 0 && now_ns - claim->prepared_ns < SHOW_NS)
			continue;
		for (size_t j = 0; j < claim->count; j++) {
			const char *uuid = claim->devices[j].uuid;
			size_t at = 0;
			if (usage_next_holder(meter_usage(agent->meter), uuid, &at) == NULL)
				show(agent, claim, uuid);
		}
	}
}

static void on_put_health(void *arg, struct buf *out)
{
	const struct agent *agent = arg;
	int64_t now_s = world_wall_s(loop_world(agent->loop));
	for (uint32_t slot = 0; slot < monitor_count(agent->monitor); slot++) {
		const struct monitor_gpu *gpu = monitor_gpu(agent->monitor, slot);
		char name[GPU_UUID_BYTES];
		if (!gpu->is_known)
			continue;
		const struct dra_health health = { .pool = agent->config.node_name,
						   .device = dra_device_name(gpu->info.uuid, name),
						   .message = gpu->health.reason,
						   .is_healthy = health_is_offered(&gpu->health),
						   .seen_s = now_s };
		dra_put_health(out, &health);
	}
}

const char *agent_dra_why(const struct agent *agent, uint32_t slot)
{
	const struct agent_dra *own = agent->dra;
	const char *uuid = monitor_gpu(agent->monitor, slot)->info.uuid;
	size_t at = 0;
	if (own == NULL)
		return NULL;
	if (!own->is_served)
		return claim_of(agent, uuid) == NULL
			       ? NULL
			       : "a claim holds it from before; set mode dra for this node "
				 "until the claim has gone";
	// Of a pod that got it by the device plugin before the mode was changed.
	for (;;) {
		const struct usage_allocation *holder =
			usage_next_holder(meter_usage(agent->meter), uuid, &at);
		if (holder == NULL)
			return NULL;
		if (holders_has_row(agent->holders, uuid, holder->pod_uid))
			return "a pod of the device plugin holds it from before";
	}
}

void agent_dra_offer(struct agent *agent)
{
	struct agent_dra *own = agent->dra;
	if (own == NULL || !own->is_served)
		return;
	dra_publish_poke(own->publish);
	dra_tell_health(own->dra);
}

void agent_dra_look(struct agent *agent)
{
	if (agent->dra != NULL && agent->dra->is_served && monitor_is_ready(agent->monitor))
		dra_look(agent->dra->dra);
}

static err_status start_served(struct agent *agent, struct agent_dra *own, struct err *err)
{
	const struct agent_config *from = &agent->config;
	const struct dra_config config = {
		.registry_dir = from->plugin_registry_dir,
		.plugins_dir = from->plugins_dir,
		.state_path = own->path,
		.cdi_dir = from->cdi_dir,
		.node = from->node_name,
		.client = agent->client,
		.arg = agent,
		.check = on_check,
		.cdi_name = on_cdi_name,
		.on_prepared = on_prepared,
		.on_release = on_release,
		.put_health = on_put_health,
	};
	const struct dra_publish_config publish = { .node = from->node_name,
						    .arg = agent,
						    .view = on_view };
	if (agent->client == NULL)
		return err_set(err, ERR_INVALID, "mode dra needs an API server: --kubeconfig");
	own->is_served = true;
	err_status status = dra_new(agent->loop, &config, &own->dra, err);
	if (status == ERR_OK)
		status = dra_publish_new(agent->client, &publish, &own->publish, err);
	return status;
}

// Nothing is served: only what is prepared from before counts, and sockets of a killed agent go.
static err_status start_left(struct agent *agent, struct agent_dra *own, struct err *err)
{
	char path[PATH_MAX];
	bool is_whole = false;
	(void)snprintf(path, sizeof path, "%.3000s/" DRA_DRIVER "-reg.sock",
		       agent->config.plugin_registry_dir);
	(void)unlink(path);
	err_status status = dra_table_new(own->path, &own->left, &is_whole, err);
	if (status == ERR_OK && dra_table_count(own->left) > 0)
		log_kv(LOG_WARN,
		       "claims are still prepared on this node of mode device-plugin; "
		       "their GPUs are given to nobody",
		       NULL);
	return status;
}

err_status agent_start_dra(struct agent *agent, struct err *err)
{
	struct agent_dra *own = calloc(1, sizeof *own);
	if (own == NULL)
		return err_set(err, ERR_LIMIT, "no memory for claims");
	agent->dra = own;
	(void)snprintf(own->path, sizeof own->path, "%.3000s/claims.json", agent->config.state_dir);
	return agent_is_dra(agent) ? start_served(agent, own, err) : start_left(agent, own, err);
}

void agent_stop_dra(struct agent *agent)
{
	if (agent->dra == NULL)
		return;
	dra_publish_free(agent->dra->publish);
	dra_free(agent->dra->dra);
	dra_table_free(agent->dra->left);
	free(agent->dra);
	agent->dra = NULL;
}

void agent_dra_stats(const struct agent *agent, struct dra_stats *ret,
		     struct dra_publish_stats *ret_publish)
{
	*ret = (struct dra_stats){ 0 };
	*ret_publish = (struct dra_publish_stats){ 0 };
	if (agent->dra == NULL || !agent->dra->is_served)
		return;
	dra_stats(agent->dra->dra, ret);
	dra_publish_stats(agent->dra->publish, ret_publish);
}
