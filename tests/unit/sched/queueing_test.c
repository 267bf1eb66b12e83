// SPDX-License-Identifier: Apache-2.0
// Queues in the scheduling core: who goes first, who waits for which limit and is woken, what a
// change of a Tenant does, and that a queue whose settings cannot hold delays nobody else.
#include "check.h"
#include "rig.h"

#include "feed/feed_queue.h"

#include <stdlib.h>

static void put_node(struct rig *rig, const char *name, int gpus, const char *product)
{
	rig_put(rig,
		arena_printf(rig->arena,
			     "{kind: Node, metadata: {name: %s, labels: {nvidia.com/gpu.product: "
			     "%s}}, status: {allocatable: {pods: '110', cpu: '64', memory: "
			     "256Gi, nvidia.com/gpu: '%d'}}}\n",
			     name, product, gpus));
}

static void put_tenant(struct rig *rig, const char *name, const char *queue)
{
	rig_put(rig, arena_printf(rig->arena,
				  "{kind: Tenant, metadata: {name: %s}, spec: {queue: %s}}\n", name,
				  queue));
}

struct ask {
	const char *name, *namespace_, *user;
	int gpus, created_s, priority;
	const char *more; // members of metadata.annotations
};

static void put_pod(struct rig *rig, const struct ask *ask)
{
	rig_put(rig,
		arena_printf(
			rig->arena,
			"{kind: Pod, metadata: {name: %s, namespace: %s, creationTimestamp: "
			"'1970-01-01T00:%02d:%02dZ', annotations: {gpuaas.io/user: '%s'%s}}, spec: "
			"{priority: %d, containers: [{name: main, resources: {limits: "
			"{nvidia.com/gpu: '%d'}}}]}}\n",
			ask->name, ask->namespace_, ask->created_s / 60, ask->created_s % 60,
			ask->user == NULL ? "" : ask->user, ask->more == NULL ? "" : ask->more,
			ask->priority, ask->gpus));
}

// Names of what is bound until nothing is left to decide.
static const char *bound(struct rig *rig)
{
	struct buf out = { .limit = 4096 };
	for (const char *line = rig_next(rig); line[0] != '-'; line = rig_next(rig)) {
		struct str rest = str_of(line), verb, name;
		(void)str_split_next(&rest, ' ', &verb);
		(void)str_split_next(&rest, ' ', &name);
		if (!str_eq_c(verb, "bind"))
			continue;
		if (out.len > 0)
			buf_put_byte(&out, ' ');
		buf_put(&out, name);
	}
	const char *text = arena_cstr(rig->arena, buf_str(&out));
	buf_done(&out);
	return text;
}

// Codes of a pod's reasons, with their numbers.
static struct str reasons(struct rig *rig, const char *namespace_, const char *name)
{
	struct sched_explanation explanation;
	struct buf out = { .limit = 4096 };
	if (!sched_explain(rig->sched, str_of(namespace_), str_of(name), &explanation))
		return STR("unknown");
	for (size_t i = 0; i < explanation.facts.count; i++) {
		struct sched_reason reason =
			sched_fact_text(rig->sched, str_of(namespace_), str_of(name),
					&explanation.facts.items[i], rig->arena);
		buf_printf(&out, "%s%s(" STR_FMT "/" STR_FMT ")", i > 0 ? " " : "", reason.code,
			   STR_ARG(reason.need), STR_ARG(reason.have));
	}
	struct str text = arena_dup(rig->arena, buf_str(&out));
	buf_done(&out);
	return text;
}

