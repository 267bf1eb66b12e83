// SPDX-License-Identifier: Apache-2.0
// Evictions that the core has decided, through the Eviction API: a pod that a budget counts is
// asked first, one after the other, so that nobody leaves for a pod whose room a budget then keeps.
// A refusal that stays ends the set; the core is told and chooses anew. Each victim gets the
// condition DisruptionTarget, both sides an Event, the log a line. Owned by struct scheduler.
#pragma once

#include "daemons/scheduler/scheduler.h"

enum { GRACE_DEFAULT_MAX_S = 600 };

// "priority,min-run=1m,delay=5s,per-minute=60,grace-max=10m"; all but the mode may be left out.
MUST_USE err_status evict_open(struct scheduler *s, struct err *err);
void evict_start(struct scheduler *s, const struct sched_decision *decision);
void evict_cancel_all(struct scheduler *s);
void evict_put_metrics(const struct scheduler *s, struct buf *out);
// The member "preemption" of an explanation, with its comma; nothing when there is nothing to say.
void evict_put_view(const struct scheduler *s, struct str namespace_, struct str name,
		    struct buf *out);
