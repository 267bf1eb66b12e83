// SPDX-License-Identifier: Apache-2.0
#include "billing/event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// What parses must come back from its own text as the same event.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
	struct event event, again;
	struct err err;
	if (event_parse(arena, (struct str){ (const char *)data, size }, &event, &err) != ERR_OK)
		return 0;
	AUTO(buf_done) struct buf text = { 0 }, text_again = { 0 };
	event_format(&text, &event);
	ASSERT(buf_ok(&text) && event_parse(arena, buf_str(&text), &again, &err) == ERR_OK);
	event_format(&text_again, &again);
	ASSERT(str_eq(buf_str(&text), buf_str(&text_again)));
	struct event_digest a = event_digest_of(&event), b = event_digest_of(&again);
	ASSERT(a.high == b.high && a.low == b.low);
	return 0;
}
