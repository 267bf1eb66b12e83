// SPDX-License-Identifier: Apache-2.0
// Measured loads: which GPU a share goes to, when a load is too old, what cannot be one, and that
// agents' views and Prometheus lead to the same decisions.
#include "rig.h"

#include "base/rng.h"
#include "check.h"
#include "feed/feed_load.h"
#include "sched/load.h"
#include "sched/policy_file.h"

#include <stdio.h>

enum { PERIOD_MS = 15000 };

#define NODE(name, milli)                                                                          \
	"---\nkind: Node\nmetadata: {name: " name "}\nstatus: {allocatable: {cpu: 64, memory: "    \
	"64Gi, pods: 999, gpuaas.io/gpu-milli: " milli ", nvidia.com/gpu: 8}}\n"
#define GPU(no, more)                                                                              \
	"{uuid: GPU-" no ", index: " no ", healthy: true, model: A100, memoryMiB: 81920" more "}"
#define SHARED(no) GPU(no, ", milli: 1000")
#define DEVICES(name, list)                                                                        \
	"---\nkind: GPUNode\nmetadata: {name: " name "}\nstatus: {devices: [" list "]}\n"
#define TWO NODE("n", "2000") DEVICES("n", SHARED("0") ", " SHARED("1"))
#define TWO_NODES                                                                                  \
	NODE("m", "1000") DEVICES("m", SHARED("0")) NODE("n", "1000") DEVICES("n", SHARED("1"))

static void begin(struct rig *rig, const char *objects)
{
	rig_init(rig);
	rig->now_ms = 1000000;
	sched_load_period_set(rig->sched, PERIOD_MS);
	rig_put(rig, objects);
}

static struct sched_load_taken put(struct rig *rig, const char *uuid, int64_t milli, int64_t at_ms)
{
	const struct sched_load_in item = { .uuid = str_of(uuid), .milli = milli, .at_ms = at_ms };
	return sched_load_set(rig->sched, &item, 1, rig->now_ms);
}

static const char *pod(struct rig *rig, const char *name, const char *limits)
{
	AUTO(buf_done) struct buf out = { 0 };
	buf_printf(&out,
		   "kind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: main, resources: "
		   "{limits: {%s}}}]}\n",
		   name, limits);
	rig_put(rig, out.data);
	return rig_next(rig);
}

static const char *share(struct rig *rig, const char *name)
{
	return pod(rig, name, "gpuaas.io/gpu-milli: 100");
}

static void check_choice(struct check *c, const char *name, const char *objects)
{
	struct rig rig;
	begin(&rig, objects);
	(void)put(&rig, "GPU-0", 800, rig.now_ms);
	(void)put(&rig, "GPU-1", 100, rig.now_ms);
	CHECK_STR(c, name, str_of(share(&rig, "a")), "bind a n [1:100/8192]");
	CHECK_STR(c, "and the next", str_of(share(&rig, "b")), "bind b n [1:100/8192]");
	rig.now_ms += PERIOD_MS;
	(void)put(&rig, "GPU-0", 100, rig.now_ms);
	(void)put(&rig, "GPU-1", 800, rig.now_ms);
	CHECK(c, "one sample later", strstr(share(&rig, "c"), "[0:100/8192]") != NULL);
	rig_done(&rig);
}

