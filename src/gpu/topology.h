// SPDX-License-Identifier: Apache-2.0
// How well the GPUs of one node reach each other, as a score for each pair: a hundred for each
// NVLink between two (direct ones, and through switches the fewer of both), and a little for one
// NUMA node, as in the device plugin of NVIDIA. More is better. Pure.
#pragma once

#include "gpu/gpu.h"

enum {
	TOPOLOGY_LINK = 100, // for each NVLink
	TOPOLOGY_SAME_NUMA = 20,
	TOPOLOGY_OTHER_NUMA = 10,
};

struct topology {
	uint16_t score[GPU_MAX][GPU_MAX]; // symmetric, 0 on the diagonal
};

// NVLinks between two GPUs.
uint32_t topology_links(const struct gpu_info *a, const struct gpu_info *b);
// gpus: by the places of the score; at most GPU_MAX.
void topology_fill(struct topology *topology, const struct gpu_info *const *gpus, size_t count);
