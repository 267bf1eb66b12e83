// SPDX-License-Identifier: Apache-2.0
// The bill of a period from the ledger: all events that count, rated with the current assets,
// prices and pools. The same function of billing that rates files does the work, so the bill of
// an export is the same to the byte.
#pragma once

#include "billing/rate.h"
#include "ledger/ledger.h"

struct ledger_period {
	int64_t from_s, to_s;
	struct str idle; // "keep", "share-per-gpu", or empty: the rule of the pools
};

// The bill lives in the arena. ERR_NOT_FOUND when a document was never put, ERR_INVALID when the
// period or the idle rule is none, ERR_INTERNAL when the lines would not add up to the total
// cost of ownership: no such bill is handed out.
MUST_USE err_status ledger_bill(struct ledger *ledger, struct arena *arena,
				const struct ledger_period *period, struct bill *ret_bill,
				struct err *err);
