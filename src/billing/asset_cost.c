// SPDX-License-Identifier: Apache-2.0
#include "billing/asset_cost.h"

#include "base/money.h"
#include "base/timefmt.h"

enum { DAY_S = 86400 };

// A common multiple of the seconds of both lengths of year.
static const wide YEARS_S = (wide)365 * 366 * DAY_S;

static int64_t year_start(int year)
{
	return time_from_civil((struct civil){ .year = year, .month = 1, .day = 1 });
}

static int64_t year_seconds(int year) { return (time_is_leap_year(year) ? 366 : 365) * DAY_S; }

static bool amortization_until(const struct asset *asset, int64_t t_s, int64_t *ret_nano)
{
	int64_t life_s = asset->end_of_life_s - asset->in_service_s;
	int64_t used_s = max_i64(0, min_i64(t_s - asset->in_service_s, life_s));
	wide loss_nano = (wide)asset->cost_nano - asset->salvage_nano;
	return money_round(loss_nano * used_s, life_s, ret_nano);
}

static bool support_until(const struct asset *asset, int64_t t_s, int64_t *ret_nano)
{
	wide sum = 0; // of nano times YEARS_S
	*ret_nano = 0;
	if (t_s <= asset->in_service_s || asset->support_per_year_nano == 0)
		return true;
	int last = time_to_civil(t_s).year;
	for (int year = time_to_civil(asset->in_service_s).year; year <= last; year++) {
		int64_t from_s = max_i64(asset->in_service_s, year_start(year));
		int64_t to_s = min_i64(t_s, year_start(year + 1));
		wide part = (wide)asset->support_per_year_nano * (to_s - from_s) *
			    (YEARS_S / year_seconds(year));
		if (__builtin_add_overflow(sum, part, &sum))
			return false;
	}
	return money_round(sum, YEARS_S, ret_nano);
}

bool asset_cost_until(const struct asset *asset, int64_t t_s, int64_t *ret_nano)
{
	int64_t amortization, support;
	return amortization_until(asset, t_s, &amortization) &&
	       support_until(asset, t_s, &support) &&
	       !__builtin_add_overflow(amortization, support, ret_nano);
}

static void narrow(int64_t range_s[2], int64_t edge_s, int64_t t_s)
{
	if (edge_s <= t_s)
		range_s[0] = max_i64(range_s[0], edge_s);
	else
		range_s[1] = min_i64(range_s[1], edge_s);
}

void asset_cost_stretch(const struct asset *asset, int64_t t_s, int64_t ret_range_s[2])
{
	ret_range_s[0] = INT64_MIN;
	ret_range_s[1] = INT64_MAX;
	narrow(ret_range_s, asset->in_service_s, t_s);
	narrow(ret_range_s, asset->end_of_life_s, t_s);
	if (asset->support_per_year_nano == 0 || t_s < asset->in_service_s)
		return;
	// Leap years are at most eight years apart.
	int year = time_to_civil(t_s).year;
	for (int i = year - 8; i <= year + 8; i++)
		if (time_is_leap_year(i) != time_is_leap_year(i - 1))
			narrow(ret_range_s, year_start(i), t_s);
	ASSERT(ret_range_s[0] <= t_s && t_s < ret_range_s[1]);
}

int64_t asset_cost_of_gpu(const struct asset *asset, size_t gpu_i, int64_t asset_nano)
{
	int64_t count = (int64_t)asset->gpu_count;
	ASSERT(asset_nano >= 0 && gpu_i < asset->gpu_count);
	return asset_nano / count + ((int64_t)gpu_i < asset_nano % count);
}
