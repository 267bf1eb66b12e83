// SPDX-License-Identifier: Apache-2.0
// Whether a request could ever run within the limits of its tenant's queue and of those above it,
// as they are now: one that is larger than a limit would wait for ever. GPUs are counted as the
// scheduler counts them (sched/queue.h): slices of MIG in sevenths, shares by their larger part.
// Pure; nothing is kept.
#pragma once

#include "policy/request.h"
#include "policy/tenant_queue.h"

// ERR_LIMIT with what is asked for, whose limit it is and what to do.
MUST_USE err_status queue_limit_check(struct str tenant, const struct request_spec *spec,
				      tenant_queue_find_fn *find, const void *arg, struct err *err);
