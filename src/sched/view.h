// SPDX-License-Identifier: Apache-2.0
// What the core shows of itself: where a pod stands and why, what is reserved, how many there are
// of what. Texts are borrowed until the next call of sched.h.
#pragma once

#include "sched/fact.h"

typedef enum sched_state {
	SCHED_STATE_GATED,
	SCHED_STATE_REFUSED,
	SCHED_STATE_WAITING,
	SCHED_STATE_ASSUMED,
	SCHED_STATE_BOUND,
} sched_state;

struct sched_explanation {
	sched_state state;
	size_t position; // 1 is the head of the queue; 0: not waiting
	struct str node;
	struct str reserved_node; // kept for it while it waits; empty: none
	int64_t reserved_ms;      // from when it will fit there; SCHED_NEVER_MS: cannot be told
	struct sched_facts facts;
};
struct sched_reservation {    // a node kept for a pod that waits at the head of a pool
	struct str uid, node; // of a gang the first pod, once for each node
	size_t pod_count;     // so many will be there
	int64_t start_ms;     // when it will fit there, by expected ends; SCHED_NEVER_MS
};
struct sched_counts {
	size_t nodes, shapes, waiting, gated, refused, assumed, bound;
	size_t gang_held;                    // waiting pods that start with their gang
	size_t waiting_by_code[SCHED_CODES]; // pods that wait with this reason
};
