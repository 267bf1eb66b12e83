// SPDX-License-Identifier: Apache-2.0
// What an asset has cost from its first day up to an instant: straight-line amortization of
// cost less salvage over its life, and support spread over the seconds of each calendar year,
// each rounded half to even to a nano. Differences of two instants therefore add up over
// periods that follow each other.
#pragma once

#include "billing/book.h"

// false: more than int64 nano.
MUST_USE bool asset_cost_until(const struct asset *asset, int64_t t_s, int64_t *ret_nano);
// The stretch around t_s over which the asset costs the same every second: it ends at
// in_service, at the end of life, and where a year of another length changes the support rate.
void asset_cost_stretch(const struct asset *asset, int64_t t_s, int64_t ret_range_s[2]);
// What one of the asset's GPUs costs of the amount: equal parts, the units left over to the
// smaller ids.
int64_t asset_cost_of_gpu(const struct asset *asset, size_t gpu_i, int64_t asset_nano);