// Exactly three periods still count; a millisecond more does not.
static void check_staleness(struct check *c)
{
	struct rig rig;
	begin(&rig, TWO);
	CHECK_STR(c, "never measured", str_of(share(&rig, "a")),
		  "bind a n [0:100/8192] LoadStale:1(a load 45.000 s old/no load)");
	(void)put(&rig, "GPU-0", 800, rig.now_ms);
	(void)put(&rig, "GPU-1", 100, rig.now_ms);
	rig.now_ms += 3 * PERIOD_MS;
	CHECK_STR(c, "three periods", str_of(share(&rig, "b")), "bind b n [1:100/8192]");
	rig.now_ms += 1;
	CHECK_STR(c, "and a millisecond", str_of(pod(&rig, "c", "gpuaas.io/gpu-milli: 800")),
		  "bind c n [0:800/65536] LoadStale:1(a load 45.000 s old/a load 45.001 s old)");
	struct sched_load_counts counts = sched_load_counts_get(rig.sched, rig.now_ms);
	CHECK_INT(c, "stale", counts.stale, 2);
	CHECK_INT(c, "fresh", counts.fresh, 0);
	struct sched_load_used used;
	CHECK_INT(c, "explained", sched_load_explain(rig.sched, STR("default"), STR("b"), &used, 1),
		  1);
	CHECK(c, "by what", used.milli == 100 && used.age_ms == 3 * PERIOD_MS);
	CHECK_INT(c, "of c", sched_load_explain(rig.sched, STR("default"), STR("c"), &used, 1), 1);
	CHECK(c, "was ignored", used.milli == -1 && used.age_ms == 3 * PERIOD_MS + 1);
	struct sched_explanation why;
	CHECK(c, "bound", sched_explain(rig.sched, STR("default"), STR("c"), &why));
	CHECK(c, "with its code",
	      why.facts.count == 1 && why.facts.items[0].code == SCHED_CODE_LOAD_STALE);
	(void)put(&rig, "GPU-0", 10, rig.now_ms);
	CHECK_STR(c, "one is known again", str_of(share(&rig, "d")),
		  "bind d n [0:100/8192] LoadStale:1(a load 45.000 s old/a load 45.001 s old)");
	rig_done(&rig);
}

static void check_garbage(struct check *c)
{
	static const struct {
		const char *uuid;
		int64_t milli, ahead_ms;
		bool is_unknown;
	} BAD[] = {
		{ "GPU-0", -1, 0, false },        { "GPU-0", 1001, 0, false },
		{ "GPU-0", INT64_MIN, 0, false }, { "GPU-0", INT64_MAX, 0, false },
		{ "GPU-0", 0, 1, false },         { "GPU-0", 0, -2000000, false },
		{ "GPU-9", 0, 0, true },          { "", 0, 0, true },
	};
	struct rig rig;
	begin(&rig, TWO);
	(void)put(&rig, "GPU-0", 800, rig.now_ms);
	(void)put(&rig, "GPU-1", 100, rig.now_ms);
	for (size_t i = 0; i < ARRAY_COUNT(BAD); i++) {
		struct sched_load_taken taken =
			put(&rig, BAD[i].uuid, BAD[i].milli, rig.now_ms + BAD[i].ahead_ms);
		CHECK_INT(c, BAD[i].uuid, taken.refused, BAD[i].is_unknown ? 0 : 1);
		CHECK_INT(c, BAD[i].uuid, taken.unknown, BAD[i].is_unknown ? 1 : 0);
	}
	CHECK_STR(c, "nothing changed", str_of(share(&rig, "a")), "bind a n [1:100/8192]");
	rig_done(&rig);
}

// A load never decides whether a pod fits: where its asks fit by the best fit alone, they get it.
static void check_fit(struct check *c)
{
	struct rig rig;
	begin(&rig, TWO);
	(void)put(&rig, "GPU-0", 0, rig.now_ms);
	(void)put(&rig, "GPU-1", 900, rig.now_ms);
	CHECK_STR(c, "leaves 600", str_of(pod(&rig, "x", "gpuaas.io/gpu-milli: 400")),
		  "bind x n [0:400/32768]");
	rig.now_ms += PERIOD_MS;
	(void)put(&rig, "GPU-0", 900, rig.now_ms);
	(void)put(&rig, "GPU-1", 0, rig.now_ms);
	CHECK_STR(c, "leaves 800", str_of(pod(&rig, "y", "gpuaas.io/gpu-milli: 200")),
		  "bind y n [1:200/16384]");
	rig_put(&rig, "kind: Pod\nmetadata: {name: p}\nspec: {containers: ["
		      "{name: a, resources: {limits: {gpuaas.io/gpu-milli: 600}}}, "
		      "{name: b, resources: {limits: {gpuaas.io/gpu-milli: 500}}}, "
		      "{name: c, resources: {limits: {gpuaas.io/gpu-milli: 300}}}]}\n");
	CHECK_STR(c, "three asks", str_of(rig_next(&rig)),
		  "bind p n [0:600/49152,1:500/40960,1:300/24576]");
	rig_done(&rig);
}

