// SPDX-License-Identifier: Apache-2.0
// The books of queues: what each deserves against a division unit by unit, remembered use against
// the real exponential, and claims against their promises, with random trees.
#include "check.h"

#include "base/rng.h"
#include "sched/entitle.h"
#include "sched/factors.h"
#include "sched/queue.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- entitle

// Gives out one unit after the other to who is furthest below its part; the limit of what a
// division by weights can be.
static void divide_by_units(struct entitle *items, size_t count, int64_t capacity)
{
	for (size_t i = 0; i < count; i++)
		items[i].deserved = 0;
	for (int round = 0; round < 2; round++) {
		for (; capacity > 0; capacity--) {
			struct entitle *best = NULL;
			double best_ratio = 0;
			for (size_t i = 0; i < count; i++) {
				struct entitle *item = &items[i];
				int64_t most = min_i64(item->wanted, item->limit);
				int64_t base = min_i64(item->guaranteed, most);
				int64_t goal = round == 0 ? base : most;
				int64_t part = round == 0 ? item->guaranteed : item->weight;
				int64_t above = item->deserved - (round == 0 ? 0 : base);
				if (item->deserved >= goal || part == 0)
					continue;
				double ratio = ((double)above + 1) / (double)part;
				if (best == NULL || ratio < best_ratio) {
					best = item;
					best_ratio = ratio;
				}
			}
			if (best == NULL)
				break;
			best->deserved++;
		}
	}
}

static void test_entitle_units(struct check *c)
{
	struct rng rng;
	int far = 0, sums = 0;
	rng_init(&rng, 7);
	for (int round = 0; round < 3000; round++) {
		struct entitle items[6], oracle[6];
		size_t count = 1 + (size_t)rng_below(&rng, 6);
		int64_t capacity = (int64_t)rng_below(&rng, 120), sum = 0, want = 0;
		int64_t promised = 0;
		for (size_t i = 0; i < count; i++) {
			items[i] = (struct entitle){ .guaranteed = (int64_t)rng_below(&rng, 20),
						     .wanted = (int64_t)rng_below(&rng, 60),
						     .limit = rng_below(&rng, 3) == 0
								      ? (int64_t)rng_below(&rng, 40)
								      : INT64_MAX / 4,
						     .weight = 1 + (int64_t)rng_below(&rng, 5) };
			want += min_i64(items[i].wanted, items[i].limit);
			promised += min_i64(items[i].guaranteed,
					    min_i64(items[i].wanted, items[i].limit));
		}
		memcpy(oracle, items, sizeof items);
		entitle_divide(items, count, capacity);
		divide_by_units(oracle, count, capacity);
		for (size_t i = 0; i < count; i++) {
			int64_t gap = items[i].deserved - oracle[i].deserved;
			sum += items[i].deserved;
			// Rounding goes to the first ones here, to who is furthest below there.
			// More guaranteed than there is: by parts of all of it, of which an item
			// that wants less leaves nothing to the others.
			far += promised <= capacity && (gap > 2 || gap < -2);
			far += promised <= capacity &&
			       items[i].deserved <
				       min_i64(items[i].guaranteed,
					       min_i64(items[i].wanted, items[i].limit));
			far += items[i].deserved > min_i64(items[i].wanted, items[i].limit);
		}
		sums += sum != min_i64(capacity, want);
	}
	CHECK_INT(c, "as unit by unit", far, 0);
	CHECK_INT(c, "nothing is lost, nothing is made", sums, 0);
}

