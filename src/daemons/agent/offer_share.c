// SPDX-License-Identifier: Apache-2.0
// The part of an offer that is about GPUs set aside for shares.
#include "daemons/agent/offer.h"

#include <inttypes.h>

bool offer_is_late(const struct offer_gpu *offered)
{
	return strcmp(offered->resource, SHARE_MILLI_RESOURCE) == 0;
}

err_status offer_check_late(const struct offer *offer, const struct monitor_gpu *gpus,
			    struct err *err)
{
	for (uint32_t slot = 0; slot < offer->count; slot++) {
		const struct offer_gpu *gpu = &offer->gpus[slot];
		for (size_t i = 0; gpu->has_parts && i < MIG_INSTANCES_MAX; i++) {
			if (strcmp(gpu->parts[i].resource, SHARE_MILLI_RESOURCE) == 0)
				return err_set(err, ERR_INVALID,
					       "GPU %" PRIu32 " (%s) is in MIG mode, where "
					       "sharing.shares is not possible; select other GPUs",
					       gpus[slot].info.index, gpus[slot].info.uuid);
		}
	}
	return ERR_OK;
}

static int64_t units_of(const struct monitor_gpu *gpu, share_kind kind)
{
	return share_units(kind, (int64_t)gpu_memory_mib(&gpu->info));
}

bool offer_put_late(struct buf *out, const struct offer *offer, const char *resource,
		    const struct monitor_gpu *gpus, const char *const held_back[GPU_MAX])
{
	share_kind kind;
	if (!share_kind_of(str_of(resource), &kind))
		return false;
	for (uint32_t slot = 0; slot < offer->count; slot++) {
		bool is_healthy = health_is_offered(&gpus[slot].health) && held_back[slot] == NULL;
		if (offer_is_late(&offer->gpus[slot]))
			share_ids_put(out, kind, slot, units_of(&gpus[slot], kind), is_healthy);
	}
	return true;
}

bool offer_has_late_id(const struct offer *offer, const struct monitor_gpu *gpus, share_kind kind,
		       struct str id)
{
	uint32_t slot, number;
	return share_id_parse(id, kind, &slot, &number) && slot < offer->count &&
	       !offer->hides_shares && offer_is_late(&offer->gpus[slot]) &&
	       number < units_of(&gpus[slot], kind);
}
