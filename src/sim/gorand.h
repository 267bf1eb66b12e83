// SPDX-License-Identifier: Apache-2.0
// The generator of Go's math/rand for a given seed, because published arrival orders were drawn
// with it: an additive lagged Fibonacci sequence (607, 273) over 64 bits. Its start is the state of
// another such sequence after 7.8e12 steps, which is found by a jump instead of a table. In the
// caller's memory; nothing can fail.
#pragma once

#include "base/defs.h"

enum { GORAND_LENGTH = 607 };
struct gorand {
	uint64_t state[GORAND_LENGTH];
	size_t tap, feed;
};

void gorand_init(struct gorand *rand, int64_t seed);
uint64_t gorand_int63(struct gorand *rand);
uint32_t gorand_below(struct gorand *rand, uint32_t bound);         // as Intn
uint32_t gorand_shuffle_below(struct gorand *rand, uint32_t bound); // as within Shuffle
void gorand_perm(struct gorand *rand, uint32_t *ret_values, uint32_t count);
