// SPDX-License-Identifier: Apache-2.0
// From a GPUPolicy to the MIG devices that it reserves for tenants. What is no reservation (no
// tenant, no name of a profile, no count) is passed over; the node's agent says so when it reads
// the same object. Texts borrow from the JSON or lie in the arena.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "sched/slices.h"

#define FEED_POLICIES_PATH "/apis/gpuaas.io/v1alpha1/gpupolicies"

// False at the arena's limit.
MUST_USE bool feed_slices(struct arena *arena, const json_t *policy,
			  struct sched_slice **ret_slices, size_t *ret_count);
