// SPDX-License-Identifier: Apache-2.0
#include "billing/big.h"

#include <string.h>

typedef unsigned __int128 uwide;

static void push(struct big *big, uint64_t limb)
{
	if (limb == 0)
		return;
	if (big->count == BIG_LIMBS) {
		big->failed = true;
		return;
	}
	big->limbs[big->count++] = limb;
}

static void trim(struct big *big)
{
	while (big->count > 0 && big->limbs[big->count - 1] == 0)
		big->count--;
}

void big_set(struct big *big, uwide value)
{
	big->failed = false;
	big->limbs[0] = (uint64_t)value;
	big->limbs[1] = (uint64_t)(value >> 64);
	big->count = 2;
	trim(big);
}

void big_copy(struct big *to, const struct big *from)
{
	to->count = from->count;
	to->failed = from->failed;
	memcpy(to->limbs, from->limbs, from->count * sizeof from->limbs[0]);
}

void big_mul(struct big *big, uint64_t factor)
{
	uint64_t carry = 0;
	for (size_t i = 0; i < big->count; i++) {
		uwide product = (uwide)big->limbs[i] * factor + carry;
		big->limbs[i] = (uint64_t)product;
		carry = (uint64_t)(product >> 64);
	}
	push(big, carry);
	trim(big);
}

// sum += big * factor * 2^(64 * shift)
static void add_mul_limb(struct big *sum, const struct big *big, uint64_t factor, size_t shift)
{
	uint64_t carry = 0;
	for (size_t i = 0; i < big->count || carry != 0; i++) {
		size_t at = i + shift;
		if (at >= BIG_LIMBS) {
			sum->failed = true;
			return;
		}
		while (sum->count <= at)
			sum->limbs[sum->count++] = 0;
		uint64_t limb = i < big->count ? big->limbs[i] : 0;
		uwide total = (uwide)limb * factor + sum->limbs[at] + carry;
		sum->limbs[at] = (uint64_t)total;
		carry = (uint64_t)(total >> 64);
	}
	trim(sum);
}

void big_add_mul(struct big *sum, const struct big *big, uwide factor)
{
	ASSERT(sum != big);
	sum->failed = sum->failed || big->failed;
	add_mul_limb(sum, big, (uint64_t)factor, 0);
	if (factor >> 64 != 0)
		add_mul_limb(sum, big, (uint64_t)(factor >> 64), 1);
}

uint64_t big_div(struct big *big, uint64_t divisor)
{
	uwide rest = 0;
	ASSERT(divisor > 0);
	for (size_t i = big->count; i-- > 0;) {
		rest = rest << 64 | big->limbs[i];
		big->limbs[i] = (uint64_t)(rest / divisor);
		rest %= divisor;
	}
	trim(big);
	return (uint64_t)rest;
}

int big_cmp(const struct big *a, const struct big *b)
{
	if (a->count != b->count)
		return a->count < b->count ? -1 : 1;
	for (size_t i = a->count; i-- > 0;)
		if (a->limbs[i] != b->limbs[i])
			return a->limbs[i] < b->limbs[i] ? -1 : 1;
	return 0;
}

void big_sub(struct big *big, const struct big *less)
{
	uint64_t borrow = 0;
	ASSERT(big_cmp(less, big) <= 0);
	for (size_t i = 0; i < big->count; i++) {
		uwide taken = (uwide)(i < less->count ? less->limbs[i] : 0) + borrow;
		borrow = taken > big->limbs[i];
		big->limbs[i] -= (uint64_t)taken;
	}
	ASSERT(borrow == 0);
	trim(big);
}

uint64_t big_quotient(struct big *numerator, const struct big *denominator)
{
	static const uint64_t limit = UINT64_C(1) << 63;
	struct big product;
	uint64_t low = 0, high = limit; // quotient in [low, high)
	ASSERT(denominator->count > 0);
	if (numerator->failed || denominator->failed)
		return 0;
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;
		big_copy(&product, denominator);
		big_mul(&product, middle);
		if (product.failed || big_cmp(&product, numerator) > 0)
			high = middle;
		else
			low = middle;
	}
	big_copy(&product, denominator);
	big_mul(&product, low);
	big_sub(numerator, &product);
	numerator->failed = numerator->failed || big_cmp(numerator, denominator) >= 0;
	return low;
}
