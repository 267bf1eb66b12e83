// SPDX-License-Identifier: Apache-2.0
#include "billing/meter.h"

#include "billing/big.h"
#include "billing/slots.h"

#include <stdlib.h>

// The last reading of each counter run.
struct run {
	uint32_t epoch;
	uint64_t energy_mj;
};

// What is left of divisions by one span: rest / span_s, below 1.
struct rest {
	int64_t span_s;
	int64_t rest;
};

struct meter {
	const struct usage_gpu *gpu;
	const struct tariff_steps *steps;
	struct run *runs;
	size_t run_count, run_cap;
	size_t next_row; // the first that no gap took yet
	size_t step_i;   // the step that holds at pos_s
	// The gap between two readings in which we stand.
	bool in_gap;
	int64_t gap_from_s, gap_to_s, pos_s;
	wide gap_mj;
	wide gap_cost; // integral of the price from gap_from_s to pos_s
	// The gaps behind us: cost is whole + sum of rests, in units of 1 / divisor nano.
	wide whole;
	struct rest *rests;
	size_t rest_count, rest_cap;
	wide done_mj;
};

struct meter *meter_new(void) { return calloc(1, sizeof(struct meter)); }

void meter_free(struct meter *meter)
{
	if (meter == NULL)
		return;
	free(meter->runs);
	free(meter->rests);
	free(meter);
}

void meter_freep(struct meter **meter)
{
	meter_free(*meter);
	*meter = NULL;
}

static err_status no_memory(struct err *err)
{
	return err_set(err, ERR_LIMIT, "no memory for the energy of a GPU");
}

static err_status too_much(const struct meter *meter, struct err *err)
{
	return err_set(err, ERR_LIMIT,
		       "the energy cost of GPU " STR_FMT " passes what 128 bits "
		       "hold; are its readings millijoules?",
		       STR_ARG(meter->gpu->id));
}

void meter_start(struct meter *meter, const struct usage_gpu *gpu, const struct tariff_steps *steps)
{
	meter->gpu = gpu;
	meter->steps = steps;
	meter->run_count = meter->next_row = meter->step_i = meter->rest_count = 0;
	meter->in_gap = false;
	meter->whole = meter->done_mj = meter->gap_mj = 0;
	ASSERT(gpu->energy_count == 0 || steps->items[0].from_s <= gpu->energy[0].t_s);
}

// Energy between the last reading of the row's run and the row.
static err_status take_row(struct meter *meter, const struct usage_energy *row, wide *ret_mj,
			   struct err *err)
{
	struct run *run = NULL;
	for (size_t i = meter->run_count; run == NULL && i-- > 0;)
		if (meter->runs[i].epoch == row->epoch)
			run = &meter->runs[i];
	if (run == NULL) {
		if (!slots_room(&meter->runs, &meter->run_cap, meter->run_count, sizeof *run))
			return no_memory(err);
		run = &meter->runs[meter->run_count++];
		*run = (struct run){ row->epoch, 0 };
	}
	*ret_mj = row->energy_mj >= run->energy_mj ? row->energy_mj - run->energy_mj
						   : row->energy_mj;
	run->energy_mj = row->energy_mj;
	return ERR_OK;
}

// Takes all rows of the next instant and opens the gap that leads to it.
static err_status open_gap(struct meter *meter, struct err *err)
{
	const struct usage_energy *rows = meter->gpu->energy;
	size_t count = meter->gpu->energy_count, i = meter->next_row;
	bool is_first = i == 0;
	wide sum_mj = 0, mj = 0;
	meter->in_gap = false;
	if (i == count)
		return ERR_OK;
	int64_t from_s = is_first ? rows[0].t_s : rows[i - 1].t_s, to_s = rows[i].t_s;
	for (; i < count && rows[i].t_s == to_s; i++) {
		err_status status = take_row(meter, &rows[i], &mj, err);
		if (status != ERR_OK)
			return status;
		sum_mj += mj;
	}
	meter->next_row = i;
	if (is_first) // what the counter showed at first is nobody's energy
		return open_gap(meter, err);
	meter->in_gap = true;
	meter->gap_from_s = meter->pos_s = from_s;
	meter->gap_to_s = to_s;
	meter->gap_mj = sum_mj;
	meter->gap_cost = 0;
	return ERR_OK;
}

// Moves inside the gap, integrating the price.
static bool walk(struct meter *meter, int64_t to_s)
{
	const struct tariff_steps *steps = meter->steps;
	while (meter->pos_s < to_s) {
		while (meter->step_i + 1 < steps->count &&
		       steps->items[meter->step_i + 1].from_s <= meter->pos_s)
			meter->step_i++;
		int64_t end_s = to_s;
		if (meter->step_i + 1 < steps->count)
			end_s = min_i64(end_s, steps->items[meter->step_i + 1].from_s);
		wide part;
		if (__builtin_mul_overflow(steps->items[meter->step_i].price,
					   (wide)(end_s - meter->pos_s), &part) ||
		    __builtin_add_overflow(meter->gap_cost, part, &meter->gap_cost))
			return false;
		meter->pos_s = end_s;
	}
	return true;
}

// Cost of the gap so far: quotient and rest of the division by its length.
static bool gap_so_far(const struct meter *meter, wide *ret_whole, int64_t *ret_rest)
{
	wide product, span_s = meter->gap_to_s - meter->gap_from_s;
	if (__builtin_mul_overflow(meter->gap_mj, meter->gap_cost, &product))
		return false;
	*ret_whole = product / span_s;
	*ret_rest = (int64_t)(product % span_s);
	return true;
}

