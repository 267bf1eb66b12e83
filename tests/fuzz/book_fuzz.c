// SPDX-License-Identifier: Apache-2.0
#include "billing/book.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Each of the three documents, from the same bytes.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 24);
	struct str json = { (const char *)data, size };
	struct assets assets;
	struct prices prices;
	struct pools pools;
	struct err err;
	if (book_parse_assets(arena, json, &assets, &err) == ERR_OK)
		for (size_t i = 0; i < assets.count; i++)
			ASSERT(assets.items[i].end_of_life_s > assets.items[i].in_service_s &&
			       assets.items[i].gpu_count > 0);
	if (book_parse_prices(arena, json, &prices, &err) == ERR_OK)
		ASSERT(prices.time_zone.len > 0);
	if (book_parse_pools(arena, json, &pools, &err) == ERR_OK)
		for (size_t i = 0; i < pools.count; i++)
			ASSERT(pools.items[i].to_s > pools.items[i].from_s);
	return 0;
}