static void test_entitle_cases(struct check *c)
{
	static const struct {
		const char *name;
		int64_t capacity;
		struct entitle items[3];
		int64_t deserved[3];
	} CASES[] = {
		{ "guarantees first, then weights",
		  16,
		  { { 4, 99, 99, 3, 0 }, { 4, 99, 99, 1, 0 }, { 0, 99, 99, 0, 0 } },
		  { 10, 6, 0 } },
		{ "what one does not want goes to the others",
		  16,
		  { { 8, 2, 99, 1, 0 }, { 4, 99, 99, 1, 0 }, { 4, 99, 99, 1, 0 } },
		  { 2, 7, 7 } },
		{ "a limit",
		  16,
		  { { 0, 99, 3, 1, 0 }, { 0, 99, 99, 1, 0 }, { 0, 0, 99, 9, 0 } },
		  { 3, 13, 0 } },
		{ "more guaranteed than there is",
		  9,
		  { { 6, 99, 99, 1, 0 }, { 12, 99, 99, 1, 0 }, { 0, 99, 99, 5, 0 } },
		  { 3, 6, 0 } },
		{ "nothing there",
		  0,
		  { { 6, 9, 9, 1, 0 }, { 1, 9, 9, 1, 0 }, { 0, 9, 9, 5, 0 } },
		  { 0, 0, 0 } },
	};
	for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
		struct entitle items[3];
		memcpy(items, CASES[i].items, sizeof items);
		entitle_divide(items, 3, CASES[i].capacity);
		for (size_t k = 0; k < 3; k++)
			CHECK_INT(c, CASES[i].name, items[k].deserved, CASES[i].deserved[k]);
	}
}

// ---- remembered use

static void test_share_decay(struct check *c)
{
	enum { GPUS_MILLI = 8000, HALF_S = 604800 };
	double worst = 0;
	for (int64_t age_s = 0; age_s < 10 * HALF_S; age_s += 40000) {
		double got = (double)usage_share_decay(INT64_C(1000000000000), HALF_S, age_s);
		double want = 1e12 * exp2(-(double)age_s / HALF_S);
		worst = fmax(worst, fabs(got / want - 1));
	}
	CHECK(c, "within a thousandth of the exponential", worst < 0.001);
	CHECK_INT(c, "exactly half", usage_share_decay(1 << 20, HALF_S, HALF_S), 1 << 19);
	CHECK_INT(c, "exactly a 1024th", usage_share_decay(1 << 20, HALF_S, 10 * HALF_S), 1 << 10);
	CHECK_INT(c, "all is forgotten", usage_share_decay(INT64_MAX, 60, 86400), 0);
	struct usage_share held;
	usage_share_init(&held, HALF_S, -1234567);
	usage_share_advance(&held, GPUS_MILLI, 400 * INT64_C(1000) * HALF_S);
	double steady = GPUS_MILLI * (double)HALF_S / log(2); // integral of the exponential
	CHECK(c, "what is held for ever",
	      fabs((double)usage_share_milli_s(&held) / steady - 1) < 0.001);
}

// Many small steps are one big step, whatever the half-lives between.
static void test_share_steps(struct check *c)
{
	struct rng rng;
	int differ = 0;
	rng_init(&rng, 3);
	for (int round = 0; round < 200; round++) {
		struct usage_share fine, coarse;
		int64_t half_s = 60 + (int64_t)rng_below(&rng, 4000);
		int64_t from_ms = (int64_t)rng_below(&rng, 10000000) - 5000000, at_ms = from_ms;
		usage_share_init(&fine, half_s, from_ms);
		usage_share_init(&coarse, half_s, from_ms);
		for (int i = 0; i < 300; i++) {
			at_ms += 1 + (int64_t)rng_below(&rng, 50000);
			usage_share_advance(&fine, 3500, at_ms);
		}
		usage_share_advance(&coarse, 3500, at_ms);
		differ += fine.value != coarse.value || fine.last_ms != coarse.last_ms;
	}
	CHECK_INT(c, "no drift by steps", differ, 0);
	struct usage_share none;
	usage_share_init(&none, 0, 0);
	usage_share_advance(&none, 5000, 1000000);
	CHECK_INT(c, "without memory", usage_share_milli_s(&none), 0);
	CHECK(c, "only what is held", usage_share_size(&none, 5000) == 5000);
}

