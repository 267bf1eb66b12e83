// SPDX-License-Identifier: Apache-2.0
// What is accepted comes back equal after a round through JSON, which is YAML too; its keys have
// lines.
#include "base/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(json_decrefp) json_t *value = NULL;
	struct err err;
	struct str bytes = { (const char *)data, size };
	size_t line = yaml_line_of(bytes, "a.b[1]");
	ASSERT(line <= size + 1);
	if (yaml_parse_documents(bytes, &value, &err) != ERR_OK)
		return 0;
	json_t *first = json_array_size(value) == 1 ? json_array_get(value, 0) : NULL;
	if (json_is_object(first) && json_object_iter(first) != NULL) {
		const char *key = json_object_iter_key(json_object_iter(first));
		ASSERT(key[0] == '\0' || strlen(key) >= 1024 || yaml_line_of(bytes, key) > 0);
	}
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 24);
	AUTO(json_decrefp) json_t *again = NULL;
	struct str text = json_dump(arena, value);
	if (text.data != NULL && json_parse(text, &again, &err) == ERR_OK)
		ASSERT(json_equal(value, again));
	return 0;
}
