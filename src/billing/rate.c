// SPDX-License-Identifier: Apache-2.0
#include "billing/rate.h"

#include "base/money.h"
#include "billing/asset_cost.h"
#include "billing/capacity.h"
#include "billing/energy.h"

// Sums of one bill while it is made; arrays have one member a party.
struct sums {
	struct arena *arena;
	const struct rate_input *input;
	struct roster roster;
	struct capacity capacity;
	struct energy_cost energy;
	wide *shared_nano;
	const wide *capacity_nano; // by the idle rule in force
};

static err_status no_memory(struct err *err)
{
	return err_set(err, ERR_LIMIT, "no memory for the bill");
}

static err_status too_much(struct err *err)
{
	return err_set(err, ERR_LIMIT, "the bill passes 9.2e9 units of money");
}

// What the pool costs in the period: a straight line over its time, rounded at both ends.
static bool pool_cost(const struct pool *pool, int64_t from_s, int64_t to_s, int64_t *ret_nano)
{
	int64_t ends_nano[2], ends_s[2] = { from_s, to_s };
	int64_t length_s = pool->to_s - pool->from_s;
	for (int i = 0; i < 2; i++) {
		int64_t past_s = max_i64(0, min_i64(ends_s[i] - pool->from_s, length_s));
		if (!money_round((wide)pool->cost_nano * past_s, length_s, &ends_nano[i]))
			return false;
	}
	*ret_nano = ends_nano[1] - ends_nano[0];
	return true;
}

static err_status add_weight(struct weights *weights, size_t party, wide num, struct err *err)
{
	// A difference of two roundings may be one nano below zero.
	return num <= 0 ? ERR_OK : weights_add(weights, party, num, 1, err);
}

static err_status fixed_weights(const struct sums *sums, const struct pool *pool,
				struct weights *weights, struct err *err)
{
	err_status status = ERR_OK;
	for (size_t i = 0; status == ERR_OK && i < pool->weight_count; i++) {
		size_t party = roster_find(&sums->roster, pool->weights[i].tenant);
		ASSERT(party != SIZE_MAX); // the roster has all tenants that pools name
		status = add_weight(weights, party, pool->weights[i].weight_nano, err);
	}
	return status;
}

static err_status gpu_second_weights(const struct sums *sums, struct weights *weights,
				     struct err *err)
{
	size_t count = sums->roster.party_count;
	uint32_t *same = ARENA_ARRAY(sums->arena, uint32_t, count);
	if (same == NULL)
		return no_memory(err);
	for (size_t i = 0; i < count; i++)
		same[i] = (uint32_t)i;
	return weights_merge(weights, &sums->capacity.seconds, same, err);
}

static err_status pool_weights(const struct sums *sums, const struct pool *pool,
			       struct weights *weights, struct err *err)
{
	size_t count = sums->roster.party_count;
	err_status status = weights_reset(weights, count, err);
	if (status != ERR_OK)
		return status;
	switch (pool->rule) {
	case POOL_NONE: return ERR_OK;
	case POOL_QUOTA:
	case POOL_FIXED: return fixed_weights(sums, pool, weights, err);
	case POOL_GPU_SECONDS: return gpu_second_weights(sums, weights, err);
	case POOL_EVEN:
		for (size_t i = 0; status == ERR_OK && i < count; i++)
			if (!weights_is_zero(&sums->capacity.seconds, i))
				status = weights_add(weights, i, 1, 1, err);
		return status;
	case POOL_DIRECT_COST:
		for (size_t i = 0; status == ERR_OK && i < count; i++)
			status = add_weight(weights, i, sums->capacity_nano[i], err);
		return status;
	}
	return ERR_INTERNAL;
}

static err_status share_pool(struct sums *sums, const struct pool *pool, struct weights *weights,
			     wide *total_nano, struct err *err)
{
	int64_t nano;
	bool any;
	size_t count = sums->roster.party_count, unallocated = sums->roster.unallocated;
	if (!pool_cost(pool, sums->input->from_s, sums->input->to_s, &nano))
		return too_much(err);
	int64_t *parts = ARENA_ARRAY(sums->arena, int64_t, count);
	if (parts == NULL)
		return no_memory(err);
	err_status status = pool_weights(sums, pool, weights, err);
	if (status == ERR_OK)
		status = weights_split(weights, nano, unallocated, parts, &any, err);
	if (status != ERR_OK)
		return status;
	if (!any)
		parts[unallocated] = nano;
	for (size_t i = 0; i < count; i++)
		sums->shared_nano[i] += parts[i];
	*total_nano += nano;
	return ERR_OK;
}

