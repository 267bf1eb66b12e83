// SPDX-License-Identifier: Apache-2.0
// Limits and guarantees of GPU models in the scheduling core: which nodes a limit closes, who is
// woken when it opens, what is taken back, and that the books follow nodes that become others.
#include "check.h"
#include "rig.h"

#include "base/rng.h"
#include "sched/pool.h"
#include "sched/preempt.h"
#include "sched/sched_queue.h"

static void put_node(struct rig *rig, const char *name, int gpus, const char *product)
{
	rig_put(rig,
		arena_printf(rig->arena,
			     "{kind: Node, metadata: {name: %s, labels: {nvidia.com/gpu.product: "
			     "%s}}, status: {allocatable: {pods: '110', nvidia.com/gpu: '%d'}}}\n",
			     name, product, gpus));
}

static void put_tenant(struct rig *rig, const char *name, const char *queue)
{
	rig_put(rig, arena_printf(rig->arena,
				  "{kind: Tenant, metadata: {name: %s}, spec: {queue: %s}}\n", name,
				  queue));
}

struct ask {
	const char *name, *namespace_;
	int gpus, created_s;
	const char *models, *more; // annotation; members of metadata.annotations, of the spec
	const char *node;          // where it runs
};

static void put_pod(struct rig *rig, const struct ask *ask)
{
	const char *models = ask->models == NULL ? "" : ask->models;
	rig_put(rig,
		arena_printf(rig->arena,
			     "{kind: Pod, metadata: {name: %s, namespace: %s, creationTimestamp: "
			     "'1970-01-01T00:00:%02dZ', annotations: {%s%s%s%s}}, spec: {%s%s "
			     "containers: [{name: main, resources: {limits: {nvidia.com/gpu: "
			     "'%d'}}}]}}\n",
			     ask->name, ask->namespace_, ask->created_s,
			     models[0] == '\0' ? "" : "gpuaas.io/gpu-models: '", models,
			     models[0] == '\0' ? "" : "',", ask->more == NULL ? "" : ask->more,
			     ask->node == NULL ? "" : "nodeName: ",
			     ask->node == NULL ? "" : arena_printf(rig->arena, "%s,", ask->node),
			     ask->gpus));
}

// What is decided until nothing is left: "POD@NODE" of binds, "-POD" of evictions.
static const char *done(struct rig *rig)
{
	struct buf out = { .limit = 4096 };
	for (const char *line = rig_next(rig); line[0] != '-'; line = rig_next(rig)) {
		const struct sched_decision *decision = &rig->decision;
		const char *gap = out.len > 0 ? " " : "";
		if (decision->verb == SCHED_BIND)
			buf_printf(&out, "%s" STR_FMT "@" STR_FMT, gap, STR_ARG(decision->name),
				   STR_ARG(decision->node));
		if (decision->verb == SCHED_EVICT)
			buf_printf(&out, "%s-" STR_FMT, gap, STR_ARG(decision->victims[0].name));
	}
	const char *text = arena_cstr(rig->arena, buf_str(&out));
	buf_done(&out);
	return text;
}

static const char *reasons(struct rig *rig, const char *namespace_, const char *name)
{
	struct sched_explanation explanation;
	struct buf out = { .limit = 4096 };
	bool is_there = sched_explain(rig->sched, str_of(namespace_), str_of(name), &explanation);
	ASSERT(is_there);
	for (size_t i = 0; i < explanation.facts.count; i++) {
		struct sched_reason reason =
			sched_fact_text(rig->sched, str_of(namespace_), str_of(name),
					&explanation.facts.items[i], rig->arena);
		buf_printf(&out, "%s%s:%u(" STR_FMT "/" STR_FMT ")", i > 0 ? " " : "", reason.code,
			   reason.nodes, STR_ARG(reason.need), STR_ARG(reason.have));
	}
	const char *text = arena_cstr(rig->arena, buf_str(&out));
	buf_done(&out);
	return text;
}