static void check_switch(struct check *c)
{
	static const char OFF[] = "base: default\nweights: {share: {load: 0}}\n";
	struct score_policy policy;
	struct err err;
	struct rig rig;
	begin(&rig, TWO);
	CHECK(c, "policy", policy_file_parse(str_of(OFF), &policy, &err) == ERR_OK);
	sched_policy_set(rig.sched, &policy);
	(void)put(&rig, "GPU-0", 900, rig.now_ms);
	CHECK_STR(c, "without weight", str_of(share(&rig, "a")), "bind a n [0:100/8192]");
	struct sched_load_used used;
	CHECK_INT(c, "unused", sched_load_explain(rig.sched, STR("default"), STR("a"), &used, 1),
		  0);
	rig_done(&rig);
}

static void check_nodes(struct check *c)
{
	static const char ON[] = "base: default\nweights: {one: {load: 1000000}}\n";
	struct score_policy policy;
	struct err err;
	struct rig rig;
	begin(&rig, NODE("m", "0") DEVICES("m", GPU("0", "") ", " GPU("1", "")) NODE("n", "0")
			    DEVICES("n", GPU("2", "") ", " GPU("3", "")));
	CHECK(c, "policy", policy_file_parse(str_of(ON), &policy, &err) == ERR_OK);
	sched_policy_set(rig.sched, &policy);
	for (int i = 0; i < 4; i++) {
		char uuid[8];
		(void)snprintf(uuid, sizeof uuid, "GPU-%d", i);
		(void)put(&rig, uuid, i < 2 ? 900 : 50, rig.now_ms);
	}
	CHECK_STR(c, "the node with less to do", str_of(pod(&rig, "a", "nvidia.com/gpu: 1")),
		  "bind a n [2]");
	rig.now_ms += PERIOD_MS;
	for (int i = 0; i < 4; i++) {
		char uuid[8];
		(void)snprintf(uuid, sizeof uuid, "GPU-%d", i);
		(void)put(&rig, uuid, i < 2 ? 50 : 900, rig.now_ms);
	}
	CHECK_STR(c, "and when that changes", str_of(pod(&rig, "b", "nvidia.com/gpu: 1")),
		  "bind b m [0]");
	rig_done(&rig);
}

static void check_smoothing(struct check *c)
{
	struct load load = { 0 };
	CHECK(c, "the first", load_add(&load, 800, 1000, PERIOD_MS) && load.milli == 800);
	CHECK(c, "the same again", !load_add(&load, 0, 1000, PERIOD_MS));
	CHECK(c, "too early", !load_add(&load, 0, 1000 + PERIOD_MS / 2 - 1, PERIOD_MS));
	CHECK(c, "late enough", load_add(&load, 0, 1000 + PERIOD_MS / 2, PERIOD_MS));
	CHECK_INT(c, "mostly the new one", load.milli, 200);
	CHECK(c, "after a gap", load_add(&load, 900, 9000000, PERIOD_MS) && load.milli == 900);
	CHECK(c, "older", !load_add(&load, 0, 8000000, PERIOD_MS));
}

// ---- both sources

enum { GPUS = 12, ROUNDS = 300 };

struct sample {
	int64_t percent_milli; // thousandths of a percent, tens of them
	int64_t age_ms;
	bool is_told, is_odd;
};

static const char *const ODD[] = { "NaN", "+Inf", "-3", "1e1", "", "100.5" };

