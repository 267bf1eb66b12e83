// SPDX-License-Identifier: Apache-2.0
#include "base/buf.h"
#include "base/timefmt.h"
#include "check.h"
#include "policy/deadgpu.h"

static const char since[] = "2026-11-30T20:00:00Z";

static json_t *node_of(const char *devices)
{
	struct err err = { 0 };
	json_t *node = NULL;
	AUTO(buf_done) struct buf text = { 0 };
	buf_printf(&text, "{\"metadata\":{\"name\":\"node2\"},\"status\":{\"devices\":[%s]}}",
		   devices);
	err_status status = json_parse(buf_str(&text), &node, &err);
	ASSERT(status == ERR_OK);
	return node;
}

#define DEVICE(dead, pods)                                                                         \
	"{\"uuid\":\"GPU-1\",\"index\":3,\"reason\":\"XID 79: GPU has fallen off the bus\","       \
	"\"fault\":{\"kind\":\"xid\",\"dead\":" dead                                               \
	",\"since\":\"2026-11-30T20:00:00Z\",\"pods\":[" pods "]}}"
#define POD(name) "{\"namespace\":\"red\",\"name\":\"" name "\",\"uid\":\"u-" name "\"}"

static const struct {
	const char *name, *devices;
	bool evicts;
	int64_t after_s, age_s;
	size_t want;
} rows[] = {
	{ "nothing", "", true, 0, 0, 0 },
	{ "healthy", "{\"uuid\":\"GPU-1\",\"healthy\":true}", true, 0, 100, 0 },
	{ "out of use for another reason", "{\"uuid\":\"GPU-1\",\"healthy\":false}", true, 0, 100,
	  0 },
	{ "dead", DEVICE("true", POD("a")), true, 30, 30, 1 },
	{ "not long enough", DEVICE("true", POD("a")), true, 30, 29, 0 },
	{ "of tomorrow", DEVICE("true", POD("a")), true, 0, -1, 0 },
	{ "perhaps the software's fault", DEVICE("false", POD("a")), true, 30, 90, 0 },
	{ "switched off", DEVICE("true", POD("a")), false, 30, 90, 0 },
	{ "nobody is there", DEVICE("true", ""), true, 30, 90, 0 },
	{ "two of one, one of another",
	  DEVICE("true", POD("a") "," POD("b")) "," DEVICE("true", POD("c")), true, 30, 90, 3 },
	{ "names that are none", DEVICE("true", POD("../../x") "," POD("")), true, 30, 90, 0 },
	{ "no text where one should be",
	  "{\"fault\":{\"dead\":true,\"since\":7,\"pods\":[1,{\"name\":[]}]}}", true, 0, 90, 0 },
};

static void test_rows(struct check *c)
{
	int64_t since_s = 0;
	CHECK(c, "time", time_parse(str_of(since), &since_s, NULL));
	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		AUTO(json_decrefp) json_t *node = node_of(rows[i].devices);
		const struct dead_gpu_rule rule = { rows[i].evicts, rows[i].after_s };
		struct dead_gpu_pod pod;
		CHECK_INT(c, rows[i].name,
			  dead_gpu_pods(node, &rule, since_s + rows[i].age_s, 0, &pod),
			  rows[i].want);
	}
}

static void test_places(struct check *c)
{
	static const char *const names[] = { "c", "b", "a", "a" };
	AUTO(json_decrefp)
	json_t *node = node_of(rows[9].devices);
	const struct dead_gpu_rule rule = { true, 0 };
	struct dead_gpu_pod pod = { 0 };
	static const size_t places[] = { 2, 1, 0, 3 }; // behind the last nothing is written
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		size_t count = dead_gpu_pods(node, &rule, INT64_C(4000000000), places[i], &pod);
		CHECK_INT(c, "all are counted", count, 3);
		CHECK_STR(c, "by its place", pod.name, names[i]);
	}
	CHECK_STR(c, "uid", pod.uid, "u-a");
	CHECK_STR(c, "note", str_of(pod.note),
		  "GPU 3 (GPU-1) of node2 is dead: XID 79: GPU has fallen off the bus");
}

static void test_brake(struct check *c)
{
	static const struct {
		const char *name;
		struct dead_gpu_count count;
		bool want;
	} counts[] = {
		{ "none", { 0, 0 }, false },
		{ "the only machine", { 8, 8 }, false },
		{ "one of three machines", { 8, 24 }, false },
		{ "more than one", { 9, 24 }, true },
		{ "two of a hundred", { 16, 800 }, false },
		{ "a quarter", { 200, 800 }, false },
		{ "more", { 201, 800 }, true },
	};
	for (size_t i = 0; i < ARRAY_COUNT(counts); i++)
		CHECK(c, counts[i].name, dead_gpu_is_too_many(&counts[i].count) == counts[i].want);
	AUTO(json_decrefp)
	json_t *node = node_of(DEVICE("true", "") "," DEVICE("false", "") ",{\"healthy\":true}");
	struct dead_gpu_count count = { 1, 5 };
	dead_gpu_add(&count, node);
	CHECK_INT(c, "dead", count.dead, 2);
	CHECK_INT(c, "all", count.all, 8);
}

int main(void)
{
	struct check c = { 0 };
	test_rows(&c);
	test_places(&c);
	test_brake(&c);
	return check_done(&c);
}
