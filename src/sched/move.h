// SPDX-License-Identifier: Apache-2.0
// Moves: a pod that fits nowhere gets room where others can go on elsewhere at once. Only pods that
// keep their work in checkpoints are moved, and only when a trial has shown a node for each of them
// beside the pod that starts thereby. Room for who replaces a moved pod is kept there as a berth,
// as if a pod were nominated. Off unless set; rules in preempt.h. Owned by struct sched; nothing
// here fails.
#pragma once

#include "sched/victims.h"

enum { MOVES_MAX = 8, MOVE_NOTES_MAX = 1024, MOVE_POOL_MAX_BYTES = 64, BERTH_MS = 60000 };

struct berth {             // room for the pod that replaces a moved one
	struct pod *guest; // stands for it on the node; no other list knows it
	struct waiting wait;
	struct keep keep;
	struct pod *moved; // NULL: it has gone
	int64_t until_ms;
	struct link in_berths;
};
struct move_note { // for the pace
	char pool[MOVE_POOL_MAX_BYTES];
	int64_t at_ms;
};
struct moves {
	struct link berths;
	struct move_note notes[MOVE_NOTES_MAX]; // of the last period, the oldest first
	size_t note_count;
};
struct move_choice {
	struct node *node; // NULL: no moves help
	struct pod *pods[MOVES_MAX];
	struct node *homes[MOVES_MAX]; // where they go on
	size_t count;
	int64_t lost; // GPU-milliseconds since the checkpoints
};

// move.c
bool move_is_on(const struct sched *sched);
void move_choose(struct sched *sched, struct pod *pod, struct move_choice *ret);
// Earliest time at which somebody may be moved who may not now; INT64_MAX: none.
int64_t move_ripe_ms(const struct sched *sched, const struct pod *claimant);
bool move_may_take(const struct sched *sched, const struct pod *pod, const struct pod *claimant);
void move_note(struct sched *sched, const struct move_choice *choice); // it is decided
