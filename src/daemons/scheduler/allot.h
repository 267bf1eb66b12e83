// SPDX-License-Identifier: Apache-2.0
// ResourceClaims of gpu.gpuaas.io: watches of them, of their classes and of the devices (none of
// which needs to be served), and what is written before a pod with claims is bound: the finalizer,
// the allocation and for which pod it is reserved. What was written is taken back when the bind
// fails, also by a leader before; when the pod has gone the claim controller of Kubernetes does it.
#pragma once

#include "daemons/scheduler/scheduler.h"
#include "sched/claim_in.h"

void allot_watch_start(struct scheduler *s);
void allot_watch_stop(struct scheduler *s);
bool allot_is_synced(const struct scheduler *s);

// Keeps what the decision's claims get, until the bind is under way.
void allot_keep(struct scheduler *s, const struct sched_decision *decision);
// Writes what is kept for the pod, then binds; binds at once where nothing is.
void allot_write(struct scheduler *s, const struct bind_order *order);
// An allocation that a leader before left behind is taken back.
void allot_release(struct scheduler *s, const struct sched_claim_stray *stray);
void allot_end(struct scheduler *s, struct str uid, bool is_bound); // of a pod without any: nothing
void allot_cancel_all(struct scheduler *s);
