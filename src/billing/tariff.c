// SPDX-License-Identifier: Apache-2.0
#include "billing/tariff.h"

#include "billing/slots.h"

#include <stdlib.h>

enum { DAY_S = 86400, STEPS_MAX = 10 * 1000 * 1000 };

// 1 kWh is 3.6e9 mJ; tariff and PUE are nano each, and one of the two nanos is the money's.
static const wide DIVISOR = (wide)3600000000 * 1000000000;

// What holds at one instant.
struct value {
	int64_t per_kwh_nano, pue_nano; // -1: not known
};

static bool rule_holds(const struct tariff_rule *rule, int64_t second_of_day)
{
	int64_t from_s = rule->from_minute * 60, to_s = rule->to_minute * 60;
	if (from_s < to_s)
		return second_of_day >= from_s && second_of_day < to_s;
	return second_of_day >= from_s || second_of_day < to_s;
}

// Seconds from second_of_day to the wall clock time minute, more than 0.
static int64_t seconds_until(int64_t second_of_day, int minute)
{
	int64_t left_s = minute * 60 - second_of_day;
	return left_s > 0 ? left_s : left_s + DAY_S;
}

static int64_t tariff_at(const struct prices *prices, const struct zone *zone, int64_t t_s,
			 int64_t *until_s)
{
	const struct tariff *tariff = NULL;
	for (size_t i = 0; i < prices->tariff_count; i++) {
		if (prices->tariffs[i].from_s <= t_s)
			tariff = &prices->tariffs[i];
		else
			*until_s = min_i64(*until_s, prices->tariffs[i].from_s);
	}
	if (tariff == NULL)
		return -1;
	int64_t zone_until_s;
	int64_t wall_s = t_s + zone_offset_s(zone, t_s, &zone_until_s);
	int64_t second_of_day = (wall_s % DAY_S + DAY_S) % DAY_S, per_kwh_nano = -1;
	*until_s = min_i64(*until_s, zone_until_s);
	for (size_t i = 0; i < tariff->rule_count; i++) {
		const struct tariff_rule *rule = &tariff->rules[i];
		if (rule_holds(rule, second_of_day))
			per_kwh_nano = rule->per_kwh_nano;
		*until_s = min_i64(*until_s, t_s + seconds_until(second_of_day, rule->from_minute));
	}
	ASSERT(per_kwh_nano >= 0); // rules cover the day, the parser saw to it
	return per_kwh_nano;
}

static int64_t pue_at(const struct prices *prices, int64_t t_s, int64_t *until_s)
{
	int64_t value_nano = prices->pue_count == 0 ? MONEY_NANO_PER_UNIT : -1;
	for (size_t i = 0; i < prices->pue_count; i++) {
		if (prices->pues[i].from_s <= t_s)
			value_nano = prices->pues[i].value_nano;
		else
			*until_s = min_i64(*until_s, prices->pues[i].from_s);
	}
	return value_nano;
}

// Divides all prices and the divisor by what they have in common. The divisor stays even, so
// that half a nano is a whole number of its units.
static void reduce(struct tariff_step *steps, size_t count, wide *ret_divisor)
{
	wide common = DIVISOR / 2;
	for (size_t i = 0; i < count; i++)
		common = money_gcd(common, steps[i].price);
	for (size_t i = 0; i < count; i++)
		steps[i].price /= common;
	*ret_divisor = DIVISOR / common;
	ASSERT(*ret_divisor % 2 == 0);
}

err_status tariff_steps_make(struct arena *arena, const struct prices *prices,
			     const struct zone *zone, const int64_t range_s[2],
			     struct tariff_steps *ret_steps, struct err *err)
{
	struct tariff_step *steps = NULL;
	struct value last = { -2, -2 };
	size_t count = 0, cap = 0;
	ASSERT(range_s[0] <= range_s[1]);
	for (int64_t t_s = range_s[0], until_s; t_s == range_s[0] || t_s < range_s[1];
	     t_s = until_s) {
		until_s = INT64_MAX;
		struct value value = { .per_kwh_nano = tariff_at(prices, zone, t_s, &until_s),
				       .pue_nano = pue_at(prices, t_s, &until_s) };
		if (value.per_kwh_nano == last.per_kwh_nano && value.pue_nano == last.pue_nano)
			continue;
		if (count >= STEPS_MAX || !slots_room(&steps, &cap, count, sizeof *steps)) {
			free(steps);
			return err_set(err, ERR_LIMIT, "no memory for %zu changes of price", count);
		}
		bool is_known = value.per_kwh_nano >= 0 && value.pue_nano >= 0;
		wide price = is_known ? (wide)value.per_kwh_nano * value.pue_nano : 0;
		steps[count++] = (struct tariff_step){ t_s, price, is_known };
		last = value;
	}
	reduce(steps, count, &ret_steps->divisor);
	struct tariff_step *kept = ARENA_ARRAY(arena, struct tariff_step, count);
	if (kept != NULL)
		memcpy(kept, steps, count * sizeof *kept);
	free(steps);
	if (kept == NULL)
		return err_set(err, ERR_LIMIT, "no memory for %zu changes of price", count);
	ret_steps->items = kept;
	ret_steps->count = count;
	return ERR_OK;
}
