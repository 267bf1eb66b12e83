// SPDX-License-Identifier: Apache-2.0
// Deterministic generator (splitmix64 seeding xoshiro256**, Blackman and Vigna) for simulation,
// tie breaks and jitter. Not for secrets: those come from the world's secure bytes.
#pragma once

#include "base/defs.h"

struct rng {
	uint64_t state[4];
};

void rng_init(struct rng *rng, uint64_t seed);
uint64_t rng_next(struct rng *rng);
uint64_t rng_below(struct rng *rng, uint64_t bound); // 0..bound-1 without bias, bound > 0
