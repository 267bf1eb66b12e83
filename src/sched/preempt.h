// SPDX-License-Identifier: Apache-2.0
// Preemption: who must leave so that a pod of higher priority runs. A pod that fits nowhere gets
// the node where the cheapest pods of lower priority make room, found by a trial of all filters
// without them; what leaves already is used first. The node is kept for it until it runs there, or
// until that cannot come true any more. The caller asks the victims to leave (Eviction API) and
// says when that is refused. Settings, budgets and texts are copied; nothing here fails.
#pragma once

#include "sched/spec.h"

struct sched;

typedef enum sched_preemption { SCHED_PREEMPT_OFF, SCHED_PREEMPT_PRIORITY } sched_preemption;
struct sched_move_rules {  // who goes on elsewhere so that a pod fits that fits nowhere
	int64_t count_max; // moves in one period, of each GPU model; 0: nobody is moved
	int64_t period_ms;
	int64_t min_run_ms;  // nobody is moved who has run for less where it is
	int64_t lost_max_ms; // GPU-time since the checkpoints that one decision may lose
};
#define SCHED_MOVE_RULES /* unless said otherwise: off, but with limits */                         \
	{                                                                                          \
		.period_ms = 3600000, .min_run_ms = 3600000, .lost_max_ms = 3600000                \
	}
struct sched_preempt_rules {
	sched_preemption mode;        // off unless set
	int64_t min_run_ms;           // nobody is a victim who has run for less
	int64_t delay_ms;             // how long a pod waits before others must leave for it
	int64_t evictions_per_minute; // at most; 0: no limit
	struct sched_move_rules move; // needs a mode that is not off
};
enum { SCHED_GRACE_S = 30, SCHED_VICTIMS_MAX = 1024, SCHED_MOVES_MAX = 1000 };

struct sched_stay {            // of a pod: what its eviction costs, what it may do to others
	int64_t checkpoint_ms; // its work is safe up to then, by the clock of sched_next; 0: none
	int64_t grace_s;       // that it has to end; 0: SCHED_GRACE_S
	uint64_t owner;        // its controller, as a number; 0: none
	bool never_preempts;   // waits until there is room
	bool is_evicted;       // the API server says that it leaves for another pod
};
struct sched_victim {
	struct str uid, namespace_, name, node;
	int64_t gpu_count;
	int64_t lost_ms; // it has run since its checkpoint
	int64_t grace_s;
	bool is_reclaimed; // by a queue below what is its own, whatever the priorities
	bool is_guarded;   // a budget counts it: its eviction may be refused
	struct str home;   // where it is to go on, moved for defragmentation; empty: nowhere
};
struct sched_budget {               // PodDisruptionBudget
	struct str key, namespace_; // key: namespace/name
	struct sched_selector selector;
	int64_t allowed; // how many more may be disrupted now
};

// "off", "priority".
MUST_USE bool sched_preemption_parse(struct str text, sched_preemption *ret_mode);
void sched_preempt_set(struct sched *sched, const struct sched_preempt_rules *rules);
void sched_budget_set(struct sched *sched, const struct sched_budget *budget);
void sched_budget_remove(struct sched *sched, struct str key); // unknown key: nothing
// The pod was asked to leave and may not be: it stays, and is spared for a while.
void sched_evict_failed(struct sched *sched, struct str uid, int64_t now_ms);

struct sched_preempt_view {    // of one pod, borrowed until the next call
	struct str kept_node;  // for a waiting pod; empty: none
	size_t leaving_count;  // pods that have to leave it first
	struct str evicted_by; // namespace/name of the pod that this one makes room for
	struct str home;       // the node where it is to go on; empty: nowhere
	int64_t queued_s;      // it stands in the queue as if made then; 0: by its own time
};
// False: no such pod.
MUST_USE bool sched_preempt_explain(const struct sched *sched, struct str namespace_,
				    struct str name, struct sched_preempt_view *ret);
