// SPDX-License-Identifier: Apache-2.0
// What a request will cost at most before it runs: the capacity of whole GPUs for its duration on
// the dearest asset that has such GPUs. Energy and pools come on top; nobody knows them yet.
#pragma once

#include "billing/book.h"

struct quote_request {
	const struct str *models; // as people write them (gpu/model.h); none: any model
	size_t model_count;
	int64_t gpu_count;
	int64_t start_s, duration_s;
};

// False when no asset has such a GPU, or the amount does not fit.
MUST_USE bool quote_nano(const struct assets *assets, const struct quote_request *request,
			 int64_t *ret_nano);
