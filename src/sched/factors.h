// SPDX-License-Identifier: Apache-2.0
// The order of waiting pods as a weighted sum of factors, each between 0 and 1: the class's
// priority, how long a pod has waited, how large it is, how little its queue and its owner have
// had, how near its deadline is. A weight of 0 switches a factor off, a negative one turns it
// round. With all weights 0 nothing is computed and the order is by priority and age alone. Pure
// integers; cannot fail.
#pragma once

#include "base/str.h"

typedef enum sched_factor {
	SCHED_FACTOR_PRIORITY,
	SCHED_FACTOR_AGE,
	SCHED_FACTOR_SIZE,
	SCHED_FACTOR_SHARE,
	SCHED_FACTOR_DEADLINE,
	SCHED_FACTORS
} sched_factor;

enum { FACTOR_ONE = 1000000, FACTOR_WEIGHT_MAX = 1000000 };
#define FACTOR_NO_DEADLINE INT64_MAX

struct sched_factors {
	int64_t weights[SCHED_FACTORS]; // -FACTOR_WEIGHT_MAX to FACTOR_WEIGHT_MAX
	int64_t age_max_s;              // from which on age is 1
	int64_t deadline_s;             // so long before its last start a pod begins to be urgent
	int64_t clock_s;                // seconds since 1970 when the caller's clock was 0
};

struct factor_facts { // of one pod
	int64_t priority, age_s;
	int64_t gpu_milli, capacity_milli;
	int64_t queue_permille, user_permille; // of what each should have had
	int64_t last_start_s;                  // until it must start, negative: it is too late;
					       // FACTOR_NO_DEADLINE
};

bool factors_are_used(const struct sched_factors *factors);
// Each factor in millionths; returns the sum of them by their weights, more goes first.
int64_t factors_score(const struct sched_factors *factors, const struct factor_facts *facts,
		      int64_t ret_values[SCHED_FACTORS]);
// "age=1000,fair-share=2000,age-max=604800": weights by name, and the two times in seconds. What
// is not named is 0, the times a week and a day. False: no such text.
MUST_USE bool factors_parse(struct str text, struct sched_factors *ret_factors);
const char *sched_factor_name(sched_factor factor);
