// SPDX-License-Identifier: Apache-2.0
// Names of the MIG profiles that GPUs here could have, learnt from what nodes' agents tell. A
// tenant's quota counts each of them by name, and what is not counted a tenant's pod may not ask
// for. Names are kept for as long as the server runs, at most as many as the inventory takes; what
// is no name of a profile is passed over. Pure.
#pragma once

#include "base/json.h"
#include "gpu/gpu.h"

enum { MIG_NAMES_MAX = 128 };

struct mig_names {
	char items[MIG_NAMES_MAX][GPU_PROFILE_BYTES];
	size_t count;
};

// Whether the GPUNode brought a new one.
bool mig_names_learn(struct mig_names *names, const json_t *node);
