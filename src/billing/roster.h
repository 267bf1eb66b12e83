// SPDX-License-Identifier: Apache-2.0
// Who takes part in a bill: all tenants and the unallocated part in the order of their names,
// and all GPUs in the order of their ids with the asset they belong to. Made once for a bill,
// in its arena; borrows from the input.
#pragma once

#include "billing/rate.h"

struct roster_gpu {
	struct str id;
	const struct asset *asset;     // NULL: none names it
	size_t asset_gpu_i;            // its place in the asset
	const struct usage_gpu *usage; // NULL: it was in no event
};

struct roster {
	struct str *parties;
	size_t party_count;
	uint32_t unallocated;
	uint32_t *tenant_order; // party of each of usage's tenants
	struct roster_gpu *gpus;
	size_t gpu_count;
};

#define ROSTER_UNALLOCATED STR("~unallocated")

MUST_USE err_status roster_make(struct arena *arena, const struct rate_input *input,
				struct roster *ret_roster, struct err *err);
// Party of that name, or SIZE_MAX.
size_t roster_find(const struct roster *roster, struct str name);
