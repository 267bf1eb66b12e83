// SPDX-License-Identifier: Apache-2.0
// ResourceClaims in what is more than one bind: their GPUs in queues, pods that hold them and pods
// that want them in preemption, and claims that a leader left behind. Victims are compared with all
// subsets, the books of queues with sums from outside.
#include "rig.h"

#include "base/rng.h"
#include "base/timefmt.h"
#include "check.h"
#include "sched/claim_in.h"
#include "sched/sched_queue.h"

#include <stdio.h>

static void put_pool(struct rig *rig, const char *node, int count)
{
	rig_putf(rig,
		 "{kind: Node, metadata: {name: %s}, status: {allocatable: {cpu: 64, pods: 20}}}\n",
		 node);
	AUTO(buf_done) struct buf out = { .limit = 4096 };
	buf_printf(&out,
		   "{kind: ResourceSlice, metadata: {name: %s}, spec: {driver: gpu.gpuaas.io, "
		   "nodeName: %s, pool: {name: %s, resourceSliceCount: 1}, devices: [",
		   node, node, node);
	for (int i = 0; i < count; i++)
		buf_printf(&out, "{name: gpu-%d},", i);
	buf_put_c(&out, "]}}\n");
	rig_put(rig, buf_str(&out).data);
}

static void begin(struct rig *rig, sched_preemption mode)
{
	const struct sched_preempt_rules rules = { .mode = mode };
	rig_init(rig);
	sched_preempt_set(rig->sched, &rules);
	rig->now_ms = 1000000;
	rig_putf(rig,
		 "{kind: DeviceClass, metadata: {name: gpu}, spec: {selectors: [{cel: {expression: "
		 "'true'}}]}}\n");
}

// given: devices on a node, by their first; -1: not allocated. for_whom: uid; empty: nobody.
struct claim {
	const char *name, *node, *for_whom;
	int count, first;
};

static void put_claim_in(struct rig *rig, const char *space, struct claim claim)
{
	AUTO(buf_done) struct buf out = { .limit = 4096 };
	buf_printf(&out,
		   "{kind: ResourceClaim, metadata: {namespace: %s, name: %s, uid: u-%s, "
		   "resourceVersion: '7'}, spec: {devices: {requests: [{name: g, exactly: "
		   "{deviceClassName: gpu, %s}}]}}, status: {",
		   space, claim.name, claim.name, claim.count == 0 ? "allocationMode: All" : "");
	if (claim.count > 0) {
		out.len -= strlen("}}]}}, status: {");
		buf_printf(&out, "count: %d}}]}}, status: {", claim.count);
	}
	if (claim.first >= 0) {
		buf_put_c(&out, "allocation: {devices: {results: [");
		for (int i = 0; i < claim.count; i++)
			buf_printf(&out,
				   "{request: g, driver: gpu.gpuaas.io, pool: %s, device: gpu-%d},",
				   claim.node, claim.first + i);
		buf_put_c(&out, "]}},");
	}
	if (claim.for_whom != NULL)
		buf_printf(&out, "reservedFor: [{resource: pods, name: x, uid: %s}]",
			   claim.for_whom);
	buf_put_c(&out, "}}\n");
	rig_put(rig, buf_str(&out).data);
}

static void put_claim(struct rig *rig, struct claim claim) { put_claim_in(rig, "default", claim); }

struct pod {
	const char *space, *name, *claim, *node; // node NULL: it waits
	int priority, at_s;
	const char *more; // of metadata
};

static void put_pod(struct rig *rig, struct pod pod)
{
	char bound[64];
	rig_putf(
		rig,
		"{kind: Pod, metadata: {namespace: %s, name: %s, uid: %s, %s}, spec: {%s%s%s "
		"priority: "
		"%d, resourceClaims: [{name: g, resourceClaimName: %s}], containers: [{name: c}]}, "
		"status: {conditions: [{type: PodScheduled, status: 'True', lastTransitionTime: "
		"'%s'}]}}\n",
		pod.space == NULL ? "default" : pod.space, pod.name, pod.name,
		pod.more == NULL ? "" : pod.more,
		pod.node == NULL ? "" : "nodeName: ", pod.node == NULL ? "" : pod.node,
		pod.node == NULL ? "" : ",", pod.priority, pod.claim, time_format(pod.at_s, bound));
}

#define NEXT(c, rig, name, want) CHECK_STR(c, name, str_of(rig_next(rig)), want)

