// SPDX-License-Identifier: Apache-2.0
// Exact sums and splits: big numbers, weights with any denominators.
#include "billing/big.h"
#include "billing/weights.h"
#include "check.h"

static void big_numbers(struct check *c)
{
	struct big a, b, product;
	big_set(&a, ((unsigned __int128)1 << 127) + 12345);
	big_copy(&product, &a);
	for (int i = 0; i < 10; i++)
		big_mul(&product, UINT64_C(0xffffffffffffffc5));
	big_copy(&b, &product);
	for (int i = 0; i < 10; i++)
		CHECK_INT(c, "divides evenly", big_div(&b, UINT64_C(0xffffffffffffffc5)), 0);
	CHECK_INT(c, "comes back", big_cmp(&a, &b), 0);
	big_set(&b, 7);
	big_add_mul(&b, &product, ((unsigned __int128)5 << 64) + 3);
	big_mul(&b, 1);
	struct big factor, rest;
	big_copy(&rest, &b);
	big_copy(&factor, &product);
	struct big high;
	big_set(&high, (unsigned __int128)1 << 64);
	struct big shifted;
	big_set(&shifted, 0);
	big_add_mul(&shifted, &product, (unsigned __int128)1 << 64);
	CHECK_INT(c, "quotient of the shifted", big_quotient(&rest, &shifted), 5);
	CHECK_INT(c, "quotient of the rest", big_quotient(&rest, &factor), 3);
	CHECK(c, "rest", rest.count == 1 && rest.limbs[0] == 7);
	big_set(&a, 1);
	for (int i = 0; i < BIG_LIMBS + 1 && !a.failed; i++)
		big_mul(&a, UINT64_MAX);
	CHECK(c, "the limit is noticed", a.failed);
}

static void split_as(struct check *c, const char *name, const struct weights *weights,
		     int64_t total, const int64_t *want)
{
	int64_t parts[8];
	bool any;
	CHECK_INT(c, name, weights_split(weights, total, WEIGHTS_NOBODY, parts, &any, NULL),
		  ERR_OK);
	CHECK(c, name, any);
	for (size_t i = 0; i < weights->party_count; i++)
		CHECK_INT(c, name, parts[i], want[i]);
}

// The common denominator passes 128 bits; wanted values are from exact fractions.
static void many_denominators(struct check *c)
{
	static const int64_t primes[] = { 999999937, 999999929, 999999893, 999999883, 999999797 };
	static const struct {
		int64_t total;
		int64_t want[5];
	} cases[] = { { 1, { 0, 0, 0, 0, 1 } },
		      { 1000000000, { 66666508, 133333094, 199999840, 266666739, 333333819 } },
		      { 9223372036854775807,
			{ 614890002950594297, 1229780726543532640, 1844672934656961141,
			  2459566546124310792, 3074461826579376937 } } };
	struct weights weights = { 0 };
	CHECK_INT(c, "reset", weights_reset(&weights, 5, NULL), ERR_OK);
	for (size_t i = 0; i < 5; i++) {
		CHECK_INT(c, "add",
			  weights_add(&weights, i, (wide)7 * (wide)(i + 1) * 123456789, primes[i],
				      NULL),
			  ERR_OK);
		CHECK_INT(c, "add",
			  weights_add(&weights, i, (wide)(i * i * 1000 + 1), primes[(i + 2) % 5],
				      NULL),
			  ERR_OK);
	}
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
		split_as(c, "many denominators", &weights, cases[i].total, cases[i].want);
	weights_done(&weights);
}

static void few_denominators(struct check *c)
{
	struct weights weights = { 0 };
	int64_t parts[3];
	bool any;
	CHECK_INT(c, "reset", weights_reset(&weights, 3, NULL), ERR_OK);
	CHECK_INT(c, "nobody", weights_split(&weights, 5, WEIGHTS_NOBODY, parts, &any, NULL),
		  ERR_OK);
	CHECK(c, "nobody takes nothing", !any && parts[0] == 0);
	for (size_t i = 0; i < 3; i++)
		CHECK_INT(c, "add", weights_add(&weights, i, 1, 3, NULL), ERR_OK);
	split_as(c, "ties go to the first", &weights, 100, (const int64_t[]){ 34, 33, 33 });
	split_as(c, "two left over", &weights, 101, (const int64_t[]){ 34, 34, 33 });
	CHECK_INT(c, "leave one out", weights_split(&weights, 101, 0, parts, &any, NULL), ERR_OK);
	CHECK(c, "the others share", parts[0] == 0 && parts[1] == 51 && parts[2] == 50);
	int64_t nano;
	CHECK(c, "a third", weights_nano(&weights, 1, &nano) && nano == 333333333);
	CHECK_INT(c, "again", weights_reset(&weights, 1, NULL), ERR_OK);
	CHECK(c, "is zero again", weights_is_zero(&weights, 0));
	weights_done(&weights);
}

int main(void)
{
	struct check c = { 0 };
	big_numbers(&c);
	many_denominators(&c);
	few_denominators(&c);
	return check_done(&c);
}