// ---- tree

static void put(struct queues *queues, const char *name, const char *parent, int64_t guaranteed,
		int64_t limit)
{
	struct sched_queue_in in = { .name = str_of(name),
				     .parent = str_of(parent),
				     .guaranteed_milli = guaranteed,
				     .limit_milli = limit,
				     .user_limit_milli = SCHED_NO_LIMIT,
				     .weight = 1,
				     .priority_max = INT64_MAX,
				     .half_life_s = -1 };
	(void)queues_put(queues, &in);
	queues_settle(queues);
}

enum { M = PARTS_PER_MILLI };
#define LOSS(queue, parts) (&(struct queue_loss){ queue, parts, 0, 0 })

static struct queue *named(struct queues *queues, const char *name)
{
	return queues_find(queues, str_of(name));
}

static void test_tree_faults(struct check *c)
{
	struct queues *queues = queues_new(0);
	put(queues, "a", "b", 1, SCHED_NO_LIMIT);
	put(queues, "b", "a", 1, SCHED_NO_LIMIT);
	put(queues, "below-circle", "a", 1, SCHED_NO_LIMIT);
	put(queues, "self", "self", 1, SCHED_NO_LIMIT);
	put(queues, "orphan", "gone", 1, SCHED_NO_LIMIT);
	put(queues, "good", "", 1, SCHED_NO_LIMIT);
	static const char *const BAD[] = { "a", "b", "below-circle", "self", "orphan" };
	for (size_t i = 0; i < ARRAY_COUNT(BAD); i++)
		CHECK(c, BAD[i], named(queues, BAD[i])->fault != NULL);
	CHECK(c, "nobody else", named(queues, "good")->fault == NULL);
	CHECK(c, "names the field",
	      strncmp(named(queues, "orphan")->fault, "spec.queue.parent: tenant gone ", 31) == 0);
	put(queues, "b", "", 1, SCHED_NO_LIMIT);
	put(queues, "gone", "", SCHED_BY_CHILDREN, SCHED_NO_LIMIT);
	CHECK(c, "the circle is cut", named(queues, "below-circle")->fault == NULL);
	CHECK(c, "the parent is there", named(queues, "orphan")->fault == NULL);
	CHECK_INT(c, "guaranteed to its children", named(queues, "gone")->guaranteed_parts, M);
	char deep[] = "d0", above[] = "d0";
	put(queues, "d0", "", 0, SCHED_NO_LIMIT);
	for (char k = '1'; k <= '9'; k++) {
		deep[1] = k;
		above[1] = (char)(k - 1);
		put(queues, deep, above, 0, SCHED_NO_LIMIT);
	}
	CHECK(c, "eight levels", named(queues, "d7")->fault == NULL);
	CHECK(c, "nine are too many", named(queues, "d8")->fault != NULL);
	queues_free(queues);
}

static void test_tree_books(struct check *c)
{
	struct queues *queues = queues_new(0);
	put(queues, "lab", "", SCHED_BY_CHILDREN, 6000);
	put(queues, "vision", "lab", 4000, SCHED_NO_LIMIT);
	put(queues, "speech", "lab", 1000, 3000);
	queue_use(queues, named(queues, "vision"), M * 2000);
	queue_use(queues, named(queues, "speech"), M * 2000);
	CHECK_INT(c, "with descendants", named(queues, "lab")->used_parts, M * 4000);
	CHECK(c, "equality fits", queue_full(named(queues, "vision"), M * 2000) == NULL);
	CHECK(c, "the limit above",
	      queue_full(named(queues, "vision"), M * 2001) == named(queues, "lab"));
	CHECK(c, "its own limit",
	      queue_full(named(queues, "speech"), M * 1001) == named(queues, "speech"));
	CHECK(c, "within", queue_is_within(named(queues, "vision"), M * 1000));
	CHECK(c, "not beyond what is above", !queue_is_within(named(queues, "vision"), M * 2000));
	queue_use(queues, named(queues, "vision"), -M * 2000);
	queue_use(queues, named(queues, "speech"), -M * 2000);
	CHECK_INT(c, "all given back", named(queues, "lab")->used_parts, 0);
	queues_free(queues);
}

