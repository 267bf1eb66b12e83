// SPDX-License-Identifier: Apache-2.0
// Costs of placements against slow and plain ways to the same numbers, on small random nodes.
#include "sched/board.h"

#include "base/rng.h"
#include "check.h"

#include <math.h>

enum { ROUNDS = 400, NODES = 20, STEPS = 2000 };

static struct score_ask draw_ask(struct rng *rng)
{
	static const int32_t SHARES[] = { 190, 250, 460, 500, 810, 1000 };
	struct score_ask ask = { .cpu_milli = 1000 * (int64_t)rng_below(rng, 12) };
	uint64_t kind = rng_below(rng, 8);
	if (rng_below(rng, 4) == 0)
		ask.models = 1 + (uint32_t)rng_below(rng, 7);
	if (kind == 0)
		return ask;
	ask.gpu_count = kind == 1 ? 1 + (int32_t)rng_below(rng, 8) : 1;
	ask.gpu_milli = SHARES[rng_below(rng, ARRAY_COUNT(SHARES))];
	if (ask.gpu_count > 1)
		ask.gpu_milli = SCORE_GPU_MILLI;
	return ask;
}

static struct score_node draw_node(struct rng *rng)
{
	struct score_node node = { .cpu_milli_all = 1000 * (1 + (int64_t)rng_below(rng, 96)),
				   .gpu_count = (uint32_t)rng_below(rng, 9),
				   .model_i = (uint32_t)rng_below(rng, 3) };
	node.cpu_milli_left = (int64_t)rng_below(rng, (uint64_t)node.cpu_milli_all + 1);
	for (uint32_t i = 0; i < node.gpu_count; i++)
		node.milli_left[i] = (int16_t)(rng_below(rng, 2) * SCORE_GPU_MILLI);
	for (uint32_t i = 0; i < node.gpu_count; i++) {
		if (rng_below(rng, 3) == 0)
			node.milli_left[i] = (int16_t)(10 * rng_below(rng, 101));
	}
	node.is_awake = rng_below(rng, 2) == 0;
	return node;
}

static void draw_score(struct rng *rng, struct score *score)
{
	struct demand_item items[24];
	const int64_t gpus[SCORE_MODELS_MAX] = { 40, 8, 4 };
	size_t count = 1 + (size_t)rng_below(rng, ARRAY_COUNT(items));
	for (size_t i = 0; i < count; i++)
		items[i] = (struct demand_item){ draw_ask(rng), 1 + (int64_t)rng_below(rng, 50) };
	demand_build(&score->demand, items, count, gpus);
}

// The definition, class by class and GPU by GPU.
static int64_t plain_frag(const struct demand *demand, const struct score_node *node)
{
	int64_t sum = 0;
	for (uint32_t i = 0; i < node->gpu_count; i++)
		sum += demand->no_gpu_ppm * node->milli_left[i];
	for (size_t k = 0; k < demand->class_count; k++) {
		const struct demand_class *class = &demand->classes[k];
		const struct score_ask ask = { class->cpu_milli, class->gpu_count, class->gpu_milli,
					       class->models };
		bool fits = score_fits(node, &ask);
		for (uint32_t i = 0; i < node->gpu_count; i++) {
			bool is_lost = !fits || node->milli_left[i] < class->gpu_milli;
			sum += is_lost ? (int64_t) class->weight_ppm * node->milli_left[i] : 0;
		}
	}
	return sum;
}

static void test_frag(struct check *c, struct rng *rng)
{
	struct score score = { .policy = { .is_level = true } };
	for (int i = 0; i < ROUNDS; i++) {
		draw_score(rng, &score);
		struct score_node node = draw_node(rng);
		CHECK_INT(c, "fragmentation", demand_frag_nano(&score.demand, &node),
			  plain_frag(&score.demand, &node));
	}
}

// The published score: the sigmoid of what fragmentation falls by, without its fraction, for the
// best GPU, the first of equals.
static int64_t plain_level(const struct score *score, const struct score_node *node,
			   const struct score_ask *ask, uint64_t gpus)
{
	struct score_node after = *node;
	score_take(&after, ask, gpus);
	double gain =
		(double)(plain_frag(&score->demand, node) - plain_frag(&score->demand, &after)) /
		1e9;
	return (int64_t)floor(100 / (1 + exp(-gain)) + 1e-9);
}

static void test_levels(struct check *c, struct rng *rng)
{
	struct score score = { .policy = { .is_level = true } };
	for (int i = 0; i < ROUNDS; i++) {
		draw_score(rng, &score);
		struct score_node node = draw_node(rng);
		struct score_ask ask = draw_ask(rng);
		uint64_t gpus = 0;
		int64_t cost = score_cost(&score, &node, &ask, &gpus);
		CHECK(c, "fits", (cost != SCORE_NEVER) == score_fits(&node, &ask));
		if (cost == SCORE_NEVER)
			continue;
		CHECK_INT(c, "as many GPUs as asked for", __builtin_popcountll(gpus),
			  ask.gpu_count);
		CHECK_INT(c, "level", -cost, plain_level(&score, &node, &ask, gpus));
		for (uint32_t k = 0; ask.gpu_count == 1 && k < node.gpu_count; k++) {
			uint64_t other = UINT64_C(1) << k;
			if (node.milli_left[k] < ask.gpu_milli || ask.gpu_milli == 1000)
				continue;
			int64_t level = plain_level(&score, &node, &ask, other);
			CHECK(c, "no GPU is better", level <= -cost);
			CHECK(c, "the first of equals", level < -cost || other >= gpus);
		}
	}
}

