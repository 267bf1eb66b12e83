// SPDX-License-Identifier: Apache-2.0
// Guarantees and limits of GPU models: random trees, whose victims wait again at once, come to rest
// with everybody having what is guaranteed to them of each model, whatever is claimed in all.
#include "check.h"

#include "base/rng.h"
#include "sched/queue_model.h"

enum { LEAVES_MAX = 5, PODS_MAX = 100, MODELS = 2, MILLI_A_GPU = 1000, GPU = 7000 };
static const char *const MODEL_NAMES[MODELS] = { "A100", "H100" };
static const char *const NAMES[LEAVES_MAX] = { "a", "b", "c", "d", "e" };

struct pod { // of the model of a cluster below
	size_t leaf, pool;
	int wants; // a pool; -1: any
	int64_t parts;
	bool runs;
};
struct world {
	struct queues *queues;
	struct queue *leaves[LEAVES_MAX];
	int64_t guaranteed_parts[LEAVES_MAX][MODELS]; // as the oracle keeps them
	int64_t used_parts[LEAVES_MAX][MODELS], free_parts[MODELS];
	size_t leaf_count, pod_count;
	bool is_flat;
	struct pod pods[PODS_MAX];
};

static struct queue *put(struct queues *queues, const struct sched_queue_in *given)
{
	struct sched_queue_in in = *given;
	in.user_limit_milli = SCHED_NO_LIMIT;
	in.weight = 1;
	in.priority_max = INT64_MAX;
	in.half_life_s = -1;
	struct queue *queue = queues_put(queues, &in);
	bool is_new = queue_models_rename(queues); // before anything runs
	(void)is_new;
	queues_settle(queues);
	return queue;
}

static void move(struct world *world, struct pod *pod, size_t pool, int64_t sign)
{
	struct queue *leaf = world->leaves[pod->leaf];
	pod->runs = sign > 0;
	pod->pool = pool;
	world->free_parts[pool] -= sign * pod->parts;
	world->used_parts[pod->leaf][pool] += sign * pod->parts;
	queue_want(world->queues, leaf, -sign * pod->parts);
	queue_use(world->queues, leaf, sign * pod->parts);
	queue_use_models(world->queues, leaf, (queue_models)1 << pool, sign * pod->parts);
}

struct taking {
	struct pod *victims[PODS_MAX];
	size_t count;
};

static struct queue_loss loss_of(const struct world *world, const struct pod *pod)
{
	queue_models models = (queue_models)1 << pod->pool;
	return (struct queue_loss){ world->leaves[pod->leaf], pod->parts, models, models };
}

static bool take_for(struct world *world, size_t from, const struct pod *claimant, size_t pool,
		     struct taking *ret)
{
	struct queue_claim claim =
		queue_claim_begin(world->queues, world->leaves[claimant->leaf], claimant->parts);
	int64_t room_parts = world->free_parts[pool];
	ret->count = 0;
	for (size_t i = 0; i < world->pod_count && room_parts < claimant->parts; i++) {
		struct pod *pod = &world->pods[(from + i) % world->pod_count];
		struct queue_loss loss = loss_of(world, pod);
		if (!pod->runs || pod->pool != pool || !queue_claim_take(&claim, &loss))
			continue;
		ret->victims[ret->count++] = pod;
		room_parts += pod->parts;
	}
	return room_parts >= claimant->parts;
}

static void make_leaf(struct world *world, struct rng *rng, size_t i, int64_t sums_milli[MODELS])
{
	static const char *const PARENTS[] = { "", "p", "q" };
	struct sched_queue_model models[MODELS];
	int64_t all_milli = 0;
	for (size_t m = 0; m < MODELS; m++) {
		int64_t milli = MILLI_A_GPU * (int64_t)rng_below(rng, 5);
		models[m] =
			(struct sched_queue_model){ str_of(MODEL_NAMES[m]), milli, SCHED_NO_LIMIT };
		world->guaranteed_parts[i][m] = PARTS_PER_MILLI * milli;
		sums_milli[m] += milli;
		all_milli += milli;
	}
	const char *parent = world->is_flat ? "" : PARENTS[rng_below(rng, ARRAY_COUNT(PARENTS))];
	const struct sched_queue_in in = {
		.name = str_of(NAMES[i]),
		.parent = str_of(parent),
		.guaranteed_milli = all_milli + MILLI_A_GPU * (int64_t)rng_below(rng, 4),
		.limit_milli = SCHED_NO_LIMIT,
		.models = models,
		.model_count = MODELS,
	};
	world->leaves[i] = put(world->queues, &in);
}

