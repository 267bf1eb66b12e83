// SPDX-License-Identifier: Apache-2.0
// The energy part of a bill: each GPU's energy cost, cut where somebody comes or goes on it and
// where the price changes, and split in each piece by the shares that hold there. A piece that
// begins before the period is split from its own beginning, so that periods add up.
#pragma once

#include "base/money.h"
#include "billing/roster.h"

struct energy_cost {
	wide *nano; // one a party
	wide total_nano;
	wide energy_mj;
};

// Adds the period to zeroed memory with an array of roster->party_count.
MUST_USE err_status energy_rate(struct arena *arena, const struct roster *roster,
				const struct rate_input *input, struct energy_cost *cost,
				struct err *err);
