// SPDX-License-Identifier: Apache-2.0
// Whatever jansson takes for an object or array, the scanner cuts into the same parts.
#include "base/json.h"
#include "base/json_scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t count_parts(struct str text, bool *ret_failed)
{
	struct json_iter iter = json_iter_of(text);
	struct str key, value;
	size_t count = 0;
	while (json_iter_next(&iter, &key, &value)) {
		ASSERT(value.len > 0 && value.data >= text.data &&
		       value.data + value.len <= text.data + text.len);
		count++;
	}
	*ret_failed = iter.failed;
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };
	bool failed;
	size_t count = count_parts(text, &failed);
	(void)json_scan_text(json_scan_at(text, "metadata.resourceVersion"));
	AUTO(json_decrefp) json_t *value = NULL;
	struct err err;
	if (json_parse(text, &value, &err) != ERR_OK)
		return 0;
	if (json_is_array(value))
		ASSERT(!failed && count == json_array_size(value));
	else if (json_is_object(value))
		ASSERT(!failed && count == json_object_size(value));
	return 0;
}
