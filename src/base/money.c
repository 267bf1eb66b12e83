// SPDX-License-Identifier: Apache-2.0
#include "base/money.h"

#include <stdio.h>
#include <stdlib.h>

enum { FRACTION_DIGITS = 9, FEW = 16 };

bool money_parse(struct str text, int64_t *ret_nano)
{
	bool negative = text.len > 0 && text.data[0] == '-';
	struct str rest = negative ? str_slice(text, 1, text.len) : text;
	size_t point = str_find_byte(rest, '.', 0);
	struct str whole = str_slice(rest, 0, point);
	uint64_t units, part = 0;
	if (!str_to_u64(whole, &units))
		return false;
	if (point != SIZE_MAX) {
		struct str fraction = str_slice(rest, point + 1, rest.len);
		if (fraction.len > FRACTION_DIGITS || !str_to_u64(fraction, &part))
			return false;
		for (size_t i = fraction.len; i < FRACTION_DIGITS; i++)
			part *= 10;
	}
	wide nano = (wide)units * MONEY_NANO_PER_UNIT + part;
	nano = negative ? -nano : nano;
	if (nano > INT64_MAX || nano < INT64_MIN)
		return false;
	*ret_nano = (int64_t)nano;
	return true;
}

char *money_format(int64_t nano, char out[MONEY_TEXT_BYTES])
{
	uint64_t magnitude = nano < 0 ? 0 - (uint64_t)nano : (uint64_t)nano;
	uint64_t units = magnitude / (uint64_t)MONEY_NANO_PER_UNIT;
	uint64_t part = magnitude % (uint64_t)MONEY_NANO_PER_UNIT;
	int length = snprintf(out, MONEY_TEXT_BYTES, "%s%llu.%09llu", nano < 0 ? "-" : "",
			      (unsigned long long)units, (unsigned long long)part);
	ASSERT(length > 0 && length < MONEY_TEXT_BYTES);
	while (out[length - 1] == '0')
		out[--length] = '\0';
	if (out[length - 1] == '.')
		out[--length] = '\0';
	return out;
}

bool money_round(wide numerator, wide denominator, int64_t *ret_nano)
{
	ASSERT(denominator > 0);
	wide quotient = numerator / denominator, rest = numerator % denominator;
	if (rest < 0) { // floor division, so that the remainder is never negative
		rest += denominator;
		quotient--;
	}
	wide other = denominator - rest;
	if (rest > other || (rest == other && quotient % 2 != 0))
		quotient++;
	if (quotient > INT64_MAX || quotient < INT64_MIN)
		return false;
	*ret_nano = (int64_t)quotient;
	return true;
}

wide money_gcd(wide a, wide b)
{
	while (b != 0) {
		wide rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

int64_t money_to_cents(int64_t nano)
{
	int64_t cents = 0;
	bool fits = money_round(nano, MONEY_NANO_PER_UNIT / 100, &cents);
	ASSERT(fits);
	return cents;
}

struct remainder {
	wide rest;
	const struct money_share *share;
	size_t share_i;
};

static int by_remainder(const void *left, const void *right)
{
	const struct remainder *a = left, *b = right;
	if (a->rest != b->rest)
		return a->rest > b->rest ? -1 : 1;
	int order = str_cmp(a->share->name, b->share->name);
	if (order != 0)
		return order;
	return a->share_i < b->share_i ? -1 : 1;
}

// Most splits are among a few parties, millions of times for a bill: those are sorted in place.
static void sort_remainders(struct remainder *rests, size_t count)
{
	if (count > FEW) {
		qsort(rests, count, sizeof *rests, by_remainder);
		return;
	}
	for (size_t i = 1; i < count; i++) {
		struct remainder moved = rests[i];
		size_t k = i;
		for (; k > 0 && by_remainder(&moved, &rests[k - 1]) < 0; k--)
			rests[k] = rests[k - 1];
		rests[k] = moved;
	}
}

// floor(total * weight / sum) and its remainder. Weights are reduced by the caller so that the
// product of an int64 and a weight stays within 128 bits.
static int64_t floor_share(int64_t total, wide weight, wide sum, wide *ret_rest)
{
	wide product = (wide)total * weight;
	wide quotient = product / sum, rest = product % sum;
	if (rest < 0) {
		rest += sum;
		quotient--;
	}
	*ret_rest = rest;
	return (int64_t)quotient;
}

bool money_apportion(int64_t total, struct money_share *shares, size_t count)
{
	wide sum = 0;
	for (size_t i = 0; i < count; i++) {
		ASSERT(shares[i].weight >= 0);
		if (__builtin_add_overflow(sum, shares[i].weight, &sum))
			return false;
	}
	if (sum <= 0 || sum > ((wide)1 << 62) * 2)
		return false;
	struct remainder few[FEW], *many = NULL, *rests = few;
	if (count > FEW)
		rests = many = calloc(count, sizeof *rests);
	if (rests == NULL)
		return false;
	int64_t left = total;
	for (size_t i = 0; i < count; i++) {
		rests[i].share = &shares[i];
		rests[i].share_i = i;
		shares[i].nano = floor_share(total, shares[i].weight, sum, &rests[i].rest);
		left -= shares[i].nano;
	}
	ASSERT(left >= 0 && (size_t)left < count + 1);
	sort_remainders(rests, count);
	for (size_t i = 0; left > 0; i++, left--)
		shares[rests[i].share_i].nano++;
	free(many);
	return true;
}
