// SPDX-License-Identifier: Apache-2.0
// Non-negative whole numbers of any size up to a limit, for the rare sums of fractions whose
// common denominator passes 128 bits. Only what exact comparison and apportionment need.
// Overflow of the limit sets failed, which stays set; the caller checks once at the end.
#pragma once

#include "base/defs.h"

enum { BIG_LIMBS = 320 }; // 20,480 bits

struct big {
	size_t count; // limbs in use, the highest is not 0
	bool failed;
	uint64_t limbs[BIG_LIMBS]; // lowest first
};

void big_set(struct big *big, unsigned __int128 value);
void big_copy(struct big *to, const struct big *from); // copies only the limbs in use
void big_mul(struct big *big, uint64_t factor);
// sum += big * factor
void big_add_mul(struct big *sum, const struct big *big, unsigned __int128 factor);
// big /= divisor; returns the remainder.
uint64_t big_div(struct big *big, uint64_t divisor);
int big_cmp(const struct big *a, const struct big *b); // < 0, 0, > 0
void big_sub(struct big *big, const struct big *less); // less <= big
// floor(numerator / denominator), which must be below 2^63; numerator becomes the remainder.
uint64_t big_quotient(struct big *numerator, const struct big *denominator);