static void make_world(struct world *world, struct rng *rng, bool reaches_deserved)
{
	int64_t sums_milli[MODELS] = { 0 }, capacity_parts = 0;
	*world = (struct world){ .queues = queues_new(0), .is_flat = rng_below(rng, 2) == 0 };
	world->queues->claims_deserved = reaches_deserved;
	for (size_t i = 0; i < 2; i++)
		(void)put(world->queues,
			  &(struct sched_queue_in){ .name = i == 0 ? STR("p") : STR("q"),
						    .guaranteed_milli = SCHED_BY_CHILDREN,
						    .limit_milli = SCHED_NO_LIMIT });
	world->leaf_count = 2 + (size_t)rng_below(rng, LEAVES_MAX - 1);
	for (size_t i = 0; i < world->leaf_count; i++)
		make_leaf(world, rng, i, sums_milli);
	for (size_t m = 0; m < MODELS; m++) {
		int64_t more_milli = MILLI_A_GPU * (int64_t)rng_below(rng, 5);
		world->free_parts[m] = PARTS_PER_MILLI * (sums_milli[m] + more_milli);
		capacity_parts += world->free_parts[m];
	}
	world->queues->capacity_parts = capacity_parts;
	world->queues->is_stale = true;
	world->pod_count = 30 + (size_t)rng_below(rng, PODS_MAX - 30);
	for (size_t i = 0; i < world->pod_count; i++) {
		struct pod *pod = &world->pods[i];
		*pod = (struct pod){ .leaf = (size_t)rng_below(rng, world->leaf_count),
				     .wants = (int)rng_below(rng, MODELS + 1) - 1,
				     .parts = (int64_t)GPU << rng_below(rng, 3) };
		queue_want(world->queues, world->leaves[pod->leaf], pod->parts);
	}
}

struct outcome {
	int evictions, answers, robbed;
};

// Who lost could not take it back from who got it, and nobody lost what was guaranteed of a model
// to one whose own guarantee of it would not hold it.
static void judge(struct world *world, const struct pod *claimant, const struct taking *taking,
		  struct outcome *outcome)
{
	size_t pool = claimant->pool;
	bool is_own = world->used_parts[claimant->leaf][pool] <=
		      world->guaranteed_parts[claimant->leaf][pool];
	for (size_t i = 0; i < taking->count; i++) {
		const struct pod *victim = taking->victims[i];
		struct queue_loss loss = loss_of(world, claimant);
		outcome->answers += queue_may_reclaim(world->queues, world->leaves[victim->leaf],
						      victim->parts, &loss);
		outcome->robbed += !is_own && world->is_flat &&
				   world->used_parts[victim->leaf][pool] <
					   world->guaranteed_parts[victim->leaf][pool];
	}
}

static bool try_pod(struct world *world, struct rng *rng, struct pod *pod, struct outcome *outcome)
{
	struct taking taking;
	for (size_t m = 0; m < MODELS; m++) {
		if ((pod->wants >= 0 && pod->wants != (int)m) || pod->parts > world->free_parts[m])
			continue;
		move(world, pod, m, 1);
		return true;
	}
	for (size_t m = 0; m < MODELS; m++) {
		size_t from = (size_t)rng_below(rng, world->pod_count);
		if ((pod->wants >= 0 && pod->wants != (int)m) ||
		    !take_for(world, from, pod, m, &taking))
			continue;
		for (size_t i = 0; i < taking.count; i++)
			move(world, taking.victims[i], m, -1);
		move(world, pod, m, 1);
		outcome->evictions += (int)taking.count;
		judge(world, pod, &taking, outcome);
		return true;
	}
	return false;
}

// False: it goes on for ever.
static bool settle(struct world *world, struct rng *rng, struct outcome *outcome)
{
	for (int round = 0; round < 400; round++) {
		bool moved = false;
		for (size_t i = 0; i < world->pod_count; i++) {
			struct pod *pod = &world->pods[rng_below(rng, world->pod_count)];
			moved = (!pod->runs && try_pod(world, rng, pod, outcome)) || moved;
		}
		for (size_t i = 0; i < world->pod_count && !moved; i++)
			moved = !world->pods[i].runs &&
				try_pod(world, rng, &world->pods[i], outcome);
		if (!moved)
			return true;
	}
	return false;
}

// Who waits though what it names would be within what is guaranteed to it of that.
static int count_starved(const struct world *world)
{
	int count = 0;
	for (size_t i = 0; i < world->pod_count; i++) {
		const struct pod *pod = &world->pods[i];
		for (size_t m = 0; !pod->runs && m < MODELS; m++)
			count += pod->wants == (int)m &&
				 world->used_parts[pod->leaf][m] + pod->parts <=
					 world->guaranteed_parts[pod->leaf][m];
	}
	return count;
}

