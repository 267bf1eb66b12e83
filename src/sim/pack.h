// SPDX-License-Identifier: Apache-2.0
// Packing as the published experiments do it: pods arrive one after the other, never leave and are
// not tried again. The costs of placements are those of the daemon (sched/score.h, sched/board.h);
// here are the books, the curve and moves. A case is read only and can be run many times.
#pragma once

#include "base/buf.h"
#include "sched/board.h"
#include "sim/openb.h"

enum { PACK_PERCENT_MAX = 130, PACK_PODS_A_NODE_MAX = 1001 };
typedef enum pack_class {
	PACK_CPU,
	PACK_SHARE,
	PACK_ONE,
	PACK_FEW,
	PACK_EIGHT,
	PACK_CLASSES
} pack_class;

struct pack_case {
	struct openb_nodes nodes;
	struct openb_pods pods;
	struct score_ask *asks; // of pods
	uint32_t *models;       // of nodes
	int64_t gpu_milli;      // of all nodes
	struct demand demand;
	struct score_power power[SCORE_MODELS_MAX];
};
MUST_USE err_status pack_case_init(struct arena *arena, struct openb_nodes nodes,
				   struct openb_pods pods, struct pack_case *ret, struct err *err);

// pack_main.c: both lists from files.
MUST_USE err_status pack_case_load(struct arena *arena, const char *nodes_path,
				   const char *pods_path, struct pack_case *ret, struct err *err);

struct pack_point { // means over the arrivals within one percent
	double allocated_pct, frag_pct, awake_nodes, watts;
	uint64_t count;
};
struct pack_result {
	struct pack_point curve[PACK_PERCENT_MAX + 1];
	uint64_t decisions, cpu_ns, moved;
	uint64_t failures[PACK_CLASSES]; // up to 100 % arrived
};
struct pack_options {
	struct score_policy policy;
	uint32_t moves; // at most so many running pods for one placement
};
void pack_run(const struct pack_case *pack_case, const struct openb_order *order,
	      const struct pack_options *options, struct pack_result *ret);

// Name of a built-in policy or path of a file.
MUST_USE err_status pack_policy_load(const char *name_or_path, struct score_policy *ret,
				     struct err *err);

// Inside of a run, for pack.c and moves.c.
struct placed {
	uint32_t pod, node, next; // next on the node; PACK_NONE ends
	uint64_t gpus;
};
#define PACK_NONE UINT32_MAX
struct pack {
	const struct pack_case *pack_case;
	const struct openb_order *order;
	struct board *board;
	int64_t *memory_mib_left;
	uint32_t *pod_counts, *first; // by node: its pods
	struct placed *placed;
	size_t placed_count;
	int64_t gpu_milli_used;
	uint64_t moved;
};
// The best node other than `except` (PACK_NONE: any); PACK_NONE when it fits nowhere.
uint32_t pack_best(struct pack *pack, uint32_t pod, uint32_t except);
void pack_put(struct pack *pack, uint32_t placed_i, uint32_t node);
void pack_lift(struct pack *pack, uint32_t placed_i);
void pack_put_back(struct pack *pack, uint32_t placed_i, const struct placed *kept);
bool pack_make_room(struct pack *pack, uint32_t pod, uint32_t moves, uint32_t *ret_node);