static void test_limit(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	put_node(&rig, "a1", 4, "NVIDIA-A100-SXM4-80GB");
	put_node(&rig, "h1", 4, "NVIDIA-H100-80GB-HBM3");
	put_node(&rig, "h2", 4, "NVIDIA-H100-80GB-HBM3");
	put_tenant(&rig, "lab", "{byModel: [{model: H100, limit: 3}]}");
	put_tenant(&rig, "team", "{parent: lab}");
	put_pod(&rig, &(struct ask){ .name = "p1", .namespace_ = "team", 2, 1, "H100" });
	put_pod(&rig, &(struct ask){ .name = "p2", .namespace_ = "lab", 2, 2, "H100" });
	put_pod(&rig, &(struct ask){ .name = "p3", .namespace_ = "lab", 2, 3 });
	put_pod(&rig, &(struct ask){ .name = "p4", .namespace_ = "free", 4, 4, "H100" });
	CHECK_STR(c, "another model, and others, pass", str_of(done(&rig)), "p4@h1 p1@h2 p3@a1");
	CHECK_STR(c, "whose limit of what", str_of(reasons(&rig, "lab", "p2")),
		  "QueueLimitReached:2(2 GPUs/1 GPUs of H100 for lab) GpuModelMismatch:1(/) "
		  "InsufficientResource:1(2 nvidia.com/gpu/0 nvidia.com/gpu)");
	put_pod(&rig, &(struct ask){ .name = "p5", .namespace_ = "lab", 1, 5, "H100" });
	CHECK_STR(c, "up to it", str_of(done(&rig)), "p5@h2");
	rig_remove_pod(&rig, "p1");
	CHECK_STR(c, "woken by what was given back", str_of(done(&rig)), "p2@h2");
	put_pod(&rig, &(struct ask){ .name = "p6", .namespace_ = "team", 1, 6, "H100" });
	put_pod(&rig, &(struct ask){ .name = "p7", .namespace_ = "free", 1, 7, "H100" });
	CHECK_STR(c, "who is at a limit keeps no node", str_of(done(&rig)), "p7@h2");
	put_tenant(&rig, "lab", "{byModel: [{model: H100, limit: 4}]}");
	rig_remove_pod(&rig, "p7");
	CHECK_STR(c, "a limit that is raised", str_of(done(&rig)), "p6@h2");
	CHECK(c, "the ledger is whole", sched_check(rig.sched) == NULL);
	rig_done(&rig);
}

// Room that comes on nodes where it is too little: what matters is the limit.
static void test_wakes(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	put_tenant(&rig, "lab", "{byModel: [{model: H100, limit: 4}]}");
	for (int i = 0; i < 4; i++) {
		const char *node = arena_printf(rig.arena, "h%d", i);
		put_node(&rig, node, 1, "H100");
		put_pod(&rig, &(struct ask){ .name = arena_printf(rig.arena, "r%d", i),
					     .namespace_ = "lab",
					     .gpus = 1,
					     .node = node });
	}
	put_node(&rig, "h9", 4, "H100");
	put_pod(&rig, &(struct ask){ .name = "big", .namespace_ = "lab", 3, 9 });
	put_pod(&rig, &(struct ask){ .name = "other", .namespace_ = "lab", 4, 10 });
	CHECK_STR(c, "at the limit", str_of(done(&rig)), "");
	rig_remove_pod(&rig, "r0");
	CHECK_STR(c, "still", str_of(done(&rig)), "");
	rig_remove_pod(&rig, "r1");
	rig_remove_pod(&rig, "r2");
	CHECK_STR(c, "open, on a node where nothing changed", str_of(done(&rig)), "big@h9");
	rig_done(&rig);
}

// A node that turns out to have another model counts for that from then on.
static void test_relabelled(struct check *c)
{
	struct rig rig;
	struct sched_queue_model_row rows[4];
	rig_init(&rig);
	put_tenant(&rig, "lab",
		   "{byModel: [{model: A100, limit: 2}, {model: H100, guaranteed: 1}]}");
	put_node(&rig, "n1", 4, "A100");
	put_pod(&rig, &(struct ask){ .name = "p1", .namespace_ = "lab", 2, 1 });
	CHECK_STR(c, "runs", str_of(done(&rig)), "p1@n1");
	CHECK_INT(c, "rows", sched_queue_model_rows(rig.sched, STR("lab"), rows, 4), 2);
	CHECK_INT(c, "of one", rows[0].allocated_milli, 2000);
	CHECK_INT(c, "offered", rows[0].offered_milli, 4000);
	put_node(&rig, "n1", 4, "H100");
	CHECK_INT(c, "rows", sched_queue_model_rows(rig.sched, STR("lab"), rows, 4), 2);
	CHECK_INT(c, "no longer", rows[0].allocated_milli + rows[0].offered_milli, 0);
	CHECK_INT(c, "of the other", rows[1].allocated_milli, 2000);
	CHECK_INT(c, "guaranteed", rows[1].guaranteed_milli, 1000);
	put_tenant(&rig, "more", "{byModel: [{model: B200, limit: 0}]}");
	CHECK(c, "named anew", sched_check(rig.sched) == NULL);
	CHECK_INT(c, "still there", sched_queue_model_rows(rig.sched, STR("lab"), rows, 4), 2);
	CHECK_INT(c, "of the other", rows[1].allocated_milli, 2000);
	put_tenant(&rig, "lab", "{}");
	CHECK_INT(c, "no rows", sched_queue_model_rows(rig.sched, STR("lab"), rows, 4), 0);
	CHECK(c, "the ledger is whole", sched_check(rig.sched) == NULL);
	rig_done(&rig);
}

