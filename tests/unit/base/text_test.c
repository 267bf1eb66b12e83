// SPDX-License-Identifier: Apache-2.0
// str, err, timefmt, json: text that comes from outside.
#include "base/json.h"
#include "base/timefmt.h"
#include "check.h"

static void test_numbers(struct check *c)
{
	static const struct {
		const char *text;
		bool good;
		int64_t want;
	} cases[] = {
		{ "0", true, 0 },
		{ "-1", true, -1 },
		{ "9223372036854775807", true, INT64_MAX },
		{ "-9223372036854775808", true, INT64_MIN },
		{ "9223372036854775808", false, 0 },
		{ "-9223372036854775809", false, 0 },
		{ "", false, 0 },
		{ "-", false, 0 },
		{ "+1", false, 0 },
		{ " 1", false, 0 },
		{ "1 ", false, 0 },
		{ "0x1", false, 0 },
		{ "1e3", false, 0 },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		int64_t got = 77;
		CHECK_INT(c, cases[i].text, str_to_i64(str_of(cases[i].text), &got), cases[i].good);
		CHECK_INT(c, cases[i].text, got, cases[i].good ? cases[i].want : 77);
	}
}

static void test_names(struct check *c)
{
	static const struct {
		const char *text;
		bool label, name;
	} cases[] = {
		{ "team-a", true, true },
		{ "a", true, true },
		{ "0", true, true },
		{ "Team", false, false },
		{ "-a", false, false },
		{ "a-", false, false },
		{ "a.b", false, true },
		{ "a..b", false, false },
		{ "", false, false },
		{ "a_b", false, false },
		{ "a/../b", false, false },
		{ "a123456789012345678901234567890123456789012345678901234567890123", false,
		  false },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		CHECK_INT(c, cases[i].text, str_is_dns_label(str_of(cases[i].text)),
			  cases[i].label);
		CHECK_INT(c, cases[i].text, str_is_dns_name(str_of(cases[i].text)), cases[i].name);
	}
}

static void test_utf8(struct check *c)
{
	CHECK(c, "ascii", str_is_utf8(STR("abc")));
	CHECK(c, "umlaut", str_is_utf8(STR("\xc3\xa4")));
	CHECK(c, "overlong", !str_is_utf8(STR("\xc0\xaf")));
	CHECK(c, "surrogate", !str_is_utf8(STR("\xed\xa0\x80")));
	CHECK(c, "above U+10FFFF", !str_is_utf8(STR("\xf4\x90\x80\x80")));
	CHECK(c, "cut", !str_is_utf8(STR("\xe2\x82")));
	CHECK(c, "NUL", !str_is_utf8((struct str){ "a\0b", 3 }));
}

static void test_split(struct check *c)
{
	struct str rest = STR("a,,b"), part;
	CHECK(c, "first", str_split_next(&rest, ',', &part) && str_eq_c(part, "a"));
	CHECK(c, "empty", str_split_next(&rest, ',', &part) && part.len == 0);
	CHECK(c, "last", str_split_next(&rest, ',', &part) && str_eq_c(part, "b"));
	CHECK(c, "end", !str_split_next(&rest, ',', &part));
}

