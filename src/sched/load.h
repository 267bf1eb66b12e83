// SPDX-License-Identifier: Apache-2.0
// Loads of devices inside the core: the last sample of each, smoothed, and what decisions count
// with. That changes only by LOAD_STEP_MILLI or more, when a load becomes too old, or when there
// is one again, and only then what is kept about the node is computed anew: loads that come and
// say the same cost no decision anything. Owned by struct sched; ends the program without memory.
#pragma once

#include "sched/core.h"
#include "sched/sched_load.h"

enum {
	LOAD_STEP_MILLI = 25,
	LOAD_UNKNOWN_MILLI = 500, // counts as half: neither sought nor avoided
	LOAD_NEW_QUARTERS = 3,    // weight of a new sample against the value before
};

struct loads;

struct loads *loads_new(void);
void loads_free(struct loads *loads);
bool loads_are_on(const struct sched *sched);
// One sample more; false: it says nothing new (it is not half a period younger).
MUST_USE bool load_add(struct load *load, int64_t milli, int64_t at_ms, int64_t period_ms);
bool load_is_stale(const struct load *load, int64_t now_ms, int64_t period_ms);
void loads_node_changed(struct sched *sched, struct node *node); // its devices did
void loads_policy_changed(struct sched *sched);
void loads_expire(struct sched *sched); // what is too old at now_ms no longer counts
// Mean of the node's devices, for score.h.
int64_t loads_node_milli(const struct sched *sched, uint32_t slot);
// Of a pod that is placed now: LoadStale, with the nodes that suit it and have a device without a
// load that counts, kept as the pod's facts; NULL: none, or no load counts for it.
const struct sched_facts *loads_note(struct sched *sched, struct pod *pod);
