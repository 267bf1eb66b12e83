// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "journal/event.h"

static void check_round_trip(struct check *c)
{
	static const char *const lines[] = {
		"{\"source\":\"node-1\",\"boot\":\"b1\",\"seq\":1,\"t\":\"2026-02-10T00:00:00Z\","
		"\"type\":\"bound\",\"gpu\":\"g0\",\"profile\":\"3g\",\"share\":{\"num\":3,\"den\":"
		"7},\"tenant\":\"A\",\"pod_uid\":\"pod-a0\"}",
		"{\"source\":\"node-1\",\"boot\":\"b1\",\"seq\":4,\"t\":\"2026-02-10T00:00:00Z\","
		"\"type\":\"energy\",\"gpu\":\"g0\",\"epoch\":\"driver-1\",\"energy_mj\":"
		"\"18446744073709551615\"}",
		"{\"source\":\"n\",\"boot\":\"b\",\"seq\":9223372036854775807,\"t\":"
		"\"2026-02-10T00:00:01Z\",\"type\":\"sample\",\"gpu\":\"g\",\"util_milli\":1000,"
		"\"memory_mib\":5}",
		"{\"source\":\"n\",\"boot\":\"b\",\"seq\":2,\"t\":\"2026-02-10T00:00:01Z\",\"type\":"
		"\"released\",\"gpu\":\"g\",\"pod\":\"p\\\"\\n\",\"estimated\":true}",
		"{\"source\":\"n\",\"boot\":\"b\",\"seq\":2,\"t\":\"2026-02-10T00:00:01Z\",\"type\":"
		"\"unexplained\",\"gpu\":\"g\",\"util_milli\":0,\"memory_mib\":7,\"pid\":4194304}",
	};
	for (size_t i = 0; i < ARRAY_COUNT(lines); i++) {
		struct usage_event event;
		struct err err = { 0 };
		AUTO(buf_done) struct buf out = { 0 };
		CHECK_INT(c, lines[i], event_decode(str_of(lines[i]), &event, &err), ERR_OK);
		event_encode(&out, &event);
		CHECK_STR(c, "same text", buf_str(&out), lines[i]);
	}
}

static void check_bad(struct check *c)
{
#define HEAD "{\"source\":\"n\",\"boot\":\"b\",\"seq\":1,\"t\":\"2026-02-10T00:00:00Z\""
	static const char *const lines[] = {
		"",
		"[]",
		"{}",
		HEAD "}",
		HEAD ",\"type\":\"eaten\"}",
		HEAD ",\"type\":\"energy\"}",
		HEAD ",\"type\":\"energy\",\"energy_mj\":5}",
		HEAD ",\"type\":\"energy\",\"energy_mj\":\"-5\"}",
		HEAD ",\"type\":\"sample\",\"util_milli\":-1}",
		HEAD ",\"type\":\"sample\",\"pid\":4294967296}",
		"{\"boot\":\"b\",\"seq\":1,\"t\":\"2026-02-10T00:00:00Z\",\"type\":\"bound\"}",
		"{\"source\":\"n\",\"boot\":\"b\",\"seq\":1,\"t\":\"yesterday\",\"type\":\"bound\"}",
		"{\"source\":\"n\",\"boot\":\"b\",\"seq\":1,\"type\":\"bound\"}",
		HEAD ",\"type\":\"bound\",\"tenant\":\"0123456789012345678901234567890123456789"
		     "0123456789012345678901234567890123456789\"}",
	};
	for (size_t i = 0; i < ARRAY_COUNT(lines); i++) {
		struct usage_event event = { .seq = 77 };
		struct err err = { 0 };
		CHECK(c, lines[i], event_decode(str_of(lines[i]), &event, &err) != ERR_OK);
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
	CHECK(&c, "fits", event_text(out, sizeof out, STR("abc")));
	CHECK(&c, "does not fit", !event_text(out, sizeof out, STR("abcd")) && out[0] == '\0');
	CHECK(&c, "no zero inside", !event_text(out, sizeof out, STR("a\0b")));
	return check_done(&c);
}