// ---- queues

static int64_t used_milli(struct rig *rig, const char *queue)
{
	struct sched_queue_row rows[8];
	size_t count = sched_queue_rows(rig->sched, rows, 8);
	for (size_t i = 0; i < count; i++) {
		if (str_eq_c(rows[i].name, queue))
			return rows[i].allocated_milli;
	}
	return -1;
}

static void check_limits(struct check *c)
{
	struct rig rig;
	begin(&rig, SCHED_PREEMPT_OFF);
	put_pool(&rig, "n", 8);
	rig_putf(&rig,
		 "{kind: Tenant, metadata: {name: t}, spec: {queue: {limit: 3, userLimit: 2}}}\n");
	put_claim_in(&rig, "t", (struct claim){ "two", "n", NULL, 2, -1 });
	put_claim_in(&rig, "t", (struct claim){ "one", "n", NULL, 1, -1 });
	put_claim_in(&rig, "t", (struct claim){ "other", "n", NULL, 2, -1 });
	put_claim_in(&rig, "t", (struct claim){ "all", "n", NULL, 0, -1 });
#define ADA "annotations: {gpuaas.io/user: ada}"
#define BOB "annotations: {gpuaas.io/user: bob}"
	put_pod(&rig, (struct pod){ "t", "a", "two", .more = ADA });
	NEXT(c, &rig, "within", "bind a n []");
	put_pod(&rig, (struct pod){ "t", "b", "one", .more = ADA });
	NEXT(c, &rig, "of a person", "wait b UserLimitReached:0(1 GPUs/0 GPUs for ada)");
	put_pod(&rig, (struct pod){ "t", "shares", "two", .more = ADA });
	NEXT(c, &rig, "a claim counts once", "bind shares n []");
	put_pod(&rig, (struct pod){ "t", "d", "other", .more = BOB });
	NEXT(c, &rig, "of the queue", "wait d QueueLimitReached:0(2 GPUs/1 GPUs for t)");
	put_pod(&rig, (struct pod){ "t", "e", "all", .more = BOB });
	NEXT(c, &rig, "all of a node",
	     "wait e QueueLimitReached:0(8 GPUs/1 GPUs for t) UserLimitReached:0(8 GPUs/2 GPUs for "
	     "bob) ResourceClaimUnsatisfied:1");
	CHECK_INT(c, "two GPUs", used_milli(&rig, "t"), 2000);
	rig_remove_pod(&rig, "a");
	CHECK_INT(c, "the other has it still", used_milli(&rig, "t"), 2000);
	rig_remove_pod(&rig, "shares");
	CHECK_INT(c, "none", used_milli(&rig, "t"), 0);
	rig.now_ms += 10;
	NEXT(c, &rig, "the first goes on", "bind b n []");
	NEXT(c, &rig, "and the next", "bind d n []");
	rig_putf(&rig, "{kind: Tenant, metadata: {name: t}, spec: {}}\n"); // no queue any more
	rig_putf(&rig, "{kind: Tenant, metadata: {name: t}, spec: {queue: {limit: 5}}}\n");
	CHECK_INT(c, "in a new queue", used_milli(&rig, "t"), 3000);
	CHECK(c, "books", sched_check(rig.sched) == NULL);
	rig_done(&rig);
}

// A MIG device is so many sevenths; of what may be given the largest counts until it is known.
static void check_mig(struct check *c)
{
	struct rig rig;
	begin(&rig, SCHED_PREEMPT_OFF);
	rig_putf(&rig, "{kind: Node, metadata: {name: n}, status: {allocatable: {cpu: 64, pods: "
		       "20}}}\n---\n"
		       "{kind: ResourceSlice, metadata: {name: n}, spec: {driver: gpu.gpuaas.io, "
		       "nodeName: n, "
		       "pool: {name: n, resourceSliceCount: 1}, devices: [{name: mig-a, "
		       "attributes: {profile: "
		       "{string: 2g.20gb}}}, {name: mig-b, attributes: {profile: {string: "
		       "3g.40gb}}}]}}\n");
	rig_putf(&rig, "{kind: Tenant, metadata: {name: t}, spec: {queue: {limit: 1}}}\n");
	put_claim_in(&rig, "t", (struct claim){ "one", "n", NULL, 1, -1 });
	put_claim_in(&rig, "t", (struct claim){ "two", "n", NULL, 2, -1 });
	put_pod(&rig, (struct pod){ "t", "p", "one", NULL, 0, 0, NULL });
	put_pod(&rig, (struct pod){ "t", "q", "two", NULL, 0, 0, NULL });
	NEXT(c, &rig, "fits", "bind p n []");
	CHECK_INT(c, "two sevenths", used_milli(&rig, "t"), 286);
	NEXT(c, &rig, "six sevenths more",
	     "wait q QueueLimitReached:0(0.858 GPUs/0.714 GPUs for t) "
	     "ResourceClaimUnsatisfied:1");
	rig_done(&rig);
}

