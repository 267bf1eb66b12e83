// SPDX-License-Identifier: Apache-2.0
// A wait between the decision about a pod and its bind: what has to be written or to come true
// first (claims.h, allot.h). Each kind has this as its first member and stands in a list of the
// scheduler; all texts lie in its arena. A wait ends by wait_free, in whatever state: what it has
// asked the API server is cancelled, and nothing calls it back.
#pragma once

#include "daemons/scheduler/scheduler.h"

struct wait {
	struct scheduler *scheduler;
	struct wait **list, *next;
	struct arena *arena;
	struct bind_order order; // what follows it
	struct k8s_call *call;   // NULL: none in flight
	struct loop_timer *timer;
};

void *wait_new(struct scheduler *s, struct wait **list, size_t size_bytes, loop_fn *on_timer);
void wait_free(struct wait *wait);
void wait_free_all(struct wait **list);
const char *wait_keep(struct wait *wait, struct str text); // a copy
void wait_keep_order(struct wait *wait, const struct bind_order *order);
