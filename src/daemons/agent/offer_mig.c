// SPDX-License-Identifier: Apache-2.0
// The part of an offer that is about MIG devices.
#include "daemons/agent/dp_proto.h"
#include "daemons/agent/offer.h"

#include <inttypes.h>
#include <stdio.h>

static const char MIXED_UP[] =
	"strategy single needs MIG mode and instances of one profile on every GPU";

// What strategy single needs; NULL: it is so, or no GPU is in MIG mode.
static const char *find_problem(const struct monitor_gpu *gpus, uint32_t count)
{
	const char *profile = NULL;
	bool any = false, all = true;
	for (uint32_t slot = 0; slot < count; slot++) {
		const struct mig_state *mig = &gpus[slot].mig;
		uint32_t usable = 0;
		if (!gpus[slot].is_known)
			continue;
		for (uint32_t i = 0; gpus[slot].info.mig_enabled && i < mig->instance_count; i++) {
			const struct mig_instance *instance = &mig->instances[i];
			if (instance->uuid[0] == '\0')
				continue;
			usable++;
			profile = profile == NULL ? instance->profile : profile;
			all = all && strcmp(profile, instance->profile) == 0;
		}
		any = any || gpus[slot].info.mig_enabled;
		all = all && usable > 0;
	}
	return any && !all ? MIXED_UP : NULL;
}

static err_status assign_part(const struct dp_config *config, const struct gpu_info *gpu,
			      const char *name, const struct dp_shared *shared,
			      struct offer_part *part, struct err *err)
{
	if (shared != NULL && config->sharing == DP_MPS)
		return err_set(err, ERR_INVALID,
			       "GPU %" PRIu32 " (%s) is in MIG mode, where sharing.mps is not "
			       "possible; select other GPUs",
			       gpu->index, gpu->uuid);
	part->replicas = shared == NULL ? 0 : shared->replicas;
	(void)snprintf(part->resource, sizeof part->resource, "%.63s",
		       shared == NULL ? name : shared->renamed);
	return ERR_OK;
}

err_status offer_plan_parts(const struct dp_config *config, const char *resource,
			    const struct monitor_gpu *gpus, offer_find_fn *find,
			    struct offer *offer, struct err *err)
{
	const char *slash = strchr(resource, '/');
	char prefix[DP_RESOURCE_BYTES];
	size_t place = 0;
	(void)snprintf(prefix, sizeof prefix, "%.*s",
		       slash == NULL ? 0 : (int)(slash + 1 - resource), resource);
	if (config->mig == DP_MIG_SINGLE)
		offer->problem = find_problem(gpus, offer->count);
	for (uint32_t slot = 0; slot < offer->count; slot++) {
		const struct monitor_gpu *gpu = &gpus[slot];
		struct offer_gpu *offered = &offer->gpus[slot];
		size_t own_place = place;
		place += gpu->is_known ? 1 : 0;
		if (gpu->is_known && offer->problem != NULL)
			offered->resource[0] = '\0';
		if (!gpu->is_known || !gpu->info.mig_enabled)
			continue;
		*offered = (struct offer_gpu){ .has_parts = true };
		for (uint32_t i = 0; offer->problem == NULL && i < gpu->mig.instance_count; i++) {
			const struct mig_instance *instance = &gpu->mig.instances[i];
			char name[DP_RESOURCE_BYTES];
			const struct dp_shared *shared = NULL;
			if (instance->uuid[0] == '\0')
				continue;
			(void)snprintf(name, sizeof name, "%.63s", resource);
			if (config->mig == DP_MIG_MIXED)
				mig_resource_name(prefix, str_of(instance->profile), name,
						  sizeof name);
			if (find(config, name, &gpu->info, own_place, &shared, err) != ERR_OK ||
			    assign_part(config, &gpu->info, name, shared, &offered->parts[i],
					err) != ERR_OK)
				return err->status;
		}
	}
	return ERR_OK;
}

void offer_put_parts(struct buf *out, const struct offer_gpu *offered, const char *resource,
		     const struct monitor_gpu *gpu, const char *held_back)
{
	for (uint32_t i = 0; i < gpu->mig.instance_count; i++) {
		const struct offer_part *part = &offered->parts[i];
		const struct mig_instance *instance = &gpu->mig.instances[i];
		if (strcmp(part->resource, resource) != 0)
			continue;
		for (uint32_t n = 0; n < max_size(part->replicas, 1); n++) {
			char id[OFFER_ID_BYTES];
			int len = snprintf(id, sizeof id, "%s", instance->uuid);
			if (part->replicas > 0)
				len = snprintf(id, sizeof id, "%s::%" PRIu32, instance->uuid, n);
			ASSERT(len > 0 && (size_t)len < sizeof id);
			const struct dp_device device = {
				.id = { id, (size_t)len },
				.is_healthy = monitor_is_part_offered(gpu, i) &&
					      held_back == NULL && part->held_back == NULL,
				.numa_node = gpu->info.numa_node,
			};
			dp_put_list(out, &device, 1);
		}
	}
}

bool offer_is_part_held_otherwise(const struct offer_part *part, const struct mig_state *mig,
				  const struct mig_instance *instance, const struct usage *usage,
				  const char *uuid)
{
	uint32_t den = mig->slices * (uint32_t)max_size(part->replicas, 1);
	size_t at = 0;
	for (;;) {
		const struct usage_allocation *holder = usage_next_holder(usage, uuid, &at);
		if (holder == NULL)
			return false;
		if ((holder->mig_starts >> instance->start & 1) != 0 && holder->share_den != den)
			return true;
	}
}
