// SPDX-License-Identifier: Apache-2.0
// Shares in the agent: what late asks about GPUs, the specifications of what it binds, and whether
// shares can be offered at all.
#include "daemons/agent/agent.h"

#include "daemons/agent/cdi.h"
#include "daemons/agent/checkpoint.h"
#include "sys/log.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

enum { ENVS_MAX = 6, ENV_BYTES = DP_PATH_BYTES + 96 };

const char *agent_shares_why(const struct agent *agent)
{
	if (agent->pods == NULL)
		return "there is no API server to tell the pods' plans";
	if (agent->config.plan_key_file == NULL)
		return "planKeyFile is not set, so that no plan can be checked";
	// A kubelet that comes back takes pods in within half a second, and fails those whose
	// resource nobody has registered yet: polling is too slow.
	if (agent->dir == NULL || !kubelet_dir_has_inotify(agent->dir))
		return "the kubelet's folder is not watched by inotify (see "
		       "fs.inotify.max_user_instances)";
	return NULL;
}

static err_status check_gpu(void *arg, const char *uuid, const struct gpu_info **ret,
			    struct err *err)
{
	struct agent *agent = arg;
	uint32_t slot = 0;
	const struct monitor_gpu *gpu = monitor_find(agent->monitor, str_of(uuid), &slot);
	if (gpu == NULL)
		return err_set(err, ERR_UNAVAILABLE, "the planned GPU %s is not on this node",
			       uuid);
	*ret = &gpu->info;
	if (slot >= agent->offer.count || agent->offer.hides_shares ||
	    !offer_is_late(&agent->offer.gpus[slot]))
		return err_set(err, ERR_UNAVAILABLE, "the planned GPU %s is not given in shares",
			       uuid);
	if (!health_is_offered(&gpu->health))
		return err_set(err, ERR_UNAVAILABLE, "the planned GPU %s is unhealthy: %s", uuid,
			       gpu->health.reason);
	if (agent->held_back[slot] != NULL)
		return err_set(err, ERR_UNAVAILABLE, "the planned GPU %s: %s", uuid,
			       agent->held_back[slot]);
	return ERR_OK;
}

static bool is_offered(void *arg, share_kind kind, struct str id)
{
	const struct agent *agent = arg;
	return offer_has_late_id(&agent->offer, monitor_gpus(agent->monitor), kind, id);
}

// What the program sees of its share. A container may have two of one GPU, one by thousandths and
// one by memory; each says its own.
struct share_spec {
	char texts[ENVS_MAX][ENV_BYTES];
	const char *envs[ENVS_MAX];
	size_t count;
	struct cdi_mount mounts[CDI_MOUNTS_MAX + 2];
	size_t mount_count;
	char pipe[DP_PATH_BYTES * 2], shm[DP_PATH_BYTES * 2];
};

static void add_env(struct share_spec *spec, const char *fmt, int64_t value)
{
	ASSERT(spec->count < ENVS_MAX);
	(void)snprintf(spec->texts[spec->count], ENV_BYTES, "%s=%" PRId64, fmt, value);
	spec->envs[spec->count] = spec->texts[spec->count];
	spec->count++;
}

#define MPS_PIPE "/mps/" SHARE_MILLI_RESOURCE "/pipe"

static void add_mps(const struct agent *agent, const struct share *share, struct share_spec *spec)
{
	static const struct cdi_mount rw = { .options = { "rw", "nosuid", "nodev", "bind" },
					     .option_count = 4 };
	const char *root = agent->dp.mps_root;
	(void)snprintf(spec->pipe, sizeof spec->pipe, "%.200s/" SHARE_MILLI_RESOURCE "/pipe", root);
	(void)snprintf(spec->shm, sizeof spec->shm, "%.200s/shm", root);
	spec->mounts[spec->mount_count] = rw;
	spec->mounts[spec->mount_count].host_path = spec->pipe;
	spec->mounts[spec->mount_count++].container_path = MPS_PIPE;
	spec->mounts[spec->mount_count] = rw;
	spec->mounts[spec->mount_count].host_path = spec->shm;
	spec->mounts[spec->mount_count++].container_path = "/dev/shm";
	spec->envs[spec->count++] = "CUDA_MPS_PIPE_DIRECTORY=" MPS_PIPE;
	if (share->milli > 0)
		add_env(spec, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
			max_i64(1, share->milli * 100 / SHARE_WHOLE_MILLI));
	if (share->memory_mib == 0)
		return;
	(void)snprintf(spec->texts[spec->count], ENV_BYTES,
		       "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=%" PRId64 "M", share->memory_mib);
	spec->envs[spec->count] = spec->texts[spec->count];
	spec->count++;
}

