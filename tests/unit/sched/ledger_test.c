// SPDX-License-Identifier: Apache-2.0
// What happens over time: devices, binds that fail, pods and nodes that change, restarts.
#include "rig.h"

#include "check.h"

#include <stdio.h>

#define GPU(i) "{uuid: GPU-" #i ", index: " #i ", model: A100, memoryMiB: 81920, healthy: true}"
static const char BOARD[] = "{kind: Node, metadata: {name: n}, status: {allocatable: {cpu: 96, "
			    "memory: 64Gi, pods: 110, "
			    "nvidia.com/gpu: 8}}}\n---\n{kind: GPUNode, metadata: {name: n}, "
			    "status: {devices: [" GPU(0) ", " GPU(1) ", " GPU(2) ", " GPU(
				    3) ", " GPU(4) ", " GPU(5) ", " GPU(6) ", " GPU(7) "]}}\n";

static void put_pod(struct rig *rig, const char *name, int gpus, const char *more)
{
	char yaml[1024];
	(void)snprintf(yaml, sizeof yaml,
		       "{kind: Pod, metadata: {name: %s}, spec: {containers: [{name: c, resources: "
		       "{limits: {nvidia.com/gpu: %d}}}] %s}}",
		       name, gpus, more);
	rig_put(rig, yaml);
}

static void expect(struct check *c, struct rig *rig, const char *want)
{
	CHECK_STR(c, want, str_of(rig_next(rig)), want);
}

// Four single GPUs fill two pairs; two pairs are left for pods of two, and a quad for four.
static void test_blocks(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	rig_put(&rig, BOARD);
	put_pod(&rig, "a", 1, "");
	put_pod(&rig, "b", 2, "");
	put_pod(&rig, "c", 1, "");
	put_pod(&rig, "d", 4, "");
	expect(c, &rig, "bind a n [0]");
	expect(c, &rig, "bind b n [2,3]");
	expect(c, &rig, "bind c n [1]");
	expect(c, &rig, "bind d n [4,5,6,7]");
	rig_remove_pod(&rig, "a");
	rig_remove_pod(&rig, "b");
	put_pod(&rig, "e", 1, "");
	expect(c, &rig, "bind e n [0]"); // the other half of c's pair, though 2 and 3 are free too
	put_pod(&rig, "f", 3, "");
	expect(c, &rig, "wait f InsufficientResource:1(3 nvidia.com/gpu/2 nvidia.com/gpu)");
	expect(c, &rig, "-");
	rig_done(&rig);
}

static void test_containers(struct check *c)
{
	struct rig rig;
	struct sched_decision decision;
	AUTO(buf_done) struct buf plan = { .limit = 65536 };
	rig_init(&rig);
	rig_put(&rig, BOARD);
	rig_put(&rig, "{kind: Pod, metadata: {name: p}, spec: {initContainers: ["
		      "{name: s, restartPolicy: Always, resources: {limits: {nvidia.com/gpu: 1}}}, "
		      "{name: i, resources: {limits: {nvidia.com/gpu: 2}}}], containers: ["
		      "{name: a, resources: {limits: {nvidia.com/gpu: 1}}}, "
		      "{name: b, resources: {limits: {nvidia.com/gpu: 1}}}]}}");
	CHECK(c, "decides", sched_next(rig.sched, 0, &decision));
	CHECK_INT(c, "grants", decision.grant_count, 5);
	static const char *const WANT[5] = { "s0", "i1", "i2", "a1", "b2" };
	for (size_t i = 0; i < 5; i++) {
		char got[64];
		(void)snprintf(got, sizeof got, STR_FMT "%lld",
			       STR_ARG(decision.grants[i].container),
			       (long long)decision.grants[i].index);
		CHECK_STR(c, "grant", str_of(got), WANT[i]);
	}
	feed_plan_write(&plan, decision.grants, decision.grant_count);
	struct str *uuids;
	size_t count;
	CHECK(c, "plan is read", feed_plan_read(rig.arena, buf_str(&plan), &uuids, &count));
	CHECK_INT(c, "each device once", count, 3);
	CHECK_STR(c, "uuid", uuids[2], "GPU-2");
	rig_done(&rig);
}

static void test_plan_text(struct check *c)
{
	static const char *const BAD[] = { "", "{}", "[{}]", "[{\"uuid\":\"\"}]", "[1]", "[" };
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 16);
	struct str *uuids;
	size_t count;
	for (size_t i = 0; i < ARRAY_COUNT(BAD); i++)
		CHECK(c, BAD[i], !feed_plan_read(arena, str_of(BAD[i]), &uuids, &count));
	CHECK(c, "empty plan", feed_plan_read(arena, STR("[]"), &uuids, &count));
}

