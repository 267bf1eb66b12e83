// SPDX-License-Identifier: Apache-2.0
// The price of a kilowatt hour as a function of time: tariff by the wall clock of its time zone
// times PUE, cut into steps wherever one of the two values changes. Prices are reduced by common
// factors so that sums of energy times price stay within 128 bits.
#pragma once

#include "base/money.h"
#include "billing/book.h"
#include "billing/zone.h"

struct tariff_step {
	int64_t from_s; // until the next step
	wide price;     // money is millijoules times price divided by tariff_steps.divisor
	bool is_known;  // false before the first tariff and the first PUE
};

struct tariff_steps {
	const struct tariff_step *items; // ascending, the first at the start asked for
	size_t count;
	wide divisor; // even
};

// Steps over [from_s, to_s) in the arena. from_s <= to_s.
MUST_USE err_status tariff_steps_make(struct arena *arena, const struct prices *prices,
				      const struct zone *zone, const int64_t range_s[2],
				      struct tariff_steps *ret_steps, struct err *err);
