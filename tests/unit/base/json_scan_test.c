// SPDX-License-Identifier: Apache-2.0
#include "base/json_scan.h"
#include "check.h"

static void test_at(struct check *c)
{
	static const struct {
		const char *json, *path, *want; // want NULL: absent
	} cases[] = {
		{ "{\"a\":1}", "a", "1" },
		{ " { \"a\" : [ 1 , 2 ] , \"b\" : true } ", "b", "true" },
		{ "{\"a\":{\"b\":{\"c\":\"x\"}}}", "a.b.c", "\"x\"" },
		{ "{\"a\":{\"b\":1},\"b\":2}", "b", "2" },
		{ "{\"a\":\"}{\\\"\",\"b\":2}", "b", "2" },
		{ "{\"a\":\"\\\\\",\"b\":2}", "b", "2" },
		{ "{\"a\":[[],{},[{}]],\"b\":2}", "b", "2" },
		{ "{}", "a", NULL },
		{ "[1]", "a", NULL },
		{ "{\"a\":1", "a", "1" }, // only what is skipped must be whole
		{ "{\"a\":[1}", "b", NULL },
		{ "{\"a\":[1},\"b\":2}", "b", NULL },
		{ "{\"a\" 1}", "a", NULL },
		{ "{\"a\":}", "a", NULL },
		{ "{\"a\":\"x", "a", NULL },
		{ "{\"a", "a", NULL },
		{ "", "a", NULL },
		{ "{\"a\":1,,\"b\":2}", "b", NULL },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct str got = json_scan_at(str_of(cases[i].json), cases[i].path);
		if (cases[i].want == NULL)
			CHECK(c, cases[i].json, got.data == NULL);
		else
			CHECK_STR(c, cases[i].json, got, cases[i].want);
	}
}

static void test_items(struct check *c)
{
	struct str key, value;
	static const char *const want[] = { "1", "\"a,b\"", "{\"x\":[2]}", "[]" };
	struct json_iter iter = json_iter_of(STR(" [1, \"a,b\",{\"x\":[2]} ,[]] "));
	for (size_t i = 0; i < ARRAY_COUNT(want); i++) {
		CHECK(c, want[i], json_iter_next(&iter, &key, &value));
		CHECK_STR(c, want[i], value, want[i]);
	}
	CHECK(c, "end", !json_iter_next(&iter, &key, &value) && !iter.failed);
	CHECK(c, "still the end", !json_iter_next(&iter, &key, &value) && !iter.failed);
	iter = json_iter_of(STR("[1,"));
	CHECK(c, "first", json_iter_next(&iter, &key, &value));
	CHECK(c, "cut", !json_iter_next(&iter, &key, &value) && iter.failed);
	iter = json_iter_of(STR("12"));
	CHECK(c, "no container", !json_iter_next(&iter, &key, &value) && iter.failed);
	char deep[JSON_SCAN_DEPTH_MAX + 3];
	memset(deep, '[', sizeof deep);
	iter = json_iter_of((struct str){ deep, sizeof deep });
	CHECK(c, "deep", !json_iter_next(&iter, &key, &value) && iter.failed);
}

static void test_text(struct check *c)
{
	CHECK_STR(c, "plain", json_scan_text(STR("\"x y\"")), "x y");
	CHECK_STR(c, "empty", json_scan_text(STR("\"\"")), "");
	CHECK(c, "escape", json_scan_text(STR("\"a\\nb\"")).data == NULL);
	CHECK(c, "number", json_scan_text(STR("12")).data == NULL);
	CHECK(c, "quote", json_scan_text(STR("\"")).data == NULL);
}

int main(void)
{
	struct check c = { 0 };
	test_at(&c);
	test_items(&c);
	test_text(&c);
	return check_done(&c);
}
