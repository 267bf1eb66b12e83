// SPDX-License-Identifier: Apache-2.0
// Moves: who goes on elsewhere so that another starts, what keeps the room for it, and what keeps
// a move from happening. On random clusters the choice is compared with all sets on all nodes and
// all ways to put them elsewhere.
#include "rig.h"

#include "base/rng.h"
#include "base/timefmt.h"
#include "check.h"

#include <stdio.h>

enum { START_S = 10000 };

static const struct sched_preempt_rules MOVES = {
	.mode = SCHED_PREEMPT_PRIORITY,
	.move = { .count_max = 4, .period_ms = 600000, .min_run_ms = 300000, .lost_max_ms = 600000 }
};

static void rig_start(struct rig *rig, const struct sched_preempt_rules *rules)
{
	rig_init(rig);
	sched_preempt_set(rig->sched, rules);
	rig->now_ms = 1000 * START_S;
	(void)rig_next(rig);
}

static void put_node(struct rig *rig, const char *name, int gpus)
{
	rig_putf(rig,
		 "{kind: Node, metadata: {name: %s, labels: {host: %s}}, status: {allocatable: "
		 "{cpu: "
		 "64, pods: 20, nvidia.com/gpu: %d}}}\n",
		 name, name, gpus);
}

// node NULL: it waits. saved_s: when it wrote its checkpoint; 0: never.
static void put_pod(struct rig *rig, const char *name, const char *node, int gpus, int saved_s)
{
	char bound[64], saved[64], on[64] = "", place[512] = "";
	if (node != NULL)
		(void)snprintf(on, sizeof on, "nodeName: %s,", node);
	if (node != NULL)
		(void)snprintf(place, sizeof place,
			       ", status: {conditions: [{type: PodScheduled, status: 'True', "
			       "lastTransitionTime: '%s'}]}",
			       time_format(START_S - 1000, bound));
	char notes[256] = "";
	if (saved_s > 0)
		(void)snprintf(notes, sizeof notes, "gpuaas.io/checkpointed-at: '%s'",
			       time_format(saved_s, saved));
	rig_putf(rig,
		 "{kind: Pod, metadata: {name: %s, labels: {app: %.1s}, annotations: {%s}, "
		 "ownerReferences: [{uid: job-%.2s, controller: true}]}, spec: {%s priority: 5, "
		 "containers: [{name: c, resources: {limits: {nvidia.com/gpu: %d}}}]}%s}\n",
		 name, name, notes, name, on, gpus, place);
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

// Four of eight are free on each of two nodes; m1, of two GPUs, has lost the least.
static void put_fragments(struct rig *rig)
{
	put_node(rig, "a", 8);
	put_node(rig, "b", 8);
	put_pod(rig, "m1", "a", 2, START_S - 10);
	put_pod(rig, "m2", "a", 2, 0);
	put_pod(rig, "m3", "b", 4, START_S - 60);
	put_pod(rig, "p", NULL, 6, 0);
}

static void check_off(struct check *c)
{
	struct sched_preempt_rules rules = MOVES;
	struct rig rig;
	rules.move.count_max = 0;
	rig_start(&rig, &rules);
	put_fragments(&rig);
	ACT(c, "off: nobody leaves", &rig, "-");
	rig_done(&rig);
	rules = MOVES;
	rules.mode = SCHED_PREEMPT_OFF;
	rig_start(&rig, &rules);
	put_fragments(&rig);
	ACT(c, "off with preemption", &rig, "-");
	rig_done(&rig);
}

// The whole way: it leaves, its room elsewhere is kept, both run.
static void check_way(struct check *c)
{
	struct sched_preempt_view view;
	struct rig rig;
	rig_start(&rig, &MOVES);
	put_fragments(&rig);
	ACT(c, "the cheapest leaves", &rig, "evict p a m1");
	CHECK_STR(c, "goes on", rig.decision.victims[0].home, "b");
	CHECK_INT(c, "loses", rig.decision.victims[0].lost_ms, 10000);
	CHECK(c, "seen", sched_preempt_explain(rig.sched, STR("default"), STR("m1"), &view));
	CHECK_STR(c, "for whom", view.evicted_by, "default/p");
	CHECK_STR(c, "where", view.home, "b");
	put_pod(&rig, "x", NULL, 3, 0);
	ACT(c, "an equal gets neither room", &rig, "-");
	put_pod(&rig, "y", NULL, 2, 0);
	ACT(c, "but what is beside them", &rig, "bind y b []");
	rig_remove_pod(&rig, "m1");
	ACT(c, "it starts", &rig, "bind p a []");
	ACT(c, "room is kept", &rig, "-");
	put_pod(&rig, "m1b", NULL, 2, 0);
	ACT(c, "and used", &rig, "bind m1b b []");
	CHECK(c, "books", sched_check(rig.sched) == NULL);
	rig_done(&rig);
}

static void check_berth_ends(struct check *c)
{
	struct rig rig;
	rig_start(&rig, &MOVES);
	put_fragments(&rig);
	ACT(c, "leaves", &rig, "evict p a m1");
	sched_evict_failed(rig.sched, STR("m1"), rig.now_ms);
	ACT(c, "refused: another way", &rig, "nominate p ");
	put_pod(&rig, "x", NULL, 4, 0);
	ACT(c, "the room is free again", &rig, "bind x b []");
	rig_done(&rig);
	rig_start(&rig, &MOVES);
	put_fragments(&rig);
	ACT(c, "leaves", &rig, "evict p a m1");
	rig_remove_pod(&rig, "m1");
	ACT(c, "starts", &rig, "bind p a []");
	put_pod(&rig, "x", NULL, 4, 0);
	ACT(c, "kept", &rig, "-");
	CHECK_INT(c, "for a minute", sched_wake_ms(rig.sched) <= rig.now_ms + 60000, 1);
	rig.now_ms += 60001;
	ACT(c, "nobody came", &rig, "bind x b []");
	rig_done(&rig);
}

static void check_who(struct check *c)
{
	struct sched_preempt_rules rules = MOVES;
	struct rig rig;
	rules.move.min_run_ms = 1001000;
	rig_start(&rig, &rules);
	put_fragments(&rig);
	ACT(c, "too young", &rig, "-");
	CHECK_INT(c, "until then", sched_wake_ms(rig.sched) <= rig.now_ms + 1000, 1);
	rig.now_ms += 1000;
	ACT(c, "old enough", &rig, "evict p a m1");
	rig_done(&rig);
	rules = MOVES;
	rules.move.lost_max_ms = 19999; // two GPUs for ten seconds
	rig_start(&rig, &rules);
	put_fragments(&rig);
	ACT(c, "too much is lost", &rig, "-");
	rig.now_ms += 2000;
	put_pod(&rig, "m1", "a", 2, START_S + 1);
	ACT(c, "a checkpoint later", &rig, "evict p a m1");
	rig_done(&rig);
	rig_start(&rig, &MOVES);
	struct sched_budget budget = { .key = STR("default/b"), .namespace_ = STR("default") };
	sched_budget_set(rig.sched, &budget);
	put_fragments(&rig);
	ACT(c, "a budget", &rig, "-");
	rig_done(&rig);
}

// One move of a pool in ten minutes.
static void check_pace(struct check *c)
{
	struct sched_preempt_rules rules = MOVES;
	struct rig rig;
	rules.move.count_max = 1;
	rig_start(&rig, &rules);
	put_fragments(&rig);
	ACT(c, "first", &rig, "evict p a m1");
	rig_remove_pod(&rig, "m1");
	ACT(c, "starts", &rig, "bind p a []");
	put_pod(&rig, "m1b", NULL, 2, 0);
	ACT(c, "goes on", &rig, "bind m1b b []");
	put_node(&rig, "c", 4);
	put_pod(&rig, "q", NULL, 5, 0);
	put_pod(&rig, "m3", "b", 4, START_S - 60);
	rig.now_ms += 500000;
	put_pod(&rig, "m3", "b", 4, START_S + 490);
	ACT(c, "not yet", &rig, "-");
	rig.now_ms += 100001;
	put_pod(&rig, "m3", "b", 4, START_S + 595);
	ACT(c, "second", &rig, "evict q b m3");
	CHECK_STR(c, "goes on", rig.decision.victims[0].home, "c");
	rig_done(&rig);
}

// What would start soon anyway is not worth what is lost.
static void check_gain(struct check *c)
{
	struct rig rig;
	for (int ends_s = 32; ends_s <= 400; ends_s += 368) {
		rig_start(&rig, &MOVES);
		put_node(&rig, "a", 8);
		put_node(&rig, "b", 8);
		rig_putf(&rig,
			 "{kind: Pod, metadata: {name: m2, annotations: {gpuaas.io/duration: "
			 "'%d'}}, "
			 "spec: {nodeName: a, priority: 9, containers: [{name: c, resources: "
			 "{limits: "
			 "{nvidia.com/gpu: 4}}}]}, status: {conditions: [{type: PodScheduled, "
			 "status: "
			 "'True', lastTransitionTime: '1970-01-01T02:30:00Z'}]}}\n",
			 1000 + ends_s);
		put_pod(&rig, "m1", "a", 2, START_S - 30);
		put_pod(&rig, "m3", "b", 4, 0);
		put_pod(&rig, "p", NULL, 4, 0);
		ACT(c, "free", &rig, "bind p b []");
		put_pod(&rig, "q", NULL, 4, 0);
		rig_remove_pod(&rig, "p");
		put_pod(&rig, "r", "b", 2, 0);
		ACT(c, "by the gain", &rig, ends_s == 32 ? "-" : "evict q a m1");
		rig_done(&rig);
	}
}

// ---- against all sets on all nodes

enum { NODES = 3, GPUS = 8, PODS_MAX = 14, ROUNDS = 500 };

struct one {
	int node, gpus, lost_s; // lost_s < 0: it keeps no checkpoints
};
struct world {
	struct one pods[PODS_MAX];
	int count, free[NODES], need;
};
struct way {
	bool is_found;
	int lost, count;
};

// Whether these can be put on the other nodes: all ways, as numbers to the base of the nodes.
static bool have_homes(const struct world *world, unsigned set, int from)
{
	int members[PODS_MAX], count = 0, ways = 1;
	for (int i = 0; i < world->count; i++) {
		if ((set >> i & 1) == 0)
			continue;
		members[count++] = i;
		ways *= NODES;
	}
	for (int way = 0; way < ways; way++) {
		int left[NODES], rest = way;
		bool fits = true;
		memcpy(left, world->free, sizeof left);
		for (int k = 0; k < count && fits; k++, rest /= NODES) {
			left[rest % NODES] -= world->pods[members[k]].gpus;
			fits = rest % NODES != from && left[rest % NODES] >= 0;
		}
		if (fits)
			return true;
	}
	return false;
}

static struct way best_way(const struct world *world)
{
	struct way best = { .is_found = false };
	for (int node = 0; node < NODES; node++) {
		for (unsigned set = 1; set < 1U << world->count; set++) {
			int room = world->free[node], lost = 0, count = 0;
			bool may = true;
			for (int i = 0; i < world->count && may; i++) {
				const struct one *one = &world->pods[i];
				if ((set >> i & 1) == 0)
					continue;
				may = one->node == node && one->lost_s >= 0;
				room += one->gpus;
				lost += one->lost_s * one->gpus;
				count++;
			}
			bool is_better = !best.is_found || lost < best.lost ||
					 (lost == best.lost && count < best.count);
			if (may && is_better && room >= world->need && count <= 4 && lost <= 600 &&
			    have_homes(world, set, node))
				best = (struct way){ true, lost, count };
		}
	}
	return best;
}

static struct world draw(struct rng *rng)
{
	struct world world = { .count = 0 };
	int target = 12 + (int)rng_below(rng, 10), used = 0;
	for (int i = 0; i < NODES; i++)
		world.free[i] = GPUS;
	for (int tries = 0; tries < 100 && used < target && world.count < PODS_MAX; tries++) {
		struct one one = { .node = (int)rng_below(rng, NODES) };
		one.gpus = 1 + (int)rng_below(rng, 4);
		one.lost_s = (int)rng_below(rng, 120);
		if (rng_below(rng, 4) == 0)
			one.lost_s = -1;
		if (world.free[one.node] < one.gpus)
			continue;
		world.free[one.node] -= one.gpus;
		used += one.gpus;
		world.pods[world.count++] = one;
	}
	world.need = 1 + (int)rng_below(rng, GPUS);
	return world;
}

static void put_world(struct rig *rig, const struct world *world)
{
	char name[16], node[8];
	for (int i = 0; i < NODES; i++) {
		(void)snprintf(node, sizeof node, "n%d", i);
		put_node(rig, node, GPUS);
	}
	for (int i = 0; i < world->count; i++) {
		const struct one *one = &world->pods[i];
		(void)snprintf(name, sizeof name, "%c", 'a' + i);
		(void)snprintf(node, sizeof node, "n%d", one->node);
		put_pod(rig, name, node, one->gpus, one->lost_s < 0 ? 0 : START_S - one->lost_s);
	}
	put_pod(rig, "z", NULL, world->need, 0);
}

// What is told must be possible as told, whatever the search thinks.
static struct way told_way(struct check *c, const char *name, const struct rig *rig,
			   const struct world *world)
{
	const struct sched_decision *decision = &rig->decision;
	struct way told = { true, 0, (int)decision->victim_count };
	int left[NODES], node = decision->node.data[1] - '0';
	memcpy(left, world->free, sizeof left);
	left[node] -= world->need;
	for (size_t i = 0; i < decision->victim_count; i++) {
		const struct one *one = &world->pods[decision->victims[i].name.data[0] - 'a'];
		int home = decision->victims[i].home.data[1] - '0';
		CHECK(c, name, one->node == node && home != node && one->lost_s >= 0);
		left[node] += one->gpus;
		left[home] -= one->gpus;
		told.lost += one->lost_s * one->gpus;
	}
	for (int i = 0; i < NODES; i++)
		CHECK(c, name, left[i] >= 0);
	return told;
}

static int check_random(struct check *c)
{
	struct rng rng;
	int found = 0, several = 0;
	rng_init(&rng, 7);
	for (unsigned round = 0; round < ROUNDS; round++) {
		char name[32];
		struct rig rig;
		const struct world world = draw(&rng);
		bool is_free = false;
		for (int i = 0; i < NODES; i++)
			is_free = is_free || world.free[i] >= world.need;
		if (is_free)
			continue;
		(void)snprintf(name, sizeof name, "round %u", round);
		rig_start(&rig, &MOVES);
		put_world(&rig, &world);
		struct way best = best_way(&world);
		bool is_told = strncmp(act(&rig), "evict", 5) == 0;
		CHECK_INT(c, name, is_told, best.is_found);
		if (is_told && best.is_found) {
			struct way told = told_way(c, name, &rig, &world);
			CHECK_INT(c, name, told.lost, best.lost);
			CHECK_INT(c, name, told.count, best.count);
			several += told.count > 1;
			found++;
		}
		CHECK(c, name, sched_check(rig.sched) == NULL);
		rig_done(&rig);
	}
	CHECK(c, "enough of both", found > 50 && several > 15);
	return found;
}

int main(void)
{
	struct check c = { 0 };
	check_off(&c);
	check_way(&c);
	check_berth_ends(&c);
	check_who(&c);
	check_pace(&c);
	check_gain(&c);
	(void)check_random(&c);
	return check_done(&c);
}
