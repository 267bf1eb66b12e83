// SPDX-License-Identifier: Apache-2.0
// Pods and shapes in their queues: to which queue a pod belongs, what it takes from it, in which
// order all are tried, who waits for a limit. The books are queue.h's, the weights factors.h's;
// what is on nodes stays the ledger's. Owned by struct sched. A shape that waits for a limit is
// not tried when nodes change, only when something below that limit is given back.
#pragma once

#include "sched/factors.h"
#include "sched/parts.h"
#include "sched/queue.h"

enum { SCORE_FRESH_MS = 30000, ORDER_FRESH_MS = 1000 };

struct queueing {
	struct queues *queues;
	struct sched_factors factors;
	bool uses_factors;
	struct link scored;        // waiting pods, first who was scored longest ago
	struct link eased;         // queues to which something was given back
	struct link limited;       // shapes that a limit of a GPU model keeps from nodes
	queue_models eased_models; // of which something was given back
	int64_t ordered_ms;        // when heads were looked at for the order alone
};

struct queueing *queueing_new(uint64_t seed);
void queueing_free(struct queueing *queueing);

void queueing_join(struct sched *sched, struct pod *pod);  // the queue of its namespace
void queueing_leave(struct sched *sched, struct pod *pod); // before it is freed or joins another
int64_t queueing_priority(const struct sched *sched, const struct sched_pod_in *in);
// Bytes that pods of one shape have in common because of their queue; none for the common one.
void queueing_put_key(const struct sched *sched, const struct sched_pod_in *in, struct buf *out);
int64_t queueing_gpu_parts(const struct sched_spec *spec);
int64_t queueing_node_parts(const struct sched *sched, uint32_t slot);     // that it offers
struct queue_loss queueing_loss(const struct pod *pod);                    // if it had to go
bool queueing_is_within(const struct sched *sched, const struct pod *pod); // what is guaranteed
void queueing_use(struct sched *sched, struct pod *pod, int64_t sign); // comes to a node, leaves it
// So much more of claims counts for the pod: on its node, or while it waits.
void queueing_use_claims(struct sched *sched, struct pod *pod, int64_t parts);
void queueing_want_claims(struct sched *sched, const struct pod *pod, int64_t parts);
int64_t queueing_need_parts(const struct pod *pod);           // of one that waits, also for claims
int64_t queueing_held_parts(const struct pod *pod);           // of one on a node
int64_t queueing_held_gpus(const struct pod *pod);            // whole ones
void queueing_ease(struct sched *sched, struct queue *queue); // what waits for it may go on
void queueing_enter(struct sched *sched, struct pod *pod);    // it waits
void queueing_exit(struct sched *sched, struct pod *pod);

void queueing_activate(struct sched *sched, struct shape *shape);
void queueing_deactivate(struct sched *sched, struct shape *shape);
void queueing_park(struct sched *sched, struct shape *shape); // it was tried in vain
struct shape *queueing_first(const struct sched *sched);      // whose turn it is; NULL: none
// Whether somebody else's turn is before the pod's, which is of this active shape.
bool queueing_is_next_before(const struct sched *sched, const struct shape *shape,
			     const struct pod *pod);
bool queueing_order_moves(const struct sched *sched); // with what is taken and with time
// <0: a goes first. Keys are those of pods.
int queueing_key_cmp(const struct sched *sched, const struct tree_key *a, const struct tree_key *b);
int queueing_cmp(const struct sched *sched, const struct pod *a, const struct pod *b);
void queueing_forget_avoided(const struct sched *sched, const struct node *node); // by all

bool queueing_is_blocked(const struct pod *pod); // by a limit or by wrong settings
// The pod has started for good: heads that wait for the same limit keep no nodes from now on.
void queueing_note_full(struct sched *sched, const struct pod *pod);
void queueing_add_facts(const struct pod *pod, struct sched_facts *facts);
// Of so much for pods that start together.
void queueing_add_limits(const struct pod *pod, int64_t parts, struct sched_facts *facts);
// Texts of such a fact; false when it is none.
bool queueing_fact_text(const struct pod *pod, const struct sched_fact *fact, struct arena *arena,
			struct sched_reason *ret_reason);
void queueing_tick(struct sched *sched); // before anybody is tried
void queueing_refresh_capacity(struct sched *sched);
// The factors of a pod and what they come to; false when none are used.
bool queueing_factors(struct sched *sched, const struct pod *pod, int64_t ret_values[SCHED_FACTORS],
		      int64_t *ret_score);
const char *queueing_check(const struct sched *sched);
