// SPDX-License-Identifier: Apache-2.0
// As what each GPU is offered to the kubelet: whole under the resource's own name, or several
// times (shares, ids UUID::0, UUID::1, ...) under that name or another, or in parts: its MIG
// devices, by the strategies none, single and mixed of the upstream plugin. Follows from the
// configuration and the GPUs; planning fails when the configuration contradicts itself on these
// GPUs or a list would be larger than the kubelet takes. Pure.
#pragma once

#include "daemons/agent/dp_config.h"
#include "daemons/agent/monitor.h"
#include "daemons/agent/share_ids.h"
#include "daemons/agent/usage.h"

enum {
	OFFER_LIST_MAX_BYTES = 4 * 1024 * 1024, // of one message to the kubelet
	OFFER_RESOURCES_MAX = DP_SHARED_MAX + 2 + GPU_MAX * MIG_INSTANCES_MAX,
	OFFER_ID_BYTES = GPU_UUID_BYTES + 8,
};
#define OFFER_WHOLE UINT32_MAX // instead of the number of a share

struct offer_part {                       // a MIG device
	char resource[DP_RESOURCE_BYTES]; // empty: it is not offered
	uint32_t replicas;                // 0: whole
	const char *held_back; // why it is given to nobody for now, or NULL; by the owner
};

struct offer_gpu {
	char resource[DP_RESOURCE_BYTES]; // empty: not offered, or in parts
	uint32_t replicas;                // 0: whole
	bool has_parts;
	struct offer_part parts[MIG_INSTANCES_MAX]; // beside the instances of the GPU
};

struct offer {
	struct offer_gpu gpus[GPU_MAX]; // by slot
	uint32_t count;
	dp_sharing sharing;
	bool fails_above_one; // more than one share in one request
	bool hides_shares;    // GPUs set aside for them are offered to nobody
	const char *problem;  // why MIG devices are not offered, or NULL
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
// The same of a MIG device.
bool offer_is_part_held_otherwise(const struct offer_part *part, const struct mig_state *mig,
				  const struct mig_instance *instance, const struct usage *usage,
				  const char *uuid);
// The entry of sharing that names the resource on a GPU, the place-th of its node; NULL: none.
typedef err_status offer_find_fn(const struct dp_config *config, const char *resource,
				 const struct gpu_info *gpu, size_t place,
				 const struct dp_shared **ret, struct err *err);
// Adds what is offered in parts to a plan of whole GPUs.
MUST_USE err_status offer_plan_parts(const struct dp_config *config, const char *resource,
				     const struct monitor_gpu *gpus, offer_find_fn *find,
				     struct offer *offer, struct err *err);
// Devices of a MIG GPU in the list of a resource.
void offer_put_parts(struct buf *out, const struct offer_gpu *offered, const char *resource,
		     const struct monitor_gpu *gpu, const char *held_back);
// Whether the GPU is set aside for shares that are bound late.
bool offer_is_late(const struct offer_gpu *offered);
// Nothing of a GPU in MIG mode can be set aside.
MUST_USE err_status offer_check_late(const struct offer *offer, const struct monitor_gpu *gpus,
				     struct err *err);
// The list of a resource of shares; false: it is none.
bool offer_put_late(struct buf *out, const struct offer *offer, const char *resource,
		    const struct monitor_gpu *gpus, const char *const held_back[GPU_MAX]);
bool offer_has_late_id(const struct offer *offer, const struct monitor_gpu *gpus, share_kind kind,
		       struct str id);
// Bytes of the list of so many GPUs at their largest, and the other way round.
size_t offer_list_bytes(size_t gpus, size_t replicas);
size_t offer_replicas_max(size_t gpus);