// What was held before a queue moved, or its memory changed, counts by the tree as it was.
static void test_moved(struct check *c)
{
	struct queues *queues = queues_new(0);
	put(queues, "old", "", SCHED_BY_CHILDREN, SCHED_NO_LIMIT);
	put(queues, "new", "", SCHED_BY_CHILDREN, SCHED_NO_LIMIT);
	put(queues, "child", "old", 1000, SCHED_NO_LIMIT);
	queue_use(queues, named(queues, "child"), M * 4000);
	queues->now_ms = 100000;
	put(queues, "child", "new", 1000, SCHED_NO_LIMIT);
	queue_advance(queues, named(queues, "old"));
	queue_advance(queues, named(queues, "new"));
	int64_t had_milli_s = usage_share_milli_s(&named(queues, "old")->share);
	CHECK(c, "had it", had_milli_s > 399000 && had_milli_s <= 400000);
	CHECK_INT(c, "had nothing", usage_share_milli_s(&named(queues, "new")->share), 0);
	struct usage_share share;
	usage_share_init(&share, 3600, 0);
	usage_share_advance(&share, 1000, 1800000);
	had_milli_s = usage_share_milli_s(&share);
	usage_share_repace(&share, 86400);
	CHECK(c, "the same at another pace",
	      had_milli_s > 0 && usage_share_milli_s(&share) >= had_milli_s - 1 &&
		      usage_share_milli_s(&share) <= had_milli_s + 1);
	queues_free(queues);
}

// ---- claims

enum { LEAVES_MAX = 6, PODS_MAX = 200 };

struct pod { // of the model below: all that matters of one here
	size_t leaf;
	int64_t parts;
	bool runs;
};
struct world {
	struct queues *queues;
	struct queue *leaves[LEAVES_MAX];
	size_t leaf_count, pod_count;
	struct pod pods[PODS_MAX];
	int64_t free_parts;
};

static void start(struct world *world, struct pod *pod)
{
	pod->runs = true;
	world->free_parts -= pod->parts;
	queue_want(world->queues, world->leaves[pod->leaf], -pod->parts);
	queue_use(world->queues, world->leaves[pod->leaf], pod->parts);
}

static void evict(struct world *world, struct pod *pod)
{
	pod->runs = false; // and waits again at once, as its controller makes it anew
	world->free_parts += pod->parts;
	queue_use(world->queues, world->leaves[pod->leaf], -pod->parts);
	queue_want(world->queues, world->leaves[pod->leaf], pod->parts);
}

static struct pod *random_pod(struct world *world, struct rng *rng, bool runs)
{
	for (int i = 0; i < 400; i++) {
		struct pod *pod = &world->pods[rng_below(rng, world->pod_count)];
		if (pod->runs == runs)
			return pod;
	}
	return NULL;
}

struct taking {
	struct pod *victims[PODS_MAX];
	size_t count;
};

// Takes random victims until the claimant fits; false: nobody more may be taken.
static bool take_for(struct world *world, struct rng *rng, const struct pod *claimant,
		     struct taking *ret)
{
	struct queue_claim claim =
		queue_claim_begin(world->queues, world->leaves[claimant->leaf], claimant->parts);
	size_t first = (size_t)rng_below(rng, world->pod_count);
	int64_t room_parts = world->free_parts;
	ret->count = 0;
	for (size_t i = 0; i < world->pod_count && room_parts < claimant->parts; i++) {
		struct pod *pod = &world->pods[(first + i) % world->pod_count];
		if (!pod->runs ||
		    !queue_claim_take(&claim, LOSS(world->leaves[pod->leaf], pod->parts)))
			continue;
		ret->victims[ret->count++] = pod;
		room_parts += pod->parts;
	}
	return room_parts >= claimant->parts;
}

