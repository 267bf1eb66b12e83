// SPDX-License-Identifier: Apache-2.0
#include "emulator/wire.h"

#include "check.h"

static void requests(struct check *c)
{
	struct wire_request good = { .magic = WIRE_MAGIC, .op = WIRE_GPU }, bad, got;
	char bytes[sizeof(good) + 1] = { 0 };

	memcpy(bytes + 1, &good, sizeof(good)); // unaligned on purpose
	CHECK(c, "good", wire_check_request(bytes + 1, sizeof(good), &got) && got.op == WIRE_GPU);
	CHECK(c, "short", !wire_check_request(&good, sizeof(good) - 1, &got));
	CHECK(c, "long", !wire_check_request(bytes, sizeof(bytes), &got));
	CHECK(c, "empty", !wire_check_request(NULL, 0, &got));
	bad = good;
	bad.magic++;
	CHECK(c, "magic", !wire_check_request(&bad, sizeof(bad), &got));
	for (uint32_t op = 0; op < 3; op++) {
		bad = good;
		bad.op = op == 0 ? 0 : WIRE_OP_LAST + op;
		CHECK(c, "op", !wire_check_request(&bad, sizeof(bad), &got));
	}
	bad = good;
	memset(bad.call, 'x', sizeof(bad.call));
	CHECK(c, "call without end", !wire_check_request(&bad, sizeof(bad), &got));
	bad = good;
	memset(bad.key, 'x', sizeof(bad.key));
	CHECK(c, "key without end", !wire_check_request(&bad, sizeof(bad), &got));
}

static void works(struct check *c)
{
	struct wire_work good = { WIRE_WORK_MAGIC, 100, 1000, 0 }, bad = good, got;

	CHECK(c, "good", wire_check_work(&good, sizeof(good), &got) && got.memory_mib == 100);
	CHECK(c, "short", !wire_check_work(&good, sizeof(good) - 1, &got));
	bad.util_milli = 1001;
	CHECK(c, "util", !wire_check_work(&bad, sizeof(bad), &got));
	bad = good;
	bad.memory_util_milli = UINT32_MAX;
	CHECK(c, "memory util", !wire_check_work(&bad, sizeof(bad), &got));
	bad = good;
	bad.magic = WIRE_MAGIC;
	CHECK(c, "magic", !wire_check_work(&bad, sizeof(bad), &got));
}

static const struct {
	const char *name;
	uint32_t magic, status, count, body_bytes;
	size_t size_bytes, want;
	bool ok;
} REPLIES[] = {
	{ "body", WIRE_MAGIC, 0, 0, 8, 24, 8, true },
	{ "body of another size", WIRE_MAGIC, 0, 0, 8, 24, 9, false },
	{ "says more than it has", WIRE_MAGIC, 0, 0, 9, 24, 9, false },
	{ "error has no body", WIRE_MAGIC, 15, 0, 0, 16, 8, true },
	{ "headless", WIRE_MAGIC, 0, 0, 0, 15, 0, false },
	{ "magic", WIRE_WORK_MAGIC, 0, 0, 0, 16, 0, false },
	{ "list", WIRE_MAGIC, 0, 2, 64, 80, SIZE_MAX, true },
	{ "list with a lie", WIRE_MAGIC, 0, 3, 64, 80, SIZE_MAX, false },
	{ "list above the maximum", WIRE_MAGIC, 0, 134217730, 64, 80, SIZE_MAX, false },
};

static void replies(struct check *c)
{
	for (size_t i = 0; i < ARRAY_COUNT(REPLIES); i++) {
		struct wire_reply reply = { REPLIES[i].magic,
					    REPLIES[i].status,
					    REPLIES[i].count,
					    REPLIES[i].body_bytes,
					    { .event = { 0 } } };
		CHECK(c, REPLIES[i].name,
		      wire_check_reply(&reply, REPLIES[i].size_bytes, REPLIES[i].want) ==
			      REPLIES[i].ok);
	}
}

int main(void)
{
	struct check c = { 0 };

	requests(&c);
	works(&c);
	replies(&c);
	return check_done(&c);
}
