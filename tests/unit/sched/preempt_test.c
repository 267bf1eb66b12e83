// SPDX-License-Identifier: Apache-2.0
// Preemption: who is asked to leave, what holds the node, and what keeps a preemption from
// happening. Victims are compared with all subsets on random nodes.
#include "rig.h"

#include "base/rng.h"
#include "base/timefmt.h"
#include "check.h"

#include <stdio.h>

static const struct sched_preempt_rules PRIORITY = { .mode = SCHED_PREEMPT_PRIORITY };

static void rig_start(struct rig *rig, const struct sched_preempt_rules *rules)
{
	rig_init(rig);
	sched_preempt_set(rig->sched, rules);
	rig->now_ms = 1000000;
	(void)rig_next(rig);
}

static void put_node(struct rig *rig, const char *name, int gpus)
{
	rig_putf(rig,
		 "{kind: Node, metadata: {name: %s, labels: {host: %s}}, status: {allocatable: "
		 "{cpu: "
		 "64, "
		 "pods: 20, nvidia.com/gpu: %d}}}\n",
		 name, name, gpus);
}

// on: node, bound at that second; checkpoint: more annotations.
static void put_running(struct rig *rig, const char *name, int priority, int gpus, const char *node,
			int at_s)
{
	char bound[64];
	rig_putf(
		rig,
		"{kind: Pod, metadata: {name: %s, labels: {app: %s}}, spec: {nodeName: %s, "
		"priority: "
		"%d, containers: [{name: c, resources: {limits: {nvidia.com/gpu: %d}}}]}, status: "
		"{conditions: [{type: PodScheduled, status: 'True', lastTransitionTime: '%s'}]}}\n",
		name, name, node, priority, gpus, time_format(at_s, bound));
}

static void put_waiting(struct rig *rig, const char *name, int priority, int gpus, const char *spec)
{
	rig_putf(rig,
		 "{kind: Pod, metadata: {name: %s}, spec: {priority: %d, %s containers: [{name: c, "
		 "resources: {limits: {nvidia.com/gpu: %d}}}]}}\n",
		 name, priority, spec, gpus);
}

// Next decision that is no reason for waiting.
static const char *act(struct rig *rig)
{
	const char *line = rig_next(rig);
	while (strncmp(line, "wait ", 5) == 0)
		line = rig_next(rig);
	return line;
}

#define ACT(c, name, rig, wanted) CHECK_STR(c, name, str_of(act(rig)), wanted)

// Case A1 of the research: six of eight GPUs on each node are beyond reach.
static void check_no_bundles(struct check *c)
{
	struct rig rig;
	char name[32], node[8];
	rig_start(&rig, &PRIORITY);
	for (int n = 0; n < 4; n++) {
		(void)snprintf(node, sizeof node, "n%d", n);
		put_node(&rig, node, 8);
		for (int i = 0; i < 8; i++) {
			(void)snprintf(name, sizeof name, "r%d-%d", n, i);
			put_running(&rig, name, i < 6 ? 10 : 0, 1, node, 100 + i);
		}
	}
	put_waiting(&rig, "big", 10, 8, "");
	CHECK_STR(c, "why", str_of(rig_next(&rig)),
		  "wait big InsufficientResource:4(8 nvidia.com/gpu/0 nvidia.com/gpu) "
		  "PreemptionNotEnough:4(8 nvidia.com/gpu/2 nvidia.com/gpu)");
	ACT(c, "nobody leaves", &rig, "-");
	put_waiting(&rig, "small", 10, 1, "");
	const char *line = act(&rig);
	CHECK(c, "one leaves",
	      strncmp(line, "evict small n", 13) == 0 && strchr(line, ',') == NULL);
	ACT(c, "and no more", &rig, "-");
	rig_done(&rig);
}

