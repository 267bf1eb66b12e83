// SPDX-License-Identifier: Apache-2.0
// The capacity part of a bill: what each asset costs goes to its GPUs, and what a GPU costs to
// the tenants by share times seconds. Both are cumulative from the beginning of the stretch of
// constant cost, so that the parts of a period add up to the period. Beside it the second view,
// in which the idle time of each GPU is shared by those who used it.
#pragma once

#include "billing/roster.h"
#include "billing/weights.h"

struct capacity {
	wide *kept_nano;        // one a party: idle stays with the unallocated part
	wide *idle_shared_nano; // one a party: idle shared per GPU
	struct weights seconds; // GPU-seconds of each party
};

// Adds the period to zeroed arrays of roster->party_count. The caller calls weights_done.
MUST_USE err_status capacity_rate(struct arena *arena, const struct roster *roster,
				  const int64_t period_s[2], struct capacity *capacity,
				  struct err *err);
