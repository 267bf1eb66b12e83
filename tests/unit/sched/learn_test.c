// SPDX-License-Identifier: Apache-2.0
// What is learned of times: quantiles against weights computed one by one, levels, what is
// forgotten, and that memory is bounded.
#include "check.h"

#include "base/rng.h"
#include "sched/learn.h"

#include <stdlib.h>

enum { SAMPLES = 400 };
static const int64_t TENTHS[2] = { 100, 900 };

static struct learn_kind kind_of(int64_t fine, int64_t coarse)
{
	return (struct learn_kind){ { learn_key_number(0, fine), learn_key_number(1, coarse) } };
}

struct weighed {
	int64_t seconds;
	double weight;
};

static int compare(const void *a, const void *b)
{
	const struct weighed *x = a, *y = b;
	return x->seconds < y->seconds ? -1 : x->seconds > y->seconds;
}

// The first that has so much of the weight up to it, of those above after_s.
static int64_t oracle(struct weighed *items, size_t count, int64_t after_s, int64_t permille)
{
	double sum = 0, upto = 0;
	qsort(items, count, sizeof *items, compare);
	for (size_t i = 0; i < count; i++)
		sum += items[i].seconds >= after_s ? items[i].weight : 0;
	for (size_t i = 0; i < count; i++) {
		upto += items[i].seconds >= after_s ? items[i].weight : 0;
		if (upto * 1000 >= sum * (double)permille)
			return items[i].seconds;
	}
	return items[count - 1].seconds;
}

// Bins are a quarter of a doubling wide, and a quantile may lie at the edge of one.
static bool is_near(int64_t got_s, int64_t want_s)
{
	double got = (double)got_s + 1, want = (double)want_s + 1;
	return got <= want * 1.3 && want <= got * 1.3;
}

static void test_against_weights(struct check *c, uint64_t seed)
{
	struct learn *learn = learn_new();
	struct learn_kind kind = kind_of(1, 2);
	struct weighed items[SAMPLES];
	struct learn_guess guess;
	struct rng rng;
	rng_init(&rng, seed);
	for (size_t i = 0; i < SAMPLES; i++) {
		int64_t seconds = (int64_t)rng_below(&rng, UINT64_C(1) << (4 + rng_below(&rng, 9)));
		learn_add(learn, &kind, seconds);
		for (size_t k = 0; k < i; k++)
			items[k].weight *= 1 - 1.0 / LEARN_MEMORY;
		items[i] = (struct weighed){ seconds, 1 };
	}
	CHECK(c, "is known", learn_guess_s(learn, &kind, 0, TENTHS, &guess));
	CHECK(c, "a tenth", is_near(guess.low_s, oracle(items, SAMPLES, 0, 100)));
	CHECK(c, "a half", is_near(guess.likely_s, oracle(items, SAMPLES, 0, 500)));
	CHECK(c, "nine tenths", is_near(guess.high_s, oracle(items, SAMPLES, 0, 900)));
	CHECK_INT(c, "all were seen", guess.seen, SAMPLES);
	learn_free(learn);
}

static void test_same(struct check *c)
{
	static const int64_t TIMES[] = { 0, 1, 2, 3, 7, 59, 60, 3600, 86400, 1000000000 };
	for (size_t i = 0; i < ARRAY_COUNT(TIMES); i++) {
		struct learn *learn = learn_new();
		struct learn_kind kind = kind_of(1, 2);
		struct learn_guess guess = { .low_s = -1 };
		for (int n = 0; n < LEARN_LEAST; n++) {
			CHECK(c, "too few", !learn_guess_s(learn, &kind, 0, TENTHS, &guess));
			learn_add(learn, &kind, TIMES[i]);
		}
		CHECK(c, "enough", learn_guess_s(learn, &kind, 0, TENTHS, &guess));
		CHECK(c, "low", is_near(guess.low_s, TIMES[i]));
		CHECK(c, "high", is_near(guess.high_s, TIMES[i]));
		CHECK(c, "in order",
		      guess.low_s <= guess.likely_s && guess.likely_s <= guess.high_s);
		learn_free(learn);
	}
}

static void test_levels(struct check *c)
{
	struct learn *learn = learn_new();
	struct learn_kind a = kind_of(1, 9), b = kind_of(2, 9), other = kind_of(3, 8);
	struct learn_guess guess;
	for (int n = 0; n < LEARN_LEAST; n++)
		learn_add(learn, &a, 100);
	CHECK(c, "its own", learn_guess_s(learn, &a, 0, TENTHS, &guess));
	CHECK_INT(c, "level of its own", guess.level, 0);
	CHECK(c, "of those like it", learn_guess_s(learn, &b, 0, TENTHS, &guess));
	CHECK_INT(c, "level above", guess.level, 1);
	CHECK(c, "of nobody", !learn_guess_s(learn, &other, 0, TENTHS, &guess));
	for (int n = 0; n < LEARN_LEAST; n++)
		learn_add(learn, &b, 10000);
	CHECK(c, "b's own", learn_guess_s(learn, &b, 0, TENTHS, &guess));
	CHECK(c, "not a's", guess.low_s > 5000);
	learn_free(learn);
}

// What was once is outweighed by what is now: a half is forgotten after 44 times.
static void test_forgets(struct check *c)
{
	struct learn *learn = learn_new();
	struct learn_kind kind = kind_of(1, 2);
	struct learn_guess guess;
	for (int n = 0; n < 1000; n++)
		learn_add(learn, &kind, 10000);
	for (int n = 0; n < 40; n++)
		learn_add(learn, &kind, 10);
	CHECK(c, "not yet",
	      learn_guess_s(learn, &kind, 0, TENTHS, &guess) && guess.likely_s > 5000);
	for (int n = 0; n < 10; n++)
		learn_add(learn, &kind, 10);
	CHECK(c, "now", learn_guess_s(learn, &kind, 0, TENTHS, &guess) && guess.likely_s < 20);
	CHECK(c, "after an hour", learn_guess_s(learn, &kind, 3600, TENTHS, &guess));
	CHECK(c, "those alone that take longer", guess.low_s > 5000);
	CHECK(c, "nothing takes a year", !learn_guess_s(learn, &kind, 31536000, TENTHS, &guess));
	learn_free(learn);
}

static void test_bounded(struct check *c)
{
	struct learn *learn = learn_new();
	struct learn_kind kept = kind_of(-1, 7);
	struct learn_guess guess;
	for (int64_t n = 0; n < 50000; n++) {
		struct learn_kind kind = kind_of(n, n);
		learn_add(learn, &kind, 5);
		if (n % 100 == 0)
			learn_add(learn, &kept, 77);
	}
	CHECK(c, "who is seen again and again stays",
	      learn_guess_s(learn, &kept, 0, TENTHS, &guess));
	CHECK_INT(c, "all of it", guess.seen, 500);
	learn_free(learn);
}

int main(void)
{
	struct check c = { 0 };
	for (uint64_t seed = 1; seed <= 50; seed++)
		test_against_weights(&c, seed);
	test_same(&c);
	test_levels(&c);
	test_forgets(&c);
	test_bounded(&c);
	return check_done(&c);
}
