// SPDX-License-Identifier: Apache-2.0
// The scheduler's plan on a pod: annotation gpuaas.io/devices, and gpuaas.io/devices-mac over
// pod UID, node and its text. A plan whose MAC does not hold is no plan. For whole GPUs it is a
// wish that steers GetPreferredAllocation; the kubelet's choice stays the truth.
#pragma once

#include "gpu/gpu.h"
#include "gpu/share.h"

enum { PLAN_DEVICES_MAX = GPU_MAX, PLAN_NAME_BYTES = 64 };

struct plan_device {
	char container[PLAN_NAME_BYTES];
	char resource[PLAN_NAME_BYTES];
	char uuid[GPU_UUID_BYTES];
	struct share share; // of the GPU; nothing where the plan does not say
};

struct plan {
	struct plan_device devices[PLAN_DEVICES_MAX];
	size_t count;
};

// Refuses what is no such list; members that it does not know are ignored.
MUST_USE err_status plan_parse(struct str text, struct plan *ret, struct err *err);
// Devices of that container and resource; returns how many, at most PLAN_DEVICES_MAX.
size_t plan_of(const struct plan *plan, const char *container, const char *resource,
	       const char *ret_uuids[PLAN_DEVICES_MAX]);
// The share that the container gets for a resource of shares; false: none.
MUST_USE bool plan_share(const struct plan *plan, const char *container, share_kind kind,
			 const char **ret_uuid, struct share *ret_share);
// All shares of that GPU, of whatever container.
struct share plan_share_sum(const struct plan *plan, const char *uuid);