// Case A3: what leaves already is used first.
static void check_leaving_first(struct check *c)
{
	struct rig rig;
	rig_start(&rig, &PRIORITY);
	put_node(&rig, "a", 4);
	put_node(&rig, "b", 4);
	put_running(&rig, "b1", 0, 4, "b", 900);
	put_running(&rig, "a1", 5, 4, "a", 100);
	rig_putf(&rig,
		 "{kind: Pod, metadata: {name: a1, deletionTimestamp: '2026-01-01T00:00:00Z', "
		 "labels: {app: a1}}, spec: {nodeName: a, priority: 5, containers: [{name: c, "
		 "resources: {limits: {nvidia.com/gpu: 4}}}]}}\n");
	put_waiting(&rig, "p", 5, 4, "");
	ACT(c, "kept without victims", &rig, "nominate p a");
	put_waiting(&rig, "q", 4, 1, "");
	ACT(c, "a lower one takes from others", &rig, "evict q b b1");
	rig_remove_pod(&rig, "a1");
	ACT(c, "it starts there", &rig, "bind p a []");
	rig_done(&rig);
}

// Priority first, then the work since the checkpoint, then what it has had in all.
static void check_cheapest(struct check *c)
{
	struct rig rig;
	rig_start(&rig, &PRIORITY);
	for (int i = 0; i < 4; i++) {
		char node[8];
		(void)snprintf(node, sizeof node, "n%d", i);
		put_node(&rig, node, 2);
	}
	put_running(&rig, "higher", 3, 2, "n0", 999);
	put_running(&rig, "long", 1, 2, "n1", 100);
	put_running(&rig, "short", 1, 2, "n2", 800);
	put_running(&rig, "saved", 1, 2, "n3", 50);
	rig_putf(&rig,
		 "{kind: Pod, metadata: {name: saved, annotations: {gpuaas.io/checkpointed-at: "
		 "'1970-01-01T00:16:00Z'}, labels: {app: saved}}, spec: {nodeName: n3, priority: "
		 "1, containers: [{name: c, resources: {limits: {nvidia.com/gpu: 2}}}]}}\n");
	put_waiting(&rig, "p", 5, 1, "");
	ACT(c, "checkpointed", &rig, "evict p n3 saved");
	put_waiting(&rig, "q", 5, 2, "");
	ACT(c, "youngest", &rig, "evict q n2 short");
	put_waiting(&rig, "r", 2, 2, "");
	ACT(c, "only lower ones", &rig, "evict r n1 long");
	put_waiting(&rig, "s", 2, 2, "");
	ACT(c, "none left", &rig, "-");
	rig_done(&rig);
}

static void check_policy(struct check *c)
{
	struct rig rig;
	struct sched_preempt_rules rules = PRIORITY;
	rules.min_run_ms = 100000;
	rules.delay_ms = 5000;
	rig_start(&rig, &rules);
	put_node(&rig, "n", 2);
	put_running(&rig, "young", 0, 2, "n", 950);
	put_waiting(&rig, "never", 5, 2, "preemptionPolicy: Never,");
	CHECK_STR(c, "never", str_of(rig_next(&rig)),
		  "wait never InsufficientResource:1(2 nvidia.com/gpu/0 nvidia.com/gpu) "
		  "HeldByLowerPriority:1 PreemptionNever:0");
	put_waiting(&rig, "p", 5, 2, "");
	ACT(c, "too early", &rig, "-");
	CHECK_INT(c, "after the delay", sched_wake_ms(rig.sched), 1005000);
	rig.now_ms = 1005000;
	ACT(c, "too young", &rig, "-");
	CHECK_INT(c, "when it is old enough", sched_wake_ms(rig.sched), 1050000);
	rig.now_ms = 1050000;
	ACT(c, "old enough", &rig, "evict p n young");
	rig_done(&rig);
	rig_init(&rig);
	put_node(&rig, "n", 2);
	put_running(&rig, "r", 0, 2, "n", 10);
	put_waiting(&rig, "p", 5, 2, "");
	ACT(c, "off", &rig, "-");
	rig_done(&rig);
}

static void put_budget(struct rig *rig, const char *app, int64_t allowed)
{
	struct str value = str_of(app);
	struct sched_requirement item = { STR("app"), SCHED_IN, &value, 1 };
	struct sched_budget budget = { .key = STR("default/b"),
				       .namespace_ = STR("default"),
				       .selector = { &item, 1, false },
				       .allowed = allowed };
	sched_budget_set(rig->sched, &budget);
}