static void test_take_and_give(struct check *c, struct rng *rng)
{
	struct score score;
	CHECK(c, "default is built in", score_policy_find(STR("default"), &score.policy));
	CHECK(c, "nonsense is not", !score_policy_find(STR("nonsense"), &score.policy));
	memset(score.power, 0, sizeof score.power);
	for (int i = 0; i < ROUNDS; i++) {
		draw_score(rng, &score);
		struct score_node node = draw_node(rng), kept = node;
		struct score_ask ask = draw_ask(rng);
		uint64_t gpus = 0;
		if (score_cost(&score, &node, &ask, &gpus) == SCORE_NEVER)
			continue;
		CHECK(c, "asking changes nothing", memcmp(&node, &kept, sizeof node) == 0);
		score_take(&node, &ask, gpus);
		bool is_negative = node.cpu_milli_left < 0;
		for (uint32_t k = 0; k < node.gpu_count; k++)
			is_negative = is_negative || node.milli_left[k] < 0;
		CHECK(c, "nothing below zero", !is_negative);
		score_give(&node, &ask, gpus);
		CHECK(c, "given back", memcmp(&node, &kept, sizeof node) == 0);
	}
}

// What is kept is what would be computed.
static void test_board(struct check *c, struct rng *rng)
{
	static const char *const NAMES[] = { "default", "fgd", "energy", "topology", "spread" };
	struct score score = { .power = { { 10, 100, 20, 60, 1 }, { 30, 300, 20, 60, 1 } } };
	draw_score(rng, &score);
	for (size_t p = 0; p < ARRAY_COUNT(NAMES); p++) {
		CHECK(c, NAMES[p], score_policy_find(str_of(NAMES[p]), &score.policy));
		struct board *board = board_new(&score);
		for (uint32_t slot = 0; slot < NODES; slot++) {
			const struct score_node node = draw_node(rng);
			board_set(board, slot, &node);
		}
		int different = 0;
		for (int i = 0; i < STEPS; i++) {
			uint32_t slot = (uint32_t)rng_below(rng, NODES);
			struct score_ask ask = { .cpu_milli = (int64_t)rng_below(rng, 600) * 10 };
			struct board_row *row = board_row_of(board, &ask);
			struct score_node node = board->nodes[slot];
			different += board_cost(board, row, slot) !=
				     score_cost(&score, &node, &ask, NULL);
			if (i % 3 == 0) {
				node = draw_node(rng);
				board_set(board, slot, &node);
			}
			if (i == STEPS / 2) {
				draw_score(rng, &score);
				board_set_score(board, &score);
			}
		}
		CHECK_INT(c, NAMES[p], different, 0);
		CHECK(c, "rows are bounded", board->row_count <= BOARD_ROWS_MAX);
		board_free(board);
	}
}

static void test_scarce(struct check *c)
{
	// Half of what is asked for names model 1, of which there are 10 of 100 GPUs.
	struct demand demand;
	struct demand_item items[] = { { { 1000, 1, 1000, 0 }, 10 }, { { 1000, 1, 1000, 2 }, 10 } };
	const int64_t gpus[SCORE_MODELS_MAX] = { 90, 10 };
	demand_build(&demand, items, ARRAY_COUNT(items), gpus);
	CHECK_INT(c, "nobody names it", demand.scarce_micro[0], 0);
	CHECK_INT(c, "more than there is", demand.scarce_micro[1], 1000000);
	CHECK_INT(c, "cores a GPU", demand.cpu_milli_per_gpu, 1000);
}

static void test_blocks(struct check *c)
{
	// GPUs 0 and 3 are taken: the pair for two comes from 4 to 7, the single GPU from a broken
	// pair.
	struct score score = { .demand = { .class_count = 0 } };
	struct score_node node = { 8000, 8000, 8,
				   0,    true, { 0, 1000, 1000, 0, 1000, 1000, 1000, 1000 },
				   0 };
	const struct score_ask two = { 1000, 2, 1000, 0 }, one = { 1000, 1, 1000, 0 };
	uint64_t gpus = 0;
	CHECK(c, "topology", score_policy_find(STR("topology"), &score.policy));
	CHECK(c, "two fit", score_cost(&score, &node, &two, &gpus) != SCORE_NEVER);
	CHECK_INT(c, "the broken pairs' rests are no pair", gpus, 0x06);
	node.milli_left[1] = 0;
	CHECK(c, "two fit", score_cost(&score, &node, &two, &gpus) != SCORE_NEVER);
	CHECK_INT(c, "a pair", gpus, 0x30);
	CHECK(c, "one fits", score_cost(&score, &node, &one, &gpus) != SCORE_NEVER);
	CHECK_INT(c, "the rest of a broken pair", gpus, 0x04);
}

int main(void)
{
	struct check c = { 0 };
	struct rng rng;
	rng_init(&rng, 7);
	test_frag(&c, &rng);
	test_levels(&c, &rng);
	test_take_and_give(&c, &rng);
	test_board(&c, &rng);
	test_scarce(&c);
	test_blocks(&c);
	return check_done(&c);
}
