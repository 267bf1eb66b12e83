// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/inject.h"

#include "daemons/agent/cdi.h"
#include "daemons/agent/dp_proto.h"
#include "sys/random.h"

#include <inttypes.h>
#include <stdio.h>

#define MOUNTS_DIR "/var/run/nvidia-container-devices"
#define IMEX_MOUNT MOUNTS_DIR "/imex/0"
#define MPS_CONTAINER_DIR "/mps"

enum {
	ENVS_MAX = 12,
	DEVICES_MAX = GPU_MAX + INJECT_MIGS_MAX,
	MOUNTS_MAX = DEVICES_MAX + 4,
	NODES_MAX = GPU_MAX + 2 * INJECT_MIGS_MAX + 8,
	ARENA_BYTES = 256 * 1024,
	WORD = 16,
};

// The answer while it grows; its texts live in the arena.
struct answer {
	struct arena *arena;
	struct dp_pair envs[ENVS_MAX], annotation;
	struct dp_mount mounts[MOUNTS_MAX];
	struct dp_node nodes[NODES_MAX];
	struct str cdi_names[DEVICES_MAX];
	struct dp_allocated parts;
};

static void add_env(struct answer *answer, const char *name, const char *value)
{
	ASSERT(answer->parts.env_count < ENVS_MAX);
	answer->envs[answer->parts.env_count++] = (struct dp_pair){ str_of(name), str_of(value) };
}

static void add_mount(struct answer *answer, const char *host, const char *container, bool is_ro)
{
	ASSERT(answer->parts.mount_count < MOUNTS_MAX);
	answer->mounts[answer->parts.mount_count++] =
		(struct dp_mount){ str_of(container), str_of(host), is_ro };
}

static size_t device_count(const struct inject_request *request)
{
	ASSERT(request->count == 0 || request->mig_count == 0);
	return request->count + request->mig_count;
}

// What containers and CDI names are told of the i-th device.
static const char *id_of(const struct inject *inject, struct answer *answer,
			 const struct inject_request *request, size_t i)
{
	bool by_index = inject->config->ids_by_index;
	if (request->mig_count > 0) {
		const struct mig_device *mig = &request->migs[i];
		return by_index ? arena_printf(answer->arena, "%" PRIu32 ":%" PRIu32,
					       mig->gpu->index, mig->instance->index)
				: mig->instance->uuid;
	}
	return by_index ? arena_printf(answer->arena, "%" PRIu32, request->gpus[i]->index)
			: request->gpus[i]->uuid;
}

static const char *join(const struct inject *inject, const struct inject_request *request,
			struct answer *answer, const char *prefix)
{
	AUTO(buf_done) struct buf out = { 0 };
	for (size_t i = 0; i < device_count(request); i++)
		buf_printf(&out, "%s%s%s", i == 0 ? "" : ",", prefix,
			   id_of(inject, answer, request, i));
	return arena_cstr(answer->arena, buf_str(&out));
}

static void add_cdi(const struct inject *inject, const struct inject_request *request,
		    struct answer *answer)
{
	const struct dp_config *config = inject->config;
	size_t count = (config->lists & DP_LIST_CDI_CRI) != 0 ? device_count(request) : 0;
	for (size_t i = 0; i < count; i++)
		answer->cdi_names[answer->parts.cdi_count++] = str_of(arena_printf(
			answer->arena, CDI_KIND "=%s", id_of(inject, answer, request, i)));
	if ((config->lists & DP_LIST_CDI_ANNOTATIONS) == 0)
		return;
	char word[WORD + 1];
	random_base62(word, WORD);
	answer->annotation = (struct dp_pair){
		str_of(arena_printf(answer->arena, "%snvidia-device-plugin_%s",
				    config->annotation_prefix, word)),
		str_of(join(inject, request, answer, CDI_KIND "=")),
	};
	answer->parts.annotation_count = 1;
}

static void add_volume_mounts(const struct inject *inject, const struct inject_request *request,
			      struct answer *answer)
{
	for (size_t i = 0; i < device_count(request); i++)
		add_mount(answer, "/dev/null",
			  arena_printf(answer->arena, MOUNTS_DIR "/%s",
				       id_of(inject, answer, request, i)),
			  false);
	if (inject->config->has_imex_channel)
		add_mount(answer, "/dev/null", IMEX_MOUNT, false);
}

static void add_node(const struct inject *inject, struct answer *answer, const char *name)
{
	const struct dp_config *config = inject->config;
	const char *root = config->dev_root[0] != '\0'      ? config->dev_root
			   : config->driver_root[0] != '\0' ? config->driver_root
							    : inject->driver_root;
	char path[CDI_NODE_PATH_BYTES];
	cdi_host_path(root, name, path);
	ASSERT(answer->parts.node_count < NODES_MAX);
	answer->nodes[answer->parts.node_count++] = (struct dp_node){
		str_of(arena_printf(answer->arena, "/dev/%s", name)),
		str_of(arena_cstr(answer->arena, str_of(path))),
	};
}