static void check_budget(struct check *c)
{
	struct rig rig;
	rig_start(&rig, &PRIORITY);
	put_node(&rig, "n", 2);
	put_running(&rig, "guarded", 0, 1, "n", 990);
	put_running(&rig, "other", 0, 1, "n", 100);
	put_budget(&rig, "guarded", 0);
	put_waiting(&rig, "p", 5, 1, "");
	ACT(c, "the dearer one", &rig, "evict p n other");
	put_waiting(&rig, "q", 5, 1, "");
	ACT(c, "nobody", &rig, "-");
	struct sched_explanation why;
	CHECK(c, "told", sched_explain(rig.sched, STR("default"), STR("q"), &why));
	put_budget(&rig, "guarded", 1);
	rig.now_ms += 1000;
	ACT(c, "allowed now", &rig, "evict q n guarded");
	CHECK(c, "may be refused", rig.decision.victims[0].is_guarded);
	sched_evict_failed(rig.sched, STR("guarded"), rig.now_ms);
	ACT(c, "refused, given up", &rig, "nominate q ");
	rig.now_ms += 29000;
	ACT(c, "spared", &rig, "-");
	rig.now_ms += 2000; // the budget has not changed, so nobody tells of it anew
	ACT(c, "again", &rig, "evict q n guarded");
	rig_done(&rig);
}

static void put_share(struct rig *rig, const char *name, int priority, const char *bound, int milli)
{
	rig_putf(rig,
		 "{kind: Pod, metadata: {name: %s, annotations: {%s}}, spec: {%s priority: %d, "
		 "containers: "
		 "[{name: c, resources: {limits: {gpuaas.io/gpu-milli: %d}}}]}}\n",
		 name, bound, bound[0] == '\0' ? "" : "nodeName: n,", priority, milli);
}

#define HALF_OF(gpu)                                                                               \
	"gpuaas.io/devices: '[{\"container\":\"c\",\"resource\":\"gpuaas.io/gpu-milli\","          \
	"\"uuid\":\"" gpu "\",\"milli\":500,\"memory_mib\":40960}]'"

// Of each of two GPUs one half may be taken: together a whole, and yet no GPU gets free.
static void check_shares(struct check *c)
{
	struct rig rig;
	rig_start(&rig, &PRIORITY);
	rig_putf(&rig,
		 "{kind: Node, metadata: {name: n}, status: {allocatable: {cpu: 64, pods: 20, "
		 "gpuaas.io/gpu-milli: 2000, gpuaas.io/gpu-memory: 640}}}\n");
	rig_putf(&rig,
		 "{kind: GPUNode, metadata: {name: n}, status: {devices: ["
		 "{uuid: GPU-0, index: 0, healthy: true, memoryMiB: 81920, milli: 1000}, "
		 "{uuid: GPU-1, index: 1, healthy: true, memoryMiB: 81920, milli: 1000}]}}\n");
	put_share(&rig, "low0", 0, HALF_OF("GPU-0"), 500);
	put_share(&rig, "high0", 9, HALF_OF("GPU-0"), 500);
	put_share(&rig, "low1", 0, HALF_OF("GPU-1"), 500);
	put_share(&rig, "high1", 9, HALF_OF("GPU-1"), 500);
	put_share(&rig, "whole", 5, "", 1000);
	ACT(c, "in vain", &rig, "-");
	put_share(&rig, "half", 5, "", 500);
	ACT(c, "half for half", &rig, "evict half n low1");
	rig_done(&rig);
}

