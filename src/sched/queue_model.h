// SPDX-License-Identifier: Apache-2.0
// What queues have of single GPU models, beside what they have in all. Models are the names that
// queues' settings use; a node has those that name its GPUs, as a set of bits, and what runs there
// counts for each. Part of queue.h's books: amounts are parts, owned by the queue, in force after
// queues_settle. Nothing here fails.
#pragma once

#include "sched/queue.h"

struct queue_model {
	int64_t own_parts, used_parts; // used: with descendants
	int64_t guaranteed_parts;      // in force: its own or the sum of the children's
	int64_t limit_parts;           // INT64_MAX: none
	int64_t taken_parts, own_taken_parts;
	size_t entry; // of the queue's settings, from 1; 0: none of its own
};

// Names anew what the settings of all queues name. True: bits mean something else from now on,
// all sums are zero, and who runs has to be counted again (queue_use_models).
MUST_USE bool queue_models_rename(struct queues *queues);
// Those that name this model, or say no more than this name of one.
queue_models queue_models_of(const struct queues *queues, struct str model);
bool queue_models_are_named(const struct queues *queues, const struct queue *queue); // all of its
void queue_use_models(struct queues *queues, struct queue *queue, queue_models models,
		      int64_t parts); // negative: gives back

// The first on the way up that has a limit of one of these models which so much more would pass;
// NULL: none.
struct queue *queue_model_full(struct queue *queue, queue_models models, int64_t parts,
			       const struct queue_model **ret_model);
// Whether it stays within what is guaranteed to it of one of these models, at each level.
bool queue_is_within_models(const struct queue *queue, queue_models models, int64_t parts);

// For queue.c: from settings to what is in force, parents first, then children first.
void queue_models_reset(struct queues *queues, struct queue *queue);
void queue_models_sum(struct queues *queues, struct queue *queue);
int64_t queue_models_guaranteed_milli(const struct sched_queue_in *in); // all together
const char *queue_models_check(const struct queue *queue); // against its pods and children