// Pods come and go, claims are given, changed and shared; sums from outside at each step.
static void check_books(struct check *c)
{
	enum { STEPS = 4000, PODS = 12, CLAIMS = 5 };
	struct rig rig;
	struct rng rng;
	int claim_of[PODS], count_of[CLAIMS]; // claim -1: no such pod
	rng_init(&rng, 5);
	begin(&rig, SCHED_PREEMPT_OFF);
	put_pool(&rig, "n", 8);
	for (int i = 0; i < PODS; i++)
		claim_of[i] = -1;
	for (int i = 0; i < CLAIMS; i++)
		count_of[i] = 0;
	rig_putf(&rig, "{kind: Tenant, metadata: {name: t}, spec: {queue: {userLimit: 90}}}\n");
	for (int step = 0; step < STEPS; step++) {
		int i = (int)rng_below(&rng, PODS), k = (int)rng_below(&rng, CLAIMS);
		char name[16], claim[16];
		(void)snprintf(name, sizeof name, "p%d", i);
		(void)snprintf(claim, sizeof claim, "c%d", k);
		if (rng_below(&rng, 3) == 0) {
			count_of[k] = 1 + (int)rng_below(&rng, 3);
			put_claim_in(&rig, "t", (struct claim){ claim, "n", NULL, count_of[k], 0 });
		} else if (claim_of[i] < 0) {
			put_pod(&rig, (struct pod){ "t", name, claim, "n",
						    .more = i % 2 == 0 ? ADA : BOB });
			claim_of[i] = k;
		} else {
			rig_remove_pod(&rig, name);
			claim_of[i] = -1;
		}
		int64_t sum = 0;
		for (int m = 0; m < CLAIMS; m++) {
			bool is_used = false;
			for (int p = 0; p < PODS; p++)
				is_used = is_used || claim_of[p] == m;
			sum += is_used ? 1000 * count_of[m] : 0;
		}
		if (used_milli(&rig, "t") != sum || sched_check(rig.sched) != NULL) {
			CHECK_INT(c, "sum", used_milli(&rig, "t"), sum);
			CHECK(c, "books", sched_check(rig.sched) == NULL);
			break;
		}
	}
	rig_done(&rig);
}

// ---- preemption

// The allocation outlives the pod, until the claim controller has taken it back.
static void check_late_release(struct check *c)
{
	struct rig rig;
	begin(&rig, SCHED_PREEMPT_PRIORITY);
	put_pool(&rig, "n", 2);
	put_claim(&rig, (struct claim){ "low", "n", "v", 2, 0 });
	put_pod(&rig, (struct pod){ .name = "v", .claim = "low", .node = "n", .priority = 1 });
	put_claim(&rig, (struct claim){ "high", "n", NULL, 1, -1 });
	put_pod(&rig, (struct pod){ .name = "p", .claim = "high", .priority = 5 });
	NEXT(c, &rig, "why", "wait p ResourceClaimUnsatisfied:1 HeldByLowerPriority:1");
	NEXT(c, &rig, "who leaves", "evict p n v");
	CHECK_INT(c, "GPUs that it had", rig.decision.victims[0].gpu_count, 2);
	NEXT(c, &rig, "nothing more", "-");
	rig_remove_pod(&rig, "v");
	rig.now_ms += 20000;
	NEXT(c, &rig, "its devices are not free yet",
	     "wait p ResourceClaimUnsatisfied:1 WaitsForEvicted:0(0 pods on n/)");
	NEXT(c, &rig, "and nothing is given up", "-");
	put_claim(&rig, (struct claim){ "third", "n", NULL, 1, -1 });
	put_pod(&rig, (struct pod){ .name = "q", .claim = "third", .priority = 1 });
	NEXT(c, &rig, "one below it", "wait q ResourceClaimUnsatisfied:1");
	put_claim(&rig, (struct claim){ "two", "n", NULL, 2, -1 });
	put_pod(&rig, (struct pod){ .name = "w", .claim = "two", .priority = 3 });
	NEXT(c, &rig, "another", "wait w ResourceClaimUnsatisfied:1");
	put_pod(&rig, (struct pod){ .name = "x", .claim = "absent", .priority = 1 });
	NEXT(c, &rig, "one without its claim", "wait x ResourceClaimNotFound:1(default/absent/)");
	put_claim(&rig, (struct claim){ "low", "n", NULL, 2, -1 });
	NEXT(c, &rig, "who made room has it", "bind p n []");
	NEXT(c, &rig, "what is left", "bind q n []");
	rig_done(&rig);
}