static err_status share_pools(struct sums *sums, wide *ret_total_nano, struct err *err)
{
	struct weights weights = { 0 };
	err_status status = ERR_OK;
	*ret_total_nano = 0;
	for (size_t i = 0; status == ERR_OK && i < sums->input->pools->count; i++)
		status = share_pool(sums, &sums->input->pools->items[i], &weights, ret_total_nano,
				    err);
	weights_done(&weights);
	return status;
}

static bool narrow(wide value, int64_t *ret)
{
	*ret = (int64_t)value;
	return value >= INT64_MIN && value <= INT64_MAX;
}

// The total cost of ownership, counted from assets, energy and pools alone.
static err_status add_total(const struct sums *sums, wide pools_nano, struct bill *bill,
			    struct err *err)
{
	wide assets_nano = 0;
	for (size_t i = 0; i < sums->input->assets->count; i++) {
		const struct asset *asset = &sums->input->assets->items[i];
		int64_t from_nano, to_nano;
		if (!asset_cost_until(asset, bill->from_s, &from_nano) ||
		    !asset_cost_until(asset, bill->to_s, &to_nano))
			return too_much(err);
		assets_nano += to_nano - from_nano;
	}
	if (!narrow(assets_nano, &bill->assets_nano) ||
	    !narrow(sums->energy.total_nano, &bill->energy_nano) ||
	    !narrow(pools_nano, &bill->pools_nano) ||
	    !narrow(sums->energy.energy_mj, &bill->energy_mj) ||
	    !narrow(assets_nano + sums->energy.total_nano + pools_nano, &bill->tco_nano))
		return too_much(err);
	return ERR_OK;
}

static err_status fill_line(const struct sums *sums, size_t party, struct bill_line *line,
			    struct err *err)
{
	wide capacity = sums->capacity_nano[party], energy = sums->energy.nano[party];
	wide shared = sums->shared_nano[party];
	line->tenant = arena_dup(sums->arena, sums->roster.parties[party]);
	if (line->tenant.data == NULL)
		return no_memory(err);
	line->is_unallocated = party == sums->roster.unallocated;
	if (!narrow(capacity, &line->capacity_nano) || !narrow(energy, &line->energy_nano) ||
	    !narrow(shared, &line->shared_nano) ||
	    !narrow(capacity + energy + shared, &line->total_nano) ||
	    !narrow(sums->capacity.idle_shared_nano[party], &line->idle_shared_nano))
		return too_much(err);
	if (!weights_nano(&sums->capacity.seconds, party, &line->gpu_seconds_nano))
		line->gpu_seconds_nano = -1; // for display only; the money is exact without it
	return ERR_OK;
}

static bool is_empty(const struct bill_line *line)
{
	return !line->is_unallocated && line->capacity_nano == 0 && line->energy_nano == 0 &&
	       line->shared_nano == 0 && line->idle_shared_nano == 0 && line->gpu_seconds_nano == 0;
}

// Cents of the total, rounded once, then split by what each line costs.
static err_status add_cents(struct arena *arena, struct bill *bill, struct err *err)
{
	struct money_share *shares = ARENA_ARRAY(arena, struct money_share, bill->line_count);
	if (shares == NULL)
		return no_memory(err);
	for (size_t i = 0; i < bill->line_count; i++) {
		shares[i].name = bill->lines[i].tenant;
		shares[i].weight = max_i64(0, bill->lines[i].total_nano);
	}
	int64_t cents = money_to_cents(bill->tco_nano);
	if (cents == 0)
		return ERR_OK;
	if (!money_apportion(cents, shares, bill->line_count))
		return no_memory(err);
	for (size_t i = 0; i < bill->line_count; i++)
		bill->lines[i].cents = shares[i].nano;
	return ERR_OK;
}

