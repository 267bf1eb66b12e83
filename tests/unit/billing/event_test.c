// SPDX-License-Identifier: Apache-2.0
#include "billing/event.h"
#include "check.h"

#define HEAD "{\"source\":\"n1\",\"boot\":\"b\",\"seq\":1,\"t\":\"2026-02-10T00:00:00Z\",\"type\":"
#define BOUND HEAD "\"bound\",\"gpu\":\"g0\",\"share\":{\"num\":3,\"den\":7},\"tenant\":\"A\","

static const struct {
	const char *name, *line, *error; // error: what the text must hold, NULL when it is an event
} cases[] = {
	{ "bound", BOUND "\"pod_uid\":\"p\"}", NULL },
	{ "energy as text", HEAD "\"energy\",\"gpu\":\"g\",\"energy_mj\":\"18446744073709551615\"}",
	  NULL },
	{ "energy as number", HEAD "\"energy\",\"gpu\":\"g\",\"energy_mj\":7}", NULL },
	{ "null is absent", BOUND "\"profile\":null,\"pod_uid\":\"p\"}", NULL },
	{ "null where a value is needed", BOUND "\"pod_uid\":null}", "pod_uid is missing" },
	{ "escapes", BOUND "\"pod_uid\":\"\\u0070\\ud83d\\ude00\\n\"}", NULL },
	{ "lone surrogate", BOUND "\"pod_uid\":\"\\ud83d\"}", "pod_uid must be a string" },
	{ "not UTF-8", BOUND "\"pod_uid\":\"\xff\"}", "pod_uid must be a string" },
	{ "no object", "[1]", "must be a JSON object" },
	{ "empty line", "", "must be a JSON object" },
	{ "empty object", "{}", "source is missing" },
	{ "unknown key", BOUND "\"pod_uid\":\"p\",\"podd\":1}", "unknown key \"podd\"" },
	{ "key twice", BOUND "\"pod_uid\":\"p\",\"seq\":1}", "\"seq\" stands twice" },
	{ "fraction", "{\"source\":\"n\",\"boot\":\"b\",\"seq\":1.0}", "seq must be a whole" },
	{ "negative", "{\"source\":\"n\",\"boot\":\"b\",\"seq\":-1}", "seq must be a whole" },
	{ "leading zero", "{\"source\":\"n\",\"boot\":\"b\",\"seq\":01}", "seq must be a whole" },
	{ "time with offset", "{\"t\":\"2026-02-10T00:00:00+01:00\"}", "t must be UTC" },
	{ "time with fraction", "{\"t\":\"2026-02-10T00:00:00.5Z\"}", "t must be a whole second" },
	{ "unknown type", "{\"type\":\"bind\"}", "type must be bound" },
	{ "share zero", "{\"share\":{\"num\":0,\"den\":1}}", "share must be num and den" },
	{ "share twice", "{\"share\":{\"num\":1,\"num\":1}}", "share must be num and den" },
	{ "share with more", "{\"share\":{\"num\":1,\"den\":1,\"x\":1}}", "share must be" },
	{ "share unknown", "{\"share\":{\"numm\":1}}", "unknown key \"share.numm\"" },
	{ "trailing", BOUND "\"pod_uid\":\"p\"}x", "something follows" },
	{ "cut", BOUND "\"pod_uid\":\"p\"", "a comma or }" },
	{ "tenant of ours", "{\"tenant\":\"~unallocated\"}", "does not begin with ~" },
	{ "energy too large", "{\"energy_mj\":\"18446744073709551616\"}", "energy_mj must be" },
	{ "energy with zeros", "{\"energy_mj\":\"007\"}", "energy_mj must be" },
	{ "released needs a pod", HEAD "\"released\",\"gpu\":\"g\"}", "pod_uid is missing" },
	{ "empty gpu", "{\"gpu\":\"\"}", "gpu must be a string that is not empty" },
};

static void parses(struct check *c)
{
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
		struct event event;
		struct err err = { .text = "" };
		err_status status = event_parse(arena, str_of(cases[i].line), &event, &err);
		CHECK_INT(c, cases[i].name, status == ERR_OK, cases[i].error == NULL);
		if (cases[i].error == NULL || strstr(err.text, cases[i].error) != NULL)
			continue;
		CHECK_STR(c, cases[i].name, str_of(err.text), cases[i].error);
	}
}

// Equal as JSON values: same bytes and same digest; else neither.
static const struct {
	const char *name, *left, *right;
	bool equal;
} pairs[] = {
	{ "order, blanks and escapes", BOUND "\"pod_uid\":\"p\",\"pod\":\"a\"}",
	  " { \"pod\" : \"\\u0061\" , \"pod_uid\":\"p\",\"tenant\":\"A\",\"share\":{ "
	  "\"den\":7,\"num\":3},"
	  "\"gpu\":\"g0\",\"type\":\"bound\",\"t\":\"2026-02-10T00:00:00Z\",\"seq\":1,\"boot\":"
	  "\"b\","
	  "\"source\":\"n1\"}",
	  true },
	{ "number is not text", HEAD "\"energy\",\"gpu\":\"g\",\"energy_mj\":7}",
	  HEAD "\"energy\",\"gpu\":\"g\",\"energy_mj\":\"7\"}", false },
	{ "null is not absence", BOUND "\"pod_uid\":\"p\"}",
	  BOUND "\"pod_uid\":\"p\",\"pod\":null}", false },
	{ "text that moves", BOUND "\"pod_uid\":\"ab\",\"container\":\"c\"}",
	  BOUND "\"pod_uid\":\"a\",\"container\":\"bc\"}", false },
};

static void compares(struct check *c)
{
	for (size_t i = 0; i < ARRAY_COUNT(pairs); i++) {
		AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
		struct event left, right;
		AUTO(buf_done) struct buf left_text = { 0 }, right_text = { 0 };
		CHECK(c, pairs[i].name,
		      event_parse(arena, str_of(pairs[i].left), &left, NULL) == ERR_OK &&
			      event_parse(arena, str_of(pairs[i].right), &right, NULL) == ERR_OK);
		event_format(&left_text, &left);
		event_format(&right_text, &right);
		struct event_digest a = event_digest_of(&left), b = event_digest_of(&right);
		CHECK_INT(c, pairs[i].name, str_eq(buf_str(&left_text), buf_str(&right_text)),
			  pairs[i].equal);
		CHECK_INT(c, pairs[i].name, a.high == b.high && a.low == b.low, pairs[i].equal);
	}
}

static void formats(struct check *c)
{
	AUTO(buf_done) struct buf out = { 0 };
	struct event event = {
		.present = 1U << EVENT_F_SOURCE | 1U << EVENT_F_BOOT | 1U << EVENT_F_SEQ |
			   1U << EVENT_F_T | 1U << EVENT_F_TYPE | 1U << EVENT_F_GPU |
			   1U << EVENT_F_ENERGY_MJ,
		.source = STR("n"),
		.boot = STR("b"),
		.seq = 9,
		.t_s = 86400,
		.type = EVENT_ENERGY,
		.gpu = STR("GPU-1"),
		.energy_mj = 5,
	};
	event_format(&out, &event);
	CHECK_STR(c, "made here", buf_str(&out),
		  "{\"source\":\"n\",\"boot\":\"b\",\"seq\":9,\"t\":\"1970-01-02T00:00:00Z\","
		  "\"type\":\"energy\",\"gpu\":\"GPU-1\",\"energy_mj\":\"5\"}");
}

int main(void)
{
	struct check c = { 0 };
	parses(&c);
	compares(&c);
	formats(&c);
	return check_done(&c);
}
