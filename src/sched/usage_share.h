// SPDX-License-Identifier: Apache-2.0
// GPU time that a queue or a person has had, of which half is forgotten each half-life. Integers
// only: time is cut into half-lives; instead of shrinking what was, what comes later in the same
// half-life weighs more, and all is halved at its end, so that the error stays below one unit for
// ever and many small steps give what one big step gives. Times are milliseconds of the caller's
// clock and never go back. Plain data, nothing to free, cannot fail.
#pragma once

#include "base/defs.h"

#define SHARE_HALF_LIFE_MAX_S (INT64_C(366) * 86400)
#define SHARE_HELD_MAX (INT64_C(1) << 32)

typedef unsigned __int128 share_size; // comparable between shares of one half-life and instant

struct usage_share {
	share_size value; // weighed thousandths of GPUs times milliseconds
	int64_t half_life_s, last_ms;
};

// Zero use until now. A half-life of 0 remembers nothing.
void usage_share_init(struct usage_share *share, int64_t half_life_s, int64_t now_ms);
// What is remembered stays the same as of the last call, and is forgotten at another pace.
void usage_share_repace(struct usage_share *share, int64_t half_life_s);
// held_milli was held from the last call until now.
void usage_share_advance(struct usage_share *share, int64_t held_milli, int64_t now_ms);
// Remembered use as of the last call, in thousandths of a GPU times seconds.
int64_t usage_share_milli_s(const struct usage_share *share);
void usage_share_set_milli_s(struct usage_share *share, int64_t milli_s);
// Remembered use, and what is held now as if it had been so for a half-life; without memory just
// what is held.
share_size usage_share_size(const struct usage_share *share, int64_t held_milli);
// What is left of a number after age_s.
int64_t usage_share_decay(int64_t milli_s, int64_t half_life_s, int64_t age_s);
