// SPDX-License-Identifier: Apache-2.0
// What was seen of times that differ from job to job (how long it runs, how long it waits), by
// kinds of jobs: quantiles of what was seen last, the older the less it counts. Pure integers in
// bounded memory: at most LEARN_CELLS kinds are remembered, of 64 that fall together the one that
// was not seen for longest is forgotten; a history costs 2 MiB, and nothing before the first time.
// A kind has a key for each level, the most exact first; a guess is of the first level that has
// seen enough. The caller says what happened when it has happened, so that nothing is ever judged
// by its own future. Nothing here fails.
#pragma once

#include "base/str.h"

enum {
	LEARN_LEVELS = 4,
	LEARN_CELLS = 4096,
	LEARN_LEAST = 8,   // times seen before a level is believed
	LEARN_MEMORY = 64, // each time all before it count a 64th less
	LEARN_BITS = 30,   // seconds are below 2^30
	LEARN_PARTS = 4,   // of a doubling, so that neighbours are within 25 %
	LEARN_PERMILLE = 1000,
};

struct learn;
struct learn_kind {
	uint64_t keys[LEARN_LEVELS]; // 0: no such level
};
struct learn_guess {
	int64_t low_s, likely_s, high_s; // the quantiles asked for, and the median
	size_t level;
	int64_t seen; // times behind it, at most LEARN_SEEN_MAX
};
enum { LEARN_SEEN_MAX = 1000000 };

struct learn *learn_new(void);
void learn_free(struct learn *learn); // NULL allowed
void learn_add(struct learn *learn, const struct learn_kind *kind, int64_t seconds);
// Of those that took longer than after_s, the low and the high quantile, in thousandths. False:
// too little was seen, or nothing that took so long.
MUST_USE bool learn_guess_s(const struct learn *learn, const struct learn_kind *kind,
			    int64_t after_s, const int64_t permille[2],
			    struct learn_guess *ret_guess);

// Keys: begin with learn_key(0, ...) and go on with what was given back; never 0.
uint64_t learn_key(uint64_t before, struct str text);
uint64_t learn_key_number(uint64_t before, int64_t number);
