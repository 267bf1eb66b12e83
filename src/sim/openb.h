// SPDX-License-Identifier: Apache-2.0
// Node and pod lists in the form of the public openb trace, and arrival orders. Lists are sorted
// by name; a bad line is refused with file, line and remedy. Texts point into what was parsed and
// arrays lie in the arena, so both must outlive the lists.
#pragma once

#include "base/arena.h"

enum { OPENB_GPUS_MAX = 64, OPENB_NODES_MAX = 100000, OPENB_PODS_MAX = 1000000 };

struct openb_node {
	struct str name, model;
	int64_t cpu_milli, memory_mib;
	uint32_t gpu_count;
	size_t line;
};
struct openb_nodes {
	struct openb_node *items;
	size_t count;
};
struct openb_pod {
	struct str name, models; // models: names joined by '|', empty: any
	int64_t cpu_milli, memory_mib;
	int32_t gpu_count, gpu_milli; // of each
	size_t line;
};
struct openb_pods {
	struct openb_pod *items;
	size_t count;
};
struct openb_order { // what arrives, as indices into the pods, and the place of each node in ties
	uint32_t *pods;
	size_t count;
	uint32_t *ranks;
};

struct openb_file { // name for messages
	const char *name;
	struct str text;
};
MUST_USE err_status openb_nodes_parse(struct arena *arena, struct openb_file file,
				      struct openb_nodes *ret, struct err *err);
MUST_USE err_status openb_pods_parse(struct arena *arena, struct openb_file file,
				     struct openb_pods *ret, struct err *err);
// One pod name a line.
MUST_USE err_status openb_order_parse(struct arena *arena, struct openb_file file,
				      const struct openb_pods *pods, struct openb_order *ret,
				      struct err *err);
// One integer a node, in the order of names: a permutation of 0 to count - 1.
MUST_USE err_status openb_ranks_parse(struct arena *arena, struct openb_file file,
				      size_t node_count, uint32_t **ret_ranks, struct err *err);
struct openb_draw {
	int64_t seed;
	bool is_resampled; // not the list itself but as many pods drawn from it, for tuning
};
// Order and ranks of the published protocol for a seed: shuffled, then pods added or dropped at
// random until they ask for 1.3 times the GPUs.
MUST_USE err_status openb_order_draw(struct arena *arena, const struct openb_nodes *nodes,
				     const struct openb_pods *pods, struct openb_draw how,
				     struct openb_order *ret, struct err *err);
int64_t openb_gpu_milli(const struct openb_pod *pod);
