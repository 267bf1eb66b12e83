// SPDX-License-Identifier: Apache-2.0
#include "base/rng.h"

static uint64_t rotl(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

void rng_init(struct rng *rng, uint64_t seed)
{
	for (size_t i = 0; i < ARRAY_COUNT(rng->state); i++) {
		seed += UINT64_C(0x9e3779b97f4a7c15);
		uint64_t z = seed;
		z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
		z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
		rng->state[i] = z ^ (z >> 31);
	}
}

uint64_t rng_next(struct rng *rng)
{
	uint64_t *s = rng->state;
	uint64_t result = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;
	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return result;
}

uint64_t rng_below(struct rng *rng, uint64_t bound)
{
	ASSERT(bound > 0);
	uint64_t refuse = (0 - bound) % bound; // values below it would favour small results
	for (;;) {
		uint64_t value = rng_next(rng);
		if (value >= refuse)
			return value % bound;
	}
}
