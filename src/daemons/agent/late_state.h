// SPDX-License-Identifier: Apache-2.0
// Inside of late, shared by its two files: the state, and the step that finds holder and plan of
// an allocation. ERR_UNAVAILABLE there means that what is missing may still come.
#pragma once

#include "daemons/agent/late.h"
#include "daemons/agent/share_seen.h"

enum { LATE_WAITERS_MAX = 256, LATE_PATH_BYTES = 512, LATE_CHECKPOINT_MAX_BYTES = 8 << 20 };

struct late_waiter { // one PreStartContainer that is not answered yet
	struct late *late;
	struct grpc_stream *stream;
	struct share_key key;
	uint64_t since_ns;
	uint64_t list_no;           // the first answer of the kubelet that is young enough
	struct share_holder holder; // as far as it is known, for what is told
};

struct late {
	struct loop *loop;
	struct late_config config;
	char socket[LATE_PATH_BYTES], checkpoint_path[LATE_PATH_BYTES];
	char state_path[LATE_PATH_BYTES];
	struct share_table *table;
	struct share_seen_list by_list, by_checkpoint;
	bool has_checkpoint; // and it could be read
	struct grpc_call *call;
	bool is_again, is_dirty;
	uint64_t list_no, list_done_no; // begun, and answered
	struct loop_timer *timer;
	struct late_waiter *waiters[LATE_WAITERS_MAX]; // owned
	struct late_stats stats;
};

share_is_live_fn late_pod_lives; // arg: late
// Binds the grant by the plan of its holder, in memory.
MUST_USE err_status late_resolve(struct late *late, struct late_waiter *waiter,
				 struct share_grant *grant, struct err *err);
