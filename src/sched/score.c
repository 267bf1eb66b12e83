// SPDX-License-Identifier: Apache-2.0
#include "sched/score.h"

enum { MICRO = 1000000, MILLI_CORES = 1000 };

score_kind score_kind_of(const struct score_ask *ask)
{
	if (ask->gpu_count == 0)
		return SCORE_CPU;
	if (ask->gpu_count > 1)
		return SCORE_MANY;
	return ask->gpu_milli < SCORE_GPU_MILLI ? SCORE_SHARE : SCORE_ONE;
}

bool score_asks_equal(const struct score_ask *a, const struct score_ask *b)
{
	return a->cpu_milli == b->cpu_milli && a->gpu_count == b->gpu_count &&
	       a->gpu_milli == b->gpu_milli && a->models == b->models;
}

bool score_fits(const struct score_node *node, const struct score_ask *ask)
{
	if (node->cpu_milli_left < ask->cpu_milli)
		return false;
	if (ask->gpu_count == 0)
		return true;
	if (ask->models != 0 && (ask->models >> node->model_i & 1) == 0)
		return false;
	int32_t count = 0;
	for (uint32_t i = 0; i < node->gpu_count; i++)
		count += node->milli_left[i] >= ask->gpu_milli;
	return count >= ask->gpu_count;
}

void score_take(struct score_node *node, const struct score_ask *ask, uint64_t gpus)
{
	node->cpu_milli_left -= ask->cpu_milli;
	for (uint32_t i = 0; i < node->gpu_count; i++) {
		if ((gpus >> i & 1) != 0)
			node->milli_left[i] = (int16_t)(node->milli_left[i] - ask->gpu_milli);
	}
}

void score_give(struct score_node *node, const struct score_ask *ask, uint64_t gpus)
{
	node->cpu_milli_left += ask->cpu_milli;
	for (uint32_t i = 0; i < node->gpu_count; i++) {
		if ((gpus >> i & 1) != 0)
			node->milli_left[i] = (int16_t)(node->milli_left[i] + ask->gpu_milli);
	}
}

static uint64_t whole_gpus(const struct score_node *node)
{
	uint64_t whole = 0;
	for (uint32_t i = 0; i < node->gpu_count; i++)
		whole |= (uint64_t)(node->milli_left[i] == SCORE_GPU_MILLI) << i;
	return whole;
}

int64_t score_node_milliwatt(const struct score_power *power, const struct score_node *node)
{
	int64_t gpus = node->gpu_count;
	if (!node->is_awake)
		return gpus * power->node_asleep_w * 1000;
	int64_t used_milli = gpus * SCORE_GPU_MILLI;
	for (uint32_t i = 0; i < node->gpu_count; i++)
		used_milli -= node->milli_left[i];
	int64_t cpu_used = node->cpu_milli_all - node->cpu_milli_left;
	int64_t cpu_mw = node->cpu_milli_all == 0
				 ? 0
				 : gpus * (power->node_full_w - power->node_idle_w) * 1000 *
					   cpu_used / node->cpu_milli_all;
	return gpus * (power->gpu_idle_w + power->node_idle_w) * 1000 + cpu_mw +
	       used_milli * (power->gpu_full_w - power->gpu_idle_w);
}

// Whole aligned blocks, in GPUs: pairs count 1 a GPU, quads and eights as well.
static int64_t count_blocks(uint64_t whole)
{
	int64_t sum = 0;
	for (uint32_t width = 2; width <= 8; width *= 2) {
		uint64_t block = (UINT64_C(1) << width) - 1;
		for (uint32_t from = 0; from < SCORE_GPUS_MAX; from += width)
			sum += (whole >> from & block) == block ? width : 0;
	}
	return sum;
}

// As many GPUs as the ask wants, from the block that leaves most blocks whole.
static uint64_t choose_whole(const struct score_node *node, int32_t count, bool is_tight)
{
	uint64_t best = 0, whole = whole_gpus(node);
	int64_t best_left = -1;
	for (uint32_t from = 0; from < node->gpu_count; from++) {
		uint64_t gpus = 0;
		int32_t chosen = 0;
		for (uint32_t i = from; i < node->gpu_count && chosen < count; i++) {
			if ((whole >> i & 1) != 0) {
				gpus |= UINT64_C(1) << i;
				chosen++;
			}
		}
		if (chosen < count)
			break;
		// Of equal ones the one that is joined itself.
		int64_t left = is_tight ? count_blocks(whole & ~gpus) * SCORE_GPUS_MAX * 4 +
						  count_blocks(gpus)
					: 0;
		if (left > best_left) {
			best = gpus;
			best_left = left;
		}
		if (!is_tight)
			break;
	}
	return best;
}

