// SPDX-License-Identifier: Apache-2.0
// Power of GPUs and of the nodes around them: the one table of the project, each row with where it
// comes from. What a node takes without its GPUs is given for each of its GPUs, because nodes of
// one model differ in how many they have. Pure; a model that is not in the table is estimated.
#pragma once

#include "base/str.h"

struct gpu_power {
	const char *model;
	int32_t gpu_idle_w, gpu_full_w;
	int32_t node_idle_w, node_full_w, node_asleep_w; // without GPUs, for each GPU of the node
	const char *source; // of the full power; all else is an estimate
};

// Never NULL: the first row that names the model (gpu/model.h), else the row "other".
const struct gpu_power *gpu_power_of(struct str model);
