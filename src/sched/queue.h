// SPDX-License-Identifier: Apache-2.0
// The tree of queues and what it decides: whether more would pass a limit, whose pods come first,
// who may take from whom. Inside of the scheduling core; pure books of amounts, in sevenths of
// thousandths of GPUs (parts), so that MIG slices count exactly: pods and shapes are hung in by
// queueing.c. Owned by struct sched; pointers to queues are valid until queueing_drop. Settings
// take effect at queues_settle, which is cheap when nothing changed. A claim asks, victim by
// victim, whether a queue may get space that others hold. It never makes the two change places: who
// loses was beyond what is its own before each loss, who gets it is not beyond its own with it.
#pragma once

#include "base/map.h"
#include "sched/link.h"
#include "sched/sched_queue.h"
#include "sched/tree.h"
#include "sched/usage_share.h"

enum { PARTS_PER_MILLI = 7, QUEUE_MODELS_MAX = 32 };
typedef uint32_t queue_models;                      // names of GPU models, a bit each
struct queue_model;                                 // of queue_model.h
static inline int64_t parts_of_milli(int64_t milli) // INT64_MAX: no limit stays none
{
	return milli > INT64_MAX / PARTS_PER_MILLI ? INT64_MAX : milli * PARTS_PER_MILLI;
}
static inline int64_t milli_of_parts(int64_t parts) // rounded up
{
	return parts / PARTS_PER_MILLI + (parts % PARTS_PER_MILLI > 0);
}

struct queue_user { // one person in a queue with settings
	struct str name;
	int64_t used_parts;
	size_t pod_count; // references
	struct usage_share share;
};

struct queue {
	struct sched_queue_in in; // texts are owned
	struct str *texts;
	struct sched_queue_model *entries; // in.models
	bool is_listed;                    // has settings
	const char *fault;                 // why its pods have to wait; NULL: nothing is wrong
	char fault_text[160];
	struct queue *parent; // NULL: the root
	struct link children, in_parent;
	size_t depth;
	int64_t guaranteed_parts;              // in force: its own or the sum of the children's
	int64_t limit_parts, user_limit_parts; // INT64_MAX: none
	int64_t half_life_s;                   // in force for its children
	int64_t own_parts, used_parts, own_wanted_parts,
		wanted_parts;   // the others with descendants
	int64_t target_parts;   // what it would have if all wanted all
	int64_t deserved_parts; // of queues_divide
	int64_t own_deserved_parts;
	int64_t taken_parts, own_taken_parts; // by the claim that is going on
	uint64_t claim_no;
	struct queue_model *models; // by bit; NULL: none is named by any queue
	bool has_model_limit;       // of its own or above it
	struct usage_share share;
	int64_t permille, permille_ms; // of queueing_factors, for one instant
	share_size users_had;          // the same, of all its persons
	int64_t users_ms;
	struct map *users; // name -> struct queue_user
	// For queueing.c.
	struct link pods;     // that belong to it, by in_home
	struct tree waiting;  // its waiting pods
	struct tree active;   // its shapes to be tried, under their first pods' keys
	struct link in_busy;  // some are active
	struct link in_eased; // something was given back and others may wait for it
	struct link blocked;  // shapes that wait for room below its limit
};

struct queues {
	struct map *by_name;
	struct queue root, common; // common: of all namespaces without a queue; child of the root
	struct link busy;
	bool is_stale, is_undivided;
	bool claims_deserved; // also within what is deserved, not only within what is guaranteed
	int64_t capacity_parts, now_ms;
	uint64_t capacity_gen;
	uint64_t claim_no;
	struct str *model_names; // in order
	size_t model_count;
	uint64_t models_gen;  // of their last change
	struct queue **order; // all but the root, parents first, siblings by name
	size_t order_count;
};

struct queues *queues_new(uint64_t seed);
void queues_free(struct queues *queues); // no pods are left
struct queue *queues_put(struct queues *queues, const struct sched_queue_in *in);
// The queue of a namespace, the common one if it has none.
struct queue *queues_find(struct queues *queues, struct str namespace_);
static inline bool queues_are_used(const struct queues *queues)
{
	return map_count(queues->by_name) > 0;
}
void queues_settle(struct queues *queues);
void queues_divide(struct queues *queues); // fills deserved_parts
// Unlists it; it is freed when nothing refers to it.
void queues_unlist(struct queues *queues, struct queue *queue);
void queues_release(struct queues *queues, struct queue *queue);

void queue_use(struct queues *queues, struct queue *queue, int64_t parts);  // negative: gives back
void queue_want(struct queues *queues, struct queue *queue, int64_t parts); // the same
void queue_advance(struct queues *queues, struct queue *queue); // its remembered use, until now
struct queue_user *queue_user_get(struct queue *queue, struct str name); // made if absent

// Whether with so much more it stays within what is guaranteed, at each level up to the top.
bool queue_is_within(const struct queue *queue, int64_t parts);
// The first on the way up whose limit so much more would pass; NULL: none.
struct queue *queue_full(struct queue *queue, int64_t parts);
// Which one's turn it is by what both and those above them have had: <0: a's.
int queue_share_cmp(struct queues *queues, struct queue *a, struct queue *b);

// A claim of so much for a pod (or a gang) of the claimant's queue.
struct queue_claim {
	struct queues *queues;
	struct queue *claimant;
	int64_t parts;
};
struct queue_claim queue_claim_begin(struct queues *queues, struct queue *claimant, int64_t parts);
struct queue_loss { // one pod, or several that go together
	struct queue *victim;
	int64_t parts;
	queue_models any, all; // models of some of it, of all of it
};
// Whether this may be taken for the claim after what was taken already; if so it is noted. A claim
// takes nothing from its own queue: who goes first there is the priorities' matter.
MUST_USE bool queue_claim_take(struct queue_claim *claim, const struct queue_loss *loss);
void queue_claim_untake(struct queue_claim *claim, const struct queue_loss *loss);
// The same for a single loss.
MUST_USE bool queue_may_reclaim(struct queues *queues, struct queue *claimant, int64_t parts,
				const struct queue_loss *loss);
