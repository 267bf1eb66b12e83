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
#define FAULT(dead, pods)                                                                          \
	"\"reason\":\"XID 48: double bit\",\"fault\":{\"kind\":\"xid\",\"dead\":" dead             \
	",\"since\":\"2026-11-30T20:00:00Z\",\"pods\":[" pods "]}"
#define PARTS(parts) "{\"uuid\":\"GPU-1\",\"index\":3,\"mig\":[" parts "]}"
#define PART(uuid, dead, pods) "{\"uuid\":\"" uuid "\"," FAULT(dead, pods) "}"
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
	{ "one MIG device",
	  PARTS(PART("MIG-1", "true", POD("a")) "," PART("MIG-2", "false", POD("b"))), true, 30, 90,
	  1 },
	{ "a MIG device, not long enough", PARTS(PART("MIG-1", "true", POD("a"))), true, 30, 29,
	  0 },
	{ "two MIG devices",
	  PARTS(PART("MIG-1", "true", POD("a")) "," PART("MIG-2", "true", POD("b"))), true, 30, 90,
	  2 },
	{ "the whole GPU with its MIG devices: each pod once",
	  "{\"uuid\":\"GPU-1\",\"mig\":[" PART("MIG-1", "true", POD("a")) "]," FAULT(
		  "true", POD("a") "," POD("b")) "}",
	  true, 30, 90, 2 },
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
		const struct dead_gpu_rule rule = { .evicts = rows[i].evicts,
						    .after_s = rows[i].after_s };
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
	const struct dead_gpu_rule rule = { .evicts = true };
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

static void test_note_of_a_part(struct check *c)
{
	AUTO(json_decrefp) json_t *node = node_of(PARTS(PART("MIG-7", "true", POD("a"))));
	const struct dead_gpu_rule rule = { .evicts = true };
	struct dead_gpu_pod pod = { 0 };
	CHECK_INT(c, "one", dead_gpu_pods(node, &rule, INT64_C(4000000000), 0, &pod), 1);
	CHECK_STR(c, "note", str_of(pod.note),
		  "MIG device MIG-7 of GPU 3 (GPU-1) of node2 is dead: XID 48: double bit");
}

static const struct {
	const char *name, *devices;
	dead_gpu_taint taint;
	int64_t age_s;
	bool is_closed, want;
} closings[] = {
	{ "no devices", "", DEAD_GPU_TAINT_ALL, 90, false, false },
	{ "off", DEVICE("true", ""), DEAD_GPU_TAINT_NONE, 90, false, false },
	{ "switched off since", DEVICE("true", ""), DEAD_GPU_TAINT_NONE, 90, true, false },
	{ "the only one", DEVICE("true", ""), DEAD_GPU_TAINT_ALL, 30, false, true },
	{ "not long enough", DEVICE("true", ""), DEAD_GPU_TAINT_ALL, 29, false, false },
	{ "closed, and dead anew", DEVICE("true", ""), DEAD_GPU_TAINT_ALL, 29, true, true },
	{ "one of two", DEVICE("true", "") ",{\"healthy\":true}", DEAD_GPU_TAINT_ALL, 90, false,
	  false },
	{ "one has come back", DEVICE("true", "") ",{\"healthy\":true}", DEAD_GPU_TAINT_ALL, 90,
	  true, false },
	{ "any of two", DEVICE("true", "") ",{\"healthy\":true}", DEAD_GPU_TAINT_ANY, 90, false,
	  true },
	{ "all have come back", "{\"healthy\":true},{\"healthy\":true}", DEAD_GPU_TAINT_ANY, 90,
	  true, false },
	{ "perhaps the software's fault", DEVICE("false", ""), DEAD_GPU_TAINT_ANY, 90, false,
	  false },
	{ "a MIG device alone closes no node", PARTS(PART("MIG-1", "true", "")), DEAD_GPU_TAINT_ANY,
	  90, false, false },
};

static void test_closing(struct check *c)
{
	int64_t since_s = 0;
	CHECK(c, "time", time_parse(str_of(since), &since_s, NULL));
	for (size_t i = 0; i < ARRAY_COUNT(closings); i++) {
		AUTO(json_decrefp) json_t *node = node_of(closings[i].devices);
		const struct dead_gpu_rule rule = { .after_s = 30, .taint = closings[i].taint };
		CHECK(c, closings[i].name,
		      dead_gpu_closes(node, &rule, since_s + closings[i].age_s,
				      closings[i].is_closed) == closings[i].want);
	}
	CHECK_INT(c, "all", dead_gpu_taint_of(STR("all")), DEAD_GPU_TAINT_ALL);
	CHECK_INT(c, "any", dead_gpu_taint_of(STR("any")), DEAD_GPU_TAINT_ANY);
	CHECK_INT(c, "none", dead_gpu_taint_of(STR("none")), DEAD_GPU_TAINT_NONE);
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
	json_t *node = node_of(DEVICE("true", "") "," PARTS(PART("MIG-1", "true", "")) "," DEVICE(
		"false", "") ",{\"healthy\":true}");
	struct dead_gpu_count count = { 1, 5 };
	dead_gpu_add(&count, node);
	CHECK_INT(c, "dead", count.dead, 3);
	CHECK_INT(c, "all", count.all, 9);
}

int main(void)
{
	struct check c = { 0 };
	test_rows(&c);
	test_places(&c);
	test_note_of_a_part(&c);
	test_closing(&c);
	test_brake(&c);
	return check_done(&c);
}
