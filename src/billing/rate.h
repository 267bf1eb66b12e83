// SPDX-License-Identifier: Apache-2.0
// Usage and book in, bill out: what every tenant, and what nobody used, costs over a period, so
// that the lines add up to the total cost of ownership to the nano unit. README.md here says how
// each kind of cost is cut and split. A pure function: the same input in any order gives the same
// bill. Everything lives in the arena given.
#pragma once

#include "billing/book.h"
#include "billing/usage.h"
#include "billing/zone.h"

struct rate_input {
	const struct assets *assets;
	const struct prices *prices;
	const struct pools *pools;
	const struct zone *zone;   // of prices->time_zone
	const struct usage *usage; // finished
	int64_t from_s, to_s;
	idle_rule idle;
};

// A line of the bill: one tenant, or "~unallocated".
struct bill_line {
	struct str tenant;
	int64_t capacity_nano, energy_nano, shared_nano;
	int64_t total_nano;
	int64_t idle_shared_nano; // capacity if idle time were shared per GPU by use
	int64_t cents;            // of the invoice
	int64_t gpu_seconds_nano; // share times seconds
	bool is_unallocated;
};

struct bill {
	int64_t from_s, to_s;
	struct str currency;
	idle_rule idle;
	struct bill_line *lines; // by tenant, ascending
	size_t line_count;
	// The total cost of ownership, counted without any tenant.
	int64_t assets_nano, energy_nano, pools_nano, tco_nano;
	int64_t energy_mj;
	struct str *gpus_without_asset; // used, but their capacity costs nothing
	size_t gpus_without_asset_count;
};

MUST_USE err_status rate(struct arena *arena, const struct rate_input *input, struct bill *ret_bill,
			 struct err *err);
// Tenants and unallocated minus total cost of ownership; 0 unless we are wrong.
int64_t bill_difference_nano(const struct bill *bill);
