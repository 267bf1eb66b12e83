// SPDX-License-Identifier: Apache-2.0
// How long a pod is expected to run, and by whose word: its own (gpuaas.io/duration), else the
// longest time of its tenant, else what pods like it took (learn.h), else its own longest time.
// Like it: first of the same tenant, person, image, GPUs, CPU and memory, then of less and less.
// Learning is off until sched_durations_learn; then each pod that has ended by itself is said with
// sched_pod_ended, and earlier ones with sched_duration_add. Part of the calls of sched.h; nothing
// here fails.
#pragma once

#include "sched/learn.h"
#include "sched/sched.h"

typedef enum sched_duration_source {
	SCHED_DURATION_UNKNOWN,
	SCHED_DURATION_SAID,
	SCHED_DURATION_TENANT,
	SCHED_DURATION_LEARNED,
	SCHED_DURATION_LONGEST, // what the pod is ended after
	SCHED_DURATION_SOURCES
} sched_duration_source;

struct sched_duration {
	sched_duration_source source;
	int64_t seconds; // expected; 0: unknown
};

enum { SCHED_DURATION_PERMILLE = 800 }; // so many of those learned from took no longer

// What is not declared is learned from those that end from now on.
void sched_durations_learn(struct sched *sched);
// A pod that ended before this core began, the oldest first.
void sched_duration_add(struct sched *sched, const struct learn_kind *kind, int64_t seconds);
struct learn_kind sched_duration_kind(const struct sched_pod_in *pod);
// What the pods of a namespace are ended after; 0: never.
int64_t sched_queue_longest_s(const struct sched *sched, struct str namespace_);
// What is known of pods like it, between two quantiles in thousandths. False: too little.
MUST_USE bool sched_duration_guess(const struct sched *sched, const struct sched_pod_in *pod,
				   const int64_t permille[2], struct learn_guess *ret);
// It has ended, at that instant of the clock of sched_next, and is gone; unknown uid: nothing.
void sched_pod_ended(struct sched *sched, struct str uid, int64_t at_ms);
// False: no such pod.
MUST_USE bool sched_duration_explain(const struct sched *sched, struct str namespace_,
				     struct str name, struct sched_duration *ret);
const char *sched_duration_source_name(sched_duration_source source);
