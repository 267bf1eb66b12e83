// SPDX-License-Identifier: Apache-2.0
// Token buckets by key (a tenant's user, a peer's address). The table has a fixed size; a bucket
// that is full again is forgotten first, so that only callers who are active take room.
#pragma once

#include "base/str.h"

struct limiter;

struct limiter *limiter_new(size_t keys_max); // NULL without memory
void limiter_free(struct limiter *limiter);   // NULL allowed
struct limiter_rate {
	int64_t per_s; // > 0
	int64_t burst; // > 0
};
// Takes cost from the bucket of key, which fills by rate. False: not enough; *ret_wait_ms says
// when it will be.
bool limiter_take(struct limiter *limiter, struct str key, uint64_t now_ns, int64_t cost,
		  struct limiter_rate rate, int64_t *ret_wait_ms);
size_t limiter_count(const struct limiter *limiter);
