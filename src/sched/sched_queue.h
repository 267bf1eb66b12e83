// SPDX-License-Identifier: Apache-2.0
// Queues: tenants in a tree, each with what is guaranteed to it, what it may hold at most and how
// what is left over is divided; part of sched.h in a header of its own. Pods belong to the queue
// that is called like their namespace. Namespaces without a queue share a common one, so without
// any sched_queue_set the order of pods is by priority and age alone.
// Amounts are thousandths of GPUs. Inputs are copied; what is returned is borrowed until the next
// call. Nothing here fails: settings that cannot hold (a parent that is gone, a cycle) make the
// pods of that queue wait with the reason QueueInvalid, nobody else's.
#pragma once

#include "sched/factors.h"
#include "sched/sched.h"

#define SCHED_NO_LIMIT INT64_MAX
#define SCHED_BY_CHILDREN INT64_C(-1)
enum { SCHED_HALF_LIFE_S = 7 * 86400, SCHED_WEIGHT_MAX = 1000000, SCHED_QUEUE_DEPTH_MAX = 8 };

// What it has of single GPU models, named as in gpu/model.h, within what it has in all.
enum { SCHED_QUEUE_MODELS_MAX = 16 };
struct sched_queue_model {
	struct str model;         // each once
	int64_t guaranteed_milli; // SCHED_BY_CHILDREN
	int64_t limit_milli;      // SCHED_NO_LIMIT
};

struct sched_queue_in {
	struct str name, parent;  // parent empty: at the top
	struct str fault;         // what is wrong with its settings; empty: nothing
	int64_t guaranteed_milli; // SCHED_BY_CHILDREN: the sum of theirs
	int64_t limit_milli;      // SCHED_NO_LIMIT
	int64_t user_limit_milli; // of one person in it; SCHED_NO_LIMIT
	int64_t weight;           // of what is beyond all guarantees; 1 unless said
	int64_t priority_max;     // pods with more count as this; INT64_MAX: no ceiling
	int64_t half_life_s;  // of the use that its children are compared by; negative: as above it
	int64_t used_milli_s; // remembered use, taken when the queue is new
	const struct sched_queue_model *models;
	size_t model_count;
	int64_t max_run_s; // its pods are ended after so long; 0: as above it, or never
};

struct sched_queue_model_row { // of a model for which the queue has settings
	struct str model;
	int64_t guaranteed_milli, limit_milli, allocated_milli;
	int64_t offered_milli; // by all nodes; 0: no node has it
};

struct sched_queue_row { // what a queue has now
	struct str name, parent, fault;
	int64_t guaranteed_milli, limit_milli, weight;
	int64_t allocated_milli; // with its descendants, also by pods that are being bound
	int64_t waiting_milli;
	int64_t deserved_milli; // of the GPUs there are, by guarantees, weights and what is wanted
	int64_t borrowed_milli; // allocated beyond what is guaranteed
	int64_t used_milli_s;   // remembered use
	int64_t half_life_s;    // with which it is forgotten
	int64_t share_permille; // of its siblings' use: what it had against what it should have had
	size_t waiting_pods;    // its own
	size_t depth;
};

void sched_queue_set(struct sched *sched, const struct sched_queue_in *in);
void sched_queue_remove(struct sched *sched, struct str name);
// Half-life of the queues at the top, and of those that name none; 0: only what is held counts.
void sched_half_life_set(struct sched *sched, int64_t half_life_s); // SCHED_HALF_LIFE_S
// Queues in the order of the tree, parents first, siblings by name; returns how many.
size_t sched_queue_rows(struct sched *sched, struct sched_queue_row *ret_rows, size_t max);
// By name of the model.
size_t sched_queue_model_rows(struct sched *sched, struct str queue,
			      struct sched_queue_model_row *ret_rows, size_t max);
size_t sched_queue_count(const struct sched *sched); // as many rows suffice
// How waiting pods are ordered; all weights 0, as at first: by priority and age.
void sched_factors_set(struct sched *sched, const struct sched_factors *factors);
// Whether queues may take back what they deserve, or only what is guaranteed to them (at first).
void sched_reclaim_set(struct sched *sched, bool reaches_deserved);

struct sched_queue_view { // why a pod stands where it stands
	struct str queue, user;
	bool is_within;   // its queue has less than is guaranteed to it; such pods go first
	int64_t priority; // at most the ceiling of its queue
	bool has_factors;
	int64_t score, weights[SCHED_FACTORS], values[SCHED_FACTORS]; // values in millionths
};
// False: no such pod, or no queue and no factors have a say about it.
MUST_USE bool sched_queue_explain(struct sched *sched, struct str namespace_, struct str name,
				  struct sched_queue_view *ret);
