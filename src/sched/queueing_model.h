// SPDX-License-Identifier: Apache-2.0
// Limits and guarantees of GPU models, where pods meet nodes: which models a node counts for, where
// a limit keeps a shape away, and who looks again when something of a model is given back. A node
// of a model that is full is for the pods of that queue as if it had no room. The books are
// queue_model.h's; owned by struct sched, nothing here fails.
#pragma once

#include "sched/queue_model.h"
#include "sched/queueing.h"

// After queues were named anew, before anything else is asked.
void queueing_models_named(struct sched *sched);
// Its labels or devices are others now.
void queueing_node_changed(struct sched *sched, struct node *node);
// Whether no limit of a model keeps the shape's pods from this node.
bool queueing_allows(const struct shape *shape, const struct node *node);
// Adds the limit that keeps them from it; returns the set of codes, empty if there is none.
uint64_t queueing_collect_model(const struct shape *shape, const struct node *node,
				struct sched_facts *facts);
// Of models that nodes have for it, for pods that start together and take so much.
void queueing_add_model_limits(const struct pod *pod, int64_t parts, struct sched_facts *facts);
bool queueing_model_text(const struct queue *queue, const struct sched_fact *fact,
			 struct arena *arena, struct sched_reason *ret_reason);
struct str queueing_gpus_text(struct arena *arena, int64_t milli);
// Those of the guarantees that what the shape asks for by name is of.
queue_models queueing_models_asked(const struct queues *queues, struct shape *shape);

// It was tried in vain; by its facts it may wait for a limit of a model.
void queueing_note_limited(struct sched *sched, struct shape *shape,
			   const struct sched_facts *facts);
void queueing_note_eased(struct sched *sched, const struct pod *pod); // it gave back
void queueing_wake_limited(struct sched *sched);