static int64_t imbalance_micro(const struct score *score, const struct score_node *node,
			       int64_t gpu_milli_left)
{
	if (gpu_milli_left == 0 || score->demand.cpu_milli_per_gpu == 0)
		return 0;
	int64_t per_gpu = node->cpu_milli_left * SCORE_GPU_MILLI / gpu_milli_left;
	int64_t apart = per_gpu - score->demand.cpu_milli_per_gpu;
	return min_i64(apart < 0 ? -apart : apart, 200 * MILLI_CORES) * MICRO / (100 * MILLI_CORES);
}

static int64_t rest_micro(const struct demand *demand, const struct score_node *node)
{
	int64_t sum = 0;
	for (uint32_t i = 0; i < node->gpu_count; i++)
		sum += demand->rest_micro[node->milli_left[i]];
	return sum;
}

static int64_t stranded_micro(const struct demand *demand, const struct score_node *node)
{
	int64_t milli = 0;
	for (uint32_t i = 0; i < node->gpu_count; i++)
		milli += node->milli_left[i];
	if (demand->cpu_milli_per_gpu == 0)
		return 0;
	int64_t served = node->cpu_milli_left * SCORE_GPU_MILLI / demand->cpu_milli_per_gpu;
	return max_i64(0, milli - served) * (MICRO / SCORE_GPU_MILLI);
}

struct change { // a node, what it would be, and what takes place
	const struct score_node *before, *after;
	const struct score_ask *ask;
	int64_t frag_before_nano;
};

static void fill_left(const struct score *score, const struct change *change, int64_t *features)
{
	const struct score_node *after = change->after;
	int64_t left_milli = 0, whole = 0;
	for (uint32_t i = 0; i < after->gpu_count; i++) {
		left_milli += after->milli_left[i];
		whole += after->milli_left[i] == SCORE_GPU_MILLI;
	}
	features[SCORE_CPU_LEFT] = after->cpu_milli_left * MICRO / (128 * MILLI_CORES);
	features[SCORE_GPU_LEFT] = left_milli * MICRO / (8 * SCORE_GPU_MILLI);
	features[SCORE_GPU_ALL] = (int64_t)after->gpu_count * MICRO / 8;
	features[SCORE_WHOLE_LEFT] = whole * MICRO / 8;
	features[SCORE_IMBALANCE] = imbalance_micro(score, after, left_milli);
	if (after->gpu_count > 0)
		features[SCORE_CPU_PER_GPU] = after->cpu_milli_all * MICRO /
					      ((int64_t)after->gpu_count * 52 * MILLI_CORES);
}

static int64_t cost_of(const struct score *score, const struct change *change,
		       const int32_t *weights)
{
	int64_t features[SCORE_FEATURES] = { 0 }, cost = 0;
	const struct score_ask *ask = change->ask;
	uint32_t model_i = change->after->model_i;
	fill_left(score, change, features);
	if (weights[SCORE_FRAG] != 0)
		features[SCORE_FRAG] = (demand_frag_nano(&score->demand, change->after) -
					change->frag_before_nano) /
				       1000;
	features[SCORE_SCARCE] = score->demand.scarce_micro[model_i] * ask->gpu_count *
				 ask->gpu_milli / SCORE_GPU_MILLI;
	if (weights[SCORE_REST] != 0)
		features[SCORE_REST] = rest_micro(&score->demand, change->after) -
				       rest_micro(&score->demand, change->before);
	if (weights[SCORE_STRANDED] != 0)
		features[SCORE_STRANDED] = stranded_micro(&score->demand, change->after) -
					   stranded_micro(&score->demand, change->before);
	features[SCORE_ASLEEP] = change->before->is_awake ? 0 : MICRO;
	if (weights[SCORE_WATTS] != 0)
		features[SCORE_WATTS] =
			score_node_milliwatt(&score->power[model_i], change->after) -
			score_node_milliwatt(&score->power[model_i], change->before);
	if (weights[SCORE_BLOCKS] != 0)
		features[SCORE_BLOCKS] = (count_blocks(whole_gpus(change->before)) -
					  count_blocks(whole_gpus(change->after))) *
					 (MICRO / 8);
	features[SCORE_LOAD] = (int64_t)change->before->load_milli * (MICRO / SCORE_GPU_MILLI);
	for (size_t i = 0; i < SCORE_FEATURES; i++)
		cost += weights[i] * features[i];
	return cost;
}

