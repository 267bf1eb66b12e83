// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "journal/usage_event.h"

#define HEAD(seq) "{\"source\":\"n\",\"boot\":\"b\",\"seq\":" seq ",\"t\":\"2026-02-10T00:00:00Z\","

static void check_round_trip(struct check *c)
{
	static const char *const lines[] = {
		HEAD("1") "\"type\":\"bound\",\"gpu\":\"g0\",\"profile\":\"3g\",\"share\":{\"num\""
			  ":3,\"den\":7},\"tenant\":\"A\",\"pod_uid\":\"pod-a0\"}",
		HEAD("4") "\"type\":\"energy\",\"gpu\":\"g0\",\"epoch\":\"driver-1\",\"energy_mj\":"
			  "\"18446744073709551615\"}",
		HEAD("9223372036854775807") "\"type\":\"sample\",\"gpu\":\"g\",\"util_milli\":1000,"
					    "\"memory_mib\":5}",
		HEAD("2") "\"type\":\"released\",\"gpu\":\"g\",\"pod\":\"p\\\"\\n\","
			  "\"pod_uid\":\"u\"}",
		HEAD("2") "\"type\":\"unexplained\",\"gpu\":\"g\",\"util_milli\":0,"
			  "\"memory_mib\":7,\"pid\":4194304}",
	};
	for (size_t i = 0; i < ARRAY_COUNT(lines); i++) {
		struct usage_event event;
		struct err err = { 0 };
		AUTO(buf_done) struct buf out = { 0 };
		CHECK_INT(c, lines[i], usage_event_decode(str_of(lines[i]), &event, &err), ERR_OK);
		usage_event_encode(&out, &event);
		CHECK_STR(c, "same text", buf_str(&out), lines[i]);
	}
}

static void check_bad(struct check *c)
{
#define LONG "0123456789012345678901234567890123456789"
	static const char *const lines[] = {
		"",
		"[]",
		"{}",
		HEAD("1") "}",
		HEAD("1") "\"type\":\"eaten\"}",
		HEAD("1") "\"type\":\"energy\",\"gpu\":\"g\"}",
		HEAD("1") "\"type\":\"sample\",\"gpu\":\"g\",\"pid\":4294967296}",
		HEAD("-1") "\"type\":\"sample\",\"gpu\":\"g\"}",
		HEAD("1") "\"type\":\"sample\",\"gpu\":\"" LONG LONG "\"}",
	};
	for (size_t i = 0; i < ARRAY_COUNT(lines); i++) {
		struct usage_event event = { .seq = 77 };
		struct err err = { 0 };
		CHECK(c, lines[i], usage_event_decode(str_of(lines[i]), &event, &err) != ERR_OK);
		CHECK_INT(c, "untouched", event.seq, 77);
		CHECK(c, "says why", err.text[0] != '\0');
	}
}

int main(void)
{
	struct check c = { 0 };
	check_round_trip(&c);
	check_bad(&c);
	char out[4];
	CHECK(&c, "fits", usage_text(out, sizeof out, STR("abc")));
	CHECK(&c, "does not fit", !usage_text(out, sizeof out, STR("abcd")) && out[0] == '\0');
	CHECK(&c, "no zero inside", !usage_text(out, sizeof out, STR("a\0b")));
	return check_done(&c);
}
