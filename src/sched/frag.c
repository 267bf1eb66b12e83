// SPDX-License-Identifier: Apache-2.0
// Fragmentation: what is left of a node's GPUs, weighted by the classes of pods that could not
// use it. A class takes from a node nothing when it does not fit there, else all but the rests of
// GPUs that are smaller than what it asks of one.
#include "sched/score.h"

#include <stdlib.h>

enum { PPM = 1000000, COVER_PERCENT = 95 };

static int compare_items(const void *a, const void *b)
{
	const struct demand_item *one = a, *other = b;
	const int64_t keys[4][2] = { { one->pods, other->pods },
				     { one->ask.cpu_milli, other->ask.cpu_milli },
				     { one->ask.gpu_milli, other->ask.gpu_milli },
				     { one->ask.gpu_count, other->ask.gpu_count } };
	for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
		if (keys[i][0] != keys[i][1])
			return keys[i][0] > keys[i][1] ? -1 : 1;
	}
	return one->ask.models > other->ask.models ? -1 : one->ask.models < other->ask.models;
}

static int64_t gpu_milli(const struct demand_item *item)
{
	return item->pods * item->ask.gpu_count * item->ask.gpu_milli;
}

static int64_t gpus_of(uint64_t models, const int64_t gpus[SCORE_MODELS_MAX])
{
	int64_t sum = 0;
	for (size_t i = 0; i < SCORE_MODELS_MAX; i++)
		sum += (models >> i & 1) != 0 ? gpus[i] : 0;
	return sum;
}

// As if the demand filled all GPUs: how much of a model is asked for by pods that name it, each
// spread evenly over the GPUs that it names.
static void find_scarce(struct demand *ret, const struct demand_item *items, size_t count,
			const int64_t gpus[SCORE_MODELS_MAX])
{
	int64_t all_gpus = gpus_of(UINT64_MAX, gpus), all_milli = 0;
	for (size_t i = 0; i < count; i++)
		all_milli += gpu_milli(&items[i]);
	for (size_t i = 0; i < count; i++) {
		int64_t named = gpus_of(items[i].ask.models, gpus);
		if (items[i].ask.models == 0 || named == 0 || all_milli == 0)
			continue;
		int64_t share_ppm = gpu_milli(&items[i]) * PPM / all_milli;
		int64_t micro = share_ppm * all_gpus / named;
		for (size_t k = 0; k < SCORE_MODELS_MAX; k++) {
			if ((items[i].ask.models >> k & 1) != 0)
				ret->scarce_micro[k] = min_i64(PPM, ret->scarce_micro[k] + micro);
		}
	}
}

// What stays of a GPU that is filled by pods of one GPU or a share as they come, until none fits.
static void find_rests(struct demand *ret, const struct demand_item *items, size_t count)
{
	int64_t pods[SCORE_GPU_MILLI + 1] = { 0 };
	for (size_t i = 0; i < count; i++) {
		if (items[i].ask.gpu_count == 1)
			pods[items[i].ask.gpu_milli] += items[i].pods;
	}
	for (int32_t left = 1; left <= SCORE_GPU_MILLI; left++) {
		int64_t fitting = 0, sum = 0;
		for (int32_t milli = 1; milli <= left; milli++) {
			fitting += pods[milli];
			sum += pods[milli] * ret->rest_micro[left - milli];
		}
		ret->rest_micro[left] = (int32_t)(fitting == 0 ? left * 1000 : sum / fitting);
	}
}

static void add_class(struct demand *ret, const struct demand_item *item, int64_t covered)
{
	int32_t ppm = (int32_t)((item->pods * PPM + covered / 2) / covered);
	if (item->ask.gpu_count == 0) {
		ret->no_gpu_ppm += ppm;
		return;
	}
	ret->classes[ret->class_count++] =
		(struct demand_class){ item->ask.cpu_milli, item->ask.gpu_count,
				       item->ask.gpu_milli, item->ask.models, ppm };
}

void demand_build(struct demand *ret, struct demand_item *items, size_t count,
		  const int64_t gpus[SCORE_MODELS_MAX])
{
	int64_t pods = 0, covered = 0, cpu_milli = 0, milli = 0;
	size_t classes = 0;
	*ret = (struct demand){ .class_count = 0 };
	if (count > 0)
		qsort(items, count, sizeof *items, compare_items);
	for (size_t i = 0; i < count; i++) {
		pods += items[i].pods;
		cpu_milli += items[i].pods * items[i].ask.cpu_milli;
		milli += gpu_milli(&items[i]);
	}
	while (classes < count && classes < SCORE_CLASSES_MAX &&
	       covered * 100 < pods * COVER_PERCENT)
		covered += items[classes++].pods;
	for (size_t i = 0; i < classes; i++)
		add_class(ret, &items[i], covered);
	ret->cpu_milli_per_gpu = milli == 0 ? 0 : cpu_milli * SCORE_GPU_MILLI / milli;
	find_scarce(ret, items, count, gpus);
	find_rests(ret, items, count);
}

struct rests { // of the node's GPUs
	int32_t sum_milli, whole, count;
	int32_t parts[SCORE_GPUS_MAX]; // of GPUs in part used
};

static int64_t frag_of(const struct demand_class *class, const struct rests *rests)
{
	int32_t small_milli = 0, enough = rests->whole;
	for (int32_t i = 0; i < rests->count; i++) {
		bool is_small = rests->parts[i] < class->gpu_milli;
		small_milli += is_small ? rests->parts[i] : 0;
		enough += is_small ? 0 : 1;
	}
	return enough >= class->gpu_count ? small_milli : rests->sum_milli;
}

int64_t demand_frag_nano(const struct demand *demand, const struct score_node *node)
{
	struct rests rests;
	rests.sum_milli = rests.whole = rests.count = 0;
	for (uint32_t i = 0; i < node->gpu_count; i++) {
		int32_t left = node->milli_left[i];
		rests.sum_milli += left;
		if (left == SCORE_GPU_MILLI)
			rests.whole++;
		else if (left > 0)
			rests.parts[rests.count++] = left;
	}
	if (rests.sum_milli == 0)
		return 0;
	int64_t sum = demand->no_gpu_ppm * rests.sum_milli;
	for (size_t i = 0; i < demand->class_count; i++) {
		const struct demand_class *class = &demand->classes[i];
		bool may = node->cpu_milli_left >= class->cpu_milli &&
			   (class->models == 0 || (class->models >> node->model_i & 1) != 0);
		sum += class->weight_ppm * (may ? frag_of(class, &rests) : rests.sum_milli);
	}
	return sum;
}
