// SPDX-License-Identifier: Apache-2.0
// What a placement costs, in integers: one node, one pod, one policy. A policy is a table of
// weights over the same features, one row a kind of pod; the fragmentation feature needs a demand,
// the pods that are expected. GPUs are counted in milli, so that shares and whole GPUs are one
// case. Pure and without memory of its own; nothing can fail. Lower costs are better.
#pragma once

#include "base/str.h"

enum {
	SCORE_GPUS_MAX = 64,
	SCORE_MODELS_MAX = 32,
	SCORE_CLASSES_MAX = 256,
	SCORE_GPU_MILLI = 1000,
	SCORE_WEIGHT_MAX = 1000000,
};
#define SCORE_NEVER INT64_MAX // does not fit

struct score_ask {
	int64_t cpu_milli;
	int32_t gpu_count, gpu_milli; // of each; without GPUs both are 0
	uint64_t models;              // one bit a model, 0: any
};
_Static_assert(sizeof(struct score_ask) == 24, "asks are keys by their bytes: no padding");
struct score_node {
	int64_t cpu_milli_all, cpu_milli_left;
	uint32_t gpu_count, model_i;
	bool is_awake;                      // some pod is on it
	int16_t milli_left[SCORE_GPUS_MAX]; // by index
	int16_t load_milli;                 // mean of its GPUs, as measured
};

// The pods that are expected: what has come before, by class.
struct demand_class {
	int64_t cpu_milli;
	int32_t gpu_count, gpu_milli;
	uint64_t models;
	int32_t weight_ppm; // of all pods
};
struct demand {
	struct demand_class classes[SCORE_CLASSES_MAX];
	size_t class_count;
	int64_t no_gpu_ppm; // of classes without GPUs
	int32_t rest_micro[SCORE_GPU_MILLI +
			   1];     // by milli left of a GPU: what stays unused in the end
	int64_t cpu_milli_per_gpu; // of all that is asked
	int64_t scarce_micro[SCORE_MODELS_MAX]; // share of a model that pods ask for by name
};
struct demand_item {
	struct score_ask ask;
	int64_t pods;
};
// Classes are the most frequent items until 95 % of the pods are covered; items are sorted by it.
// gpus: how many of each model there are.
void demand_build(struct demand *ret, struct demand_item *items, size_t count,
		  const int64_t gpus[SCORE_MODELS_MAX]);
// GPUs left on the node that the expected pods could not use, in 1e-9 GPUs.
int64_t demand_frag_nano(const struct demand *demand, const struct score_node *node);

typedef enum score_kind { SCORE_CPU, SCORE_SHARE, SCORE_ONE, SCORE_MANY, SCORE_KINDS } score_kind;
typedef enum score_feature { // 1e6 is one unit; of the node as it would be then
	SCORE_FRAG,          // growth of the fragmentation; GPUs
	SCORE_CPU_LEFT,      // 128 cores
	SCORE_GPU_LEFT,      // 8 GPUs
	SCORE_GPU_ALL,       // 8 GPUs of the node, used or not
	SCORE_CPU_PER_GPU,   // 52 cores a GPU of the node
	SCORE_WHOLE_LEFT,    // 8 GPUs that nobody uses
	SCORE_IMBALANCE,     // cores left a GPU left, apart from those of the demand; 100 cores
	SCORE_SCARCE,        // GPUs taken that other pods ask for by name; GPUs
	SCORE_REST,          // growth of what shares are expected to leave unused; GPUs
	SCORE_STRANDED, // growth of GPUs left without the cores that the demand has for them; GPUs
	SCORE_ASLEEP,   // 1 when the node has no pod yet
	SCORE_WATTS,    // growth of the power; kW
	SCORE_BLOCKS,   // aligned pairs, quads and eights that are broken without need
	SCORE_LOAD,     // measured load; a GPU
	SCORE_FEATURES
} score_feature;
extern const char *const SCORE_KIND_NAMES[SCORE_KINDS];
extern const char *const SCORE_FEATURE_NAMES[SCORE_FEATURES];

struct score_policy {
	bool is_level; // fragmentation alone, in 101 levels, as the published FGD
	int32_t weights[SCORE_KINDS][SCORE_FEATURES];
};
struct score_power { // of a GPU and of its node without GPUs, a GPU
	int32_t gpu_idle_w, gpu_full_w, node_idle_w, node_full_w, node_asleep_w;
};
struct score {
	struct score_policy policy;
	struct demand demand;
	struct score_power power[SCORE_MODELS_MAX];
};

// Built in: default, fgd, pack, spread, energy, topology; false: no such name.
MUST_USE bool score_policy_find(struct str name, struct score_policy *ret);
struct score_power score_power_of(struct str model); // from the table in gpu/power.h
score_kind score_kind_of(const struct score_ask *ask);
bool score_asks_equal(const struct score_ask *a, const struct score_ask *b);
bool score_fits(const struct score_node *node, const struct score_ask *ask);
// SCORE_NEVER when it does not fit. ret_gpus: one bit a GPU that it would take; may be NULL.
int64_t score_cost(const struct score *score, const struct score_node *node,
		   const struct score_ask *ask, uint64_t *ret_gpus);
void score_take(struct score_node *node, const struct score_ask *ask, uint64_t gpus);
void score_give(struct score_node *node, const struct score_ask *ask, uint64_t gpus);
int64_t score_node_milliwatt(const struct score_power *power, const struct score_node *node);