static void test_limit(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	put_node(&rig, "n1", 8, "A100");
	put_tenant(&rig, "lab", "{limit: 5}");
	put_tenant(&rig, "vision", "{parent: lab, limit: 4}");
	put_tenant(&rig, "speech", "{parent: lab}");
	put_pod(&rig, &(struct ask){ "v1", "vision", NULL, 3, 1, 0, NULL });
	put_pod(&rig, &(struct ask){ "v2", "vision", NULL, 2, 2, 0, NULL });
	put_pod(&rig, &(struct ask){ "s1", "speech", NULL, 2, 3, 0, NULL });
	put_pod(&rig, &(struct ask){ "s2", "speech", NULL, 1, 4, 0, NULL });
	put_pod(&rig, &(struct ask){ "x1", "others", NULL, 3, 5, 0, NULL });
	CHECK_STR(c, "the others pass", str_of(bound(&rig)), "x1 s1 v1");
	CHECK_STR(c, "own limit", reasons(&rig, "vision", "v2"),
		  "QueueLimitReached(2 GPUs/1 GPUs for vision) InsufficientResource(2 "
		  "nvidia.com/gpu/0 "
		  "nvidia.com/gpu)");
	CHECK_STR(
		c, "limit above", reasons(&rig, "speech", "s2"),
		"QueueLimitReached(1 GPUs/0 GPUs for lab) InsufficientResource(1 nvidia.com/gpu/0 "
		"nvidia.com/gpu)");
	sched_pod_remove(rig.sched, STR("x1"));
	CHECK_STR(c, "room on nodes is not what they wait for", str_of(bound(&rig)), "");
	sched_pod_remove(rig.sched, STR("v1"));
	CHECK_STR(c, "woken by what was given back", str_of(bound(&rig)), "v2 s2");
	put_pod(&rig, &(struct ask){ "s3", "speech", NULL, 2, 6, 0, NULL });
	CHECK_STR(c, "full again", str_of(bound(&rig)), "");
	put_tenant(&rig, "lab", "{limit: 7}");
	CHECK_STR(c, "a limit that is raised", str_of(bound(&rig)), "s3");
	rig_done(&rig);
}

static void put_running(struct rig *rig, const char *name, const char *namespace_, const char *node)
{
	rig_put(rig, arena_printf(rig->arena,
				  "{kind: Pod, metadata: {name: %s, namespace: %s}, spec: "
				  "{nodeName: %s, containers: [{name: main, resources: {limits: "
				  "{nvidia.com/gpu: '2'}}}]}}\n",
				  name, namespace_, node));
}

// Who was kept by one limit and then by one above it is woken by the one above.
static void test_other_limit(struct check *c)
{
	static const char *const LEAVERS[] = { "s1", "s2" };
	for (size_t i = 0; i < ARRAY_COUNT(LEAVERS); i++) {
		struct rig rig;
		rig_init(&rig);
		put_node(&rig, "n1", 8, "A100");
		put_tenant(&rig, "lab", "{limit: 4}");
		put_tenant(&rig, "vision", "{parent: lab, limit: 2}");
		put_tenant(&rig, "speech", "{parent: lab}");
		put_running(&rig, "v1", "vision", "n1");
		put_running(&rig, "s1", "speech", "n1");
		put_pod(&rig, &(struct ask){ "v2", "vision", NULL, 2, 2, 0, NULL });
		CHECK_STR(c, "its own limit", str_of(bound(&rig)), "");
		put_running(&rig, "s2", "speech", "n1");
		sched_pod_remove(rig.sched, STR("v1"));
		CHECK_STR(c, "the limit above", str_of(bound(&rig)), "");
		sched_pod_remove(rig.sched, str_of(LEAVERS[i]));
		CHECK_STR(c, "neither", str_of(bound(&rig)), "v2");
		rig_done(&rig);
	}
}