// The node of each GPU once, and the capabilities of each MIG device.
static void add_mig_nodes(const struct inject *inject, const struct inject_request *request,
			  struct answer *answer)
{
	AUTO(mig_caps_done) struct mig_caps caps = { 0 };
	char name[MIG_CAPS_NAME_BYTES];
	if (request->mig_count > 0)
		mig_caps_read(inject->proc_root, &caps);
	for (size_t i = 0; i < request->mig_count; i++) {
		struct mig_device mig = request->migs[i];
		bool is_first = i == 0 || request->migs[i - 1].gpu != mig.gpu;
		if (is_first)
			add_node(inject, answer,
				 arena_printf(answer->arena, "nvidia%" PRIu32, mig.gpu->minor));
		mig_caps_find(&caps, &mig);
		if (!mig.has_caps)
			continue;
		add_node(inject, answer, mig_caps_name(mig.gi_cap, name));
		add_node(inject, answer, mig_caps_name(mig.ci_cap, name));
	}
}

static void add_nodes(const struct inject *inject, const struct inject_request *request,
		      struct answer *answer)
{
	for (size_t i = 0; cdi_control_name(i) != NULL; i++) {
		if (cdi_look(inject->driver_root, cdi_control_name(i)).exists)
			add_node(inject, answer, cdi_control_name(i));
	}
	for (size_t i = 0; i < request->count; i++)
		add_node(inject, answer,
			 arena_printf(answer->arena, "nvidia%" PRIu32, request->gpus[i]->minor));
	add_mig_nodes(inject, request, answer);
}

static void add_older(const struct inject *inject, const struct inject_request *request,
		      struct answer *answer)
{
	const struct dp_config *config = inject->config;
	bool is_mounts = (config->lists & DP_LIST_VOLUME_MOUNTS) != 0;
	if (is_mounts)
		add_volume_mounts(inject, request, answer);
	// One variable, two ways to read it: with both strategies the list stands in the mounts.
	add_env(answer, "NVIDIA_VISIBLE_DEVICES",
		is_mounts ? MOUNTS_DIR : join(inject, request, answer, ""));
	if (config->has_imex_channel && !is_mounts)
		add_env(answer, "NVIDIA_IMEX_CHANNELS", "0");
	if (config->pass_device_specs)
		add_nodes(inject, request, answer);
	if (config->gdrcopy)
		add_env(answer, "NVIDIA_GDRCOPY", "enabled");
	if (config->gds)
		add_env(answer, "NVIDIA_GDS", "enabled");
	if (config->mofed)
		add_env(answer, "NVIDIA_MOFED", "enabled");
}

static void add_mps(const struct inject *inject, const struct inject_request *request,
		    struct answer *answer)
{
	const char *root = inject->config->mps_root;
	const char *pipe =
		arena_printf(answer->arena, MPS_CONTAINER_DIR "/%s/pipe", request->resource);
	ASSERT(request->count == 1 && request->mps_shares <= request->mps_of);
	uint64_t memory_mib = gpu_memory_mib(request->gpus[0]);
	uint32_t percent = 100 * request->mps_shares / request->mps_of;
	add_env(answer, "CUDA_MPS_PIPE_DIRECTORY", pipe);
	// A client may only lower what the daemon allows; there its GPU is device 0.
	add_env(answer, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
		arena_printf(answer->arena, "0=%" PRIu64 "M",
			     memory_mib * request->mps_shares / request->mps_of));
	add_env(answer, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
		arena_printf(answer->arena, "%" PRIu32, percent == 0 ? 1 : percent));
	add_mount(answer, arena_printf(answer->arena, "%s/%s/pipe", root, request->resource), pipe,
		  false);
	add_mount(answer, arena_printf(answer->arena, "%s/shm", root), "/dev/shm", false);
}

bool inject_put(const struct inject *inject, const struct inject_request *request, struct buf *out)
{
	AUTO(arena_freep) struct arena *arena = arena_new(ARENA_BYTES);
	struct answer answer = { .arena = arena };
	ASSERT(request->count <= GPU_MAX && request->mig_count <= INJECT_MIGS_MAX);
	if (arena == NULL)
		return false;
	if ((inject->config->lists & DP_LIST_ANY_CDI) != 0)
		add_cdi(inject, request, &answer);
	if ((inject->config->lists & ~(unsigned)DP_LIST_ANY_CDI) != 0)
		add_older(inject, request, &answer);
	else // runtimes with a hook of their own must add nothing to the CDI names
		add_env(&answer, "NVIDIA_VISIBLE_DEVICES", "void");
	if (request->mps_of > 0)
		add_mps(inject, request, &answer);
	answer.parts.envs = answer.envs;
	answer.parts.mounts = answer.mounts;
	answer.parts.nodes = answer.nodes;
	answer.parts.annotations = &answer.annotation;
	answer.parts.cdi_names = answer.cdi_names;
	dp_put_allocated(out, &answer.parts);
	return buf_ok(out);
}