static void fill_spec(const struct agent *agent, const struct share *share, struct share_spec *spec)
{
	if (share->milli > 0)
		add_env(spec, "GPUAAS_SHARE_MILLI", share->milli);
	if (share->memory_mib > 0)
		add_env(spec, "GPUAAS_SHARE_MEMORY_MIB", share->memory_mib);
	for (size_t i = 0; i < agent->config.mount_count; i++)
		spec->mounts[spec->mount_count++] = agent->config.mounts[i];
	if (agent->dp.share_limit == DP_LIMIT_MPS)
		add_mps(agent, share, spec);
}

static err_status write_spec(void *arg, const struct share_grant *grant, struct err *err)
{
	struct agent *agent = arg;
	uint32_t slot = 0;
	char path[PATH_MAX];
	const struct monitor_gpu *gpu = monitor_find(agent->monitor, str_of(grant->uuid), &slot);
	if (gpu == NULL)
		return err_set(err, ERR_UNAVAILABLE, "GPU %s is not on this node", grant->uuid);
	struct share_spec spec = { .count = 0 };
	fill_spec(agent, &grant->share, &spec);
	struct cdi_config cdi = agent_cdi_config(agent);
	cdi.mounts = spec.mounts;
	cdi.mount_count = spec.mount_count;
	for (size_t i = 0; i < grant->name_count; i++) {
		const struct cdi_share share = { grant->names[i], spec.envs, spec.count };
		cdi.share = &share;
		// What stands behind a name never changes.
		if (!cdi_path(&cdi, path, sizeof path) || access(path, F_OK) == 0)
			continue;
		struct cdi_parts parts = { .gpus = &gpu->info, .gpu_count = 1 };
		err_status status = cdi_write(&cdi, &parts, err);
		if (status != ERR_OK)
			return status;
	}
	return ERR_OK;
}

static void remove_spec(void *arg, const struct share_grant *grant)
{
	struct agent *agent = arg;
	char path[PATH_MAX];
	struct cdi_config cdi = agent_cdi_config(agent);
	for (size_t i = 0; i < grant->name_count; i++) {
		const struct cdi_share share = { .name = grant->names[i] };
		cdi.share = &share;
		if (cdi_path(&cdi, path, sizeof path))
			(void)unlink(path); // gone already is as good
	}
}

static bool is_kept(void *arg, struct str name) { return share_table_has_name(arg, name); }

err_status agent_start_late(struct agent *agent, struct err *err)
{
	const struct agent_config *from = &agent->config;
	char checkpoint[PATH_MAX], state[PATH_MAX];
	(void)snprintf(checkpoint, sizeof checkpoint, "%.3000s/%s", from->device_plugin_dir,
		       CHECKPOINT_FILE);
	(void)snprintf(state, sizeof state, "%.3000s/shares", from->state_dir);
	const struct late_config config = {
		.pod_resources_socket = from->pod_resources_socket,
		.checkpoint_path = checkpoint,
		.state_path = state,
		.pods = agent->pods,
		.events = agent->events,
		.usage = meter_usage(agent->meter),
		.arg = agent,
		.check_gpu = check_gpu,
		.is_offered = is_offered,
		.write_spec = write_spec,
		.remove_spec = remove_spec,
	};
	err_status status = late_new(agent->loop, &config, &agent->late, err);
	if (status == ERR_OK)
		cdi_sweep(from->cdi_dir, STR(CDI_SHARE_PREFIX), is_kept,
			  (void *)(uintptr_t)late_table(agent->late));
	return status;
}

bool agent_is_late(const char *resource) { return share_is_resource(str_of(resource)); }

void agent_pre_start(void *arg, const char *resource, struct grpc_stream *stream,
		     struct str message)
{
	struct agent *agent = arg;
	share_kind kind;
	bool is_share = share_kind_of(str_of(resource), &kind);
	ASSERT(is_share);
	late_pre_start(agent->late, kind, stream, message);
}

void agent_show_shares(void *arg)
{
	struct agent *agent = arg;
	if (agent->late != NULL)
		late_show(agent->late);
}

void agent_view_shared(const struct agent *agent, uint32_t slot, struct node_share *share)
{
	share->replicas = 0; // as labels count them
	share->milli = SHARE_WHOLE_MILLI;
	share->held_back = agent->offer.hides_shares ? agent_shares_why(agent)
						     : agent->held_back[slot];
}

void agent_look_at_shares(struct agent *agent)
{
	bool can_offer = agent_shares_why(agent) == NULL;
	if (agent->offer.count == 0 || !agent->dp.has_shares ||
	    can_offer != agent->offer.hides_shares)
		return;
	log_kv(can_offer ? LOG_INFO : LOG_ERROR,
	       can_offer ? "shares are offered" : "shares are not offered", "why",
	       can_offer ? "" : agent_shares_why(agent), NULL);
	loop_defer(agent->loop, agent_offer_later, agent);
}
