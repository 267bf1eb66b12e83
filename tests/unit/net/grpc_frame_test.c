// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "net/grpc_frame.h"

static void test_deframe(struct check *c)
{
	static const struct {
		const char *name;
		const char *bytes;
		size_t size_bytes;
		enum grpc_frame_state state;
		const char *body;
		size_t left;
	} cases[] = {
		{ "nothing", "", 0, GRPC_FRAME_PARTIAL, "", 0 },
		{ "half a prefix", "\0\0\0", 3, GRPC_FRAME_PARTIAL, "", 0 },
		{ "empty message", "\0\0\0\0\0", 5, GRPC_FRAME_MESSAGE, "", 0 },
		{ "message and rest", "\0\0\0\0\3abcde", 10, GRPC_FRAME_MESSAGE, "abc", 2 },
		{ "half a message", "\0\0\0\0\3ab", 7, GRPC_FRAME_PARTIAL, "ab", 0 },
		{ "at the limit", "\0\0\0\0\10abcdefgh", 13, GRPC_FRAME_MESSAGE, "abcdefgh", 0 },
		{ "over the limit", "\0\0\0\0\11abcdefghi", 14, GRPC_FRAME_TOO_LARGE, "", 9 },
		{ "4 GiB", "\0\377\377\377\377", 5, GRPC_FRAME_TOO_LARGE, "", 0 },
		{ "compressed", "\1\0\0\0\1x", 6, GRPC_FRAME_COMPRESSED, "", 1 },
		{ "flag 2", "\2\0\0\0\1x", 6, GRPC_FRAME_BROKEN, "", 1 },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct grpc_deframer d;
		grpc_deframer_init(&d, 8);
		struct str data = { cases[i].bytes, cases[i].size_bytes };
		CHECK_INT(c, cases[i].name, grpc_deframer_feed(&d, &data), cases[i].state);
		CHECK_STR(c, cases[i].name, buf_str(&d.body), cases[i].body);
		CHECK_INT(c, cases[i].name, data.len, cases[i].left);
		grpc_deframer_done(&d);
	}
}

// However the bytes are cut, the messages are the same.
static void test_split(struct check *c)
{
	static const char *const messages[] = { "one", "", "three three" };
	struct buf wire = { 0 };
	for (size_t i = 0; i < ARRAY_COUNT(messages); i++)
		grpc_frame_put(&wire, str_of(messages[i]));
	for (size_t step = 1; step <= wire.len; step++) {
		struct grpc_deframer d;
		size_t found = 0;
		grpc_deframer_init(&d, 100);
		for (size_t at = 0; at < wire.len; at += step) {
			struct str piece = str_slice(buf_str(&wire), at, at + step);
			while (grpc_deframer_feed(&d, &piece) == GRPC_FRAME_MESSAGE) {
				CHECK(c, "order", found < 3);
				CHECK_STR(c, "body", buf_str(&d.body), messages[found++]);
				grpc_deframer_next(&d);
			}
		}
		CHECK_INT(c, "all messages", found, 3);
		CHECK(c, "idle at the end", grpc_deframer_is_idle(&d));
		grpc_deframer_done(&d);
	}
	buf_done(&wire);
}

static void test_message(struct check *c)
{
	static const struct {
		const char *name, *plain, *escaped;
	} cases[] = {
		{ "plain", "not found", "not found" },
		{ "percent", "100%", "100%25" },
		{ "newline", "a\nb", "a%0Ab" },
		{ "utf-8", "\xc3\xa4", "%C3%A4" },
	};
	static const struct {
		const char *name, *in, *out;
	} odd[] = {
		{ "lower case", "%c3%a4", "\xc3\xa4" },
		{ "no digits", "50%zz", "50%zz" },
		{ "cut", "%4", "%4" },
		{ "lone percent", "%", "%" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct buf there = { 0 }, back = { 0 };
		grpc_message_escape(&there, str_of(cases[i].plain));
		CHECK_STR(c, cases[i].name, buf_str(&there), cases[i].escaped);
		grpc_message_unescape(&back, buf_str(&there));
		CHECK_STR(c, cases[i].name, buf_str(&back), cases[i].plain);
		buf_done(&there);
		buf_done(&back);
	}
	for (size_t i = 0; i < ARRAY_COUNT(odd); i++) {
		struct buf back = { 0 };
		grpc_message_unescape(&back, str_of(odd[i].in));
		CHECK_STR(c, odd[i].name, buf_str(&back), odd[i].out);
		buf_done(&back);
	}
}

static void test_timeout(struct check *c)
{
	static const struct {
		const char *text;
		bool ok;
		uint64_t ns;
	} cases[] = {
		{ "100m", true, 100000000 },
		{ "5S", true, 5000000000 },
		{ "1H", true, 3600000000000 },
		{ "2M", true, 120000000000 },
		{ "7u", true, 7000 },
		{ "99999999n", true, 99999999 },
		{ "99999999H", true, UINT64_MAX },
		{ "", false, 0 },
		{ "S", false, 0 },
		{ "5", false, 0 },
		{ "5s", false, 0 },
		{ "-5S", false, 0 },
		{ "123456789S", false, 0 },
		{ "5 S", false, 0 },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		uint64_t ns = 42;
		bool ok = grpc_timeout_parse(str_of(cases[i].text), &ns);
		CHECK(c, cases[i].text, ok == cases[i].ok);
		CHECK(c, cases[i].text, ns == (ok ? cases[i].ns : 42));
	}
	static const struct {
		uint64_t ns;
		const char *text;
	} out[] = {
		{ 1, "1n" },
		{ 99999999, "99999999n" },
		{ 100000001, "100001u" },
		{ 30000000000, "30000000u" },
		{ UINT64_C(3600000000000), "3600000m" },
		{ UINT64_MAX, "5124096H" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(out); i++) {
		char text[GRPC_TIMEOUT_TEXT_BYTES];
		(void)grpc_timeout_format(out[i].ns, text);
		CHECK_STR(c, out[i].text, str_of(text), out[i].text);
	}
}

int main(void)
{
	struct check c = { 0 };
	test_deframe(&c);
	test_split(&c);
	test_message(&c);
	test_timeout(&c);
	return check_done(&c);
}
