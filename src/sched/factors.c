// SPDX-License-Identifier: Apache-2.0
#include "sched/factors.h"

enum { PRIORITY_ONE = 1000000, PERMILLE = 1000 };

bool factors_are_used(const struct sched_factors *factors)
{
	for (int i = 0; i < SCHED_FACTORS; i++) {
		if (factors->weights[i] != 0)
			return true;
	}
	return false;
}

static int64_t ratio(int64_t part, int64_t whole)
{
	if (part <= 0 || whole <= 0)
		return 0;
	return part >= whole ? FACTOR_ONE : (int64_t)((__int128)FACTOR_ONE * part / whole);
}

// 1 for who had nothing, a half for who had what it should have had, less and less beyond.
static int64_t modesty(int64_t permille)
{
	return (int64_t)FACTOR_ONE * PERMILLE / (PERMILLE + max_i64(permille, 0));
}

int64_t factors_score(const struct sched_factors *factors, const struct factor_facts *facts,
		      int64_t ret_values[SCHED_FACTORS])
{
	int64_t queue = modesty(min_i64(facts->queue_permille, INT32_MAX));
	int64_t user = modesty(min_i64(facts->user_permille, INT32_MAX));
	int64_t left_s = facts->last_start_s, score = 0;
	ret_values[SCHED_FACTOR_PRIORITY] = ratio(facts->priority, PRIORITY_ONE);
	ret_values[SCHED_FACTOR_AGE] = ratio(facts->age_s, max_i64(factors->age_max_s, 1));
	ret_values[SCHED_FACTOR_SIZE] = ratio(facts->gpu_milli, facts->capacity_milli);
	ret_values[SCHED_FACTOR_SHARE] = (queue + user) / 2;
	// One that cannot be met any more is no reason to go before those that can be.
	ret_values[SCHED_FACTOR_DEADLINE] =
		left_s < 0 || left_s >= factors->deadline_s
			? 0
			: ratio(factors->deadline_s - left_s, factors->deadline_s);
	for (int i = 0; i < SCHED_FACTORS; i++)
		score += factors->weights[i] * ret_values[i];
	return score;
}

static int64_t *value_named(struct sched_factors *factors, struct str name)
{
	for (int i = 0; i < SCHED_FACTORS; i++) {
		if (str_eq_c(name, sched_factor_name((sched_factor)i)))
			return &factors->weights[i];
	}
	if (str_eq_c(name, "age-max"))
		return &factors->age_max_s;
	return str_eq_c(name, "deadline-within") ? &factors->deadline_s : NULL;
}

bool factors_parse(struct str text, struct sched_factors *ret_factors)
{
	enum { DAY_S = 86400, WEEK_S = 7 * DAY_S, YEAR_S = 366 * DAY_S };
	struct sched_factors factors = { .age_max_s = WEEK_S, .deadline_s = DAY_S };
	struct str part, name;
	while (str_split_next(&text, ',', &part)) {
		int64_t value, *place;
		if (str_trim(part).len == 0)
			continue;
		if (!str_split_next(&part, '=', &name) || !str_to_i64(part, &value))
			return false;
		place = value_named(&factors, str_trim(name));
		if (place == NULL)
			return false;
		bool is_time = place == &factors.age_max_s || place == &factors.deadline_s;
		int64_t least = is_time ? 1 : -FACTOR_WEIGHT_MAX;
		if (value < least || value > (is_time ? YEAR_S : FACTOR_WEIGHT_MAX))
			return false;
		*place = value;
	}
	*ret_factors = factors;
	return true;
}

const char *sched_factor_name(sched_factor factor)
{
	static const char *const NAMES[SCHED_FACTORS] = { "priority", "age", "size", "fair-share",
							  "deadline" };
	ASSERT(factor >= 0 && factor < SCHED_FACTORS);
	return NAMES[factor];
}
