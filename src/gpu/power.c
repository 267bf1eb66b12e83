// SPDX-License-Identifier: Apache-2.0
#include "gpu/power.h"

#include "gpu/model.h"

// Full power of a GPU is the board power of the maker's data sheet. Idle power, and all of what is
// around the GPU, is an estimate: 15 to 120 W a socket of 32 threads, and 15 to 40 W a GPU for
// board, memory, fans and supplies. The trace openb hides two models behind G2 and G3.
static const struct gpu_power ROWS[] = {
	{ "P100", 25, 250, 45, 105, 5, "data sheet Tesla P100 PCIe; nodes of 2, 16 cores" },
	{ "T4", 10, 70, 60, 230, 5, "data sheet T4; nodes of 2, 104 cores" },
	{ "V100M16", 30, 300, 25, 60, 2, "data sheet V100 SXM2; nodes of 4, 32 cores" },
	{ "V100M32", 30, 300, 25, 75, 2, "data sheet V100 SXM2; nodes of 8, 96 cores" },
	{ "V100", 30, 300, 25, 75, 2, "data sheet V100 SXM2" },
	{ "A10", 30, 150, 100, 500, 10, "data sheet A10; nodes of 1, 128 cores" },
	{ "G2", 30, 150, 25, 65, 2, "taken for an A10; nodes of 8, 96 cores" },
	{ "G3", 50, 400, 30, 85, 2, "taken for an A100 SXM4; nodes of 8, 128 cores" },
	{ "A30", 28, 165, 40, 110, 4, "data sheet A30" },
	{ "A100", 55, 400, 60, 200, 4, "data sheet A100 SXM4, DGX A100" },
	{ "H100", 70, 700, 90, 350, 5, "data sheet H100 SXM5, DGX H100" },
	{ "H200", 75, 700, 90, 350, 5, "data sheet H200 SXM; nodes as of H100" },
	{ "B200", 140, 1000, 120, 600, 6, "data sheet B200, DGX B200" },
	{ "L40S", 35, 350, 40, 130, 4, "data sheet L40S" },
	{ "other", 40, 300, 40, 120, 4, "between the others" },
};

const struct gpu_power *gpu_power_of(struct str model)
{
	size_t last = ARRAY_COUNT(ROWS) - 1;
	for (size_t i = 0; i < last; i++) {
		if (gpu_model_matches(str_of(ROWS[i].model), model))
			return &ROWS[i];
	}
	return &ROWS[last];
}
