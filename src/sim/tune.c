// SPDX-License-Identifier: Apache-2.0
// gpuaas-sim tune: weights by search on a site's own history. Every seed draws another list of the
// same kind and its order, so that what is tuned on is never what is measured. Each candidate is
// compared with fgd on the same arrivals; guard rails keep it from paying with one class of pods
// or with a part of the curve for another.
#include "sim/tune.h"

#include "base/rng.h"
#include "sched/policy_file.h"
#include "sys/fs.h"

#include <math.h>
#include <stdio.h>

struct trial { // one list with the arrivals of all seeds
	struct pack_case pack_case;
	struct openb_order *orders; // by seed
	struct pack_mean fgd;
	double cost; // of the best so far
};
struct tune {
	const struct tune_options *options;
	struct arena *arena;
	struct trial *trials;
	size_t seed_count;
	struct rng rng;
	struct score_policy best;
	double best_cost;
};

static const int POINTS[PACK_MEANS] = { 90, 95, 100, 130 };

static void run_mean(const struct trial *trial, size_t seeds, const struct score_policy *policy,
		     struct pack_mean *ret)
{
	const struct pack_options options = { .policy = *policy };
	*ret = (struct pack_mean){ .failures = { 0 } };
	for (size_t i = 0; i < seeds; i++) {
		struct pack_result result;
		pack_run(&trial->pack_case, &trial->orders[i], &options, &result);
		for (size_t k = 0; k < PACK_MEANS; k++)
			ret->unallocated_pct[k] +=
				(100 - result.curve[POINTS[k]].allocated_pct) / (double)seeds;
		for (size_t k = 0; k < PACK_CLASSES; k++)
			ret->failures[k] += (double)result.failures[k] / (double)seeds;
	}
}

static double above(double value, double limit) { return value > limit ? value - limit : 0; }

// Points of unallocated GPUs against fgd, and the rails: nowhere on the curve and in no class
// noticeably worse.
static double cost_of(const struct pack_mean *mean, const struct pack_mean *fgd)
{
	static const double WEIGHTS[PACK_MEANS] = { 0.2, 0.5, 1, 1 };
	static const double RAILS[PACK_MEANS] = { 0.02, 0.06, -0.02, -0.02 };
	static const double MORE[PACK_CLASSES] = { 1, 1, 1, 1, 0.3 };
	static const double PRICES[PACK_CLASSES] = { 0.01, 0.003, 0.003, 0.1, 0.25 };
	double cost = 0;
	for (size_t i = 0; i < PACK_MEANS; i++) {
		double worse = mean->unallocated_pct[i] - fgd->unallocated_pct[i];
		cost += WEIGHTS[i] * worse + 6 * above(worse, RAILS[i]);
	}
	for (size_t i = 0; i < PACK_CLASSES; i++)
		cost += PRICES[i] * above(mean->failures[i], fgd->failures[i] + MORE[i]);
	return cost;
}

// Costs by list into ret_costs; stops early when it cannot win any more.
static double try_policy(struct tune *tune, const struct score_policy *policy, double *ret_costs)
{
	double sum = 0, ahead = 0;
	for (size_t i = 0; i < tune->options->pods_count; i++) {
		struct trial *trial = &tune->trials[i];
		struct pack_mean mean;
		run_mean(trial, tune->seed_count, policy, &mean);
		ret_costs[i] = cost_of(&mean, &trial->fgd);
		sum += ret_costs[i];
		ahead += ret_costs[i] - trial->cost;
		if (ahead > TUNE_BEHIND_MAX)
			return HUGE_VAL;
	}
	return sum;
}

static double draw_normal(struct rng *rng)
{
	double sum = 0;
	for (int i = 0; i < 12; i++)
		sum += (double)(rng_next(rng) >> 11) / 9007199254740992.0;
	return sum - 6;
}

