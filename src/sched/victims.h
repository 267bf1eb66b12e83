// SPDX-License-Identifier: Apache-2.0
// Preemption inside of the core: what is kept of pods that make room and of pods that room is made
// for, budgets, and the search for the cheapest victims. The search takes pods off the ledger for
// the time of a question and puts them back, so that every filter answers as it will when they
// have left. All of it is owned by struct sched.
#pragma once

#include "sched/parts.h"

enum { LEAVE_LATE_MS = 60000, SPARE_MS = 30000, KEEP_CHECK_MS = 5000 };

struct fate {                // of a pod on a node that is to leave for another
	struct str for_whom; // namespace/name
};
struct keep { // of a waiting pod: the node is kept for it
	struct pod *pod;
	struct link in_keeps, in_telling; // the latter: of a gang, to be told yet
	bool is_own; // decided here in this term, not only told by the API server
	bool has_victims;
	int64_t since_ms;
	uint64_t checked_gen;
	int64_t check_ms; // next look, whatever changes
};
struct budget {
	struct sched_budget in; // its texts are in the arena
	struct arena *arena;
	struct budget *next; // of its namespace
	int64_t left;        // allowed, less what was decided since
	uint64_t trial_no;   // of the trial that counts with it now
	int64_t trial_taken;
};
struct heir { // queue place of pods that were evicted, for those that replace them
	int64_t created_s, since_ms;
	size_t count;
};
struct moves;
struct preempt {
	struct sched_preempt_rules rules;
	struct link keeps, telling;
	uint64_t trial_no;
	struct map *budgets, *budget_spaces; // by key; the first of each namespace
	struct map *heirs;                   // by namespace and owner
	int64_t due_ms, pace_ms;             // next look at who may preempt, not before
	uint64_t gen, seen_gen;              // gen: of changes that the ledger does not count
	int64_t tokens_milli, filled_ms;     // evictions that may be decided now
	const struct pod *trying;
	struct moves *moves;                            // of move.h
	struct sched_victim victims[SCHED_VICTIMS_MAX]; // lent with the last decision
};

// preempt.c
struct preempt *preempt_new(uint64_t seed);
void preempt_free(struct preempt *preempt);
bool preempt_next(struct sched *sched, struct sched_decision *ret); // when nobody is to be tried
int64_t preempt_wake_ms(const struct sched *sched);
// It is to leave for the pod; fills victims[i].
void preempt_mark(struct sched *sched, struct pod *victim, const struct pod *pod, size_t i);
void preempt_changed(struct sched *sched);                           // others may be victims now
bool preempt_may_ask(const struct pod *pod);                         // others to leave
void preempt_parked(struct sched *sched, const struct again *again); // whose fits nowhere now
void preempt_leave(struct sched *sched, struct pod *pod);            // it waits no longer
void preempt_nominated(struct sched *sched, struct pod *pod);        // told by the API server
// Or is being tried: it takes nothing from those that wait for room without making any.
bool preempt_makes_room(const struct sched *sched, const struct pod *pod, const struct node *node);
// Next pod of the shape, after one (NULL: the first), whose node is kept and has room; node NULL:
// any.
struct pod *preempt_kept(struct sched *sched, const struct shape *shape, const struct node *node,
			 const struct pod *after);
// Others have left the node for a pod that does not stand below this one.
bool preempt_is_kept_from(const struct sched *sched, const struct pod *pod,
			  const struct node *node);
// Whether what is kept for the one is kept from the other. Between queues priorities do not count:
// who has made room has it.
bool preempt_goes_before(const struct sched *sched, const struct pod *kept, const struct pod *pod);
bool preempt_keeps(const struct pod *pod); // its node was decided here
void keep_new(struct sched *sched, struct pod *pod, bool is_own);
void keep_free(struct pod *pod); // it has one
// Of a pod that is new: where it stands in the queue.
int64_t preempt_inherit(struct sched *sched, const struct sched_pod_in *in);
void preempt_bequeath(struct sched *sched, const struct pod *pod); // its place is kept
bool heir_take(struct sched *sched, struct str namespace_, uint64_t owner, int64_t *ret_created_s);
// Adds what of preemption holds for one pod, not for its whole shape.
void preempt_note(const struct sched *sched, const struct pod *pod, struct sched_facts *facts);

// berth.c
struct moves *moves_new(void);
void moves_free(struct sched *sched); // the berths with it, before nodes and queues
void berth_keep(struct sched *sched, struct pod *moved, struct node *home);
const struct node *berth_of(const struct sched *sched, const struct pod *moved); // NULL: none
void berth_refused(struct sched *sched, const struct pod *moved);                // it stays
void berth_left(struct sched *sched, const struct pod *moved);                   // it has gone
void berth_arrived(struct sched *sched, struct pod *pod); // a new pod that waits
void berth_tick(struct sched *sched);
int64_t berth_wake_ms(const struct sched *sched);

// victims.c
struct choice {
	struct node *node; // NULL: no victims help
	struct pod *pods[SCHED_VICTIMS_MAX];
	size_t count;       // 0: enough leaves already
	int64_t priority;   // the highest of them
	int64_t lost, held; // GPU-milliseconds since the checkpoints, and in all
};
void victims_choose(struct sched *sched, struct pod *pod, struct choice *ret);
// Whether it fits on the node when all have left that are leaving.
bool victims_will_fit(struct sched *sched, struct pod *pod, struct node *node);
// Earliest time at which somebody may become a victim who is too young now; INT64_MAX: none.
int64_t victims_ripe_ms(const struct sched *sched, const struct pod *claimant);
bool victims_is_settled(const struct pod *pod); // ours, on its node, and not asked to leave
bool victims_is_leaving(const struct sched *sched, const struct pod *pod); // and will, in time
// Whether it may be asked to leave for the claimant, if for nobody else.
bool victims_may_take(const struct sched *sched, const struct pod *pod, const struct pod *claimant);
int64_t victims_lost_ms(const struct sched *sched, const struct pod *pod);

// budget.c
// The budget that counts the pod; *ret_count is how many do.
struct budget *budget_find(const struct sched *sched, const struct pod *pod, size_t *ret_count);
void budgets_free(struct preempt *preempt);