// The node stays kept: lower and equal ones do not take what becomes free, a higher one may.
static void check_holds(struct check *c)
{
	struct rig rig;
	rig_start(&rig, &PRIORITY);
	put_node(&rig, "n", 4);
	put_running(&rig, "v", 0, 4, "n", 10);
	put_waiting(&rig, "p", 5, 3, "");
	ACT(c, "evicts", &rig, "evict p n v");
	put_waiting(&rig, "p", 5, 3, ""); // an update before the API server knows of the node
	put_waiting(&rig, "z-equal", 5, 2, "");
	ACT(c, "kept", &rig, "-");
	rig_remove_pod(&rig, "v");
	ACT(c, "goes there", &rig, "bind p n []");
	rig_done(&rig);
	rig_start(&rig, &PRIORITY);
	put_node(&rig, "n", 4);
	put_running(&rig, "v", 0, 4, "n", 10);
	put_waiting(&rig, "p", 5, 3, "");
	ACT(c, "evicts", &rig, "evict p n v");
	put_waiting(&rig, "top", 6, 4, "");
	ACT(c, "the lower one loses it", &rig, "nominate p ");
	ACT(c, "a higher one takes what leaves", &rig, "nominate top n");
	rig_remove_pod(&rig, "v");
	ACT(c, "the higher one runs", &rig, "bind top n []");
	rig_done(&rig);
}

// Nobody waits for ever for a pod that does not leave (a kubelet that is dead).
static void check_stuck(struct check *c)
{
	struct rig rig;
	rig_start(&rig, &PRIORITY);
	put_node(&rig, "a", 4);
	put_node(&rig, "b", 4);
	put_running(&rig, "v", 0, 4, "a", 900);
	put_running(&rig, "w", 0, 4, "b", 10);
	put_waiting(&rig, "p", 5, 4, "");
	ACT(c, "evicts", &rig, "evict p a v");
	for (int i = 0; i < 18; i++) {
		rig.now_ms += 5000;
		ACT(c, "waits", &rig, "-");
	}
	rig.now_ms += 5000;
	ACT(c, "gives up", &rig, "nominate p ");
	rig.now_ms += 2000;
	ACT(c, "elsewhere", &rig, "evict p b w");
	rig_done(&rig);
}

// Case of KAI #2115: who leaves no longer counts for anti-affinity.
static void check_terms(struct check *c)
{
	static const char APART[] =
		"affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
		"[{labelSelector: {matchLabels: {app: x}}, topologyKey: host}]}},";
	struct rig rig;
	rig_start(&rig, &PRIORITY);
	put_node(&rig, "n", 8);
	put_running(&rig, "x", 0, 1, "n", 10);
	put_running(&rig, "y", 0, 1, "n", 990);
	put_waiting(&rig, "p", 5, 1, APART);
	ACT(c, "the one in its way", &rig, "evict p n x");
	rig_remove_pod(&rig, "x");
	ACT(c, "starts", &rig, "bind p n []");
	rig_done(&rig);
}

// A gang without members to spare goes as a whole, on all its nodes, or not at all.
static void check_gang(struct check *c)
{
	static const char MEMBER[] =
		"{kind: Pod, metadata: {name: %s, annotations: {gpuaas.io/gang: g, "
		"gpuaas.io/gang-min: '2'}}, spec: {nodeName: %s, priority: %d, containers: [{name: "
		"c, "
		"resources: {limits: {nvidia.com/gpu: 2}}}]}}\n";
	struct rig rig;
	rig_start(&rig, &PRIORITY);
	put_node(&rig, "a", 2);
	put_node(&rig, "b", 2);
	rig_putf(&rig, MEMBER, "g1", "a", 0);
	rig_putf(&rig, MEMBER, "g2", "b", 0);
	put_waiting(&rig, "p", 5, 1, "");
	ACT(c, "both", &rig, "evict p a g1,g2");
	rig_done(&rig);
	rig_start(&rig, &PRIORITY);
	put_node(&rig, "a", 2);
	put_node(&rig, "b", 2);
	put_node(&rig, "d", 2);
	rig_putf(&rig, MEMBER, "g1", "a", 0);
	rig_putf(&rig, MEMBER, "g2", "b", 0);
	rig_putf(&rig, MEMBER, "g3", "d", 0);
	put_waiting(&rig, "p", 5, 1, "");
	ACT(c, "one can be spared", &rig, "evict p a g1");
	put_waiting(&rig, "q", 5, 2, "");
	ACT(c, "then the rest", &rig, "evict q b g2,g3");
	rig_done(&rig);
}