static void test_time(struct check *c)
{
	static const struct {
		const char *text;
		bool good;
		int64_t want;
	} cases[] = {
		{ "1970-01-01T00:00:00Z", true, 0 },
		{ "2026-02-10T00:00:00Z", true, 1770681600 },
		{ "2024-02-29T12:00:00.25Z", true, 1709208000 },
		{ "2026-02-10T01:00:00+01:00", true, 1770681600 },
		{ "2026-02-09T19:30:00-04:30", true, 1770681600 },
		{ "2026-02-29T00:00:00Z", false, 0 },
		{ "2026-13-01T00:00:00Z", false, 0 },
		{ "2026-02-10T24:00:00Z", false, 0 },
		{ "2026-02-10 00:00:00Z", false, 0 },
		{ "2026-02-10T00:00:00", false, 0 },
		{ "2026-02-10T00:00:00.Z", false, 0 },
		{ "1969-12-31T23:59:59Z", false, 0 },
		{ "2026-02-10T00:00:00Zx", false, 0 },
		{ "1970-01-01T00:59:59+00:59", true, 59 },
		{ "1970-01-01T00:00:00+00:01", false, 0 },
		{ "9999-12-31T23:59:59Z", true, 253402300799 },
		{ "9999-12-31T23:59:59-00:01", false, 0 },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		int64_t got = -7;
		CHECK_INT(c, cases[i].text, time_parse(str_of(cases[i].text), &got, NULL),
			  cases[i].good);
		CHECK_INT(c, cases[i].text, got, cases[i].good ? cases[i].want : -7);
	}
	char text[TIME_TEXT_BYTES], again[TIME_TEXT_BYTES];
	for (int64_t t = 0; t < INT64_C(253402300799); t += 86399 * 37) {
		int64_t back = -1;
		bool good = time_parse(str_of(time_format(t, text)), &back, NULL);
		if (!good || back != t || strcmp(text, time_format(back, again)) != 0)
			CHECK_INT(c, text, back, t);
	}
	CHECK_STR(c, "nanoseconds", str_of(time_format_ns(0, 5, text)),
		  "1970-01-01T00:00:00.000000005Z");
	int64_t s = 0;
	CHECK(c, "1h30m", time_parse_duration(STR("1h30m"), &s) && s == 5400);
	CHECK(c, "7d", time_parse_duration(STR("7d"), &s) && s == 604800);
	CHECK(c, "90", time_parse_duration(STR("90"), &s) && s == 90);
	CHECK(c, "bare unit", !time_parse_duration(STR("h"), &s));
	CHECK(c, "open number", !time_parse_duration(STR("1h30"), &s));
	CHECK(c, "negative", !time_parse_duration(STR("-5s"), &s));
	CHECK(c, "empty", !time_parse_duration(STR(""), &s));
}

static void test_json(struct check *c)
{
	struct err err;
	json_t *value = NULL;
	CHECK_INT(c, "duplicate key", json_parse(STR("{\"a\":1,\"a\":2}"), &value, &err),
		  ERR_INVALID);
	CHECK_INT(c, "NUL", json_parse((struct str){ "[0\0]", 4 }, &value, &err), ERR_INVALID);
	CHECK_INT(c, "trailing bytes", json_parse(STR("{} x"), &value, &err), ERR_INVALID);
	CHECK(c, "untouched on failure", value == NULL);
	CHECK_INT(c, "good",
		  json_parse(STR("{\"m\":{\"name\":\"x\",\"n\":5},\"z\":null}"), &value, &err),
		  ERR_OK);
	CHECK_STR(c, "path", json_text(value, "m.name"), "x");
	CHECK_INT(c, "number", json_int(value, "m.n", -1), 5);
	CHECK_INT(c, "through a string", json_int(value, "m.name.n", -1), -1);
	CHECK(c, "null is absent", json_at(value, "z") == NULL);
	static const char *const keys[] = { "m", NULL };
	CHECK_INT(c, "unknown", json_only_keys(value, keys, &err), ERR_INVALID);
	CHECK_STR(c, "names the key", str_of(err.text), "unknown field \"z\"; known are m");
	int64_t number = 3;
	CHECK_INT(c, "wrong type", json_need_int(value, "m.name", &number, &err), ERR_INVALID);
	CHECK_INT(c, "out untouched", number, 3);
	json_decref(value);
	value = NULL;
	char deep[6000];
	memset(deep, '[', sizeof deep);
	CHECK_INT(c, "depth", json_parse((struct str){ deep, sizeof deep }, &value, &err),
		  ERR_INVALID);
}

static void test_err(struct check *c)
{
	struct err err;
	CHECK_INT(c, "set", err_set(&err, ERR_NOT_FOUND, "no %s", "pod"), ERR_NOT_FOUND);
	CHECK_INT(c, "wrap", err_wrap(&err, "explain"), ERR_NOT_FOUND);
	CHECK_STR(c, "text", str_of(err.text), "explain: no pod");
	CHECK_INT(c, "exit code", err_exit_code(ERR_LIMIT), 6);
	CHECK_INT(c, "NULL", err_set(NULL, ERR_IO, "x"), ERR_IO);
}

int main(void)
{
	struct check c = { 0 };
	test_numbers(&c);
	test_names(&c);
	test_utf8(&c);
	test_split(&c);
	test_time(&c);
	test_json(&c);
	test_err(&c);
	return check_done(&c);
}
