// SPDX-License-Identifier: Apache-2.0
// The policies that are built in. Only the ratio of weights counts. default and energy were found
// with "gpuaas-sim tune" and steps by hand, on seeds 100 to 301 of openb.
#include "gpu/power.h"
#include "sched/score.h"

const char *const SCORE_KIND_NAMES[SCORE_KINDS] = { "cpu", "share", "one", "many" };
const char *const SCORE_FEATURE_NAMES[SCORE_FEATURES] = {
	"frag",   "cpu_left", "gpu_left", "gpu_all", "cpu_per_gpu", "whole_left", "imbalance",
	"scarce", "rest",     "stranded", "asleep",  "watts",       "blocks",     "load",
};

// Rows: pods without GPUs, with a share, with one GPU, with several. Columns, as score_feature:
// frag, cpu_left, gpu_left, gpu_all, cpu_per_gpu, whole_left, imbalance, scarce, rest, stranded,
// asleep, watts, blocks, load. Of a share, whose GPU is chosen by what it leaves of it, the load
// counts in thousandths of a GPU: half a GPU's load outweighs any fit.
static const struct score_policy DEFAULT = {
	.weights = {
		{ 22875, -815, 1825, 1697, -2471, 543, 2883, 22464, 59, 5000, 2000, 0, 0, 0 },
		{ 22262, 1815, 44, 5000, -3000, 3, 2500, 16668, 2872, 4000, 1500, 0, 0, 2000 },
		{ 23277, 1815, 111, 5000, -3000, 3, 2500, 27041, 2872, 4000, 1500, 0, 0, 0 },
		{ 21460, 1468, 134, 2809, -3591, 3, 3869, 19369, -72, 5000, 2, 0, 0, 0 },
	},
};

static const struct score_policy ENERGY = {
	.weights = {
		{ 30000, -815, 1825, -3000, -2471, 543, 2883, 22464, 59, 5000, 1500, 2500, 0, 0 },
		{ 30000, 1815, 44, -3000, -3000, 3, 2500, 16668, 2872, 4000, 1500, 2500, 0, 2000 },
		{ 30000, 1815, 111, -3000, -3000, 3, 2500, 27041, 2872, 4000, 1500, 2500, 0, 0 },
		{ 30000, 1468, 134, -3000, -3591, 3, 3869, 19369, -72, 5000, 1500, 2500, 0, 0 },
	},
};

// Awake nodes first, of those the fullest, of those the smallest.
static const struct score_policy PACK = {
	.weights = {
		{ 0, 100, 10000, 0, 0, 0, 0, 0, 0, 0, 100000, 0, 0, 0 },
		{ 0, 10, 10000, 100, 0, -1000, 0, 0, 0, 0, 100000, 0, 0, 2000 },
		{ 0, 10, 10000, 100, 0, 0, 0, 0, 0, 0, 100000, 0, 0, 0 },
		{ 0, 10, 10000, 100, 0, 0, 0, 0, 0, 0, 100000, 0, 0, 0 },
	},
};

// The emptiest node.
static const struct score_policy SPREAD = {
	.weights = {
		{ 0, -10000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
		{ 0, -100, -10000, 0, 0, 1000, 0, 0, 0, 0, 0, 0, 0, 2000 },
		{ 0, -100, -10000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
		{ 0, -100, -10000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
	},
};

// Blocks that NVLink joins stay whole for those who need them; then as pack.
static const struct score_policy TOPOLOGY = {
	.weights = {
		{ 0, 100, 10000, 0, 0, 0, 0, 0, 0, 0, 10000, 0, 0, 0 },
		{ 0, 0, 10000, 0, 0, 0, 0, 0, 0, 0, 10000, 0, 100000, 2000 },
		{ 0, 0, 10000, 0, 0, 0, 0, 0, 0, 0, 10000, 0, 100000, 0 },
		{ 0, 0, 10000, 0, 0, 0, 0, 0, 0, 0, 10000, 0, 100000, 0 },
	},
};

static const struct score_policy FGD = { .is_level = true };

struct score_power score_power_of(struct str model)
{
	const struct gpu_power *power = gpu_power_of(model);
	return (struct score_power){ power->gpu_idle_w, power->gpu_full_w, power->node_idle_w,
				     power->node_full_w, power->node_asleep_w };
}

bool score_policy_find(struct str name, struct score_policy *ret)
{
	static const struct {
		const char *name;
		const struct score_policy *policy;
	} POLICIES[] = {
		{ "default", &DEFAULT }, { "fgd", &FGD },       { "pack", &PACK },
		{ "spread", &SPREAD },   { "energy", &ENERGY }, { "topology", &TOPOLOGY },
	};
	for (size_t i = 0; i < ARRAY_COUNT(POLICIES); i++) {
		if (str_eq_c(name, POLICIES[i].name)) {
			*ret = *POLICIES[i].policy;
			return true;
		}
	}
	return false;
}
