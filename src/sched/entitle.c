// SPDX-License-Identifier: Apache-2.0
#include "sched/entitle.h"

#include "sched/sched_queue.h"

static int64_t most_of(const struct entitle *item) { return min_i64(item->wanted, item->limit); }

static int64_t part_of(int64_t whole, int64_t part, int64_t parts)
{
	return (int64_t)((__int128)whole * part / parts);
}

// More is guaranteed than there is: each gets its part of it, and the first ones what rounding
// leaves.
static void scale_down(struct entitle *items, size_t count, int64_t promised, int64_t capacity)
{
	int64_t left = capacity;
	for (size_t i = 0; i < count; i++) {
		items[i].deserved = part_of(capacity, items[i].deserved, promised);
		left -= items[i].deserved;
	}
	for (size_t i = 0; left > 0; i = (i + 1) % count) {
		if (items[i].deserved < min_i64(items[i].guaranteed, most_of(&items[i]))) {
			items[i].deserved++;
			left--;
		}
	}
}

static bool wants_more(const struct entitle *item)
{
	return item->weight > 0 && item->deserved < most_of(item);
}

static int64_t weights_of(const struct entitle *items, size_t count)
{
	int64_t sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += wants_more(&items[i]) ? items[i].weight : 0;
	return sum;
}

// Those that want no more than their part get all they want; true when there was one.
static bool fill_modest(struct entitle *items, size_t count, int64_t weights, int64_t *left)
{
	int64_t round = *left;
	bool any = false;
	for (size_t i = 0; i < count; i++) {
		int64_t missing = most_of(&items[i]) - items[i].deserved;
		if (!wants_more(&items[i]) || missing > part_of(round, items[i].weight, weights))
			continue;
		items[i].deserved += missing;
		*left -= missing;
		any = true;
	}
	return any;
}

static void fill_rest(struct entitle *items, size_t count, int64_t weights, int64_t left)
{
	int64_t rest = left;
	for (size_t i = 0; i < count; i++) {
		if (!wants_more(&items[i]))
			continue;
		int64_t part = part_of(left, items[i].weight, weights);
		items[i].deserved += part;
		rest -= part;
	}
	for (size_t i = 0; i < count && rest > 0; i++) { // fewer than there are that want more
		if (wants_more(&items[i])) {
			items[i].deserved++;
			rest--;
		}
	}
}

void entitle_divide(struct entitle *items, size_t count, int64_t capacity)
{
	int64_t promised = 0, weights;
	capacity = max_i64(capacity, 0);
	for (size_t i = 0; i < count; i++) {
		ASSERT(items[i].guaranteed >= 0 && items[i].wanted >= 0 && items[i].limit >= 0);
		ASSERT(items[i].weight >= 0 && items[i].weight <= SCHED_WEIGHT_MAX);
		items[i].deserved = min_i64(items[i].guaranteed, most_of(&items[i]));
		promised += items[i].deserved;
	}
	if (promised > capacity) {
		scale_down(items, count, promised, capacity);
		return;
	}
	int64_t left = capacity - promised;
	while (left > 0 && (weights = weights_of(items, count)) > 0) {
		if (fill_modest(items, count, weights, &left))
			continue;
		fill_rest(items, count, weights, left);
		left = 0;
	}
}