// 100 / (1 + exp(-x)) is at least 50 + i where x, in 1e-9 GPUs, is at least LEVELS[i].
static const int64_t LEVELS[] = {
	0,          40005335,   80042708,   120144312,  160342650,  200670695,  241162057,
	281851152,  322773392,  363965377,  405465108,  447312218,  489548225,  532216814,
	575364145,  619039208,  663294217,  708185058,  753771802,  800119300,  847297860,
	895384047,  944461609,  994622575,  1045968555, 1098612289, 1152679510, 1208311206,
	1265666373, 1324925415, 1386294361, 1450010176, 1516347489, 1585627264, 1658228077,
	1734601055, 1815289967, 1900958761, 1992430165, 2090741097, 2197224577, 2313634929,
	2442347035, 2586689344, 2751535313, 2944438979, 3178053830, 3476098690, 3891820298,
	4595119850,
};

static int64_t level_of(int64_t gain_nano)
{
	int64_t level = 0, size_nano = gain_nano < 0 ? -gain_nano : gain_nano;
	for (size_t i = 0; i < ARRAY_COUNT(LEVELS) && LEVELS[i] <= size_nano; i++)
		level = (int64_t)i;
	if (gain_nano >= 0)
		return 50 + level;
	return LEVELS[level] < size_nano ? 49 - level : 50 - level;
}

static int64_t cost_after(const struct score *score, struct change *change, uint64_t gpus)
{
	struct score_node after = *change->before;
	score_take(&after, change->ask, gpus);
	after.is_awake = true;
	change->after = &after;
	if (score->policy.is_level)
		return -level_of(change->frag_before_nano -
				 demand_frag_nano(&score->demand, &after));
	return cost_of(score, change, score->policy.weights[score_kind_of(change->ask)]);
}

// GPUs with equal rests are alike, the first of them stands for all.
static int64_t cost_of_one(const struct score *score, struct change *change, uint64_t *ret_gpus)
{
	const struct score_node *node = change->before;
	int64_t best = SCORE_NEVER;
	for (uint32_t i = 0; i < node->gpu_count; i++) {
		bool is_seen = node->milli_left[i] < change->ask->gpu_milli;
		for (uint32_t k = 0; k < i && !is_seen; k++)
			is_seen = node->milli_left[k] == node->milli_left[i];
		int64_t cost = is_seen ? SCORE_NEVER : cost_after(score, change, UINT64_C(1) << i);
		if (cost < best) {
			best = cost;
			*ret_gpus = UINT64_C(1) << i;
		}
	}
	return best;
}

static uint64_t choose_many(const struct score *score, const struct score_node *node,
			    const struct score_ask *ask)
{
	const int32_t *weights = score->policy.weights[score_kind_of(ask)];
	return choose_whole(node, ask->gpu_count,
			    !score->policy.is_level && weights[SCORE_BLOCKS] != 0);
}

int64_t score_cost(const struct score *score, const struct score_node *node,
		   const struct score_ask *ask, uint64_t *ret_gpus)
{
	uint64_t gpus = 0;
	ASSERT(node->gpu_count <= SCORE_GPUS_MAX && node->model_i < SCORE_MODELS_MAX);
	if (!score_fits(node, ask))
		return SCORE_NEVER;
	struct change change = { .before = node, .ask = ask };
	change.frag_before_nano = demand_frag_nano(&score->demand, node);
	int64_t cost = 0;
	if (score_kind_of(ask) == SCORE_SHARE) {
		cost = cost_of_one(score, &change, &gpus);
	} else {
		gpus = ask->gpu_count > 0 ? choose_many(score, node, ask) : 0;
		cost = cost_after(score, &change, gpus);
	}
	if (ret_gpus != NULL)
		*ret_gpus = gpus;
	return cost;
}