static void test_gang(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	put_tenant(&rig, "lab", "{byModel: [{model: H100, limit: 2}]}");
	put_node(&rig, "h1", 8, "H100");
	put_node(&rig, "a1", 2, "A100");
	for (int i = 0; i < 3; i++)
		put_pod(&rig,
			&(struct ask){ .name = arena_printf(rig.arena, "g%d", i),
				       .namespace_ = "lab",
				       .gpus = 1,
				       .models = "H100",
				       .more = "gpuaas.io/gang: g, gpuaas.io/gang-min: '3'" });
	CHECK_STR(c, "not in part", str_of(done(&rig)), "");
	CHECK_STR(c, "for all of it", str_of(reasons(&rig, "lab", "g0")),
		  "GangDoesNotFit:0(3 pods/2 pods) QueueLimitReached:0(3 GPUs/2 GPUs of H100 for "
		  "lab) GpuModelMismatch:1(/)");
	put_tenant(&rig, "lab", "{byModel: [{model: H100, limit: 3}]}");
	CHECK_STR(c, "raised", str_of(done(&rig)), "g0@h1 g1@h1 g2@h1");
	rig_done(&rig);
}

static void test_reclaim(struct check *c)
{
	static const struct sched_preempt_rules RULES = { .mode = SCHED_PREEMPT_PRIORITY };
	struct rig rig;
	rig_init(&rig);
	sched_preempt_set(rig.sched, &RULES);
	put_tenant(&rig, "owner", "{byModel: [{model: H100, guaranteed: 1}]}");
	put_tenant(&rig, "guest", "{guaranteed: 4}");
	put_node(&rig, "h1", 2, "H100");
	put_node(&rig, "a1", 2, "A100");
	for (int i = 0; i < 4; i++)
		put_pod(&rig, &(struct ask){ .name = arena_printf(rig.arena, "g%d", i),
					     .namespace_ = "guest",
					     .gpus = 1,
					     .created_s = i,
					     .node = i < 2 ? "h1" : "a1" });
	put_pod(&rig, &(struct ask){ .name = "o1", .namespace_ = "owner", 1, 9, "A100" });
	CHECK_STR(c, "nothing of a model that is not guaranteed", str_of(done(&rig)), "");
	put_pod(&rig, &(struct ask){ .name = "o2", .namespace_ = "owner", 1, 10, "H100" });
	CHECK_STR(c, "of one who has no more than is guaranteed in all", str_of(done(&rig)), "-g1");
	rig_remove_pod(&rig, "g1");
	CHECK_STR(c, "and takes its place", str_of(done(&rig)), "o2@h1");
	put_pod(&rig, &(struct ask){ .name = "g9", .namespace_ = "guest", 1, 11, "H100" });
	CHECK_STR(c, "who lost takes it back from nobody", str_of(done(&rig)), "");
	put_pod(&rig, &(struct ask){ .name = "o3", .namespace_ = "owner", 1, 12, "H100" });
	CHECK_STR(c, "no more than is guaranteed", str_of(done(&rig)), "");
	CHECK(c, "the ledger is whole", sched_check(rig.sched) == NULL);
	rig_done(&rig);
}

// Whose turn it is when both want the last one of a model.
static void test_turns(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	put_tenant(&rig, "owner", "{byModel: [{model: H100, guaranteed: 1}]}");
	put_tenant(&rig, "guest", "{}");
	put_node(&rig, "a1", 4, "A100");
	put_pod(&rig, &(struct ask){ .name = "o1", .namespace_ = "owner", 4, 1 });
	CHECK_STR(c, "more than is guaranteed in all", str_of(done(&rig)), "o1@a1");
	put_pod(&rig, &(struct ask){ .name = "g1", .namespace_ = "guest", 1, 2, "H100" });
	put_pod(&rig, &(struct ask){ .name = "o2", .namespace_ = "owner", 1, 3, "H100" });
	put_node(&rig, "h1", 1, "H100");
	CHECK_STR(c, "but not of the model", str_of(done(&rig)), "o2@h1");
	rig_done(&rig);
}

