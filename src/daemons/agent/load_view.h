// SPDX-License-Identifier: Apache-2.0
// The load view of a node: per GPU how busy it is, how old that is, its health and who holds how
// much of it, as compact JSON for the scheduler. It tells what is in memory and asks nobody. Only
// who has the plan's key may read it (mac_load_check): it names pods.
#pragma once

#include "base/buf.h"
#include "daemons/agent/monitor.h"
#include "daemons/agent/usage.h"

struct load_view {
	const char *node;
	const struct monitor_gpu *gpus; // by slot
	uint32_t count;
	const struct usage *usage;
	uint64_t now_ns; // monotonic, as in the readings
};

// {"node","gpus":[{"uuid","healthy","util_milli","memory_mib","age_ms","holders":[{"pod_uid",
// "container","num","den"}]}]}; without a reading neither util_milli, memory_mib nor age_ms.
void load_view_put(const struct load_view *view, struct buf *out);