// A few weights change; which features may is decided by where the search starts.
static struct score_policy mutate(struct tune *tune)
{
	struct score_policy policy = tune->best;
	uint64_t changes = 1 + rng_below(&tune->rng, 4);
	double size = exp(draw_normal(&tune->rng)) * TUNE_STEP;
	for (uint64_t i = 0; i < changes; i++) {
		size_t feature = (size_t)rng_below(&tune->rng, SCORE_WATTS);
		bool is_every = rng_below(&tune->rng, 4) == 0;
		size_t one = (size_t)rng_below(&tune->rng, SCORE_KINDS);
		double draw = draw_normal(&tune->rng);
		for (size_t kind = 0; kind < SCORE_KINDS; kind++) {
			int32_t *weight = &policy.weights[kind][feature];
			if (kind != one && !is_every)
				continue;
			double step = draw * (size + fabs((double)*weight) * TUNE_SHARE);
			double next = round((double)*weight + step);
			*weight = (int32_t)fmax(-SCORE_WEIGHT_MAX, fmin(SCORE_WEIGHT_MAX, next));
		}
	}
	return policy;
}

static err_status write_best(const struct tune *tune, struct err *err)
{
	AUTO(buf_done) struct buf out = { .limit = 1 << 16 };
	policy_file_format(&tune->best, &out);
	return fs_write_atomic(tune->options->out, buf_str(&out), 0644, err);
}

static err_status search(struct tune *tune, struct err *err)
{
	size_t lists = tune->options->pods_count;
	double *costs = ARENA_ARRAY(tune->arena, double, lists);
	if (costs == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the search");
	for (size_t i = 0; i < lists; i++)
		tune->trials[i].cost = HUGE_VAL;
	for (int64_t round = 0; round <= tune->options->rounds; round++) {
		struct score_policy policy = round == 0 ? tune->best : mutate(tune);
		double cost = try_policy(tune, &policy, costs);
		if (round > 0 && cost >= tune->best_cost)
			continue;
		tune->best = policy;
		tune->best_cost = cost;
		for (size_t i = 0; i < lists; i++)
			tune->trials[i].cost = costs[i];
		(void)fprintf(stderr, "round %lld: %.4f\n", (long long)round, cost);
		if (write_best(tune, err) != ERR_OK)
			return err->status;
	}
	return ERR_OK;
}

static err_status load(struct tune *tune, struct err *err)
{
	struct score_policy fgd;
	const struct tune_options *options = tune->options;
	tune->seed_count = (size_t)(options->seed_last - options->seed_first + 1);
	tune->trials = ARENA_ARRAY(tune->arena, struct trial, options->pods_count);
	if (tune->trials == NULL || !score_policy_find(STR("fgd"), &fgd))
		return err_set(err, ERR_LIMIT, "no memory for the lists");
	for (size_t i = 0; i < options->pods_count; i++) {
		struct trial *trial = &tune->trials[i];
		trial->orders = ARENA_ARRAY(tune->arena, struct openb_order, tune->seed_count);
		if (trial->orders == NULL)
			return err_set(err, ERR_LIMIT, "no memory for the orders");
		if (pack_case_load(tune->arena, options->nodes, options->pods[i], &trial->pack_case,
				   err) != ERR_OK)
			return err->status;
		for (size_t k = 0; k < tune->seed_count; k++) {
			const struct openb_draw how = { options->seed_first + (int64_t)k, true };
			if (openb_order_draw(tune->arena, &trial->pack_case.nodes,
					     &trial->pack_case.pods, how, &trial->orders[k],
					     err) != ERR_OK)
				return err->status;
		}
		run_mean(trial, tune->seed_count, &fgd, &trial->fgd);
	}
	return ERR_OK;
}

int tune_run(const struct tune_options *options)
{
	struct err err = { .status = ERR_OK };
	AUTO(arena_freep) struct arena *arena = arena_new(TUNE_ARENA_MAX_BYTES);
	struct tune tune = { .options = options, .arena = arena };
	rng_init(&tune.rng, (uint64_t)options->seed);
	if (pack_policy_load(options->policy, &tune.best, &err) == ERR_OK && tune.best.is_level)
		(void)err_set(&err, ERR_INVALID, "the policy fgd has no weights to begin with");
	if (err.status == ERR_OK && load(&tune, &err) == ERR_OK)
		(void)search(&tune, &err);
	if (err.status != ERR_OK)
		(void)fprintf(stderr, "gpuaas-sim: %s\n", err.text);
	return err_exit_code(err.status);
}
