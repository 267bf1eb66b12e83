// SPDX-License-Identifier: Apache-2.0
// money, quantity, rng: exact numbers.
#include "base/money.h"
#include "base/quantity.h"
#include "base/rng.h"
#include "check.h"

static void test_money_text(struct check *c)
{
	static const struct {
		const char *text;
		bool good;
		int64_t want;
		const char *back;
	} cases[] = {
		{ "12.5", true, 12500000000, "12.5" },
		{ "0.30", true, 300000000, "0.3" },
		{ "-0.000000001", true, -1, "-0.000000001" },
		{ "200600", true, 200600000000000, "200600" },
		{ "9223372036.854775807", true, INT64_MAX, "9223372036.854775807" },
		{ "-9223372036.854775808", true, INT64_MIN, "-9223372036.854775808" },
		{ "9223372036.854775808", false, 0, NULL },
		{ "1.0000000001", false, 0, NULL },
		{ "1e3", false, 0, NULL },
		{ "+1", false, 0, NULL },
		{ ".5", false, 0, NULL },
		{ "5.", false, 0, NULL },
		{ "", false, 0, NULL },
		{ "1,5", false, 0, NULL },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		int64_t got = 5;
		char back[MONEY_TEXT_BYTES];
		CHECK_INT(c, cases[i].text, money_parse(str_of(cases[i].text), &got),
			  cases[i].good);
		CHECK_INT(c, cases[i].text, got, cases[i].good ? cases[i].want : 5);
		if (cases[i].good)
			CHECK_STR(c, cases[i].text, str_of(money_format(got, back)), cases[i].back);
	}
}

static void test_round(struct check *c)
{
	static const struct {
		const char *name;
		int64_t n, d, want;
	} cases[] = {
		{ "half to even down", 5, 2, 2 },  { "half to even up", 7, 2, 4 },
		{ "minus half", -5, 2, -2 },       { "minus three halves", -3, 2, -2 },
		{ "below half", 7, 5, 1 },         { "above half", 8, 5, 2 },
		{ "minus above half", -8, 5, -2 }, { "exact", -10, 5, -2 },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		int64_t got = 0;
		CHECK(c, cases[i].name, money_round(cases[i].n, cases[i].d, &got));
		CHECK_INT(c, cases[i].name, got, cases[i].want);
	}
	int64_t got;
	CHECK(c, "overflow is told", !money_round((wide)INT64_MAX * 4, 2, &got));
	CHECK_INT(c, "cents", money_to_cents(170075000000), 17008);
}

static void test_apportion(struct check *c)
{
	struct money_share day[] = { { 36, STR("A"), 0 },
				     { 24, STR("B"), 0 },
				     { 24, STR("C"), 0 },
				     { 84, STR("~unallocated"), 0 } };
	CHECK(c, "worked day, board g0", money_apportion(72000000000, day, 4));
	CHECK_INT(c, "A", day[0].nano, 15428571428);
	CHECK_INT(c, "B before C", day[1].nano, 10285714286);
	CHECK_INT(c, "C", day[2].nano, 10285714286);
	struct money_share zero[] = { { 0, STR("A"), 9 } };
	CHECK(c, "no weight", !money_apportion(5, zero, 1));
	CHECK_INT(c, "untouched", zero[0].nano, 9);
	struct rng rng;
	rng_init(&rng, 7);
	size_t wrong = 0;
	for (int round = 0; round < 2000; round++) {
		struct money_share shares[6];
		int64_t total = (int64_t)rng_below(&rng, 1000000) - 500000, sum = 0;
		for (size_t i = 0; i < ARRAY_COUNT(shares); i++)
			shares[i] = (struct money_share){ (wide)rng_below(&rng, 50), STR("x"), 0 };
		if (!money_apportion(total, shares, ARRAY_COUNT(shares)))
			continue;
		for (size_t i = 0; i < ARRAY_COUNT(shares); i++)
			sum += shares[i].nano;
		wrong += sum != total;
	}
	CHECK_INT(c, "parts always add up", wrong, 0);
}

static void test_quantity(struct check *c)
{
	static const struct {
		const char *text;
		int64_t milli, units;
	} cases[] = {
		{ "500m", 500, 1 },
		{ "1.5", 1500, 2 },
		{ "16Gi", 17179869184000, 17179869184 },
		{ "1e3", 1000000, 1000 },
		{ "1E3", 1000000, 1000 },
		{ "2k", 2000000, 2000 },
		{ "0", 0, 0 },
		{ "1n", 1, 1 },
		{ "0.1Ki", 102400, 103 },
		{ "+3", 3000, 3 },
		{ "12e-1", 1200, 2 },
		{ "", -1, -1 },
		{ "-1", -1, -1 },
		{ "1.5.2", -1, -1 },
		{ "Gi", -1, -1 },
		{ "1 Gi", -1, -1 },
		{ "1kb", -1, -1 },
		{ "9Ei", -1, -1 },
		{ "NaN", -1, -1 },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		int64_t milli = -1, units = -1;
		struct str text = str_of(cases[i].text);
		CHECK_INT(c, cases[i].text, quantity_to_milli(text, &milli), cases[i].milli >= 0);
		CHECK_INT(c, cases[i].text, milli, cases[i].milli);
		CHECK_INT(c, cases[i].text, quantity_to_units(text, &units), cases[i].units >= 0);
		CHECK_INT(c, cases[i].text, units, cases[i].units);
	}
}

static void test_rng(struct check *c)
{
	struct rng a, b;
	rng_init(&a, 1);
	rng_init(&b, 1);
	size_t counts[6] = { 0 }, same = 0;
	for (int i = 0; i < 60000; i++) {
		counts[rng_below(&a, 6)]++;
		same += rng_below(&b, 6) < 6;
	}
	CHECK_INT(c, "within the bound", same, 60000);
	CHECK_INT(c, "same seed, same state", rng_next(&a), (long long)rng_next(&b));
	for (size_t i = 0; i < 6; i++)
		CHECK(c, "even", counts[i] > 9500 && counts[i] < 10500);
}

int main(void)
{
	struct check c = { 0 };
	test_money_text(&c);
	test_round(&c);
	test_apportion(&c);
	test_quantity(&c);
	test_rng(&c);
	return check_done(&c);
}
