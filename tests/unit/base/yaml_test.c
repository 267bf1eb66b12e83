// SPDX-License-Identifier: Apache-2.0
#include "base/yaml.h"
#include "check.h"

#include <stdlib.h>

static void test_values(struct check *c)
{
	static const struct {
		const char *name, *yaml, *json;
	} cases[] = {
		{ "nothing", "", "[]" },
		{ "comment", "# only\n", "[]" },
		{ "empty documents", "---\n---\n---\n", "[]" },
		{ "mapping", "a: 1\nb: two\n", "[{\"a\":1,\"b\":\"two\"}]" },
		{ "order", "z: 1\na: 2\n", "[{\"z\":1,\"a\":2}]" },
		{ "sequence", "- a\n- - b\n  - c\n", "[[\"a\",[\"b\",\"c\"]]]" },
		{ "flow", "{a: [1, 2], b: {}}", "[{\"a\":[1,2],\"b\":{}}]" },
		{ "json", "{\"a\": [true, null, \"x\\u00e4\"]}",
		  "[{\"a\":[true,null,\"x\xc3\xa4\"]}]" },
		{ "documents", "a: 1\n---\nb: 2\n...\n", "[{\"a\":1},{\"b\":2}]" },
		{ "nulls", "[~, null, Null, NULL, ]", "[[null,null,null,null]]" },
		{ "empty value", "a:\nb: ''\n", "[{\"a\":null,\"b\":\"\"}]" },
		{ "booleans", "[true, False, TRUE]", "[[true,false,true]]" },
		{ "yes is text", "[yes, no, on, Off, y]",
		  "[[\"yes\",\"no\",\"on\",\"Off\",\"y\"]]" },
		{ "integers", "[0, -7, +7, 0x1F, 0o17]", "[[0,-7,7,31,15]]" },
		{ "largest", "[9223372036854775807, -9223372036854775808]",
		  "[[9223372036854775807,-9223372036854775808]]" },
		{ "floats", "[1.5, -.5, 2., 1e3]", "[[1.5,-0.5,2.0,1000.0]]" },
		{ "not numbers", "[1.2.3, 1e, 0x, 12a, -, 10.0.0.1, 5m]",
		  "[[\"1.2.3\",\"1e\",\"0x\",\"12a\",\"-\",\"10.0.0.1\",\"5m\"]]" },
		{ "quoted", "['1', \"true\", !!str 5, ! 6]", "[[\"1\",\"true\",\"5\",\"6\"]]" },
		{ "time is text", "2026-01-02T03:04:05Z", "[\"2026-01-02T03:04:05Z\"]" },
		{ "block", "a: |\n  one\n  two\nb: >-\n  x\n  y\n",
		  "[{\"a\":\"one\\ntwo\\n\",\"b\":\"x y\"}]" },
		{ "keys are text", "1: a\ntrue: b\n", "[{\"1\":\"a\",\"true\":\"b\"}]" },
		{ "anchor alone", "a: &x 1\n", "[{\"a\":1}]" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		AUTO(json_decrefp) json_t *value = NULL;
		AUTO(arena_freep) struct arena *arena = arena_new(1 << 16);
		struct err err = { 0 };
		err_status status = yaml_parse_documents(str_of(cases[i].yaml), &value, &err);
		CHECK_STR(c, cases[i].name, str_of(err.text), "");
		if (status == ERR_OK)
			CHECK_STR(c, cases[i].name, json_dump(arena, value), cases[i].json);
	}
}

static void test_refused(struct check *c)
{
	static const struct {
		const char *name, *yaml, *error;
	} cases[] = {
		{ "duplicate", "a: 1\nb: 2\na: 3\n", "line 3: duplicate key \"a\"" },
		{ "duplicate of text", "1: a\n'1': b\n", "line 2: duplicate key \"1\"" },
		{ "alias", "a: &x 1\nb: *x\n", "line 2: aliases (*name) are not supported" },
		{ "alias as key", "a: &x 1\n*x : 2\n",
		  "line 2: aliases (*name) are not supported" },
		{ "merge", "a:\n  <<: {b: 1}\n", "line 2: merge keys (<<) are not supported" },
		{ "octal", "mode: 0644\n",
		  "line 1: a number with leading zeros: write 0o17 for octal, or quote it" },
		{ "65 bits", "9223372036854775808", "line 1: the number does not fit 64 bits" },
		{ "long hex", "0x11112222333344445", "line 1: the number does not fit 64 bits" },
		{ "infinite", "[1, -.inf]", "line 1: numbers must be finite" },
		{ "too large", "1e999", "line 1: the number is out of range" },
		{ "tag", "!!binary aGk=", "line 1: scalars take no tag but !!str" },
		{ "own tag", "a: !thing {}\n",
		  "line 1: sequences and mappings take no tag but !!seq and !!map" },
		{ "nul", "\"a\\0b\"", "line 1: text with a NUL character" },
		{ "nul in key", "\"a\\0b\": 1", "line 1: a key with a NUL character" },
		{ "key", "? [a]\n: 1\n", "line 1: a key must be text" },
		{ "tab", "a:\n\tb: 1\n", "line 2: found character that cannot start any token" },
		{ "open", "a: [1, 2", "line 2: did not find expected ',' or ']'" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		json_t *value = NULL;
		struct err err = { 0 };
		CHECK_INT(c, cases[i].name,
			  yaml_parse_documents(str_of(cases[i].yaml), &value, &err), ERR_INVALID);
		CHECK_STR(c, cases[i].name, str_of(err.text), cases[i].error);
		CHECK(c, "untouched", value == NULL);
	}
}

static void test_limits(struct check *c)
{
	json_t *value = NULL;
	struct err err = { 0 };
	char deep[200];
	memset(deep, '[', sizeof deep);
	CHECK_INT(c, "depth", yaml_parse_documents((struct str){ deep, sizeof deep }, &value, &err),
		  ERR_INVALID);
	CHECK_STR(c, "depth", str_of(err.text), "line 1: nested deeper than 64 levels");
	memset(deep + 64, ']', 64);
	CHECK_INT(c, "64 levels", yaml_parse_documents((struct str){ deep, 128 }, &value, &err),
		  ERR_OK);
	json_decref(value);
	value = NULL;
	char *big = malloc(YAML_INPUT_MAX_BYTES + 1);
	ASSERT(big != NULL);
	memset(big, ' ', YAML_INPUT_MAX_BYTES + 1);
	CHECK_INT(c, "size",
		  yaml_parse_documents((struct str){ big, YAML_INPUT_MAX_BYTES + 1 }, &value, &err),
		  ERR_LIMIT);
	free(big);
	CHECK_INT(c, "not UTF-8", yaml_parse_documents(STR("a: \xff"), &value, &err), ERR_INVALID);
}

static void test_single(struct check *c)
{
	json_t *value = NULL;
	struct err err = { 0 };
	CHECK_INT(c, "one", yaml_parse(STR("a: {b: 5}"), &value, &err), ERR_OK);
	CHECK_INT(c, "one", json_int(value, "a.b", 0), 5);
	json_decref(value);
	CHECK_INT(c, "none", yaml_parse(STR(""), &value, &err), ERR_INVALID);
	CHECK_INT(c, "two", yaml_parse(STR("1\n---\n2"), &value, &err), ERR_INVALID);
	CHECK_STR(c, "two", str_of(err.text), "wanted one YAML document, found 2");
}

static void test_lines(struct check *c)
{
	static const char text[] = "version: v1\n"
				   "sharing:\n"
				   "  resources:\n"
				   "  - name: a\n"
				   "    devices: [0,\n"
				   "      1]\n"
				   "  - {name: b,\n"
				   "     more: {x: 1}}\n"
				   "  - - deep\n"
				   "\n"
				   "? last\n"
				   ": |\n"
				   "  text\n"
				   "a.b: 1\n";
	static const struct {
		const char *path;
		size_t line;
	} cases[] = {
		{ "version", 1 },
		{ "sharing", 2 },
		{ "sharing.resources", 3 },
		{ "sharing.resources[0]", 4 },
		{ "sharing.resources[0].name", 4 },
		{ "sharing.resources[0].devices", 5 },
		{ "sharing.resources[0].devices[0]", 5 },
		{ "sharing.resources[0].devices[1]", 6 },
		{ "sharing.resources[1]", 7 },
		{ "sharing.resources[1].name", 7 },
		{ "sharing.resources[1].more.x", 8 },
		{ "sharing.resources[2][0]", 9 },
		{ "last", 11 },
		{ "a.b", 14 },
		{ "", 0 },
		{ "resources", 0 },
		{ "sharing.resources[3]", 0 },
		{ "sharing.resources[0].devices[2]", 0 },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
		CHECK_INT(c, cases[i].path, yaml_line_of(str_of(text), cases[i].path),
			  cases[i].line);
	CHECK_INT(c, "no YAML", yaml_line_of(STR("a: [1\nb: }"), "b"), 0);
	CHECK_INT(c, "after an error", yaml_line_of(STR("a: 1\nb: ]"), "a"), 1);
}

int main(void)
{
	struct check c = { 0 };
	test_values(&c);
	test_refused(&c);
	test_limits(&c);
	test_single(&c);
	test_lines(&c);
	return check_done(&c);
}