static err_status list_gpus_without_asset(struct arena *arena, const struct sums *sums,
					  struct bill *bill, struct err *err)
{
	const struct roster *roster = &sums->roster;
	bill->gpus_without_asset = ARENA_ARRAY(arena, struct str, max_size(roster->gpu_count, 1));
	if (bill->gpus_without_asset == NULL)
		return no_memory(err);
	for (size_t i = 0; i < roster->gpu_count; i++) {
		if (roster->gpus[i].asset != NULL)
			continue;
		struct str id = arena_dup(arena, roster->gpus[i].id);
		if (id.data == NULL)
			return no_memory(err);
		bill->gpus_without_asset[bill->gpus_without_asset_count++] = id;
	}
	return ERR_OK;
}

static err_status write_bill(struct arena *arena, const struct sums *sums, struct bill *bill,
			     struct err *err)
{
	const struct roster *roster = &sums->roster;
	bill->lines = ARENA_ARRAY(arena, struct bill_line, roster->party_count);
	if (bill->lines == NULL)
		return no_memory(err);
	err_status status = ERR_OK;
	for (size_t i = 0; status == ERR_OK && i < roster->party_count; i++) {
		struct bill_line line = { 0 };
		status = fill_line(sums, i, &line, err);
		if (status == ERR_OK && !is_empty(&line))
			bill->lines[bill->line_count++] = line;
	}
	if (status == ERR_OK)
		status = add_cents(arena, bill, err);
	return status == ERR_OK ? list_gpus_without_asset(arena, sums, bill, err) : status;
}

static err_status make_sums(struct sums *sums, struct err *err)
{
	size_t count = sums->roster.party_count;
	sums->capacity.kept_nano = ARENA_ARRAY(sums->arena, wide, count);
	sums->capacity.idle_shared_nano = ARENA_ARRAY(sums->arena, wide, count);
	sums->energy.nano = ARENA_ARRAY(sums->arena, wide, count);
	sums->shared_nano = ARENA_ARRAY(sums->arena, wide, count);
	if (sums->capacity.kept_nano == NULL || sums->capacity.idle_shared_nano == NULL ||
	    sums->energy.nano == NULL || sums->shared_nano == NULL)
		return no_memory(err);
	sums->capacity_nano = sums->input->idle == IDLE_KEEP ? sums->capacity.kept_nano
							     : sums->capacity.idle_shared_nano;
	return ERR_OK;
}

err_status rate(struct arena *arena, const struct rate_input *input, struct bill *ret_bill,
		struct err *err)
{
	struct sums sums = { .arena = arena, .input = input };
	struct bill bill = { .from_s = input->from_s,
			     .to_s = input->to_s,
			     .idle = input->idle,
			     .currency = arena_dup(arena, input->assets->currency) };
	int64_t period_s[2] = { input->from_s, input->to_s };
	wide pools_nano;
	if (input->from_s >= input->to_s)
		return err_set(err, ERR_INVALID, "the period must end after it begins");
	err_status status = roster_make(arena, input, &sums.roster, err);
	if (status == ERR_OK)
		status = make_sums(&sums, err);
	if (status == ERR_OK)
		status = capacity_rate(arena, &sums.roster, period_s, &sums.capacity, err);
	if (status == ERR_OK)
		status = energy_rate(arena, &sums.roster, input, &sums.energy, err);
	if (status == ERR_OK)
		status = share_pools(&sums, &pools_nano, err);
	if (status == ERR_OK)
		status = add_total(&sums, pools_nano, &bill, err);
	if (status == ERR_OK)
		status = write_bill(arena, &sums, &bill, err);
	weights_done(&sums.capacity.seconds);
	if (status == ERR_OK)
		*ret_bill = bill;
	return status;
}

int64_t bill_difference_nano(const struct bill *bill)
{
	wide sum = 0;
	for (size_t i = 0; i < bill->line_count; i++)
		sum += bill->lines[i].total_nano;
	wide difference = sum - bill->tco_nano;
	return difference > INT64_MAX   ? INT64_MAX
	       : difference < INT64_MIN ? INT64_MIN
					: (int64_t)difference;
}
