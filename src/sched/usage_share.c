// SPDX-License-Identifier: Apache-2.0
#include "sched/usage_share.h"

enum { STEPS = 8, WEIGHT_ONE = 1 << 20, MS_PER_S = 1000, STEP_MS_PER_S = MS_PER_S / STEPS };
enum { FORGOTTEN_HALVES = 100 };
#define VALUE_MAX ((share_size)1 << 91) // times a share of 2^36 is still below 2^127

// 2^(k/8), what an instant weighs after k eighths of a half-life; in between along a line.
static const int64_t WEIGHTS[STEPS + 1] = { 1048576, 1143480, 1246974, 1359835, 1482910,
					    1617125, 1763488, 1923097, 2097152 };

static int64_t clamp(int64_t value, int64_t most) { return min_i64(max_i64(value, 0), most); }

static int64_t half_ms(const struct usage_share *share) { return MS_PER_S * share->half_life_s; }

// Position in its half-life, also before the clock's zero.
static int64_t phase_ms(const struct usage_share *share, int64_t at_ms)
{
	int64_t rest_ms = at_ms % half_ms(share);
	return rest_ms < 0 ? rest_ms + half_ms(share) : rest_ms;
}

static int64_t weight_at(int64_t half_life_s, int64_t x_ms)
{
	int64_t step_ms = STEP_MS_PER_S * half_life_s, k = x_ms / step_ms;
	ASSERT(k >= 0 && k <= STEPS);
	if (k == STEPS)
		return WEIGHTS[STEPS];
	return WEIGHTS[k] + (WEIGHTS[k + 1] - WEIGHTS[k]) * (x_ms % step_ms) / step_ms;
}

// Twice the area under the weights from the start of the half-life to x: a function of x alone,
// so that differences of it add up however an interval is cut.
static share_size area_to(int64_t half_life_s, int64_t x_ms)
{
	int64_t step_ms = STEP_MS_PER_S * half_life_s, k = x_ms / step_ms, in_ms = x_ms % step_ms;
	share_size area = 0;
	for (int64_t i = 0; i < k; i++)
		area += (share_size)(WEIGHTS[i] + WEIGHTS[i + 1]) * (share_size)step_ms;
	if (k == STEPS)
		return area;
	area += (share_size)(2 * WEIGHTS[k]) * (share_size)in_ms;
	return area + (share_size)(WEIGHTS[k + 1] - WEIGHTS[k]) * (share_size)in_ms *
			      (share_size)in_ms / (share_size)step_ms;
}

static void add(struct usage_share *share, int64_t held_milli, int64_t from_ms, int64_t to_ms)
{
	share_size area = area_to(share->half_life_s, to_ms) - area_to(share->half_life_s, from_ms);
	share->value += (share_size)held_milli * area;
	if (share->value > VALUE_MAX)
		share->value = VALUE_MAX;
}

void usage_share_init(struct usage_share *share, int64_t half_life_s, int64_t now_ms)
{
	*share = (struct usage_share){ .half_life_s = clamp(half_life_s, SHARE_HALF_LIFE_MAX_S),
				       .last_ms = now_ms };
}

void usage_share_advance(struct usage_share *share, int64_t held_milli, int64_t now_ms)
{
	int64_t held = clamp(held_milli, SHARE_HELD_MAX);
	if (now_ms <= share->last_ms)
		return;
	if (share->half_life_s == 0) {
		share->last_ms = now_ms;
		return;
	}
	if (now_ms - share->last_ms > FORGOTTEN_HALVES * half_ms(share)) {
		share->value = 0;
		share->last_ms = now_ms - FORGOTTEN_HALVES * half_ms(share);
	}
	while (share->last_ms < now_ms) {
		int64_t from_ms = phase_ms(share, share->last_ms);
		int64_t left_ms = half_ms(share) - from_ms;
		int64_t take_ms = min_i64(left_ms, now_ms - share->last_ms);
		add(share, held, from_ms, from_ms + take_ms);
		share->last_ms += take_ms;
		if (take_ms == left_ms)
			share->value = (share->value + 1) / 2;
	}
}

// Twice the weight, as area_to is twice the area.
static share_size weight_now(const struct usage_share *share)
{
	int64_t x_ms = phase_ms(share, share->last_ms);
	return 2 * (share_size)weight_at(share->half_life_s, x_ms);
}

int64_t usage_share_milli_s(const struct usage_share *share)
{
	if (share->half_life_s == 0)
		return 0;
	share_size whole = weight_now(share) * MS_PER_S;
	share_size milli_s = (share->value + whole / 2) / whole;
	return milli_s > INT64_MAX ? INT64_MAX : (int64_t)milli_s;
}

void usage_share_set_milli_s(struct usage_share *share, int64_t milli_s)
{
	const share_size most = VALUE_MAX / ((share_size)4 * WEIGHT_ONE * MS_PER_S);
	share_size given = (share_size)max_i64(milli_s, 0);
	if (share->half_life_s > 0)
		share->value = (given > most ? most : given) * weight_now(share) * MS_PER_S;
}

void usage_share_repace(struct usage_share *share, int64_t half_life_s)
{
	int64_t had_milli_s = usage_share_milli_s(share);
	usage_share_init(share, half_life_s, share->last_ms);
	usage_share_set_milli_s(share, had_milli_s);
}

share_size usage_share_size(const struct usage_share *share, int64_t held_milli)
{
	share_size held = (share_size)clamp(held_milli, SHARE_HELD_MAX);
	if (share->half_life_s == 0)
		return held;
	share_size half = (share_size)half_ms(share);
	share_size size = share->value;
	size += held * half * weight_now(share);
	return size > VALUE_MAX ? VALUE_MAX : size;
}

int64_t usage_share_decay(int64_t milli_s, int64_t half_life_s, int64_t age_s)
{
	struct usage_share share;
	usage_share_init(&share, half_life_s, 0);
	usage_share_set_milli_s(&share, milli_s);
	usage_share_advance(&share, 0, MS_PER_S * clamp(age_s, INT64_MAX / MS_PER_S / 2));
	return usage_share_milli_s(&share);
}