// A gang that fills what its queue may hold: the queue's head cannot start, so it keeps no node.
static void test_gang_fills(struct check *c)
{
	static const char GANG[] = ", gpuaas.io/gang: g, gpuaas.io/gang-min: '2'";
	static const char *const LIMITS[] = { "{limit: 4}", "{userLimit: 4}" };
	for (size_t i = 0; i < ARRAY_COUNT(LIMITS); i++) {
		struct rig rig;
		struct sched_reservation reservations[2];
		rig_init(&rig);
		put_node(&rig, "n1", 4, "A100");
		put_node(&rig, "n2", 2, "A100");
		put_node(&rig, "n3", 2, "A100");
		put_tenant(&rig, "vision", LIMITS[i]);
		put_running(&rig, "x", "others", "n1");
		put_pod(&rig, &(struct ask){ "h", "vision", "ann", 4, 1, 5, NULL });
		CHECK_STR(c, LIMITS[i], str_of(bound(&rig)), "");
		CHECK_INT(c, "a head", sched_reservations(rig.sched, reservations, 2), 1);
		put_pod(&rig, &(struct ask){ "m1", "vision", "ann", 2, 2, 0, GANG });
		put_pod(&rig, &(struct ask){ "m2", "vision", "ann", 2, 3, 0, GANG });
		CHECK_STR(c, LIMITS[i], str_of(bound(&rig)), "m1 m2");
		CHECK_INT(c, "no head", sched_reservations(rig.sched, reservations, 2), 0);
		rig_done(&rig);
	}
}

static void put_part(struct rig *rig, const char *name, const char *namespace_,
		     const char *resource, const char *amount)
{
	rig_put(rig,
		arena_printf(rig->arena,
			     "{kind: Pod, metadata: {name: %s, namespace: %s}, spec: "
			     "{containers: [{name: main, resources: {limits: {%s: '%s'}}}]}}\n",
			     name, namespace_, resource, amount));
}

// GPUs are divided in whatever parts the nodes offer them.
static void test_parts(struct check *c)
{
	static const struct {
		const char *resource, *offered, *asked;
		int64_t a_milli, b_milli;
		const char *bound;
	} CASES[] = {
		{ "nvidia.com/gpu", "4", "1", 1000, 3000, "a1 b1 b2 b3" },
		{ "nvidia.com/mig-1g.10gb", "4", "1", 143, 429, "a1 b1 b2 b3" },
		{ "nvidia.com/mig-3g.40gb", "8", "2", 857, 2571, "a1 b1 b2 b3" },
		{ "gpuaas.io/gpu-milli", "4000", "1000", 1000, 3000, NULL },
	};
	static const char *const PODS[] = { "a1", "a2", "a3", "a4", "b1", "b2", "b3", "b4" };
	for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
		struct rig rig;
		struct sched_queue_row rows[4];
		rig_init(&rig);
		put_tenant(&rig, "a", "{weight: 1}");
		put_tenant(&rig, "b", "{weight: 3}");
		rig_put(&rig,
			arena_printf(rig.arena,
				     "{kind: Node, metadata: {name: n}, status: {allocatable: "
				     "{pods: '9', %s: '%s', gpuaas.io/gpu-memory: '320'}}}\n",
				     CASES[i].resource, CASES[i].offered));
		for (size_t k = 0; k < ARRAY_COUNT(PODS); k++)
			put_part(&rig, PODS[k], PODS[k][0] == 'a' ? "a" : "b", CASES[i].resource,
				 CASES[i].asked);
		CHECK_INT(c, CASES[i].resource,
			  sched_queue_rows(rig.sched, rows, ARRAY_COUNT(rows)), 2);
		CHECK_INT(c, CASES[i].resource, rows[0].deserved_milli, CASES[i].a_milli);
		CHECK_INT(c, CASES[i].resource, rows[1].deserved_milli, CASES[i].b_milli);
		if (CASES[i].bound != NULL) // shares are of devices, which this node has none of
			CHECK_STR(c, CASES[i].resource, str_of(bound(&rig)), CASES[i].bound);
		rig_done(&rig);
	}
}

// Of slices a limit of one GPU admits seven, and says what is left of it.
static void test_sevenths(struct check *c)
{
	static const char *const PODS[] = { "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8" };
	struct rig rig;
	rig_init(&rig);
	put_tenant(&rig, "a", "{guaranteed: 1, limit: 1}");
	rig_put(&rig, "{kind: Node, metadata: {name: n}, status: {allocatable: {pods: '20', "
		      "nvidia.com/mig-1g.10gb: '14'}}}\n");
	for (size_t i = 0; i < ARRAY_COUNT(PODS); i++)
		put_part(&rig, PODS[i], "a", "nvidia.com/mig-1g.10gb", "1");
	CHECK_STR(c, "seven", str_of(bound(&rig)), "p1 p2 p3 p4 p5 p6 p7");
	CHECK_STR(c, "not eight", reasons(&rig, "a", "p8"),
		  "QueueLimitReached(0.143 GPUs/0 GPUs for a)");
	sched_pod_remove(rig.sched, STR("p3"));
	CHECK_STR(c, "one for one", str_of(bound(&rig)), "p8");
	rig_done(&rig);
}