static void put_both(struct rng *rng, const struct sample *samples, int64_t wall_ms,
		     struct buf *view, struct buf *matrix)
{
	buf_put_c(view, "{\"node\":\"n\",\"gpus\":[");
	buf_put_c(matrix,
		  "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[");
	const char *between = "";
	for (int i = 0; i < GPUS; i++) {
		const struct sample *sample = &samples[i];
		int64_t at_ms = wall_ms - sample->age_ms, milli = sample->percent_milli / 100;
		if (!sample->is_told)
			continue;
		buf_printf(view, "%s{\"uuid\":\"GPU-%d\",\"util_milli\":%lld,\"age_ms\":%lld}",
			   between, i, sample->is_odd ? 1001LL : (long long)milli,
			   (long long)sample->age_ms);
		buf_printf(matrix,
			   "%s{\"metric\":{\"UUID\":\"GPU-%d\",\"Hostname\":\"elsewhere\"},"
			   "\"values\":[["
			   "%lld,\"3\"],[%lld.%03lld,\"",
			   between, i, (long long)(at_ms / 1000 - 30), (long long)(at_ms / 1000),
			   (long long)(at_ms % 1000));
		if (sample->is_odd)
			buf_put_c(matrix, ODD[rng_below(rng, ARRAY_COUNT(ODD))]);
		else
			buf_printf(matrix, "%lld.%lld", (long long)(milli / 10),
				   (long long)(milli % 10));
		buf_put_c(matrix, "\"]]}");
		between = ",";
	}
	buf_put_c(view, "]}");
	buf_put_c(matrix, "]}}");
}

static void take(struct check *c, struct rig *rig, struct feed_loads *loads, err_status status)
{
	CHECK_INT(c, "read", status, ERR_OK);
	(void)sched_load_set(rig->sched, loads->items, loads->count, rig->now_ms);
}

static void check_alike(struct check *c)
{
	struct rig rigs[2];
	struct rng rng;
	int different = 0, by_load = 0;
	AUTO(buf_done) struct buf objects = { 0 };
	buf_put_c(&objects, NODE("n", "12000") "---\nkind: GPUNode\nmetadata: {name: n}\n"
					       "status: {devices: [");
	for (int i = 0; i < GPUS; i++)
		buf_printf(&objects,
			   "%s{uuid: GPU-%d, index: %d, healthy: true, model: A100, "
			   "memoryMiB: 81920, milli: 1000}",
			   i > 0 ? ", " : "", i, i);
	buf_put_c(&objects, "]}\n");
	rng_init(&rng, 1);
	begin(&rigs[0], objects.data);
	begin(&rigs[1], objects.data);
	for (int round = 0; round < ROUNDS; round++) {
		struct feed_clock clock = { rigs[0].now_ms, INT64_C(1796000000000) + round * 7001 };
		struct sample samples[GPUS];
		struct feed_loads loads;
		struct err err = { 0 };
		AUTO(buf_done) struct buf view = { 0 };
		AUTO(buf_done) struct buf matrix = { 0 };
		for (int i = 0; i < GPUS; i++)
			samples[i] = (struct sample){ (int64_t)rng_below(&rng, 1001) * 100,
						      (int64_t)rng_below(&rng, 60000),
						      rng_below(&rng, 4) > 0,
						      rng_below(&rng, 8) == 0 };
		put_both(&rng, samples, clock.wall_ms, &view, &matrix);
		take(c, &rigs[0], &loads,
		     feed_load_view(rigs[0].arena, buf_str(&view), clock, &loads, &err));
		take(c, &rigs[1], &loads,
		     feed_load_prometheus(rigs[1].arena, buf_str(&matrix), clock, &loads, &err));
		char name[16], first[1024];
		(void)snprintf(name, sizeof name, "p%d", round);
		(void)snprintf(first, sizeof first, "%s", share(&rigs[0], name));
		different += strcmp(first, share(&rigs[1], name)) != 0;
		by_load += strstr(first, "[0:") == NULL;
		if (round >= 40) { // room for the next
			(void)snprintf(name, sizeof name, "p%d", round - 40);
			rig_remove_pod(&rigs[0], name);
			rig_remove_pod(&rigs[1], name);
		}
		rigs[0].now_ms = rigs[1].now_ms += (int64_t)rng_below(&rng, 20000);
	}
	CHECK_INT(c, "decided differently", different, 0);
	CHECK(c, "and loads mattered", by_load > ROUNDS / 2);
	rig_done(&rigs[0]);
	rig_done(&rigs[1]);
}

