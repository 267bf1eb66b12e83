// SPDX-License-Identifier: Apache-2.0
// Why a pod went to its node: the first term by which that node was better than the next best of
// those that fitted, with both values (less is better), and where that is the cost, the parts of
// it that differ most. Noted by place.c with each choice, in a few words a pod, so that it costs
// nothing to have; texts are made when somebody asks right after the bind, as the daemon does,
// which keeps them with the pod. Nothing here fails.
#pragma once

#include "sched/sched.h"

enum { SCHED_WHY_PARTS_MAX = 4, SCHED_WHY_TEXT_MAX_BYTES = 1024 };

struct sched_why_part { // weight times feature, see score.h
	const char *name;
	int64_t own, other;
};
struct sched_why {
	struct str next;  // the next best node; empty: no other fitted
	const char *term; // that decided; "only": no other fitted; "name": all others were equal
	int64_t own, other;
	struct sched_why_part parts[SCHED_WHY_PARTS_MAX]; // the largest difference first
	size_t part_count;
};

// Of the pod of the bind that sched_next has just returned. False: it was placed in another way.
MUST_USE bool sched_why_get(struct sched *sched, struct str uid, struct sched_why *ret);
// As JSON of at most SCHED_WHY_TEXT_MAX_BYTES.
void sched_why_put(const struct sched_why *why, struct buf *out);
