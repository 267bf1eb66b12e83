// SPDX-License-Identifier: Apache-2.0
// From a Tenant to its queue, shared by the daemon and the simulator. A Tenant without spec.queue
// has no queue of its own. Values that no queue can have become the queue's fault with the field
// and the remedy: only the pods of that tenant wait for it. Texts borrow from the JSON or lie in
// the arena.
#pragma once

#include "base/json.h"
#include "sched/sched_queue.h"

enum {
	FEED_QUEUE_GPUS_MAX = 100000,
	FEED_QUEUE_RUN_MAX_S = 366 * 86400,
	FEED_QUEUE_MODEL_MAX = 63,
};
#define FEED_USER_ANNOTATION "gpuaas.io/user"

// False: it has no queue, or the arena is at its limit. now_s: seconds since 1970, to which the
// use in its status is forgotten.
MUST_USE bool feed_queue(struct arena *arena, const json_t *tenant, int64_t now_s,
			 struct sched_queue_in *ret_queue);