// Thousands of series, most of GPUs that are not ours.
static void check_many(struct check *c)
{
	struct rig rig;
	struct feed_loads loads;
	struct err err = { 0 };
	struct feed_clock clock = { 1000000, INT64_C(1796000000000) };
	AUTO(buf_done) struct buf matrix = { 0 };
	begin(&rig, TWO);
	buf_put_c(&matrix,
		  "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[");
	for (int i = 0; i < 20000; i++)
		buf_printf(&matrix,
			   "%s{\"metric\":{\"UUID\":\"GPU-%d\"},\"values\":[[1795999999,\"%d\"]]}",
			   i > 0 ? "," : "", i, 90 - i % 2 * 80);
	// A series of the pod before, and one of a MIG device.
	buf_put_c(&matrix,
		  ",{\"metric\":{\"UUID\":\"GPU-1\",\"pod\":\"x\"},\"values\":[[1795999990,"
		  "\"99\"]]},{\"metric\":{\"UUID\":\"GPU-1\",\"GPU_I_ID\":\"1\"},"
		  "\"values\":[[1796000000,\"99\"]]}]}}");
	CHECK_INT(c, "read", feed_load_prometheus(rig.arena, buf_str(&matrix), clock, &loads, &err),
		  ERR_OK);
	CHECK_INT(c, "loads", loads.count, 20000);
	struct sched_load_taken taken =
		sched_load_set(rig.sched, loads.items, loads.count, rig.now_ms);
	CHECK_INT(c, "ours", taken.taken, 2);
	CHECK_INT(c, "others'", taken.unknown, 19998);
	CHECK_STR(c, "decided", str_of(share(&rig, "a")), "bind a n [1:100/8192]");
	rig_done(&rig);
}

static void check_answers(struct check *c)
{
	static const char *const BAD[] = { "",
					   "{}",
					   "[]",
					   "{\"status\":\"error\"}",
					   "{\"status\":\"success\",\"data\":{\"resultType\":"
					   "\"vector\",\"result\":[]}}",
					   "{\"status\":\"success\",\"data\":{\"resultType\":"
					   "\"matrix\",\"result\":[{\"metric\"" };
	struct rig rig;
	struct feed_clock clock = { 1000000, INT64_C(1796000000000) };
	begin(&rig, TWO);
	for (size_t i = 0; i < ARRAY_COUNT(BAD); i++) {
		struct feed_loads loads = { .count = 77 };
		struct err err = { 0 };
		CHECK(c, BAD[i],
		      feed_load_prometheus(rig.arena, str_of(BAD[i]), clock, &loads, &err) !=
			      ERR_OK);
		CHECK(c, BAD[i],
		      feed_load_view(rig.arena, str_of(BAD[i]), clock, &loads, &err) != ERR_OK);
		CHECK_INT(c, BAD[i], loads.count, 77);
	}
	rig_done(&rig);
}

int main(void)
{
	struct check c = { 0 };
	check_choice(&c, "of two GPUs", TWO);
	check_choice(&c, "of two nodes", TWO_NODES);
	check_staleness(&c);
	check_garbage(&c);
	check_fit(&c);
	check_switch(&c);
	check_nodes(&c);
	check_smoothing(&c);
	check_alike(&c);
	check_many(&c);
	check_answers(&c);
	return check_done(&c);
}