static void test_worlds(struct check *c)
{
	struct rng rng;
	struct outcome outcome = { 0 };
	int endless = 0, starved = 0, broken = 0;
	rng_init(&rng, 7);
	for (int round = 0; round < 400; round++) {
		struct world world;
		make_world(&world, &rng, round % 2 == 1);
		endless += !settle(&world, &rng, &outcome);
		starved += world.is_flat ? count_starved(&world) : 0;
		for (size_t i = 0; i < world.leaf_count; i++)
			for (size_t m = 0; m < MODELS; m++)
				broken += world.leaves[i]->models[m].used_parts !=
					  world.used_parts[i][m];
		for (size_t i = 0; i < world.pod_count; i++) {
			struct pod *pod = &world.pods[i];
			if (pod->runs)
				move(&world, pod, pod->pool, -1);
			queue_want(world.queues, world.leaves[pod->leaf], -pod->parts);
		}
		queues_free(world.queues);
	}
	CHECK_INT(c, "every world comes to rest", endless, 0);
	CHECK_INT(c, "nobody takes back", outcome.answers, 0);
	CHECK_INT(c, "nobody waits for what is guaranteed", starved, 0);
	CHECK_INT(c, "nobody loses what is guaranteed of a model to less", outcome.robbed, 0);
	CHECK_INT(c, "the books agree", broken, 0);
	CHECK(c, "the worlds are not idle", outcome.evictions > 1000);
}

static void test_cases(struct check *c)
{
	struct queues *queues = queues_new(0);
	const struct sched_queue_model h_two[] = { { STR("H100"), 2000, SCHED_NO_LIMIT } },
				       h_one[] = { { STR("H100"), SCHED_BY_CHILDREN, 1000 } };
	struct queue *lab =
		put(queues, &(struct sched_queue_in){ .name = STR("lab"),
						      .guaranteed_milli = SCHED_BY_CHILDREN,
						      .limit_milli = SCHED_NO_LIMIT,
						      .models = h_one,
						      .model_count = 1 });
	struct queue *vision =
		put(queues, &(struct sched_queue_in){ .name = STR("vision"),
						      .parent = STR("lab"),
						      .guaranteed_milli = SCHED_BY_CHILDREN,
						      .limit_milli = SCHED_NO_LIMIT });
	struct queue *owner =
		put(queues, &(struct sched_queue_in){ .name = STR("owner"),
						      .guaranteed_milli = SCHED_BY_CHILDREN,
						      .limit_milli = SCHED_NO_LIMIT,
						      .models = h_two,
						      .model_count = 1 });
	queue_models hopper = queue_models_of(queues, STR("NVIDIA-H100-80GB-HBM3"));
	const struct queue_model *model;
	CHECK_INT(c, "one name", hopper, 1);
	CHECK_INT(c, "no other", queue_models_of(queues, STR("NVIDIA-A100-SXM4-80GB")), 0);
	CHECK_INT(c, "in all what it has of models", owner->guaranteed_parts, 2 * GPU);
	CHECK(c, "equality fits", queue_model_full(vision, hopper, GPU, &model) == NULL);
	CHECK(c, "the limit above", queue_model_full(vision, hopper, GPU + 1, &model) == lab);
	CHECK(c, "of that model only", queue_model_full(vision, 0, 9 * GPU, &model) == NULL);
	CHECK(c, "within", queue_is_within_models(owner, hopper, 2 * GPU));
	CHECK(c, "not beyond", !queue_is_within_models(owner, hopper, 2 * GPU + 1));
	queue_use(queues, vision, GPU);
	queue_use_models(queues, vision, hopper, GPU);
	CHECK_INT(c, "with descendants", lab->models[0].used_parts, GPU);
	const struct queue_loss other = { vision, GPU, 0, 0 }, same = { vision, GPU, 1, 1 };
	queue_use(queues, owner, 2 * GPU); // of another model: all of what is guaranteed in all
	CHECK(c, "of the model", queue_may_reclaim(queues, owner, GPU, &same));
	CHECK(c, "of no other", !queue_may_reclaim(queues, owner, GPU, &other));
	CHECK(c, "no more than is guaranteed", !queue_may_reclaim(queues, owner, 3 * GPU, &same));
	queue_use(queues, owner, -2 * GPU);
	queue_use_models(queues, vision, hopper, -GPU);
	queue_use(queues, vision, -GPU);
	queues_free(queues);
}

int main(void)
{
	struct check c = { 0, 0 };
	test_cases(&c);
	test_worlds(&c);
	return check_done(&c);
}
