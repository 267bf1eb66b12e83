// SPDX-License-Identifier: Apache-2.0
// Measured load of GPUs, as a part of what sched.h takes in: samples come with the instant at which
// they were measured, by the clock of sched_next, from whatever source; the same samples give the
// same decisions. A load counts while it is at most SCHED_LOAD_PERIODS periods old; an older one is
// ignored, and who is placed meanwhile is told LoadStale. Whether a load matters is for the weights
// of the policy (score.h) to say; it never decides whether a pod fits. Nothing can fail: what
// cannot be a load is counted and left out.
#pragma once

#include "sched/sched.h"

enum { SCHED_LOAD_MILLI_MAX = 1000, SCHED_LOAD_PERIODS = 3 };

struct sched_load_in {
	struct str uuid;   // of the GPU
	struct str node;   // where it is believed to be; wrong or empty: it is looked for,
	bool is_node_sure; // but not if this is set: then it is there or unknown
	int64_t milli;     // thousandths of the GPU's time
	int64_t at_ms;     // when it was measured
};
struct sched_load_taken {
	size_t taken, repeated, unknown, refused; // refused: no thousandths, or of the future
};
struct sched_load_counts { // GPUs that nodes have now
	size_t fresh, stale, none;
	int64_t oldest_ms; // when the oldest fresh one was measured; INT64_MAX: there is none
};
struct sched_load_used { // what a pod's GPU was loaded with when it was chosen
	struct str uuid;
	int64_t milli; // -1: not known, or too old
	int64_t age_ms;
};

// How often samples come; 0, as in the beginning: loads count for nothing.
void sched_load_period_set(struct sched *sched, int64_t period_ms);
struct sched_load_taken sched_load_set(struct sched *sched, const struct sched_load_in *items,
				       size_t count, int64_t now_ms);
struct sched_load_counts sched_load_counts_get(const struct sched *sched, int64_t now_ms);
// Loads that a pod with shares was placed by; 0: it was placed without, or by somebody before.
size_t sched_load_explain(const struct sched *sched, struct str namespace_, struct str name,
			  struct sched_load_used *ret, size_t max);
