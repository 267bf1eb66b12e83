// SPDX-License-Identifier: Apache-2.0
#include "base/timefmt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int64_t t = 0, again = 0;
	uint32_t ns;
	struct str text = { (const char *)data, size };
	char out[TIME_TEXT_BYTES];
	if (time_parse(text, &t, &ns)) {
		bool good = time_parse(str_of(time_format_ns(t, ns, out)), &again, NULL);
		ASSERT(good && again == t);
	}
	if (time_parse_duration(text, &t))
		ASSERT(t >= 0);
	return 0;
}