static void test_bind_failure(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	rig_put(&rig, BOARD);
	put_pod(&rig, "p", 8, "");
	expect(c, &rig, "bind p n [0,1,2,3,4,5,6,7]");
	put_pod(&rig, "q", 8, "");
	expect(c, &rig, "wait q InsufficientResource:1(8 nvidia.com/gpu/0 nvidia.com/gpu)");
	sched_bind_failed(rig.sched, STR("p"), 0);
	expect(c, &rig, "bind q n [0,1,2,3,4,5,6,7]"); // p is to wait a second first
	expect(c, &rig, "wait p BindFailed:0");
	expect(c, &rig, "-");
	CHECK_INT(c, "wakes", sched_wake_ms(rig.sched), 1000);
	rig.now_ms = 1000;
	expect(c, &rig, "wait p InsufficientResource:1(8 nvidia.com/gpu/0 nvidia.com/gpu)");
	sched_bind_failed(rig.sched, STR("nobody"), 0);
	rig_remove_pod(&rig, "q");
	expect(c, &rig, "bind p n [0,1,2,3,4,5,6,7]");
	rig_done(&rig);
}

static void test_avoids(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	rig_put(&rig,
		"{kind: Node, metadata: {name: a}, status: {allocatable: {cpu: 9, pods: 9}}}\n---\n"
		"{kind: Node, metadata: {name: b}, status: {allocatable: {cpu: 9, pods: 9}}}");
	put_pod(&rig, "p", 0, "");
	expect(c, &rig, "bind p a []");
	sched_bind_failed(rig.sched, STR("p"), 0);
	expect(c, &rig, "wait p BindFailed:0");
	rig.now_ms = 1500;
	expect(c, &rig, "bind p b []"); // elsewhere first
	sched_bind_failed(rig.sched, STR("p"), 1500);
	expect(c, &rig, "wait p BindFailed:0");
	CHECK_INT(c, "twice as long", sched_wake_ms(rig.sched), 3500);
	rig_done(&rig);
}

static void test_confirm(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	rig_put(&rig, BOARD);
	put_pod(&rig, "p", 2, "");
	expect(c, &rig, "bind p n [0,1]");
	put_pod(&rig, "p", 2, ""); // a late event without the node changes nothing
	expect(c, &rig, "-");
	put_pod(&rig, "p", 2, ", nodeName: n");
	expect(c, &rig, "-");
	sched_bind_failed(rig.sched, STR("p"), 0); // a late answer neither
	put_pod(&rig, "q", 2, "");
	expect(c, &rig, "bind q n [2,3]");
	put_pod(&rig, "q", 2, ", nodeName: m"); // somebody else was faster
	put_pod(&rig, "r", 2, "");
	expect(c, &rig, "bind r n [2,3]");
	rig_done(&rig);
}

static void test_restart(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	rig_put(&rig, "{kind: Pod, metadata: {name: p, annotations: {gpuaas.io/devices: "
		      "'[{\"uuid\":\"GPU-0\"},{\"uuid\":\"GPU-5\"}]'}}, spec: {nodeName: n, "
		      "containers: [{name: c, resources: {limits: {nvidia.com/gpu: 2}}}]}}");
	rig_put(&rig, BOARD); // the node comes after its pod
	put_pod(&rig, "q", 4, "");
	expect(c, &rig, "bind q n [1,2,3,4]");
	put_pod(&rig, "r", 2, "");
	expect(c, &rig, "bind r n [6,7]");
	put_pod(&rig, "s", 1, "");
	expect(c, &rig, "wait s InsufficientResource:1(1 nvidia.com/gpu/0 nvidia.com/gpu)");
	rig_remove_pod(&rig, "p");
	expect(c, &rig, "bind s n [0]");
	rig_done(&rig);
}

static void test_health(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	rig_put(&rig, BOARD);
	rig_put(&rig, "{kind: GPUNode, metadata: {name: n}, status: {devices: [" GPU(
			      0) ", {uuid: GPU-1, "
				 "index: 1, model: A100, memoryMiB: 81920, healthy: false}, " GPU(
					 2) "]}}");
	put_pod(&rig, "p", 2, "");
	expect(c, &rig, "bind p n [0,2]");
	put_pod(&rig, "q", 1, "");
	expect(c, &rig, "wait q DeviceUnavailable:1(1 GPUs/0 GPUs)");
	rig_put(&rig, BOARD);
	expect(c, &rig, "bind q n [1]");
	rig_done(&rig);
}

