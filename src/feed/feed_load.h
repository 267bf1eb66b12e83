// SPDX-License-Identifier: Apache-2.0
// Measured loads of GPUs from the two sources there are: the load view of a node's agent, and
// Prometheus, asked for DCGM's GPU utilization. Pure; the same measurement gives the same item
// whichever way it came. Results lie in the caller's arena and borrow from the text. What cannot be
// a load of a GPU (NaN, negative, more than all of it, of the future, of a MIG device) is counted
// and left out; an answer that is none at all is ERR_PROTOCOL.
#pragma once

#include "base/err.h"
#include "sched/sched_load.h"

enum {
	FEED_LOADS_MAX = 128 * 1024, // series or GPUs of one answer
	FEED_LOAD_AHEAD_MS = 2000,   // a clock may be so much ahead of ours
};
#define FEED_LOAD_METRIC "DCGM_FI_DEV_GPU_UTIL"

struct feed_clock { // one instant by two clocks
	int64_t now_ms, wall_ms;
};
struct feed_loads {
	struct sched_load_in *items; // each GPU once, with what was measured last
	size_t count, bad;
};

// {"node","gpus":[{"uuid","util_milli","age_ms",...}]}; a GPU without util_milli has no load. An
// agent speaks of its own node alone: where the caller knows which that is, it sets it.
MUST_USE err_status feed_load_view(struct arena *arena, struct str text, struct feed_clock clock,
				   struct feed_loads *ret, struct err *err);
// The answer of /api/v1/query to a range of FEED_LOAD_METRIC: the instants are then those of the
// scrapes, and not that of the question.
MUST_USE err_status feed_load_prometheus(struct arena *arena, struct str text,
					 struct feed_clock clock, struct feed_loads *ret,
					 struct err *err);
