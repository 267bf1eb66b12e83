// SPDX-License-Identifier: Apache-2.0
// Windows: GPUs that are reserved for a tenant from an instant to another, part of sched.h in a
// header of its own. A window lies on nodes, so many GPUs on each, chosen when it comes, when nodes
// change and at its start: where the fewest will be taken then by expected ends. Pods of others
// start there only if they end before, or leave what it needs; those of the tenant start as always
// and are drawn to it. It evicts nobody, neither at its start nor at its end. What is over counts
// as absent. Whole GPUs only. Inputs are copied; what is returned is borrowed until the next call.
// Nothing here fails: what no node has room for is counted as missing.
#pragma once

#include "sched/sched.h"

enum { SCHED_WINDOWS_MAX = 256, SCHED_WINDOW_GPUS_MAX = 100000 };

struct sched_window_in {
	struct str name;        // one of a tenant's windows
	struct str model;       // as of gpuaas.io/gpu-models; empty: any
	int64_t start_s, end_s; // seconds since 1970
	int64_t gpu_count;
};

// All windows of a tenant, in place of those before; none takes them away. More than
// SCHED_WINDOWS_MAX of all tenants are left out.
void sched_windows_set(struct sched *sched, struct str tenant,
		       const struct sched_window_in *windows, size_t count);

struct sched_window_row { // as of the last decision
	struct str tenant;
	struct sched_window_in in;
	bool has_begun, is_over;
	int64_t held_count;     // that lie on nodes; the rest finds none
	int64_t used_count;     // of those, by pods of the tenant
	int64_t taken_count;    // of those, by others; before the start: who will still be there
	int64_t taken_until_ms; // by when the last of them is expected to have ended
	size_t part_count;
};
struct sched_window_part { // of a window on a node
	struct str tenant, node;
	int64_t start_ms, end_ms; // by the clock of sched_next
	int64_t gpu_count;
};

// Rows by start, then tenant and name; returns how many.
size_t sched_window_rows(const struct sched *sched, struct sched_window_row *ret_rows, size_t max);
// Where the row with that number lies; returns how many parts.
size_t sched_window_parts(const struct sched *sched, size_t row, struct sched_window_part *ret,
			  size_t max);