static void test_changes(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	rig_put(&rig, "{kind: Node, metadata: {name: n}, spec: {unschedulable: true}, status: "
		      "{allocatable: {cpu: 9, pods: 9}}}");
	put_pod(&rig, "p", 0, "");
	expect(c, &rig, "wait p NodeUnschedulable:1");
	rig_put(&rig,
		"{kind: Node, metadata: {name: n}, status: {allocatable: {cpu: 9, pods: 9}}}");
	expect(c, &rig, "bind p n []");
	put_pod(&rig, "q", 0, ", schedulingGates: [{name: g}]");
	expect(c, &rig, "wait q SchedulingGated:0");
	put_pod(&rig, "q", 0, ""); // the gate is gone
	expect(c, &rig, "bind q n []");
	put_pod(&rig, "r", 0, ", newField: 1");
	expect(c, &rig, "refuse r UnknownField:0(spec.newField/)");
	put_pod(&rig, "r", 0, ", newField: 1");
	expect(c, &rig, "-"); // it knows
	rig_remove_pod(&rig, "r");
	put_pod(&rig, "s", 0, ", nodeSelector: {a: b}");
	expect(c, &rig, "wait s NodeSelectorMismatch:1");
	sched_node_remove(rig.sched, STR("n"));
	expect(c, &rig, "wait s NoNodes:0");
	rig_put(&rig, "{kind: Node, metadata: {name: m, labels: {a: b}}, status: {allocatable: "
		      "{cpu: 9, pods: 9}}}");
	expect(c, &rig, "bind s m []");
	rig_done(&rig);
}

// The same name with another UID: the first was deleted while the watch was cut.
static void test_namesake(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	rig_put(&rig, BOARD);
	rig_put(&rig, "{kind: Pod, metadata: {name: p, uid: one}, spec: {containers: [{name: c, "
		      "resources: {limits: {nvidia.com/gpu: 8}}}]}}");
	expect(c, &rig, "bind p n [0,1,2,3,4,5,6,7]");
	rig_put(&rig, "{kind: Pod, metadata: {name: p, uid: two}, spec: {containers: [{name: c, "
		      "resources: {limits: {nvidia.com/gpu: 8}}}]}}");
	expect(c, &rig, "bind p n [0,1,2,3,4,5,6,7]");
	rig_done(&rig);
}

static void test_numbers(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	rig_put(&rig, BOARD);
	put_pod(&rig, "p", 9, "");
	put_pod(&rig, "a", 6, "");
	expect(c, &rig, "bind a n [0,1,2,3,4,5]");
	put_pod(&rig, "q", 4, "");
	expect(c, &rig, "wait p ResourceTooLarge:1(9 nvidia.com/gpu/8 nvidia.com/gpu)");
	expect(c, &rig, "wait q InsufficientResource:1(4 nvidia.com/gpu/2 nvidia.com/gpu)");
	put_pod(&rig, "r", 1, ", priority: 1"); // before q, for which the node is reserved
	expect(c, &rig, "bind r n [6]");
	expect(c, &rig, "-"); // numbers alone are told after a while
	CHECK_INT(c, "wakes", sched_wake_ms(rig.sched), 5000);
	rig.now_ms = 5000;
	expect(c, &rig, "wait q InsufficientResource:1(4 nvidia.com/gpu/1 nvidia.com/gpu)");
	expect(c, &rig, "-");
	rig.now_ms = 6000;
	put_pod(&rig, "s", 1, ", priority: 1");
	expect(c, &rig, "bind s n [7]");
	expect(c, &rig, "-");
	CHECK_INT(c, "nor is p looked at with each change, since it has nothing new",
		  sched_wake_ms(rig.sched), 10000);
	struct sched_explanation explanation;
	CHECK(c, "explains", sched_explain(rig.sched, STR("default"), STR("q"), &explanation));
	CHECK_INT(c, "position", explanation.position, 2);
	CHECK_INT(c, "facts", explanation.facts.count, 1);
	CHECK(c, "knows nobody", !sched_explain(rig.sched, STR("x"), STR("q"), &explanation));
	rig_done(&rig);
}

int main(void)
{
	struct check c = { 0 };
	test_blocks(&c);
	test_containers(&c);
	test_plan_text(&c);
	test_bind_failure(&c);
	test_avoids(&c);
	test_confirm(&c);
	test_restart(&c);
	test_health(&c);
	test_changes(&c);
	test_namesake(&c);
	test_numbers(&c);
	return check_done(&c);
}
