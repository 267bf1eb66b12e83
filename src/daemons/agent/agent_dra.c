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
	struct dra_gpu gpus[DRA_DEVICES_MAX]; // of the last view
	bool is_cut;                          // there are more; said once
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

bool agent_dra_holds_part(const struct agent *agent, uint32_t slot, uint32_t instance_i)
{
	const struct mig_state *mig = &monitor_gpu(agent->monitor, slot)->mig;
	ASSERT(instance_i < mig->instance_count);
	return claim_of(agent, mig->instances[instance_i].uuid) != NULL;
}

bool agent_dra_holds(const struct agent *agent, uint32_t slot)
{
	const struct monitor_gpu *gpu = monitor_gpu(agent->monitor, slot);
	bool is_held = claim_of(agent, gpu->info.uuid) != NULL;
	for (uint32_t i = 0; !is_held && i < gpu->mig.instance_count; i++)
		is_held = agent_dra_holds_part(agent, slot, i);
	return is_held;
}

err_status agent_dra_check(const struct agent *agent, const struct dp_config *config,
			   struct err *err)
{
	if (!agent_is_dra(agent) || (config->shared_count == 0 && config->mig != DP_MIG_SINGLE))
		return ERR_OK;
	return err_set(err, ERR_UNSUPPORTED,
		       "mode dra gives whole GPUs and MIG devices to claims; leave out sharing and "
		       "migStrategy single, or use mode device-plugin on this node");
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

// What keeps the MIG device from being given: its own word, or that of its GPU.
static const char *part_held_back(const struct agent *agent, uint32_t slot, uint32_t i)
{
	const struct offer_gpu *offered = &agent->offer.gpus[slot];
	const char *why = offered->has_parts ? offered->parts[i].held_back : NULL;
	return agent->held_back[slot] != NULL ? agent->held_back[slot] : why;
}

static void view_gpu(const struct agent *agent, uint32_t slot, struct dra_gpu *ret)
{
	const struct monitor_gpu *gpu = monitor_gpu(agent->monitor, slot);
	bool is_offered = health_is_offered(&gpu->health);
	*ret = (struct dra_gpu){ .info = &gpu->info,
				 .fault = is_offered ? NULL : health_fault_name(gpu->health.fault),
				 .held_back = agent->held_back[slot] };
	find_root(agent, &gpu->info, ret->pcie_root);
}

static void view_part(const struct agent *agent, uint32_t slot, uint32_t i, struct dra_gpu *ret)
{
	const struct monitor_gpu *gpu = monitor_gpu(agent->monitor, slot);
	view_gpu(agent, slot, ret);
	ret->mig = &gpu->mig.instances[i];
	if (ret->fault == NULL && !monitor_is_part_offered(gpu, i))
		ret->fault = health_fault_name(gpu->parts[i].health.fault);
	ret->held_back = part_held_back(agent, slot, i);
}

// Whether it has a name that devices of a pool may have: older drivers' do not.
static bool is_nameable(const struct mig_instance *instance)
{
	char name[GPU_UUID_BYTES], uuid[GPU_UUID_BYTES];
	return instance->uuid[0] != '\0' &&
	       dra_device_uuid(str_of(dra_device_name(instance->uuid, name)), uuid) &&
	       strcmp(uuid, instance->uuid) == 0;
}

// Whole GPUs, and of those in MIG mode their devices; returns how many.
static size_t view_devices(struct agent *agent)
{
	struct agent_dra *own = agent->dra;
	size_t count = 0, left_out = 0;
	for (uint32_t slot = 0; slot < monitor_count(agent->monitor); slot++) {
		const struct monitor_gpu *gpu = monitor_gpu(agent->monitor, slot);
		if (!gpu->is_known)
			continue;
		if (!gpu->info.mig_enabled && count < DRA_DEVICES_MAX)
			view_gpu(agent, slot, &own->gpus[count++]);
		for (uint32_t i = 0; gpu->info.mig_enabled && i < gpu->mig.instance_count; i++) {
			bool is_good = is_nameable(&gpu->mig.instances[i]);
			if (is_good && count < DRA_DEVICES_MAX)
				view_part(agent, slot, i, &own->gpus[count++]);
			else
				left_out++;
		}
	}
	if (left_out > 0 && !own->is_cut)
		log_kv(LOG_WARN,
		       "MIG devices are left out of the ResourceSlice: more than 64 devices, or "
		       "without a UUID that a device may be named by",
		       NULL);
	own->is_cut = left_out > 0;
	return count;
}

static bool on_view(void *arg, struct dra_view *ret)
{
	struct agent *agent = arg;
	struct agent_dra *own = agent->dra;
	const struct nvml_hello *driver = monitor_driver(agent->monitor);
	if (!monitor_is_ready(agent->monitor) || agent->offer.count == 0)
		return false;
	if (driver->driver_version[0] != '\0') {
		memcpy(own->driver_version, driver->driver_version, sizeof own->driver_version);
		own->cuda_version = driver->cuda_version;
	}
	*ret = (struct dra_view){ .node = agent->config.node_name,
				  .driver_version = own->driver_version,
				  .cuda_version = own->cuda_version,
				  .effect = agent->config.dra_effect,
				  .gpus = own->gpus,
				  .count = view_devices(agent) };
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

static err_status check_part(struct agent *agent, const struct dra_device *device, struct err *err)
{
	uint32_t slot = 0, i = 0;
	const char *uuid = device->uuid;
	if (!monitor_find_mig(agent->monitor, str_of(uuid), &slot, &i))
		return err_set(err, ERR_UNAVAILABLE, "MIG device %s is not on this node now", uuid);
	const struct monitor_gpu *gpu = monitor_gpu(agent->monitor, slot);
	const char *held_back = part_held_back(agent, slot, i);
	if (claim_of(agent, gpu->info.uuid) != NULL)
		held_back = "a claim has its whole GPU";
	if (held_back != NULL)
		return err_set(err, ERR_UNAVAILABLE, "MIG device %s: %s", uuid, held_back);
	if (!monitor_is_part_offered(gpu, i) && !device->tolerates)
		return err_set(err, ERR_UNAVAILABLE, "MIG device %s is not healthy: %s", uuid,
			       monitor_part_reason(gpu, i));
	return ERR_OK;
}

static err_status on_check(void *arg, const struct dra_claim *claim, struct err *err)
{
	struct agent *agent = arg;
	agent_offer(agent); // what holds a GPU back may just have ended
	for (size_t i = 0; i < claim->count; i++) {
		const struct dra_device *device = &claim->devices[i];
		bool is_mig = grant_is_mig(str_of(device->uuid));
		err_status status = is_mig ? check_part(agent, device, err)
					   : check_gpu(agent, device->uuid, device->tolerates, err);
		if (status != ERR_OK)
			return status;
	}
	return ERR_OK;
}

static bool on_cdi_name(void *arg, const char *uuid, char ret_name[GPU_UUID_BYTES])
{
	const struct agent *agent = arg;
	uint32_t slot = 0, i = 0;
	if (monitor_find_mig(agent->monitor, str_of(uuid), &slot, &i)) {
		const struct monitor_gpu *of = monitor_gpu(agent->monitor, slot);
		int n = agent->dp.ids_by_index
				? snprintf(ret_name, GPU_UUID_BYTES, "%" PRIu32 ":%" PRIu32,
					   of->info.index, of->mig.instances[i].index)
				: snprintf(ret_name, GPU_UUID_BYTES, "%s", uuid);
		return n > 0 && n < GPU_UUID_BYTES;
	}
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

// Who holds the claim's device; false: nobody that is known, or the device is not known any more.
static bool holder_of(struct agent *agent, const struct dra_claim *claim, const char *uuid,
		      struct usage_holder *ret)
{
	*ret = (struct usage_holder){
		.pod_uid = str_of(claim->pod_uid),
		.namespace_ = str_of(claim->namespace_),
		.pod = str_of(claim->pod),
		.gpu = str_of(uuid),
		.is_of_claim = true,
	};
	return claim->pod_uid[0] != '\0' && agent_resolve(agent, OFFER_WHOLE, ret);
}

static void show(struct agent *agent, const struct usage_holder *holder)
{
	usage_show(meter_usage(agent->meter), holder, world_wall_s(loop_world(agent->loop)));
}

static bool is_known(const struct agent *agent, const struct usage_holder *holder)
{
	const struct usage *usage = meter_usage(agent->meter);
	for (size_t i = 0; i < usage_count(usage); i++) {
		const struct usage_allocation *item = usage_at(usage, i);
		if (str_eq_c(holder->gpu, item->gpu) && str_eq_c(holder->pod_uid, item->pod_uid) &&
		    usage_is_same_part(item, holder))
			return true;
	}
	return false;
}

// A pod that came and went between two looks has held it all the same.
static void on_release(void *arg, const struct dra_claim *claim)
{
	struct agent *agent = arg;
	for (size_t i = 0; i < claim->count; i++) {
		struct usage_holder holder;
		if (holder_of(agent, claim, claim->devices[i].uuid, &holder) &&
		    !is_known(agent, &holder))
			show(agent, &holder);
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
			struct usage_holder holder;
			if (holder_of(agent, claim, claim->devices[j].uuid, &holder) &&
			    !usage_is_others(meter_usage(agent->meter), &holder))
				show(agent, &holder);
		}
	}
}

static void put_parts_health(const struct agent *agent, const struct monitor_gpu *gpu,
			     struct buf *out)
{
	for (uint32_t i = 0; i < gpu->mig.instance_count; i++) {
		char name[GPU_UUID_BYTES];
		if (!is_nameable(&gpu->mig.instances[i]))
			continue;
		const struct dra_health health = {
			.pool = agent->config.node_name,
			.device = dra_device_name(gpu->mig.instances[i].uuid, name),
			.message = monitor_part_reason(gpu, i),
			.is_healthy = monitor_is_part_offered(gpu, i),
			.seen_s = world_wall_s(loop_world(agent->loop)),
		};
		dra_put_health(out, &health);
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
		put_parts_health(agent, gpu, out);
	}
}

static const char LEFT[] =
	"a claim holds it from before; set mode dra for this node until the claim "
	"has gone";
static const char BEFORE[] = "a pod of the device plugin holds it from before";

const char *agent_dra_part_why(const struct agent *agent, uint32_t slot, uint32_t instance_i)
{
	const struct agent_dra *own = agent->dra;
	const struct monitor_gpu *gpu = monitor_gpu(agent->monitor, slot);
	const struct mig_instance *instance = &gpu->mig.instances[instance_i];
	const struct usage_allocation *holder;
	size_t at = 0;
	if (own == NULL)
		return NULL;
	if (!own->is_served)
		return agent_dra_holds_part(agent, slot, instance_i) ? LEFT : NULL;
	while ((holder = usage_next_holder(meter_usage(agent->meter), gpu->info.uuid, &at)) !=
	       NULL) {
		if (holders_has_row(agent->holders, instance->uuid, holder->pod_uid))
			return BEFORE;
	}
	return NULL;
}

const char *agent_dra_why(const struct agent *agent, uint32_t slot)
{
	const struct agent_dra *own = agent->dra;
	const char *uuid = monitor_gpu(agent->monitor, slot)->info.uuid;
	size_t at = 0;
	if (own == NULL)
		return NULL;
	// In parts each is told by itself.
	bool is_left = agent->offer.gpus[slot].has_parts ? claim_of(agent, uuid) != NULL
							 : agent_dra_holds(agent, slot);
	if (!own->is_served)
		return is_left ? LEFT : NULL;
	// Of a pod that got it by the device plugin before the mode was changed.
	for (;;) {
		const struct usage_allocation *holder =
			usage_next_holder(meter_usage(agent->meter), uuid, &at);
		if (holder == NULL)
			return NULL;
		if (holders_has_row(agent->holders, uuid, holder->pod_uid))
			return BEFORE;
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
