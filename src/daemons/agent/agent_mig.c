// SPDX-License-Identifier: Apache-2.0
// What the agent does for MIG devices, and what an id of a device means to the usage.
#include "daemons/agent/agent.h"

// Why an instance is given to nobody; what its GPU has is told apart.
static const char *why_part_held_back(const struct agent *agent, uint32_t slot, uint32_t i)
{
	const struct monitor_gpu *gpu = monitor_gpu(agent->monitor, slot);
	if (offer_is_part_held_otherwise(&agent->offer.gpus[slot].parts[i], &gpu->mig,
					 &gpu->mig.instances[i], meter_usage(agent->meter),
					 gpu->info.uuid))
		return "it is still held as it was offered before";
	const char *why = agent_layout_why(agent->layout, gpu, i);
	return why != NULL ? why : agent_dra_part_why(agent, slot, i);
}

void agent_hold_back_parts(struct agent *agent, uint32_t slot)
{
	struct offer_gpu *offered = &agent->offer.gpus[slot];
	uint32_t count = monitor_gpu(agent->monitor, slot)->mig.instance_count;
	for (uint32_t i = 0; offered->has_parts && i < count; i++)
		offered->parts[i].held_back = why_part_held_back(agent, slot, i);
}

size_t agent_list_migs(const struct agent *agent, const struct mig_caps *caps,
		       const struct gpu_info *gpus,
		       struct mig_device ret[GPU_MAX * MIG_INSTANCES_MAX])
{
	size_t count = 0, gpu_i = 0;
	for (uint32_t slot = 0; slot < monitor_count(agent->monitor); slot++) {
		const struct monitor_gpu *gpu = monitor_gpu(agent->monitor, slot);
		if (!gpu->is_known)
			continue;
		const struct gpu_info *info = &gpus[gpu_i++];
		for (uint32_t i = 0; i < gpu->mig.instance_count; i++) {
			const struct mig_instance *instance = &gpu->mig.instances[i];
			if (instance->uuid[0] == '\0')
				continue;
			ret[count] = (struct mig_device){ .gpu = info, .instance = instance };
			mig_caps_find(caps, &ret[count]);
			count++;
		}
	}
	return count;
}

bool agent_knows_devices(void *arg)
{
	const struct agent *agent = arg;
	return monitor_is_ready(agent->monitor) && agent->offer.count > 0;
}

// A MIG device is so many of its GPU's compute slices; shared, its shares split them further.
static bool resolve_mig(const struct agent *agent, uint32_t share, struct usage_holder *holder)
{
	uint32_t slot = 0, i = 0;
	if (!monitor_find_mig(agent->monitor, holder->gpu, &slot, &i) || slot >= agent->offer.count)
		return false;
	const struct monitor_gpu *gpu = monitor_gpu(agent->monitor, slot);
	const struct mig_instance *instance = &gpu->mig.instances[i];
	uint32_t replicas = share == OFFER_WHOLE ? 1 : agent->offer.gpus[slot].parts[i].replicas;
	replicas = (uint32_t)max_size(replicas, 1);
	if (share == OFFER_WHOLE || share >= replicas)
		share = 0;
	holder->gpu = str_of(gpu->info.uuid);
	holder->profile = str_of(instance->profile);
	holder->mig_start = instance->start;
	holder->share = instance->start * replicas + share * instance->slices;
	holder->share_count = instance->slices;
	holder->shares = gpu->mig.slices * replicas;
	return gpu->mig.slices > 0;
}

bool agent_resolve(void *arg, uint32_t share, struct usage_holder *holder)
{
	const struct agent *agent = arg;
	uint32_t slot = 0;
	if (grant_is_mig(holder->gpu))
		return resolve_mig(agent, share, holder);
	if (share == OFFER_WHOLE)
		return true;
	holder->share = share;
	holder->shares = 1;
	if (monitor_find(agent->monitor, holder->gpu, &slot) != NULL && slot < agent->offer.count)
		holder->shares = (uint32_t)max_size(agent->offer.gpus[slot].replicas, 1);
	return true;
}
