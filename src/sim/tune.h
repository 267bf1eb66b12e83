// SPDX-License-Identifier: Apache-2.0
// Search for weights of a placement policy. See tune.c for how candidates are judged. Writes the
// best policy so far to a file whenever there is a better one, so that it can be stopped at any
// time; same options and seed: same result.
#pragma once

#include "sim/pack.h"

enum { TUNE_LISTS_MAX = 32, TUNE_SEEDS_MAX = 100, TUNE_ROUNDS_MAX = 1000000 };
enum { PACK_MEANS = 4 };    // at 90, 95, 100 and 130 % arrived
#define TUNE_BEHIND_MAX 0.3 // points behind the best, over the lists so far, that end a trial
#define TUNE_STEP 400.0
#define TUNE_SHARE 0.1
#define TUNE_ARENA_MAX_BYTES ((size_t)4 << 30)

struct pack_mean {
	double unallocated_pct[PACK_MEANS], failures[PACK_CLASSES];
};
struct tune_options {
	const char *nodes, *policy, *out;
	const char *pods[TUNE_LISTS_MAX];
	size_t pods_count;
	int64_t seed_first, seed_last, rounds, seed;
};
int tune_run(const struct tune_options *options); // the exit code