static void check_waits_for_idle(struct check *c)
{
	struct rig rig;
	begin(&rig, SCHED_PREEMPT_PRIORITY);
	put_pool(&rig, "m", 1);
	put_pool(&rig, "n", 1);
	put_claim(&rig, (struct claim){ "low", "m", "v", 1, 0 });
	put_pod(&rig, (struct pod){ .name = "v", .claim = "low", .node = "m", .priority = 1 });
	put_claim(&rig, (struct claim){ "ended", "n", "gone", 1, 0 }); // its pod has ended
	put_claim(&rig, (struct claim){ "high", "n", NULL, 1, -1 });
	put_pod(&rig, (struct pod){ .name = "p", .claim = "high", .priority = 5 });
	NEXT(c, &rig, "why", "wait p ResourceClaimUnsatisfied:2 HeldByLowerPriority:1");
	NEXT(c, &rig, "nobody leaves", "nominate p n");
	rig.now_ms += 70000; // nobody takes it back
	NEXT(c, &rig, "given up", "nominate p ");
	for (int i = 0; i < 40 && rig.decision.verb != SCHED_EVICT; i++) {
		rig.now_ms += 1000;
		(void)rig_next(&rig);
	}
	CHECK_STR(c, "somebody has to", str_of(rig.line), "evict p m v");
	rig_done(&rig);
}

static void check_shared(struct check *c)
{
	struct rig rig;
	begin(&rig, SCHED_PREEMPT_PRIORITY);
	put_pool(&rig, "n", 2);
	put_claim(&rig, (struct claim){ "one", "n", "v", 1, 0 });
	put_claim(&rig, (struct claim){ "both", "n", "a", 1, 1 });
	put_pod(&rig, (struct pod){ .name = "v", .claim = "one", .node = "n", .priority = 3 });
	put_pod(&rig, (struct pod){ .name = "a", .claim = "both", .node = "n", .priority = 1 });
	put_pod(&rig, (struct pod){ .name = "b", .claim = "both", .node = "n", .priority = 1 });
	put_claim(&rig, (struct claim){ "high", "n", NULL, 1, -1 });
	put_pod(&rig, (struct pod){ .name = "p", .claim = "high", .priority = 5 });
	(void)rig_next(&rig);
	NEXT(c, &rig, "all that share it", "evict p n a,b");
	rig_done(&rig);
}

// One node that gives GPUs both ways.
static void check_both_ways(struct check *c)
{
	for (int by_claim = 0; by_claim < 2; by_claim++) {
		struct rig rig;
		const char *name = by_claim == 1 ? "v" : "p"; // of the one by the device plugin
		begin(&rig, SCHED_PREEMPT_PRIORITY);
		put_pool(&rig, "n", 1);
		rig_putf(&rig,
			 "{kind: Node, metadata: {name: n}, status: {allocatable: {cpu: 64, pods: "
			 "20, "
			 "nvidia.com/gpu: 1}}}\n---\n{kind: GPUNode, metadata: {name: n}, status: "
			 "{devices: [{uuid: GPU-0, index: 0, healthy: true}]}}\n---\n"
			 "{kind: Pod, metadata: {name: %s, annotations: {gpuaas.io/devices: "
			 "'[{\"container\":\"c\",\"uuid\":\"GPU-0\",\"index\":0}]'}}, spec: {%s "
			 "priority: %d, "
			 "containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]}}\n",
			 name, by_claim == 1 ? "nodeName: n," : "", by_claim == 1 ? 1 : 5);
		put_claim(&rig, by_claim == 1 ? (struct claim){ "c", "n", NULL, 1, -1 }
					      : (struct claim){ "c", "n", "v", 1, 0 });
		put_pod(&rig, (struct pod){ .name = by_claim == 1 ? "p" : "v",
					    .claim = "c",
					    .node = by_claim == 1 ? NULL : "n",
					    .priority = by_claim == 1 ? 5 : 1 });
		(void)rig_next(&rig);
		(void)rig_next(&rig);
		CHECK_STR(c, by_claim == 1 ? "by a claim" : "by the device plugin",
			  str_of(rig.line), "evict p n v");
		rig_done(&rig);
	}
}

