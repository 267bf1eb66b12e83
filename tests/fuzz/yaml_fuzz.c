// SPDX-License-Identifier: Apache-2.0
// What is accepted comes back equal after a round through JSON, which is YAML too.
#include "base/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(json_decrefp) json_t *value = NULL;
	struct err err;
	if (yaml_parse_documents((struct str){ (const char *)data, size }, &value, &err) != ERR_OK)
		return 0;
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 24);
	AUTO(json_decrefp) json_t *again = NULL;
	struct str text = json_dump(arena, value);
	if (text.data != NULL && json_parse(text, &again, &err) == ERR_OK)
		ASSERT(json_equal(value, again));
	return 0;
}
