// SPDX-License-Identifier: Apache-2.0
#include "api/limiter.h"

#include "base/map.h"

#include <stdlib.h>

enum { UNITS = 1000 }; // of a bucket: thousandths
#define NS_PER_S UINT64_C(1000000000)

struct bucket {
	int64_t level; // in thousandths
	struct limiter_rate rate;
	uint64_t at_ns;
};

struct limiter {
	struct map *buckets;
	size_t keys_max;
};

struct limiter *limiter_new(size_t keys_max)
{
	ASSERT(keys_max > 0);
	struct limiter *limiter = calloc(1, sizeof *limiter);
	if (limiter == NULL)
		return NULL;
	limiter->buckets = map_new(0x9e3779b97f4a7c15u);
	limiter->keys_max = keys_max;
	return limiter;
}

static void drop(struct limiter *limiter, struct str key)
{
	free(map_remove(limiter->buckets, key));
}

void limiter_free(struct limiter *limiter)
{
	if (limiter == NULL)
		return;
	struct str key;
	void *value;
	for (size_t i = 0; map_next(limiter->buckets, &i, &key, &value);)
		free(value);
	map_free(limiter->buckets);
	free(limiter);
}

size_t limiter_count(const struct limiter *limiter) { return map_count(limiter->buckets); }

static void fill(struct bucket *bucket, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns > bucket->at_ns ? now_ns - bucket->at_ns : 0;
	uint64_t passed_ms = passed_ns / (NS_PER_S / UNITS);
	if (passed_ms > 3600 * UNITS)
		passed_ms = 3600 * UNITS;
	bucket->level = min_i64(bucket->rate.burst * UNITS,
				bucket->level + (int64_t)passed_ms * bucket->rate.per_s);
	bucket->at_ns += passed_ms * (NS_PER_S / UNITS);
	if (passed_ns > NS_PER_S * 3600)
		bucket->at_ns = now_ns;
}

// Full buckets say nothing that a new one would not; if none is full, the oldest entry goes.
static void make_room(struct limiter *limiter, uint64_t now_ns)
{
	struct str key, first = { NULL, 0 };
	void *value;
	for (size_t i = 0; map_next(limiter->buckets, &i, &key, &value);) {
		struct bucket *bucket = value;
		fill(bucket, now_ns);
		if (first.data == NULL)
			first = key;
		if (bucket->level == bucket->rate.burst * UNITS)
			drop(limiter, key);
	}
	if (map_count(limiter->buckets) >= limiter->keys_max)
		drop(limiter, first);
}

bool limiter_take(struct limiter *limiter, struct str key, uint64_t now_ns, int64_t cost,
		  struct limiter_rate rate, int64_t *ret_wait_ms)
{
	ASSERT(rate.per_s > 0 && rate.burst > 0 && cost >= 0);
	struct bucket *bucket = map_find(limiter->buckets, key);
	if (bucket == NULL) {
		if (map_count(limiter->buckets) >= limiter->keys_max)
			make_room(limiter, now_ns);
		bucket = calloc(1, sizeof *bucket);
		ASSERT(bucket != NULL);
		*bucket = (struct bucket){ rate.burst * UNITS, rate, now_ns };
		(void)map_set(limiter->buckets, key, bucket);
	}
	bucket->rate = rate;
	fill(bucket, now_ns);
	int64_t need = min_i64(cost, rate.burst) * UNITS;
	if (bucket->level >= need) {
		bucket->level -= need;
		return true;
	}
	*ret_wait_ms = (need - bucket->level + rate.per_s - 1) / rate.per_s;
	return false;
}
