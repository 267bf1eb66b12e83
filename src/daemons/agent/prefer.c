// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/prefer.h"

// Smaller is better, compared member by member.
struct cost {
	size_t reserved, span, numa_changes;
};

static bool is_less(struct cost a, struct cost b)
{
	if (a.reserved != b.reserved)
		return a.reserved < b.reserved;
	if (a.span != b.span)
		return a.span < b.span;
	return a.numa_changes < b.numa_changes;
}

static struct cost cost_of(const struct prefer_device *devices, const size_t *places, size_t size)
{
	struct cost cost = { 0 };
	for (size_t i = 0; i < size; i++) {
		const struct prefer_device *device = &devices[places[i]];
		cost.reserved += device->is_reserved && !device->is_must ? 1 : 0;
		if (i > 0 && device->numa_node != devices[places[i - 1]].numa_node)
			cost.numa_changes++;
	}
	cost.span = devices[places[size - 1]].index - devices[places[0]].index;
	return cost;
}

// Musts, and from place `from` on the next others until there are enough.
static size_t fill(const struct prefer_device *devices, size_t count, size_t from, size_t size,
		   bool skip_reserved, size_t places[GPU_MAX])
{
	size_t must = 0, filled = 0;
	for (size_t i = 0; i < count; i++)
		must += devices[i].is_available && devices[i].is_must ? 1 : 0;
	size_t others = size - must;
	for (size_t i = 0; i < count; i++) {
		bool is_other = devices[i].is_available && !devices[i].is_must && i >= from &&
				!(skip_reserved && devices[i].is_reserved);
		if (devices[i].is_available && devices[i].is_must) {
			places[filled++] = i;
		} else if (is_other && others > 0) {
			places[filled++] = i;
			others--;
		}
	}
	return filled;
}

bool prefer_choose(const struct prefer_device *devices, size_t count, size_t size,
		   size_t *ret_chosen)
{
	size_t available = 0, must = 0;
	ASSERT(count <= GPU_MAX);
	for (size_t i = 0; i < count; i++) {
		ASSERT(i == 0 || devices[i].index > devices[i - 1].index);
		available += devices[i].is_available ? 1 : 0;
		must += devices[i].is_available && devices[i].is_must ? 1 : 0;
		if (devices[i].is_must && !devices[i].is_available)
			return false;
	}
	if (size == 0 || size > available || must > size)
		return false;
	bool any = false;
	struct cost best = { 0 };
	for (size_t i = 0; i < 2 * count; i++) {
		size_t places[GPU_MAX];
		size_t filled = fill(devices, count, i / 2, size, i % 2 == 1, places);
		if (filled < size)
			continue;
		struct cost cost = cost_of(devices, places, size);
		if (any && !is_less(cost, best))
			continue;
		any = true;
		best = cost;
		memcpy(ret_chosen, places, size * sizeof places[0]);
	}
	ASSERT(any); // from place 0 with everything allowed there are always enough
	return true;
}

// Shares of the GPU that are with other containers, or chosen for this one already.
static uint32_t taken_of(const struct prefer_shared *gpu, uint32_t take)
{
	return gpu->total - gpu->available + take;
}

static bool is_better(const struct prefer_shared *gpus, const uint32_t *take, size_t a, size_t b,
		      dp_policy policy)
{
	if (gpus[a].is_reserved != gpus[b].is_reserved)
		return !gpus[a].is_reserved;
	uint32_t taken_a = taken_of(&gpus[a], take[a]), taken_b = taken_of(&gpus[b], take[b]);
	return policy == DP_PACKED ? taken_a > taken_b : taken_a < taken_b;
}

// The GPU that has enough for all, of several the best by the policy.
static size_t whole_place(const struct prefer_shared *gpus, size_t count, size_t size,
			  dp_policy policy, const uint32_t *take)
{
	size_t best = SIZE_MAX, musts_in = 0;
	for (size_t i = 0; i < count; i++)
		musts_in += gpus[i].must > 0 ? 1 : 0;
	for (size_t i = 0; i < count; i++) {
		bool is_possible = gpus[i].available >= size &&
				   (musts_in == 0 || (musts_in == 1 && gpus[i].must > 0));
		if (is_possible && (best == SIZE_MAX || is_better(gpus, take, i, best, policy)))
			best = i;
	}
	return best;
}

bool prefer_shares(const struct prefer_shared *gpus, size_t count, size_t size, dp_policy policy,
		   bool is_one_gpu, uint32_t ret_take[GPU_MAX])
{
	uint32_t take[GPU_MAX] = { 0 };
	size_t available = 0, left = size;
	ASSERT(count <= GPU_MAX);
	for (size_t i = 0; i < count; i++) {
		ASSERT(gpus[i].available <= gpus[i].total && gpus[i].must <= gpus[i].available);
		available += gpus[i].available;
		if (gpus[i].must > left)
			return false;
		take[i] = gpus[i].must;
		left -= gpus[i].must;
	}
	if (size == 0 || size > available)
		return false;
	size_t place = is_one_gpu ? whole_place(gpus, count, size, policy, take) : SIZE_MAX;
	for (; left > 0; left--) {
		size_t best = place;
		for (size_t i = 0; place == SIZE_MAX && i < count; i++) {
			bool has_more = take[i] < gpus[i].available;
			if (has_more &&
			    (best == SIZE_MAX || is_better(gpus, take, i, best, policy)))
				best = i;
		}
		ASSERT(best < count);
		take[best]++;
	}
	memcpy(ret_take, take, sizeof take);
	return true;
}
