// SPDX-License-Identifier: Apache-2.0
// Weights of a set of parties (tenants and, as one of them, what nobody used) as exact sums of
// fractions, and the split of an amount by them: largest remainder, ties to the smaller name.
// Fractions are kept by denominator; common denominators beyond 128 bits are handled, only
// slower. Parties are numbered in the order of their names.
#pragma once

#include "base/money.h"

struct weights_class {
	wide den;
	wide *nums; // one a party
};

struct weights {
	size_t party_count, party_cap; // cap: room in each class
	struct weights_class *classes; // those in use come first
	size_t class_count, class_cap;
	size_t class_made; // classes that have memory
	size_t last;       // the class used last
};

#define WEIGHTS_NOBODY SIZE_MAX

// Starts anew with that many parties, all weights 0. Zero-initialised memory is ready for it.
MUST_USE err_status weights_reset(struct weights *weights, size_t party_count, struct err *err);
void weights_done(struct weights *weights);
MUST_USE err_status weights_add(struct weights *weights, size_t party, wide num, wide den,
				struct err *err);
// Adds the weights of others, whose party i is party to_party[i] here.
MUST_USE err_status weights_merge(struct weights *weights, const struct weights *others,
				  const uint32_t *to_party, struct err *err);
bool weights_is_zero(const struct weights *weights, size_t party);
// The weight of a party times 1e9, rounded half to even; false when it does not fit.
MUST_USE bool weights_nano(const struct weights *weights, size_t party, int64_t *ret_nano);
// Splits total >= 0 into ret_parts (one a party). Party leave_out (or WEIGHTS_NOBODY) counts as
// weight 0. With all weights 0 *ret_split is false and ret_parts are 0.
MUST_USE err_status weights_split(const struct weights *weights, int64_t total, size_t leave_out,
				  int64_t *ret_parts, bool *ret_split, struct err *err);
