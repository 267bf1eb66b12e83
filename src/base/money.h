// SPDX-License-Identifier: Apache-2.0
// Money as a count of 1e-9 currency units (nano) in int64, and exact arithmetic around it:
// products and sums in 128 bits, one rounding (half to even) in one place, apportionment by
// largest remainder whose parts always add up to the whole. No floating point.
// Range of a value: +-9.22e9 currency units; what passes it is an error, never a wrap.
#pragma once

#include "base/str.h"

typedef __int128 wide; // intermediate results only

enum { MONEY_TEXT_BYTES = 32 };
#define MONEY_NANO_PER_UNIT INT64_C(1000000000)

// Plain decimal ("-12.5", "0.30"), at most nine digits after the point, no exponent, no plus.
MUST_USE bool money_parse(struct str text, int64_t *ret_nano);
// Shortest plain decimal text of it: "12.5", "0", "-0.000000001". Returns out.
char *money_format(int64_t nano, char out[MONEY_TEXT_BYTES]);
// numerator / denominator rounded half to even; denominator > 0. False when not in int64.
MUST_USE bool money_round(wide numerator, wide denominator, int64_t *ret_nano);
// Nano to minor units (cents) half to even.
int64_t money_to_cents(int64_t nano);

// Greatest common divisor of two values >= 0; keeps fractions within 128 bits.
wide money_gcd(wide a, wide b);

struct money_share {
	wide weight;     // >= 0
	struct str name; // ties go to the smaller bytes
	int64_t nano;    // result
};

// Splits total by weight: floor shares, then one unit each to the largest remainders, ties by
// name. The sum of the results is total. All weights 0: false, nothing is written.
MUST_USE bool money_apportion(int64_t total, struct money_share *shares, size_t count);
