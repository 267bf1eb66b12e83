// SPDX-License-Identifier: Apache-2.0
// Deadlines of waiting pods. A pod that must have ended by an instant has a last start: the
// deadline less what it runs for. Those that have passed it are told so (DeadlineUnreachable);
// they wait on, and nobody else is concerned. The others lie in a tree by their last start, so
// that the next one to be told is found without a walk. Owned by struct sched; a pod without a
// deadline costs nothing. Nothing here fails.
#pragma once

#include "sched/parts.h"

struct due { // of one waiting pod
	struct tree_node node;
	struct tree_key key; // created_s: the last start in ms of the core's clock
	struct pod *pod;
};

void deadline_enter(struct sched *sched, struct pod *pod); // it waits, or its deadline is new
void deadline_leave(struct sched *sched, struct pod *pod); // it waits no longer
void deadline_tick(struct sched *sched);                   // has those told that passed theirs
int64_t deadline_wake_ms(const struct sched *sched);       // INT64_MAX: no need
void deadline_note(const struct sched *sched, const struct pod *pod, struct sched_facts *facts);