static const char *const NAMES[LEAVES_MAX] = { "a", "b", "c", "d", "e", "f" };

static void make_world(struct world *world, struct rng *rng, bool reaches_deserved)
{
	static const char *const PARENTS[] = { "", "p", "q" };
	int64_t capacity = 0;
	*world = (struct world){ .queues = queues_new(0) };
	world->queues->claims_deserved = reaches_deserved;
	bool is_flat = rng_below(rng, 2) == 0;
	put(world->queues, "p", "", SCHED_BY_CHILDREN, SCHED_NO_LIMIT);
	put(world->queues, "q", "", SCHED_BY_CHILDREN, SCHED_NO_LIMIT);
	world->leaf_count = 2 + (size_t)rng_below(rng, LEAVES_MAX - 1);
	for (size_t i = 0; i < world->leaf_count; i++) {
		int64_t guaranteed = 1000 * (int64_t)rng_below(rng, 9);
		capacity += guaranteed;
		put(world->queues, NAMES[i], is_flat ? "" : PARENTS[rng_below(rng, 3)], guaranteed,
		    SCHED_NO_LIMIT);
	}
	for (size_t i = 0; i < world->leaf_count; i++)
		world->leaves[i] = named(world->queues, NAMES[i]);
	world->free_parts = M * (capacity + 1000 * (int64_t)rng_below(rng, 9));
	world->queues->capacity_parts = world->free_parts;
	world->queues->is_stale = true;
	queues_settle(world->queues);
	world->pod_count = 40 + (size_t)rng_below(rng, PODS_MAX - 40);
	for (size_t i = 0; i < world->pod_count; i++) {
		struct pod *pod = &world->pods[i];
		pod->leaf = (size_t)rng_below(rng, world->leaf_count);
		pod->parts = INT64_C(7000) << rng_below(rng, 4);
		queue_want(world->queues, world->leaves[pod->leaf], pod->parts);
	}
}

// Who lost could not take it back from who got it.
static bool may_answer(struct world *world, const struct pod *claimant, const struct taking *taking)
{
	for (size_t i = 0; i < taking->count; i++) {
		const struct pod *victim = taking->victims[i];
		if (queue_may_reclaim(world->queues, world->leaves[victim->leaf], victim->parts,
				      LOSS(world->leaves[claimant->leaf], claimant->parts)))
			return true;
	}
	return false;
}

// Runs a world whose pods never end until nothing moves; returns how many were evicted, -1 if it
// goes on for ever.
static int settle(struct world *world, struct rng *rng, int *answers, int *poorer)
{
	int evictions = 0, idle = 0;
	for (int step = 0; step < 20000; step++) {
		struct pod *pod = random_pod(world, rng, false);
		struct taking taking;
		if (pod == NULL || ++idle > 1200)
			return evictions;
		if (pod->parts <= world->free_parts) {
			start(world, pod);
			idle = 0;
			continue;
		}
		if (!take_for(world, rng, pod, &taking))
			continue;
		for (size_t i = 0; i < taking.count; i++)
			evict(world, taking.victims[i]);
		start(world, pod);
		evictions += (int)taking.count;
		*answers += may_answer(world, pod, &taking);
		*poorer += world->queues->claims_deserved == false &&
			   world->leaves[pod->leaf]->used_parts >
				   world->leaves[pod->leaf]->guaranteed_parts;
		idle = 0;
	}
	return -1;
}

