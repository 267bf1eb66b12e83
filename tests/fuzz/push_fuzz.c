// SPDX-License-Identifier: Apache-2.0
// The server's answer to pushed usage: no cursor of another journal, none below zero.
#include "base/json.h"
#include "daemons/agent/push.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(json_decrefp) json_t *answer = NULL;
	struct str body = { (const char *)data, size };
	uint64_t seq = UINT64_MAX;
	if (!push_cursor_read(body, "0f3a5c77.word", &seq)) {
		ASSERT(seq == UINT64_MAX);
		return 0;
	}
	ASSERT(seq <= INT64_MAX && json_parse(body, &answer, NULL) == ERR_OK);
	ASSERT(str_ends(json_text(answer, "cursor.boot"), STR(".word")));
	ASSERT(!push_cursor_read(body, "no word", &seq));
	return 0;
}