static void test_person(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	put_node(&rig, "n1", 8, "A100");
	put_tenant(&rig, "team", "{userLimit: 2}");
	put_pod(&rig, &(struct ask){ "a1", "team", "ada", 2, 1, 0, NULL });
	put_pod(&rig, &(struct ask){ "a2", "team", "ada", 1, 2, 0, NULL });
	put_pod(&rig, &(struct ask){ "b1", "team", "bob", 1, 3, 0, NULL });
	CHECK_STR(c, "one person stops nobody else", str_of(bound(&rig)), "a1 b1");
	CHECK_STR(c, "whose limit", reasons(&rig, "team", "a2"),
		  "UserLimitReached(1 GPUs/0 GPUs for ada)");
	sched_pod_remove(rig.sched, STR("b1"));
	CHECK_STR(c, "another's GPUs do not help", str_of(bound(&rig)), "");
	put_tenant(&rig, "team", "{}");
	CHECK_STR(c, "the limit is gone", str_of(bound(&rig)), "a2");
	rig_done(&rig);
}

static void test_turns(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	put_tenant(&rig, "owner", "{guaranteed: 2}");
	put_tenant(&rig, "guest", "{}");
	put_tenant(&rig, "other", "{weight: 3}");
	for (int i = 0; i < 6; i++) {
		const char *name = arena_printf(rig.arena, "g%d", i);
		put_pod(&rig, &(struct ask){ name, "guest", NULL, 1, i, 100, NULL });
	}
	for (int i = 0; i < 4; i++) {
		const char *name = arena_printf(rig.arena, "o%d", i);
		put_pod(&rig, &(struct ask){ name, "owner", NULL, 1, 20 + i, 0, NULL });
	}
	put_node(&rig, "n1", 4, "A100");
	CHECK_STR(c, "what is guaranteed goes first, then the priority", str_of(bound(&rig)),
		  "o0 o1 g0 g1");
	for (int i = 0; i < 6; i++) {
		const char *name = arena_printf(rig.arena, "t%d", i);
		put_pod(&rig, &(struct ask){ name, "other", NULL, 1, 30 + i, 100, NULL });
	}
	put_node(&rig, "n2", 4, "A100");
	CHECK_STR(c, "by what each had, three parts to one", str_of(bound(&rig)), "t0 t1 t2 t3");
	put_node(&rig, "n3", 4, "A100");
	CHECK_STR(c, "until they are even", str_of(bound(&rig)), "t4 t5 g2 g3");
	rig_done(&rig);
}

// A queue that held the cluster before comes after one that did not, and is forgiven in time.
static void test_over_time(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	sched_half_life_set(rig.sched, 3600);
	put_node(&rig, "n1", 4, "A100");
	put_tenant(&rig, "late", "{}");
	put_tenant(&rig, "early", "{}");
	put_pod(&rig, &(struct ask){ "e0", "early", NULL, 4, 1, 0, NULL });
	CHECK_STR(c, "alone", str_of(bound(&rig)), "e0");
	rig.now_ms = 7200 * 1000;
	CHECK_STR(c, "runs for two hours", str_of(rig_next(&rig)), "-");
	put_pod(&rig, &(struct ask){ "e1", "early", NULL, 4, 2, 0, NULL });
	put_pod(&rig, &(struct ask){ "l1", "late", NULL, 4, 3, 0, NULL });
	(void)bound(&rig);
	sched_pod_remove(rig.sched, STR("e0"));
	CHECK_STR(c, "who had less", str_of(bound(&rig)), "l1");
	rig.now_ms += 600 * 1000;
	(void)bound(&rig);
	put_pod(&rig, &(struct ask){ "l2", "late", NULL, 4, 1, 0, NULL });
	(void)bound(&rig);
	sched_pod_remove(rig.sched, STR("l1"));
	CHECK_STR(c, "ten minutes are not two hours", str_of(bound(&rig)), "l2");
	rig.now_ms += 40 * 3600 * 1000;
	(void)bound(&rig);
	sched_pod_remove(rig.sched, STR("l2"));
	CHECK_STR(c, "forgiven", str_of(bound(&rig)), "e1");
	struct sched_queue_row rows[3];
	CHECK_INT(c, "rows", sched_queue_rows(rig.sched, rows, 3), 2);
	CHECK_STR(c, "in order", rows[0].name, "early");
	int64_t hours = 4 * 3600 * 1442; // four GPUs for a half-life, over ln 2
	CHECK(c, "late's use",
	      rows[1].used_milli_s > hours * 9 / 10 && rows[1].used_milli_s < hours * 11 / 10);
	rig_done(&rig);
}