static void test_claims(struct check *c)
{
	struct rng rng;
	int endless = 0, answers = 0, poorer = 0, moved = 0;
	rng_init(&rng, 42);
	for (int round = 0; round < 600; round++) {
		struct world world;
		make_world(&world, &rng, round % 2 == 1);
		int evictions = settle(&world, &rng, &answers, &poorer);
		endless += evictions < 0;
		moved += evictions > 0;
		for (size_t i = 0; i < world.pod_count; i++) {
			struct pod *pod = &world.pods[i];
			if (pod->runs)
				evict(&world, pod);
			queue_want(world.queues, world.leaves[pod->leaf], -pod->parts);
		}
		queues_free(world.queues);
	}
	CHECK_INT(c, "every world comes to rest", endless, 0);
	CHECK_INT(c, "nobody takes back", answers, 0);
	CHECK_INT(c, "claimants stay within what is theirs", poorer, 0);
	CHECK(c, "the worlds are not idle", moved > 100);
}

static void test_claim_cases(struct check *c)
{
	struct queues *queues = queues_new(0);
	put(queues, "owner", "", 4000, SCHED_NO_LIMIT);
	put(queues, "guest", "", 4000, SCHED_NO_LIMIT);
	put(queues, "poor", "", 0, SCHED_NO_LIMIT);
	queues->capacity_parts = M * 8000;
	queue_use(queues, named(queues, "guest"), M * 8000);
	struct queue_claim claim = queue_claim_begin(queues, named(queues, "owner"), M * 2000);
	CHECK(c, "first of two", queue_claim_take(&claim, LOSS(named(queues, "guest"), M * 2000)));
	CHECK(c, "second of two", queue_claim_take(&claim, LOSS(named(queues, "guest"), M * 2000)));
	CHECK(c, "then it is within",
	      !queue_claim_take(&claim, LOSS(named(queues, "guest"), M * 2000)));
	queue_claim_untake(&claim, LOSS(named(queues, "guest"), M * 2000));
	CHECK(c, "one less", queue_claim_take(&claim, LOSS(named(queues, "guest"), M * 2000)));
	CHECK(c, "a large one that reaches over goes whole",
	      queue_may_reclaim(queues, named(queues, "owner"), M * 1000,
				LOSS(named(queues, "guest"), M * 8000)));
	CHECK(c, "more than is guaranteed",
	      !queue_may_reclaim(queues, named(queues, "owner"), M * 5000,
				 LOSS(named(queues, "guest"), M * 1000)));
	CHECK(c, "no guarantee, no claim",
	      !queue_may_reclaim(queues, named(queues, "poor"), M * 1000,
				 LOSS(named(queues, "guest"), M * 1000)));
	CHECK(c, "not from itself",
	      !queue_may_reclaim(queues, named(queues, "guest"), M * 1,
				 LOSS(named(queues, "guest"), M * 1)));
	queues->claims_deserved = true;
	queue_want(queues, named(queues, "poor"), M * 8000);
	CHECK(c, "half of what is over is deserved",
	      queue_may_reclaim(queues, named(queues, "poor"), M * 2000,
				LOSS(named(queues, "guest"), M * 2000)));
	CHECK(c, "and no more",
	      !queue_may_reclaim(queues, named(queues, "poor"), M * 3000,
				 LOSS(named(queues, "guest"), M * 3000)));
	CHECK(c, "nor what is guaranteed to others",
	      !queue_may_reclaim(queues, named(queues, "poor"), M * 1000,
				 LOSS(named(queues, "guest"), M * 5000)));
	queue_want(queues, named(queues, "poor"), -M * 8000);
	queue_use(queues, named(queues, "guest"), -M * 8000);
	queues_free(queues);
}