static bool add_rest(struct meter *meter, int64_t span_s, int64_t rest)
{
	if (rest == 0)
		return true;
	for (size_t i = 0; i < meter->rest_count; i++) {
		if (meter->rests[i].span_s != span_s)
			continue;
		meter->rests[i].rest += rest;
		if (meter->rests[i].rest >= span_s) {
			meter->rests[i].rest -= span_s;
			meter->whole++;
		}
		return true;
	}
	if (!slots_room(&meter->rests, &meter->rest_cap, meter->rest_count, sizeof *meter->rests))
		return false;
	meter->rests[meter->rest_count++] = (struct rest){ span_s, rest };
	return true;
}

static err_status close_gap(struct meter *meter, struct err *err)
{
	wide whole;
	int64_t rest;
	if (!walk(meter, meter->gap_to_s) || !gap_so_far(meter, &whole, &rest) ||
	    __builtin_add_overflow(meter->whole, whole, &meter->whole))
		return too_much(meter, err);
	if (!add_rest(meter, meter->gap_to_s - meter->gap_from_s, rest))
		return no_memory(err);
	meter->done_mj += meter->gap_mj;
	return ERR_OK;
}

// Sum of the rests as one fraction of big numbers.
static bool sum_rests(const struct meter *meter, struct big *num, struct big *den)
{
	struct big next;
	big_set(num, 0);
	big_set(den, 1);
	for (size_t i = 0; i < meter->rest_count; i++) {
		uint64_t span_s = (uint64_t)meter->rests[i].span_s;
		big_copy(&next, num);
		big_mul(&next, span_s);
		big_add_mul(&next, den, (unsigned __int128)meter->rests[i].rest);
		big_copy(num, &next);
		big_mul(den, span_s);
	}
	return !num->failed && !den->failed;
}

static size_t rests_above_zero(const struct meter *meter)
{
	size_t count = 0;
	for (size_t i = 0; i < meter->rest_count; i++)
		count += meter->rests[i].rest > 0;
	return count;
}

// Rounds whole + fraction over the divisor, where 0 < fraction < 1: a tie is not possible, since
// half a nano is a whole number of units.
static bool round_above(wide whole, wide divisor, int64_t *ret_nano)
{
	wide nano = whole / divisor + (whole % divisor >= divisor / 2);
	*ret_nano = (int64_t)nano;
	return nano <= INT64_MAX;
}

// Half to even of (whole + sum of rests) / divisor.
static err_status round_cost(const struct meter *meter, wide whole, int64_t *ret_nano,
			     struct err *err)
{
	wide divisor = meter->steps->divisor;
	size_t count = rests_above_zero(meter);
	int64_t low, high;
	if (count == 0)
		return money_round(whole, divisor, ret_nano) ? ERR_OK : too_much(meter, err);
	// The sum of the rests lies between 0 and count: mostly that is all we need to know.
	if (!round_above(whole, divisor, &low) ||
	    !round_above(whole + (wide)count - 1, divisor, &high))
		return too_much(meter, err);
	struct big num, den;
	if (low != high) {
		if (!sum_rests(meter, &num, &den))
			return err_set(err, ERR_LIMIT,
				       "too many different gaps between the "
				       "readings of GPU " STR_FMT,
				       STR_ARG(meter->gpu->id));
		wide units = (wide)big_quotient(&num, &den);
		bool fits = num.count == 0 ? money_round(whole + units, divisor, &low)
					   : round_above(whole + units, divisor, &low);
		if (!fits)
			return too_much(meter, err);
	}
	*ret_nano = low;
	return ERR_OK;
}

err_status meter_at(struct meter *meter, int64_t t_s, int64_t *ret_nano, struct err *err)
{
	err_status status = ERR_OK;
	if (!meter->in_gap && meter->next_row == 0)
		status = open_gap(meter, err);
	while (status == ERR_OK && meter->in_gap && meter->gap_to_s <= t_s) {
		status = close_gap(meter, err);
		if (status == ERR_OK)
			status = open_gap(meter, err);
	}
	if (status != ERR_OK)
		return status;
	if (!meter->in_gap || t_s <= meter->gap_from_s)
		return round_cost(meter, meter->whole, ret_nano, err);
	// The part of the gap joins the sum for this one answer only.
	wide whole;
	int64_t rest;
	if (!walk(meter, t_s) || !gap_so_far(meter, &whole, &rest))
		return too_much(meter, err);
	size_t rest_count = meter->rest_count;
	int64_t span_s = meter->gap_to_s - meter->gap_from_s;
	if (!slots_room(&meter->rests, &meter->rest_cap, rest_count, sizeof *meter->rests))
		return no_memory(err);
	meter->rests[meter->rest_count++] = (struct rest){ span_s, rest };
	if (__builtin_add_overflow(meter->whole, whole, &whole))
		return too_much(meter, err);
	status = round_cost(meter, whole, ret_nano, err);
	meter->rest_count = rest_count;
	return status;
}

uint64_t meter_energy_mj(const struct meter *meter)
{
	wide mj = meter->done_mj;
	if (meter->in_gap && meter->pos_s > meter->gap_from_s)
		mj += meter->gap_mj * (meter->pos_s - meter->gap_from_s) /
		      (meter->gap_to_s - meter->gap_from_s);
	return mj > (wide)UINT64_MAX ? UINT64_MAX : (uint64_t)mj;
}