// A leader that takes over long after its machine has started: what ran before is held since now.
static void test_begins_late(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	rig.now_ms = INT64_C(57000000);
	sched_free(rig.sched);
	rig.sched = sched_new(0, rig.now_ms);
	put_tenant(&rig, "holder", "{}");
	put_node(&rig, "n1", 8, "A100");
	rig_put(&rig, "{kind: Pod, metadata: {name: h, namespace: holder}, spec: {nodeName: n1, "
		      "containers: [{name: main, resources: {limits: {nvidia.com/gpu: '8'}}}]}}\n");
	(void)bound(&rig);
	rig.now_ms += 1000;
	(void)bound(&rig);
	struct sched_queue_row row;
	CHECK_INT(c, "rows", sched_queue_rows(rig.sched, &row, 1), 1);
	CHECK_INT(c, "held", row.allocated_milli, 8000);
	CHECK_INT(c, "for a second", row.used_milli_s, 8000);
	rig_done(&rig);
}

static void test_ceiling(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	put_tenant(&rig, "loud", "{priorityCeiling: 10}");
	put_pod(&rig, &(struct ask){ "l1", "loud", NULL, 1, 1, 1000, NULL });
	put_pod(&rig, &(struct ask){ "x1", "others", NULL, 1, 2, 20, NULL });
	put_node(&rig, "n1", 1, "A100");
	CHECK_STR(c, "counts as its ceiling", str_of(bound(&rig)), "x1");
	put_tenant(&rig, "loud", "{priorityCeiling: 30}");
	put_pod(&rig, &(struct ask){ "x2", "others", NULL, 1, 2, 20, NULL });
	sched_pod_remove(rig.sched, STR("x1"));
	CHECK_STR(c, "a ceiling that is raised", str_of(bound(&rig)), "l1");
	struct sched_queue_view view;
	CHECK(c, "is shown", sched_queue_explain(rig.sched, STR("loud"), STR("l1"), &view));
	CHECK_INT(c, "as it counts", view.priority, 30);
	rig_done(&rig);
}

