// SPDX-License-Identifier: Apache-2.0
// The CSV file of counters.
#include "daemons/agent/counters.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct counters counters;
	struct err err = { 0 };
	counters.count = COUNTERS_MAX + 1;
	if (counters_parse((struct str){ (const char *)data, size }, &counters, &err) != ERR_OK) {
		ASSERT(counters.count == COUNTERS_MAX + 1 && err.text[0] != '\0');
		return 0;
	}
	ASSERT(counters.count > 0 && counters.count <= GPU_FIELD_COUNT + 1);
	for (size_t i = 0; i < counters.count; i++) {
		const struct counter *counter = &counters.items[i];
		ASSERT(str_is_utf8(str_of(counter->help)) && counter->type[0] != '\0');
		ASSERT(strchr(counter->help, '\n') == NULL);
		for (size_t j = 0; j < i; j++)
			ASSERT(counters.items[j].kind != counter->kind ||
			       counters.items[j].field != counter->field);
	}
	return 0;
}