struct drawn { // pods on a node and the claims that they use
	int device_count, pod_count, claim_count, want;
	int gpus[4], claim[5], priority[5];
	int left; // devices that no claim has
};

static bool suffices(const struct drawn *d, unsigned leave)
{
	int free = d->left;
	for (int k = 0; k < d->claim_count; k++) {
		bool is_used = false;
		for (int i = 0; i < d->pod_count; i++)
			is_used = is_used || (d->claim[i] == k && (leave >> i & 1) == 0);
		free += is_used ? 0 : d->gpus[k];
	}
	return free >= d->want;
}

static int highest(const struct drawn *d, unsigned leave)
{
	int priority = -1;
	for (int i = 0; i < d->pod_count; i++) {
		if ((leave >> i & 1) != 0 && d->priority[i] > priority)
			priority = d->priority[i];
	}
	return priority;
}

static void play(struct rig *rig, struct rng *rng, struct drawn *d)
{
	int first = 0;
	*d = (struct drawn){ .device_count = 6,
			     .pod_count = 1 + (int)rng_below(rng, 5),
			     .claim_count = 1 + (int)rng_below(rng, 4) };
	d->want = 1 + (int)rng_below(rng, 5);
	put_pool(rig, "n", d->device_count);
	for (int i = 0; i < d->pod_count; i++) {
		d->claim[i] = (int)rng_below(rng, (uint64_t)d->claim_count);
		d->priority[i] = (int)rng_below(rng, 6);
	}
	for (int k = 0; k < d->claim_count; k++) {
		char name[8];
		bool is_used = false;
		for (int i = 0; i < d->pod_count; i++)
			is_used = is_used || d->claim[i] == k;
		d->gpus[k] = is_used ? 1 + (int)rng_below(rng, 2) : 0;
		if (first + d->gpus[k] > d->device_count)
			d->gpus[k] = 0;
		(void)snprintf(name, sizeof name, "c%d", k);
		if (d->gpus[k] > 0)
			put_claim(rig, (struct claim){ name, "n", "x", d->gpus[k], first });
		first += d->gpus[k];
	}
	d->left = d->device_count - first;
	for (int i = 0; i < d->pod_count; i++) {
		char name[8], claim[8];
		(void)snprintf(name, sizeof name, "v%d", i);
		(void)snprintf(claim, sizeof claim, "c%d", d->claim[i]);
		put_pod(rig, (struct pod){ .name = name,
					   .claim = claim,
					   .node = "n",
					   .priority = d->priority[i],
					   .at_s = 900 });
	}
	put_claim(rig, (struct claim){ "high", "n", NULL, d->want, -1 });
	put_pod(rig, (struct pod){ .name = "p", .claim = "high", .priority = 4 });
}

// Against all subsets of those of lower priority: somebody leaves exactly if some suffice; nobody
// of them could stay; and none of another set that suffices is all below the highest of these.
static void check_victims(struct check *c)
{
	enum { CASES = 1500 };
	struct rng rng;
	int evicted = 0;
	rng_init(&rng, 17);
	for (int round = 0; round < CASES; round++) {
		struct rig rig;
		struct drawn d;
		unsigned lower = 0, left = 0;
		int best = 100;
		begin(&rig, SCHED_PREEMPT_PRIORITY);
		play(&rig, &rng, &d);
		for (int i = 0; i < d.pod_count; i++)
			lower |= d.priority[i] < 4 ? 1u << i : 0;
		for (unsigned set = 0; set < 1u << d.pod_count; set++) {
			if ((set & ~lower) == 0 && suffices(&d, set) && highest(&d, set) < best)
				best = highest(&d, set);
		}
		(void)rig_next(&rig);
		if (rig.decision.verb != SCHED_BIND)
			(void)rig_next(&rig);
		bool is_evict = rig.decision.verb == SCHED_EVICT;
		for (size_t i = 0; is_evict && i < rig.decision.victim_count; i++)
			left |= 1u << (rig.decision.victims[i].name.data[1] - '0');
		CHECK_INT(c, "bound where there is room", rig.decision.verb == SCHED_BIND,
			  suffices(&d, 0));
		CHECK_INT(c, "asked where it helps", is_evict, best < 100 && !suffices(&d, 0));
		for (int i = 0; i < d.pod_count && is_evict; i++) {
			bool leaves = (left >> i & 1) != 0;
			CHECK(c, "nobody could stay", !leaves || !suffices(&d, left & ~(1u << i)));
		}
		CHECK(c, "they suffice", !is_evict || suffices(&d, left));
		CHECK(c, "the lowest priorities", !is_evict || highest(&d, left) == best);
		evicted += is_evict;
		CHECK(c, "nothing has moved", sched_check(rig.sched) == NULL);
		rig_done(&rig);
	}
	CHECK(c, "both happen", evicted > CASES / 20 && evicted < CASES - CASES / 20);
}