// Settings that no queue can have are told with their field, and keep its pods alone.
static void test_faults(struct check *c)
{
	static const struct {
		const char *queue, *says;
	} CASES[] = {
		{ "{byModel: 7}", "spec.queue.byModel must be a list of at most 16 models" },
		{ "{byModel: [7]}", "spec.queue.byModel.model must be the name of a GPU model" },
		{ "{byModel: [{model: H100, limit: -1}]}",
		  "spec.queue.byModel.limit must be a whole number of 0 to 100000" },
		{ "{byModel: [{model: H100, limit: 1e30}]}",
		  "spec.queue.byModel.limit must be a whole number of 0 to 100000" },
		{ "{byModel: [{model: H100, guaranteed: 2, limit: 1}]}",
		  "spec.queue.byModel: a model's guaranteed is above its limit; raise the limit or "
		  "guarantee less" },
		{ "{byModel: [{model: H100}, {model: H100}]}",
		  "spec.queue.byModel names a model twice; leave one out" },
		{ "{guaranteed: 2, byModel: [{model: H100, guaranteed: 2}, {model: A100, "
		  "guaranteed: 1}]}",
		  "spec.queue.byModel guarantees more than spec.queue.guaranteed; raise that or "
		  "guarantee less" },
		{ "{limit: 1, byModel: [{model: H100, guaranteed: 2}]}",
		  "spec.queue.byModel guarantees more than spec.queue.limit; raise the limit or "
		  "guarantee less" },
	};
	struct rig rig;
	rig_init(&rig);
	put_node(&rig, "h1", 4, "H100");
	for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
		struct sched_queue_row rows[2];
		put_tenant(&rig, "lab", CASES[i].queue);
		(void)sched_queue_rows(rig.sched, rows, 2);
		CHECK_STR(c, CASES[i].queue, rows[0].fault, CASES[i].says);
	}
	for (int i = 0; i < 3; i++) {
		struct buf list = { .limit = 4096 };
		for (int k = 0; k < 16; k++)
			buf_printf(&list, "%s{model: M%d-%d}", k > 0 ? ", " : "", i, k);
		put_tenant(&rig,
			   i == 0   ? "t0"
			   : i == 1 ? "t1"
				    : "t2",
			   arena_printf(rig.arena, "{byModel: [" STR_FMT "]}",
					STR_ARG(buf_str(&list))));
		buf_done(&list);
	}
	put_pod(&rig, &(struct ask){ .name = "p0", .namespace_ = "t0", 1, 1 });
	put_pod(&rig, &(struct ask){ .name = "p2", .namespace_ = "t2", 1, 2 });
	CHECK_STR(c, "too many names keep those who name them", str_of(done(&rig)), "p0@h1");
	rig_done(&rig);
}

// Binds that leave a queue above a limit of the model of their node.
static int count_above(struct rig *rig)
{
	int count = 0;
	for (const char *line = rig_next(rig); line[0] != '-'; line = rig_next(rig)) {
		struct sched_queue_model_row rows[4];
		struct str tenant = rig->decision.namespace_;
		bool is_bind = rig->decision.verb == SCHED_BIND;
		size_t rows_count = sched_queue_model_rows(rig->sched, tenant, rows, 4);
		for (size_t i = 0; is_bind && i < rows_count; i++)
			count += rows[i].allocated_milli > rows[i].limit_milli &&
				 str_eq(sched_pod_pool(rig->sched, rig->decision.uid),
					rows[i].model);
	}
	return count;
}

// Whatever comes and goes, the books are the sums of the pods and no limit is passed.
static void test_random(struct check *c)
{
	static const char *const PRODUCTS[] = { "A100", "H100", "NVIDIA-H100-80GB-HBM3" };
	static const char *const TENANTS[] = { "a", "b", "c" };
	struct rng rng;
	int broken = 0, above = 0;
	rng_init(&rng, 3);
	for (int round = 0; round < 20; round++) {
		struct rig rig;
		rig_init(&rig);
		for (int step = 0; step < 120; step++) {
			int kind = (int)rng_below(&rng, 10);
			const char *tenant = TENANTS[rng_below(&rng, 3)];
			const char *pod = arena_printf(rig.arena, "p%d", (int)rng_below(&rng, 30));
			int number = (int)rng_below(&rng, 4);
			if (kind == 0)
				put_node(&rig, arena_printf(rig.arena, "n%d", number), 4,
					 PRODUCTS[rng_below(&rng, 3)]);
			else if (kind == 1)
				put_tenant(&rig, tenant,
					   arena_printf(
						   rig.arena,
						   "{parent: '%s', byModel: [{model: %s, limit: "
						   "%d}]}",
						   tenant[0] == 'c' ? "b" : "",
						   number % 2 == 0 ? "H100" : "A100", number * 2));
			else if (kind < 4)
				rig_remove_pod(&rig, pod);
			else
				put_pod(&rig,
					&(struct ask){ .name = pod,
						       .namespace_ = tenant,
						       .gpus = 1 + number % 3,
						       .models = number == 3 ? "H100" : NULL });
			above += count_above(&rig);
			broken += sched_check(rig.sched) != NULL;
		}
		rig_done(&rig);
	}
	CHECK_INT(c, "the books", broken, 0);
	CHECK_INT(c, "the limits", above, 0);
}

int main(void)
{
	struct check c = { 0, 0 };
	test_limit(&c);
	test_wakes(&c);
	test_relabelled(&c);
	test_gang(&c);
	test_reclaim(&c);
	test_turns(&c);
	test_faults(&c);
	test_random(&c);
	return check_done(&c);
}