// Fractions of GPUs: a tenth at a time is exact (0.1 + 0.2 is 0.3).
static void test_fractions(struct check *c)
{
	int wrong = 0;
	struct queues *queues = queues_new(0);
	for (int64_t limit = 10; limit <= 1000; limit += 10) {
		put(queues, "t", "", 0, limit);
		for (int64_t used = 0; used <= limit; used += 10) {
			queue_use(queues, named(queues, "t"), M * used);
			wrong += queue_full(named(queues, "t"), M * (limit - used)) != NULL;
			wrong += queue_full(named(queues, "t"), M * (limit - used + 10)) == NULL;
			queue_use(queues, named(queues, "t"), -M * used);
		}
	}
	CHECK_INT(c, "equality is admitted at every hundredth", wrong, 0);
	put(queues, "t", "", 1000, 1000);
	for (int slice = 1; slice <= 7; slice++) {
		wrong += queue_full(named(queues, "t"), 1000) != NULL;
		wrong += !queue_is_within(named(queues, "t"), 1000);
		queue_use(queues, named(queues, "t"), 1000);
	}
	CHECK_INT(c, "seven seventh parts are one GPU", wrong, 0);
	CHECK(c, "an eighth is too many", queue_full(named(queues, "t"), 1) != NULL);
	CHECK_INT(c, "exactly one", milli_of_parts(named(queues, "t")->used_parts), 1000);
	queue_use(queues, named(queues, "t"), -7000);
	queues_free(queues);
}

// ---- factors

static void test_factors(struct check *c)
{
	static const struct {
		const char *text;
		bool good;
	} CASES[] = {
		{ "", true },
		{ "age=1000, size=-500", true },
		{ "priority=1,fair-share=1000000,deadline=0,age-max=60,deadline-within=5", true },
		{ "age", false },
		{ "age=", false },
		{ "age=nan", false },
		{ "age=1000001", false },
		{ "age=99999999999999999999", false },
		{ "age-max=0", false },
		{ "luck=1", false },
	};
	struct sched_factors factors;
	for (size_t i = 0; i < ARRAY_COUNT(CASES); i++)
		CHECK(c, CASES[i].text,
		      factors_parse(str_of(CASES[i].text), &factors) == CASES[i].good);
	bool good = factors_parse(STR("age=10,size=-2,fair-share=4,deadline=8,age-max=100,"
				      "deadline-within=100"),
				  &factors);
	CHECK(c, "parses", good && factors_are_used(&factors));
	struct factor_facts facts = { .priority = 100000,
				      .age_s = 50,
				      .gpu_milli = 2000,
				      .capacity_milli = 8000,
				      .queue_permille = 1000,
				      .user_permille = 0,
				      .last_start_s = 25 };
	int64_t values[SCHED_FACTORS];
	int64_t score = factors_score(&factors, &facts, values);
	CHECK_INT(c, "a tenth of the class of services", values[SCHED_FACTOR_PRIORITY], 100000);
	CHECK_INT(c, "half of the longest wait", values[SCHED_FACTOR_AGE], 500000);
	CHECK_INT(c, "a quarter of the cluster", values[SCHED_FACTOR_SIZE], 250000);
	CHECK_INT(c, "its part, and a person who had nothing", values[SCHED_FACTOR_SHARE], 750000);
	CHECK_INT(c, "a quarter of the time is left", values[SCHED_FACTOR_DEADLINE], 750000);
	CHECK_INT(c, "by the weights", score, 5000000 - 500000 + 3000000 + 6000000);
	facts.last_start_s = FACTOR_NO_DEADLINE;
	facts.age_s = -5;
	facts.capacity_milli = 0;
	(void)factors_score(&factors, &facts, values);
	CHECK_INT(c, "no deadline", values[SCHED_FACTOR_DEADLINE], 0);
	CHECK_INT(c, "made in the future", values[SCHED_FACTOR_AGE], 0);
	CHECK_INT(c, "no cluster", values[SCHED_FACTOR_SIZE], 0);
}

int main(void)
{
	struct check c = { 0, 0 };
	test_entitle_cases(&c);
	test_entitle_units(&c);
	test_share_decay(&c);
	test_share_steps(&c);
	test_tree_faults(&c);
	test_tree_books(&c);
	test_moved(&c);
	test_claim_cases(&c);
	test_claims(&c);
	test_fractions(&c);
	test_factors(&c);
	return check_done(&c);
}
