// SPDX-License-Identifier: Apache-2.0
#include "sim/gorand.h"

#include <string.h>

enum { LENGTH = GORAND_LENGTH, TAP = 273, LEHMER = 48271, LEHMER_MOD = INT32_MAX };
#define JUMP UINT64_C(7800000000000)

static uint64_t lehmer(uint64_t x) { return x * LEHMER % LEHMER_MOD; }

static uint64_t start_of(int64_t seed)
{
	int64_t x = seed % LEHMER_MOD;
	if (x < 0)
		x += LEHMER_MOD;
	return x == 0 ? 89482311 : (uint64_t)x;
}

static void fill(uint64_t *state, int64_t seed, unsigned high, unsigned low)
{
	uint64_t x = start_of(seed);
	for (size_t i = 0; i < 20; i++)
		x = lehmer(x);
	for (size_t i = 0; i < LENGTH; i++) {
		uint64_t a = lehmer(x), b = lehmer(a);
		x = lehmer(b);
		state[i] = a << high ^ b << low ^ x;
	}
}

// product = a * b modulo t^607 - t^334 - 1, coefficients modulo 2^64.
static void multiply(uint64_t *product, const uint64_t *a, const uint64_t *b)
{
	uint64_t wide[2 * LENGTH - 1] = { 0 };
	for (size_t i = 0; i < LENGTH; i++) {
		for (size_t k = 0; a[i] != 0 && k < LENGTH; k++)
			wide[i + k] += a[i] * b[k];
	}
	for (size_t i = 2 * LENGTH - 2; i >= LENGTH; i--) {
		wide[i - TAP] += wide[i];
		wide[i - LENGTH] += wide[i];
	}
	memcpy(product, wide, LENGTH * sizeof *product);
}

static void power_of_t(uint64_t *power, uint64_t exponent)
{
	memset(power, 0, LENGTH * sizeof *power);
	power[0] = 1;
	for (int bit = 63; bit >= 0; bit--) {
		multiply(power, power, power);
		if ((exponent >> bit & 1) != 0) {
			uint64_t t[LENGTH] = { 0, 1 };
			multiply(power, power, t);
		}
	}
}

// The oldest term of the sequence lies at feed - 1, the others upwards from there to newer ones
// downwards: term j (0 oldest) is state[(333 - j) mod 607].
static size_t place_of(size_t term) { return (2 * LENGTH - TAP - 1 - term) % LENGTH; }

static void cook(uint64_t *cooked)
{
	uint64_t state[LENGTH], power[LENGTH], terms[2 * LENGTH];
	fill(state, 1, 20, 10);
	for (size_t i = 0; i < LENGTH; i++)
		terms[i] = state[place_of(i)];
	for (size_t i = LENGTH; i < ARRAY_COUNT(terms); i++)
		terms[i] = terms[i - LENGTH] + terms[i - TAP];
	power_of_t(power, JUMP);
	for (size_t j = 0; j < LENGTH; j++) {
		uint64_t sum = 0;
		for (size_t i = 0; i < LENGTH; i++)
			sum += power[i] * terms[i + j];
		// The feed has gone down one place a step.
		cooked[(place_of(j) + LENGTH - JUMP % LENGTH) % LENGTH] = sum;
	}
}

void gorand_init(struct gorand *rand, int64_t seed)
{
	static uint64_t cooked[LENGTH];
	static bool is_cooked;
	if (!is_cooked)
		cook(cooked);
	is_cooked = true;
	fill(rand->state, seed, 40, 20);
	for (size_t i = 0; i < LENGTH; i++)
		rand->state[i] ^= cooked[i];
	rand->tap = 0;
	rand->feed = LENGTH - TAP;
}

uint64_t gorand_int63(struct gorand *rand)
{
	rand->tap = (rand->tap + LENGTH - 1) % LENGTH;
	rand->feed = (rand->feed + LENGTH - 1) % LENGTH;
	rand->state[rand->feed] += rand->state[rand->tap];
	return rand->state[rand->feed] & (uint64_t)INT64_MAX;
}

uint32_t gorand_below(struct gorand *rand, uint32_t bound)
{
	ASSERT(bound > 0 && bound <= INT32_MAX);
	if ((bound & (bound - 1)) == 0)
		return (uint32_t)(gorand_int63(rand) >> 32) & (bound - 1);
	uint32_t max = (uint32_t)INT32_MAX - (UINT32_C(1) << 31) % bound;
	uint32_t value;
	do
		value = (uint32_t)(gorand_int63(rand) >> 32);
	while (value > max);
	return value % bound;
}

uint32_t gorand_shuffle_below(struct gorand *rand, uint32_t bound)
{
	ASSERT(bound > 0 && bound <= INT32_MAX);
	uint64_t product = (gorand_int63(rand) >> 31) * bound;
	if ((uint32_t)product < bound) {
		uint32_t least = -bound % bound;
		while ((uint32_t)product < least)
			product = (gorand_int63(rand) >> 31) * bound;
	}
	return (uint32_t)(product >> 32);
}

void gorand_perm(struct gorand *rand, uint32_t *ret_values, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t k = gorand_below(rand, i + 1);
		ret_values[i] = ret_values[k];
		ret_values[k] = i;
	}
}