// An equal one that comes when the first has its node already.
static void check_one_by_one(struct check *c)
{
	struct rig rig;
	rig_start(&rig, &PRIORITY);
	put_node(&rig, "n", 2);
	put_running(&rig, "v", 0, 1, "n", 900);
	put_running(&rig, "w", 0, 1, "n", 800);
	put_waiting(&rig, "p", 5, 1, "");
	ACT(c, "first", &rig, "evict p n v");
	ACT(c, "nothing else", &rig, "-");
	rig.now_ms += 10;
	put_waiting(&rig, "q", 5, 1, "");
	ACT(c, "second", &rig, "evict q n w");
	rig_done(&rig);
}

static void check_pace(struct check *c)
{
	struct rig rig;
	struct sched_preempt_rules rules = PRIORITY;
	rules.evictions_per_minute = 2;
	rig_start(&rig, &rules);
	for (int i = 0; i < 4; i++) {
		char node[8], name[8];
		(void)snprintf(node, sizeof node, "n%d", i);
		(void)snprintf(name, sizeof name, "v%d", i);
		put_node(&rig, node, 1);
		put_running(&rig, name, 0, 1, node, 500 + i);
		(void)snprintf(name, sizeof name, "p%d", i);
		put_waiting(&rig, name, 5, 1, "");
	}
	ACT(c, "first", &rig, "evict p0 n3 v3");
	ACT(c, "second", &rig, "evict p1 n2 v2");
	ACT(c, "enough", &rig, "-");
	rig.now_ms += 29000;
	ACT(c, "not yet", &rig, "-");
	rig.now_ms += 2000;
	ACT(c, "third", &rig, "evict p2 n1 v1");
	rig_done(&rig);
}

static void put_owned(struct rig *rig, const char *name, const char *created, const char *more)
{
	rig_putf(
		rig,
		"{kind: Pod, metadata: {name: %s, creationTimestamp: '%s', ownerReferences: [{uid: "
		"job-1, controller: true}]}, spec: {priority: 0, %s containers: [{name: c, "
		"resources: "
		"{limits: {nvidia.com/gpu: 2}}}]}}\n",
		name, created, more);
}

// The pod that replaces an evicted one stands where that one stood.
static void check_place_in_queue(struct check *c)
{
	struct rig rig;
	struct sched_preempt_view view;
	rig_start(&rig, &PRIORITY);
	put_node(&rig, "n", 2);
	put_owned(&rig, "job-a", "2026-01-01T00:00:00Z", "nodeName: n,");
	put_waiting(&rig, "p", 5, 2, "");
	ACT(c, "evicts", &rig, "evict p n job-a");
	CHECK(c, "seen", sched_preempt_explain(rig.sched, STR("default"), STR("job-a"), &view));
	CHECK_STR(c, "by whom", view.evicted_by, "default/p");
	CHECK(c, "seen", sched_preempt_explain(rig.sched, STR("default"), STR("p"), &view));
	CHECK_STR(c, "kept", view.kept_node, "n");
	CHECK_INT(c, "leaving", (int64_t)view.leaving_count, 1);
	rig_putf(&rig,
		 "{kind: Pod, metadata: {name: between, creationTimestamp: "
		 "'2026-01-02T00:00:00Z'}, spec: {priority: 0, containers: [{name: c, resources: "
		 "{limits: {nvidia.com/gpu: 2}}}]}}\n");
	put_owned(&rig, "job-b", "2026-01-03T00:00:00Z", "");
	put_owned(&rig, "job-c", "2026-01-03T00:00:00Z", "");
	CHECK(c, "seen", sched_preempt_explain(rig.sched, STR("default"), STR("job-b"), &view));
	CHECK_INT(c, "since", view.queued_s, 1767225600);
	CHECK(c, "seen", sched_preempt_explain(rig.sched, STR("default"), STR("job-c"), &view));
	CHECK_INT(c, "only one", view.queued_s, 0);
	rig_remove_pod(&rig, "job-a");
	ACT(c, "runs", &rig, "bind p n []");
	rig_remove_pod(&rig, "p");
	ACT(c, "before the one that came between", &rig, "bind job-b n []");
	rig_done(&rig);
}

