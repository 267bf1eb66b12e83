// SPDX-License-Identifier: Apache-2.0
// What became of the pods of a run, for tables and pictures: when each came, started and ended, and
// how much of the GPUs was used. It only looks at the simulator between its steps. Owned by who
// made it, outlives the run; texts are copied.
#pragma once

#include "sim/sim.h"

struct jobs;

struct jobs_sum {
	size_t pods, started, waiting, evicted; // pods that came during the run
	double wait_mean_s, wait_p95_s;         // of those that started
	double gpu_hours, gpu_hours_used;       // of all nodes; whole GPUs and shares
	double node_hours, hours;               // from the first to the last event
	double gpus, nodes;                     // at the end
};

struct jobs *jobs_new(void);
void jobs_free(struct jobs *jobs); // NULL allowed
void jobs_look(struct jobs *jobs, const struct sim *sim);
// job,submit_s,start_s,end_s,gpus,preemptions,reserved_start_s, as of gpuaas-sim queue; empty:
// never.
MUST_USE err_status jobs_write(const struct jobs *jobs, const char *path, struct err *err);
struct jobs_sum jobs_sum_up(const struct jobs *jobs);
