// SPDX-License-Identifier: Apache-2.0
// MIG devices that are reserved for tenants: so many of a resource on a node, or on every node that
// has it. What a tenant has not taken yet of what is reserved for it is refused to pods of all
// other namespaces; beyond that it competes like anybody. Which device is whose does not matter,
// those of a profile are alike. A reservation takes nothing from who runs already. Copied.
#pragma once

#include "base/str.h"

enum { SCHED_SLICES_MAX = 256 };
#define SCHED_SLICE_PREFIX "nvidia.com/mig-" // of resources that can be reserved

struct sched;
struct sched_slice {
	struct str tenant, resource;
	struct str node; // empty: every node
	int64_t count;
};

// All that hold now, in place of those before; more than SCHED_SLICES_MAX are left out.
void sched_slices_set(struct sched *sched, const struct sched_slice *slices, size_t count);