// ---- against all subsets

enum { RANDOM_PODS_MAX = 8, RANDOM_ROUNDS = 400 };

struct random_pod {
	int priority, gpus, bound_s;
};

static bool subset_suffices(const struct random_pod *pods, size_t count, unsigned subset, int need)
{
	int left = 8;
	for (size_t i = 0; i < count; i++)
		left -= (subset >> i & 1) != 0 ? 0 : pods[i].gpus;
	return left >= need;
}

static unsigned subset_told(const struct rig *rig)
{
	unsigned subset = 0;
	for (size_t i = 0; i < rig->decision.victim_count; i++)
		subset |= 1U << (rig->decision.victims[i].name.data[1] - '0');
	return subset;
}

static void check_one_random(struct check *c, struct rng *rng, unsigned round)
{
	struct random_pod pods[RANDOM_PODS_MAX];
	struct rig rig;
	char name[32];
	size_t count = 0;
	int used = 0, need = 1 + (int)rng_below(rng, 8), top = 1 + (int)rng_below(rng, 4);
	rig_start(&rig, &PRIORITY);
	put_node(&rig, "n", 8);
	while (count < RANDOM_PODS_MAX && used < 8) {
		struct random_pod *pod = &pods[count];
		*pod = (struct random_pod){ .priority = (int)rng_below(rng, 4),
					    .gpus = 1 + (int)rng_below(rng, 3),
					    .bound_s = (int)rng_below(rng, 1000) };
		if (used + pod->gpus > 8)
			continue;
		used += pod->gpus;
		(void)snprintf(name, sizeof name, "v%zu", count++);
		put_running(&rig, name, pod->priority, pod->gpus, "n", pod->bound_s);
	}
	put_waiting(&rig, "p", top, need, "");
	bool is_told = strncmp(act(&rig), "evict", 5) == 0;
	unsigned told = is_told ? subset_told(&rig) : 0, lower = 0;
	int least = INT32_MAX, highest = 0;
	for (size_t i = 0; i < count; i++) {
		lower |= pods[i].priority < top ? 1U << i : 0;
		if ((told >> i & 1) != 0)
			highest = pods[i].priority > highest ? pods[i].priority : highest;
	}
	(void)snprintf(name, sizeof name, "round %u", round);
	CHECK(c, name, (told & ~lower) == 0);
	CHECK(c, name, is_told == subset_suffices(pods, count, lower, need));
	for (unsigned subset = 0; is_told && subset < 1U << count; subset++) {
		bool suffices = (subset & ~lower) == 0 &&
				subset_suffices(pods, count, subset, need);
		int top_of = 0;
		for (size_t i = 0; i < count; i++) {
			if ((subset >> i & 1) != 0 && pods[i].priority > top_of)
				top_of = pods[i].priority;
		}
		if (suffices)
			least = top_of < least ? top_of : least;
		bool is_within = subset != told && (subset & ~told) == 0;
		CHECK(c, name, !is_within || !suffices); // minimal under inclusion
	}
	CHECK(c, name, !is_told || highest == least);
	rig_done(&rig);
}

int main(void)
{
	struct check c = { 0 };
	struct rng rng;
	check_no_bundles(&c);
	check_leaving_first(&c);
	check_cheapest(&c);
	check_policy(&c);
	check_budget(&c);
	check_shares(&c);
	check_holds(&c);
	check_stuck(&c);
	check_terms(&c);
	check_gang(&c);
	check_one_by_one(&c);
	check_pace(&c);
	check_place_in_queue(&c);
	rng_init(&rng, 1);
	for (unsigned round = 0; round < RANDOM_ROUNDS; round++)
		check_one_random(&c, &rng, round);
	return check_done(&c);
}
