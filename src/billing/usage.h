// SPDX-License-Identifier: Apache-2.0
// All usage that a bill is made from, gathered event by event in any order: each identity counts
// once, the same identity with another content is a conflict, and so is an allocation or a
// release that is told in two ways. After usage_finish the events stand by GPU and time, and
// nothing can be added. Needs about 100 bytes an event and owns them.
#pragma once

#include "billing/event.h"
#include "billing/names.h"

struct usage;

#define USAGE_OPEN INT64_MAX // released_s of an allocation that is still held

struct usage_allocation {
	int64_t bound_s, released_s; // half-open; equal: held for no time
	uint32_t gpu, pod_uid, container;
	uint32_t tenant; // number in usage_tenants
	uint32_t share_num, share_den;
	bool is_bound, is_released;
};

struct usage_energy {
	int64_t t_s;
	uint64_t energy_mj; // since the counter run began
	uint32_t gpu;
	uint32_t epoch; // number of the counter run
};

struct usage_gpu {
	struct str id;
	const struct usage_allocation *allocations; // by bound_s, those of no length left out
	size_t allocation_count;
	const struct usage_energy *energy; // by t_s
	size_t energy_count;
};

struct usage *usage_new(void); // NULL: no memory
// What was released but never bound, or before it was bound, is then left out instead of being an
// error: for a ledger, where one bad source must not stop every bill.
void usage_set_lenient(struct usage *usage);
void usage_free(struct usage *usage);
void usage_freep(struct usage **usage); // for AUTO
// ERR_CONFLICT when it contradicts what was told before. A repeated event changes nothing.
MUST_USE err_status usage_add(struct usage *usage, const struct event *event, struct err *err);
// ERR_INVALID when something was released that was never bound, or before.
MUST_USE err_status usage_finish(struct usage *usage, struct err *err);

// After usage_finish.
const struct usage_gpu *usage_gpus(const struct usage *usage, size_t *ret_count); // by id
const struct names *usage_tenants(const struct usage *usage);
