// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *value = NULL;
	struct err err;
	if (json_parse((struct str){ (const char *)data, size }, &value, &err) != ERR_OK)
		return 0;
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 24);
	struct str text = json_dump(arena, value);
	json_t *again = NULL;
	if (text.data != NULL && json_parse(text, &again, &err) == ERR_OK) {
		ASSERT(json_equal(value, again));
		json_decref(again);
	}
	json_decref(value);
	return 0;
}
