// SPDX-License-Identifier: Apache-2.0
// What the API server, the kubelets and the controllers would make of evictions: budgets that
// refuse, pods that take their time to end, pods that come back under another name. And the
// checker's part of it, with books of its own.
#pragma once

#include "sim/sim.h"

enum { EVICT_MS_MAX = 20, END_MS = 1000 };

// evict.c
void evict_init(struct sim *sim);
void evict_done(struct sim *sim);
MUST_USE err_status evict_apply_budget(struct sim *sim, const struct sim_object *object,
				       struct err *err);
MUST_USE err_status evict_read(const struct sim_object *object, struct sim_pod *pod,
			       struct err *err); // annotations of the scenario
void evict_start(struct sim *sim, const struct sched_decision *decision);
void evict_bound(struct sim *sim, const struct sim_pod *pod);
void evict_event(struct sim *sim, const struct event *event); // of one of its kinds
void evict_gone(struct sim *sim, struct sim_pod *pod);        // it has ended

// check_evict.c: NULL, or what is broken
const char *checker_evict(struct sim *sim, struct sim_pod *pod,
			  const struct sched_decision *decision);
const char *checker_kept(struct sim *sim); // when nothing is left to decide now
void checker_excuse_node(struct sim *sim, struct str node);