static void test_faults(struct check *c)
{
	static const struct {
		const char *name, *queue, *says;
	} CASES[] = {
		{ "parent gone", "{parent: nobody}",
		  "spec.queue.parent: tenant nobody has no queue; give it spec.queue or name "
		  "another "
		  "parent" },
		{ "below itself", "{parent: t}",
		  "spec.queue.parent: tenant t is below this one; name another parent" },
		{ "negative", "{limit: -1}",
		  "spec.queue.limit must be a whole number of 0 to 100000" },
		{ "no number", "{weight: heavy}",
		  "spec.queue.weight must be a whole number of 0 to 1000000" },
		{ "a text", "{limit: 'NaN'}",
		  "spec.queue.limit must be a whole number of 0 to 100000" },
		{ "overflow", "{guaranteed: 9223372036854775807}",
		  "spec.queue.guaranteed must be a whole number of 0 to 100000" },
		{ "a fraction", "{userLimit: 1.5}",
		  "spec.queue.userLimit must be a whole number of 0 to 100000" },
		{ "above its limit", "{guaranteed: 5, limit: 4}",
		  "spec.queue.guaranteed is above spec.queue.limit; raise the limit or guarantee "
		  "less" },
		{ "no object", "7", "spec.queue must be an object" },
		{ "no name", "{parent: 7}", "spec.queue.parent must be the name of a tenant" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
		struct rig rig;
		rig_init(&rig);
		put_node(&rig, "n1", 8, "A100");
		put_tenant(&rig, "t", CASES[i].queue);
		put_pod(&rig, &(struct ask){ "p1", "t", NULL, 1, 1, 0, NULL });
		put_pod(&rig, &(struct ask){ "p2", "others", NULL, 1, 2, 0, NULL });
		CHECK_STR(c, CASES[i].name, str_of(bound(&rig)), "p2");
		CHECK_STR(c, CASES[i].name, reasons(&rig, "t", "p1"),
			  arena_printf(rig.arena, "QueueInvalid(%s/)", CASES[i].says));
		put_tenant(&rig, "t", "{}");
		CHECK_STR(c, CASES[i].name, str_of(bound(&rig)), "p1");
		rig_done(&rig);
	}
}

static void test_pools(struct check *c)
{
	struct rig rig;
	static const char H100[] = ", gpuaas.io/gpu-models: H100";
	static const char A100[] = ", gpuaas.io/gpu-models: A100";
	rig_init(&rig);
	put_node(&rig, "n1", 2, "H100");
	put_node(&rig, "n2", 2, "A100");
	put_tenant(&rig, "a", "{guaranteed: 2}");
	put_tenant(&rig, "b", "{}");
	put_pod(&rig, &(struct ask){ "h1", "a", NULL, 1, 1, 0, H100 });
	CHECK_STR(c, "half of the H100", str_of(bound(&rig)), "h1");
	put_pod(&rig, &(struct ask){ "h2", "a", NULL, 2, 2, 0, H100 });
	put_pod(&rig, &(struct ask){ "b1", "b", NULL, 1, 3, 0, A100 });
	put_pod(&rig, &(struct ask){ "b2", "b", NULL, 1, 4, 0, H100 });
	CHECK_STR(c, "the head of one pool keeps its node, not others", str_of(bound(&rig)), "b1");
	rig_done(&rig);
}

static void test_factors(struct check *c)
{
	struct rig rig;
	struct sched_factors factors = { .age_max_s = 3600, .deadline_s = 3600 };
	rig_init(&rig);
	factors.weights[SCHED_FACTOR_SIZE] = 1000;
	factors.weights[SCHED_FACTOR_DEADLINE] = 2000;
	sched_factors_set(rig.sched, &factors);
	put_node(&rig, "n1", 8, "A100");
	CHECK_STR(c, "nothing", str_of(rig_next(&rig)), "-");
	put_pod(&rig, &(struct ask){ "small", "x", NULL, 1, 1, 500, NULL });
	put_pod(&rig, &(struct ask){ "large", "x", NULL, 4, 2, 0, NULL });
	put_pod(&rig, &(struct ask){ "urgent", "x", NULL, 1, 3, 0,
				     ", gpuaas.io/deadline: '1970-01-01T00:10:00Z'" });
	CHECK_STR(c, "deadline, size, then the rest", str_of(bound(&rig)), "urgent large small");
	struct sched_queue_view view;
	CHECK(c, "is shown", sched_queue_explain(rig.sched, STR("x"), STR("large"), &view));
	CHECK_INT(c, "half of the cluster", view.values[SCHED_FACTOR_SIZE], 500000);
	CHECK_INT(c, "score", view.score, 500000000);
	rig_done(&rig);
}

// A waiting pod grows urgent while it waits: places are found anew from time to time.
static void test_factors_move(struct check *c)
{
	struct rig rig;
	struct sched_factors factors = { .age_max_s = 3600, .deadline_s = 600 };
	rig_init(&rig);
	factors.weights[SCHED_FACTOR_DEADLINE] = 1;
	sched_factors_set(rig.sched, &factors);
	put_node(&rig, "n1", 1, "A100");
	put_pod(&rig, &(struct ask){ "first", "x", NULL, 1, 1, 0, NULL });
	put_pod(&rig, &(struct ask){ "second", "x", NULL, 1, 2, 0, NULL });
	put_pod(&rig, &(struct ask){ "urgent", "x", NULL, 1, 3, 0,
				     ", gpuaas.io/deadline: '1970-01-01T00:40:00Z'" });
	CHECK_STR(c, "not yet", str_of(bound(&rig)), "first");
	rig.now_ms = 2100 * 1000;
	(void)bound(&rig);
	sched_pod_remove(rig.sched, STR("first"));
	CHECK_STR(c, "now", str_of(bound(&rig)), "urgent");
	rig_done(&rig);
}

static int draw(unsigned int *seed, int below) { return rand_r(seed) % below; }

// Random tenants, pods and changes: the ledger holds, nobody passes a limit, and nobody waits for
// a limit that has room. What a pod asks for follows from its name, for it never changes.
static void test_random(struct check *c)
{
	unsigned int seed = 5;
	struct rig rig;
	int broken = 0, above = 0;
	struct sched_factors factors = { .age_max_s = 100, .deadline_s = 100 };
	factors.weights[SCHED_FACTOR_SHARE] = 100; // looks at siblings, which may be gone
	rig_init(&rig);
	sched_factors_set(rig.sched, &factors);
	put_node(&rig, "n1", 8, "A100");
	put_node(&rig, "n2", 8, "H100");
	sched_half_life_set(rig.sched, 600);
	for (int step = 0; step < 1500; step++) {
		int what = draw(&seed, 10), t = draw(&seed, 4), p = draw(&seed, 60);
		const char *tenant = arena_printf(rig.arena, "t%d", t);
		const char *name = arena_printf(rig.arena, "%s-p%d", tenant, p);
		const char *parent = arena_printf(rig.arena, "t%d", draw(&seed, 4));
		rig.now_ms += draw(&seed, 20000);
		if (what == 0) { // each draw by itself: compilers order arguments as they like
			int guaranteed = draw(&seed, 4), limit = 2 + draw(&seed, 8);
			int user_limit = 1 + draw(&seed, 4);
			bool has_parent = draw(&seed, 2) == 0, is_empty = draw(&seed, 2) == 0;
			put_tenant(&rig, tenant,
				   arena_printf(rig.arena,
						"{guaranteed: %d, limit: %d, userLimit: %d%s%s}",
						guaranteed, limit, user_limit,
						has_parent ? ", parent: " : "",
						is_empty ? "" : parent));
		} else if (what == 1 && draw(&seed, 4) == 0) {
			sched_queue_remove(rig.sched, str_of(tenant));
		} else if (what < 6) {
			put_pod(&rig, &(struct ask){ name, tenant, p % 3 == 0 ? "ada" : "bob",
						     1 + p / 2 % 3, p, p % 2, NULL });
		} else {
			sched_pod_remove(rig.sched, str_of(name));
		}
		(void)bound(&rig);
		broken += sched_check(rig.sched) != NULL;
		struct sched_queue_row rows[8];
		size_t count = sched_queue_rows(rig.sched, rows, 8);
		for (size_t i = 0; i < count; i++)
			above += rows[i].deserved_milli > 16000 || rows[i].allocated_milli > 16000;
	}
	CHECK_INT(c, "the ledger holds", broken, 0);
	CHECK_INT(c, "within the cluster", above, 0);
	rig_done(&rig);
}

int main(void)
{
	struct check c = { 0, 0 };
	test_limit(&c);
	test_other_limit(&c);
	test_gang_fills(&c);
	test_parts(&c);
	test_sevenths(&c);
	test_person(&c);
	test_turns(&c);
	test_over_time(&c);
	test_begins_late(&c);
	test_ceiling(&c);
	test_faults(&c);
	test_pools(&c);
	test_factors(&c);
	test_factors_move(&c);
	test_random(&c);
	return check_done(&c);
}