// ---- what a leader left behind

static const char *stray(struct rig *rig)
{
	static char text[64];
	struct sched_claim_stray claim;
	if (!sched_claim_stray_next(rig->sched, &claim))
		return "-";
	(void)snprintf(text, sizeof text, STR_FMT " " STR_FMT, STR_ARG(claim.key),
		       STR_ARG(claim.version));
	return text;
}

static void check_left_behind(struct check *c)
{
	struct rig rig;
	begin(&rig, SCHED_PREEMPT_OFF);
	put_pool(&rig, "m", 1);
	put_pool(&rig, "n", 1);
	put_claim(&rig, (struct claim){ "mine", "n", "p", 1, 0 });
	put_pod(&rig, (struct pod){ .name = "p", .claim = "mine" });
	NEXT(c, &rig, "it fits there", "bind p n []");
	CHECK_STR(c, "bound", str_of(stray(&rig)), "-");
	sched_bind_failed(rig.sched, STR("p"), rig.now_ms);
	rig_putf(&rig, "{kind: Node, metadata: {name: n}, spec: {unschedulable: true}, status: "
		       "{allocatable: {cpu: 64, pods: 20}}}\n");
	CHECK_STR(c, "not tried again yet", str_of(stray(&rig)), "-");
	rig.now_ms += 2000;
	NEXT(c, &rig, "nowhere", "wait p NodeUnschedulable:1 ResourceClaimUnsatisfied:1");
	CHECK_STR(c, "to be taken back", str_of(stray(&rig)), "default/mine 7");
	CHECK_STR(c, "told once", str_of(stray(&rig)), "-");
	CHECK_INT(c, "and again after a while", sched_wake_ms(rig.sched) - rig.now_ms, 5000);
	put_claim(&rig, (struct claim){ "mine", "n", NULL, 1, -1 });
	NEXT(c, &rig, "placed anew", "bind p m []");
	rig_done(&rig);
}

// A claim that somebody else may be about to use, or uses, is left alone.
static void check_not_astray(struct check *c)
{
	struct rig rig;
	begin(&rig, SCHED_PREEMPT_OFF);
	put_pool(&rig, "n", 2);
	rig_putf(&rig, "{kind: Node, metadata: {name: n}, spec: {unschedulable: true}, status: "
		       "{allocatable: {cpu: 64, pods: 20}}}\n");
	put_claim(&rig, (struct claim){ "theirs", "n", "of-another-scheduler", 1, 0 });
	put_claim(&rig, (struct claim){ "used", "n", "runs", 1, 1 });
	put_pod(&rig, (struct pod){ .name = "runs", .claim = "used", .node = "n" });
	put_pod(&rig, (struct pod){ .name = "p", .claim = "theirs" });
	put_pod(&rig, (struct pod){ .name = "q", .claim = "used" });
	NEXT(c, &rig, "waits", "wait p NodeUnschedulable:1");
	NEXT(c, &rig, "waits, too", "wait q NodeUnschedulable:1");
	CHECK_STR(c, "neither", str_of(stray(&rig)), "-");
	rig_done(&rig);
}

int main(void)
{
	struct check c = { 0 };
	check_limits(&c);
	check_mig(&c);
	check_books(&c);
	check_late_release(&c);
	check_waits_for_idle(&c);
	check_shared(&c);
	check_both_ways(&c);
	check_victims(&c);
	check_left_behind(&c);
	check_not_astray(&c);
	return check_done(&c);
}
