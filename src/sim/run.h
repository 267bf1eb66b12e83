// SPDX-License-Identifier: Apache-2.0
// What gpuaas-sim run and what else plays a scenario is told, and the calls that play it. Nothing
// is owned here; each call returns an exit code of the program and says on standard error what
// failed.
#pragma once

#include "sched/factors.h"
#include "sched/preempt.h"

#include <stdio.h>

struct scenario;
struct jobs;

struct run_options {
	const char *file, *out;
	const char *policy;   // name or file; NULL: the core's own
	const char *jobs_out; // NULL: not wanted
	struct jobs *jobs;    // the caller's; NULL: not wanted
	int64_t seed, bind_failures_permille, evict_failures_permille;
	struct sched_preempt_rules rules;
	struct sched_factors factors;
	int64_t half_life_s; // of queues; 0: the core's own
	bool reclaims_deserved;
};
int run_scenario(const struct run_options *options);
int run_on(struct scenario *scenario, const struct run_options *options, FILE *out);
int run_feasible(const char *file);
