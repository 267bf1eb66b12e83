// SPDX-License-Identifier: Apache-2.0
#include "billing/zone.h"
#include "billing/zone_rule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Whatever parses must give an offset within bounds for every instant, and always move on.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 22);
	struct str bytes = { (const char *)data, size };
	const struct zone *zone;
	struct zone_rule rule;
	struct err err;
	int64_t until_s;
	if (zone_rule_parse(bytes, &rule))
		for (int64_t t_s = 0; t_s < INT64_C(4000000000); t_s += 100000007) {
			(void)zone_rule_offset_s(&rule, t_s, &until_s);
			ASSERT(until_s > t_s);
		}
	if (zone_parse(arena, bytes, &zone, &err) != ERR_OK)
		return 0;
	for (int64_t t_s = 0; t_s < INT64_C(4000000000); t_s += 100000007) {
		(void)zone_offset_s(zone, t_s, &until_s);
		ASSERT(until_s > t_s);
	}
	return 0;
}
