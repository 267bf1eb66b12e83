// SPDX-License-Identifier: Apache-2.0
// A thread that syncs file descriptors, so that a slow disk never stops the loop. One job at a
// time; its end is told in the loop. It owns the descriptor of the job and closes it.
#pragma once

#include "sys/loop.h"

struct syncer;

typedef void syncer_done_fn(void *arg, int sync_errno);

MUST_USE err_status syncer_new(struct loop *loop, syncer_done_fn *fn, void *arg,
			       struct syncer **ret, struct err *err);
void syncer_free(struct syncer *syncer); // waits for the job; its end is not told; NULL allowed
bool syncer_is_busy(const struct syncer *syncer);
void syncer_start(struct syncer *syncer, int owned_fd); // only when not busy
