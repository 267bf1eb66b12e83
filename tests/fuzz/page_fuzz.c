// SPDX-License-Identifier: Apache-2.0
// A query as a list of requests reads it: whatever page_token says, the rows after it are the
// end of the list, and the token of a row ends its page exactly there.
#include "api/page.h"
#include "net/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct page_row rows[] = {
	{ STR("blue"), STR("a") },       { STR("blue"), STR("a-1") }, { STR("blue"), STR("b") },
	{ STR("blue-green"), STR("a") }, { STR("red"), STR("z") },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum { ARENA_BYTES = 1024 * 1024 };
	AUTO(arena_freep) struct arena *arena = arena_new(ARENA_BYTES);
	struct str query = { (const char *)data, size };
	struct str token = http_query_get(arena, query, "page_token");
	(void)http_query_get(arena, query, "limit");
	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		struct str own = page_row_token(arena, &rows[i]);
		if (i > 0)
			ASSERT(!page_row_is_after(&rows[i - 1], token) ||
			       page_row_is_after(&rows[i], token));
		for (size_t k = 0; k < ARRAY_COUNT(rows); k++)
			ASSERT(page_row_is_after(&rows[k], own) == (k > i));
	}
	return 0;
}
