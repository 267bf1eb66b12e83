// SPDX-License-Identifier: Apache-2.0
// Load views of agents and answers of Prometheus: whatever they say, what comes out can be a load.
#include "feed/feed_load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct feed_loads *loads, struct feed_clock clock)
{
	ASSERT(loads->count <= FEED_LOADS_MAX);
	for (size_t i = 0; i < loads->count; i++) {
		const struct sched_load_in *item = &loads->items[i];
		ASSERT(item->uuid.len > 0 && item->milli >= 0 &&
		       item->milli <= SCHED_LOAD_MILLI_MAX);
		ASSERT(item->at_ms >= 0 && item->at_ms <= clock.now_ms);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct feed_clock clock = { 5000000, INT64_C(1796000000000) };
	AUTO(arena_freep) struct arena *arena = arena_new(64 << 20);
	struct str text = { (const char *)data, size };
	struct feed_loads loads = { .count = 0 };
	struct err err = { .status = ERR_OK };
	ASSERT(arena != NULL);
	if (feed_load_view(arena, text, clock, &loads, &err) == ERR_OK)
		check(&loads, clock);
	if (feed_load_prometheus(arena, text, clock, &loads, &err) == ERR_OK)
		check(&loads, clock);
	return 0;
}
