// SPDX-License-Identifier: Apache-2.0
#include "billing/quote.h"

#include "base/money.h"
#include "billing/asset_cost.h"
#include "gpu/model.h"

static bool has_model(const struct asset *asset, const struct quote_request *request)
{
	if (request->model_count == 0)
		return true;
	for (size_t i = 0; i < asset->gpu_count; i++)
		for (size_t k = 0; k < request->model_count; k++)
			if (gpu_model_matches(request->models[k], asset->gpus[i].model))
				return true;
	return false;
}

bool quote_nano(const struct assets *assets, const struct quote_request *request, int64_t *ret_nano)
{
	bool found = false;
	int64_t most_nano = 0;
	ASSERT(request->gpu_count >= 0 && request->duration_s >= 0);
	for (size_t i = 0; i < assets->count; i++) {
		const struct asset *asset = &assets->items[i];
		int64_t from_nano, to_nano, nano;
		if (!has_model(asset, request))
			continue;
		if (!asset_cost_until(asset, request->start_s, &from_nano) ||
		    !asset_cost_until(asset, request->start_s + request->duration_s, &to_nano) ||
		    !money_round((wide)(to_nano - from_nano) * request->gpu_count,
				 (wide)asset->gpu_count, &nano))
			return false;
		most_nano = max_i64(most_nano, nano);
		found = true;
	}
	if (found)
		*ret_nano = most_nano;
	return found;
}
