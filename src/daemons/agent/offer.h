// SPDX-License-Identifier: Apache-2.0
// As what each GPU is offered to the kubelet: whole under the resource's own name, or several
// times (shares, ids UUID::0, UUID::1, ...) under that name or another. Follows from the
// configuration and the GPUs; planning fails when the configuration contradicts itself on these
// GPUs or a list would be larger than the kubelet takes. Pure.
#pragma once

#include "daemons/agent/dp_config.h"
#include "daemons/agent/monitor.h"
#include "daemons/agent/usage.h"

enum {
	OFFER_LIST_MAX_BYTES = 4 * 1024 * 1024, // of one message to the kubelet
	OFFER_RESOURCES_MAX = DP_SHARED_MAX + 1,
	OFFER_ID_BYTES = GPU_UUID_BYTES + 8,
};
#define OFFER_WHOLE UINT32_MAX // instead of the number of a share

struct offer_gpu {
	char resource[DP_RESOURCE_BYTES]; // empty: the slot holds no known GPU
	uint32_t replicas;                // 0: whole
};

struct offer {
	struct offer_gpu gpus[GPU_MAX]; // by slot
	uint32_t count;
	dp_sharing sharing;
	bool fails_above_one; // more than one share in one request
};

// resource: of whole GPUs.
MUST_USE err_status offer_plan(const struct dp_config *config, const char *resource,
			       const struct monitor_gpu *gpus, uint32_t count, struct offer *ret,
			       struct err *err);
// The names, each once, sorted; borrowed from the offer.
size_t offer_resources(const struct offer *offer, const char *ret_names[OFFER_RESOURCES_MAX]);
// The whole list of one resource. held_back: by slot, why it is given to nobody for now, or NULL.
void offer_put_list(struct buf *out, const struct offer *offer, const char *resource,
		    const struct monitor_gpu *gpus, const char *const held_back[GPU_MAX]);
// "UUID" or "UUID::N" into its parts; false: neither.
MUST_USE bool offer_id_parse(struct str id, struct str *ret_uuid, uint32_t *ret_share);
// Whether a name of a resource may be one of ours: it has the domain of whole GPUs.
bool offer_is_ours(struct str name, const char *resource);
// Whether the GPU is held in another form than it is offered in now, whole or by other shares.
bool offer_is_held_otherwise(const struct offer_gpu *offered, const struct usage *usage,
			     const char *uuid);
// Bytes of the list of so many GPUs at their largest, and the other way round.
size_t offer_list_bytes(size_t gpus, size_t replicas);
size_t offer_replicas_max(size_t gpus);
