// SPDX-License-Identifier: Apache-2.0
#include "sched/learn.h"

#include "sched/core.h"

#include <stdlib.h>

enum {
	BINS = LEARN_BITS * LEARN_PARTS,
	WAYS = 64,
	ONE = 1 << 20, // the weight of what was seen last
};

struct cell { // one kind at one level
	uint64_t key, seen_no;
	int64_t seen;
	uint32_t weights[BINS];
};
struct learn {
	struct cell *cells; // NULL: nothing was seen
	uint64_t seen_no;
};

struct learn *learn_new(void) { return core_alloc(1, sizeof(struct learn)); }

void learn_free(struct learn *learn)
{
	if (learn != NULL)
		free(learn->cells);
	free(learn);
}

// ---- keys

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	hash ^= hash >> 29;
	return hash == 0 ? 1 : hash;
}

uint64_t learn_key_number(uint64_t before, int64_t number)
{
	return mix(mix(before, (uint64_t)number), UINT64_C(0x100000001b3));
}

uint64_t learn_key(uint64_t before, struct str text)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < text.len; i++)
		hash = (hash ^ (unsigned char)text.data[i]) * UINT64_C(0x100000001b3);
	return mix(mix(before, hash), text.len);
}

// ---- bins: four to a doubling, the first for what took no time

static size_t bin_of(int64_t seconds)
{
	int64_t value = seconds < 0                        ? 0
			: seconds >= (1 << LEARN_BITS) - 1 ? (1 << LEARN_BITS) - 2
							   : seconds;
	uint64_t from_one = (uint64_t)value + 1;
	size_t bits = 63 - (size_t)__builtin_clzll(from_one);
	uint64_t rest = from_one - (UINT64_C(1) << bits);
	return bits * LEARN_PARTS + (size_t)((rest * LEARN_PARTS) >> bits);
}

// The least that is in the bin or behind it.
static int64_t floor_of(size_t bin)
{
	uint64_t whole = UINT64_C(1) << (bin / LEARN_PARTS);
	uint64_t part = (whole * (bin % LEARN_PARTS) + LEARN_PARTS - 1) / LEARN_PARTS;
	return (int64_t)(whole + part) - 1;
}

// ---- cells

static struct cell *ways_of(const struct learn *learn, uint64_t key)
{
	return &learn->cells[(key >> 32) % (LEARN_CELLS / WAYS) * WAYS];
}

static struct cell *find_cell(const struct learn *learn, uint64_t key)
{
	if (learn->cells == NULL || key == 0)
		return NULL;
	struct cell *ways = ways_of(learn, key);
	for (size_t i = 0; i < WAYS; i++) {
		if (ways[i].key == key)
			return &ways[i];
	}
	return NULL;
}

static struct cell *get_cell(struct learn *learn, uint64_t key)
{
	struct cell *cell = find_cell(learn, key);
	if (cell != NULL)
		return cell;
	struct cell *ways = ways_of(learn, key);
	cell = &ways[0];
	for (size_t i = 1; i < WAYS; i++) { // one that is free was never seen
		if (ways[i].seen_no < cell->seen_no)
			cell = &ways[i];
	}
	*cell = (struct cell){ .key = key };
	return cell;
}

void learn_add(struct learn *learn, const struct learn_kind *kind, int64_t seconds)
{
	size_t bin = bin_of(seconds);
	ASSERT(bin < BINS);
	if (learn->cells == NULL)
		learn->cells = core_alloc(LEARN_CELLS, sizeof *learn->cells);
	learn->seen_no++;
	for (size_t level = 0; level < LEARN_LEVELS; level++) {
		if (kind->keys[level] == 0)
			continue;
		struct cell *cell = get_cell(learn, kind->keys[level]);
		for (size_t i = 0; i < BINS; i++)
			cell->weights[i] -= cell->weights[i] / LEARN_MEMORY;
		cell->weights[bin] += ONE;
		cell->seen = min_i64(cell->seen + 1, LEARN_SEEN_MAX);
		cell->seen_no = learn->seen_no;
	}
}

// ---- quantiles

static uint64_t sum_from(const struct cell *cell, size_t bin)
{
	uint64_t sum = 0;
	for (size_t i = bin; i < BINS; i++)
		sum += cell->weights[i];
	return sum;
}

// The instant up to which so much of the weight lies, within a bin in proportion.
static int64_t quantile_s(const struct cell *cell, size_t from, uint64_t wanted)
{
	size_t bin = from;
	while (bin + 1 < BINS && cell->weights[bin] < wanted)
		wanted -= cell->weights[bin++];
	int64_t low = floor_of(bin), high = bin + 1 < BINS ? floor_of(bin + 1) : low + 1;
	uint64_t weight = cell->weights[bin] > 0 ? cell->weights[bin] : 1;
	uint64_t part = wanted < weight ? wanted : weight;
	return low + (int64_t)((uint64_t)max_i64(high - low - 1, 0) * part / weight);
}

bool learn_guess_s(const struct learn *learn, const struct learn_kind *kind, int64_t after_s,
		   const int64_t permille[2], struct learn_guess *ret_guess)
{
	ASSERT(permille[0] >= 0 && permille[0] <= permille[1] && permille[1] <= LEARN_PERMILLE);
	size_t from = after_s > 0 ? bin_of(after_s) : 0;
	for (size_t level = 0; level < LEARN_LEVELS; level++) {
		const struct cell *cell = find_cell(learn, kind->keys[level]);
		uint64_t sum = cell == NULL || cell->seen < LEARN_LEAST ? 0 : sum_from(cell, from);
		if (sum < ONE)
			continue; // of those that took so long hardly any is remembered
		int64_t quantiles[3];
		const int64_t asked[3] = { permille[0], LEARN_PERMILLE / 2, permille[1] };
		for (size_t i = 0; i < 3; i++)
			quantiles[i] =
				quantile_s(cell, from, sum * (uint64_t)asked[i] / LEARN_PERMILLE);
		*ret_guess = (struct learn_guess){ .low_s = max_i64(quantiles[0], after_s),
						   .likely_s = max_i64(quantiles[1], after_s),
						   .high_s = max_i64(quantiles[2], after_s),
						   .level = level,
						   .seen = cell->seen };
		return true;
	}
	return false;
}
