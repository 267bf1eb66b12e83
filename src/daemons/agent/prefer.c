// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/prefer.h"

enum { WAYS_MAX = 13000 }; // 8 of 16 are 12,870

bool prefer_is_better(const struct prefer_cost *a, const struct prefer_cost *b)
{
	if (a->reserved != b->reserved)
		return a->reserved < b->reserved;
	if (a->score != b->score)
		return a->score > b->score;
	if (a->rest != b->rest)
		return a->rest > b->rest;
	return a->span < b->span;
}

struct search {
	const struct prefer_device *devices;
	const struct topology *topology;
	size_t free_places[GPU_MAX], free_count; // available ones
	uint32_t row[GPU_MAX];                   // score of each to all that are available
	uint32_t total;                          // of all pairs
	size_t size;
	size_t places[GPU_MAX];
	struct prefer_cost best;
	size_t best_places[GPU_MAX];
	bool any;
};

// What is chosen so far: score of its pairs, and of each to everything.
struct partial {
	size_t count;
	uint32_t score, rows, reserved;
};

static uint32_t score_of(const struct search *search, size_t a, size_t b)
{
	return search->topology->score[search->devices[a].index][search->devices[b].index];
}

static struct partial with(const struct search *search, struct partial partial, size_t place)
{
	const struct prefer_device *device = &search->devices[place];
	const uint16_t *scores = search->topology->score[device->index];
	for (size_t i = 0; i < partial.count; i++)
		partial.score += scores[search->devices[search->places[i]].index];
	partial.rows += search->row[place];
	partial.reserved += device->is_reserved && !device->is_must ? 1 : 0;
	partial.count++;
	return partial;
}

static uint32_t span_of(const struct search *search)
{
	uint32_t first = UINT32_MAX, last = 0;
	for (size_t i = 0; i < search->size; i++) {
		uint32_t index = search->devices[search->places[i]].index;
		first = index < first ? index : first;
		last = index > last ? index : last;
	}
	return last - first;
}

static void consider(struct search *search, const struct partial *partial)
{
	ASSERT(partial->count == search->size);
	// Pairs within the chosen are in their rows twice, pairs to the others once.
	struct prefer_cost cost = { .reserved = partial->reserved,
				    .score = partial->score,
				    .rest = search->total + partial->score - partial->rows };
	if (search->any && !prefer_is_better(&cost, &search->best))
		return; // not even with the least span
	cost.span = span_of(search);
	if (search->any && !prefer_is_better(&cost, &search->best))
		return;
	search->any = true;
	search->best = cost;
	memcpy(search->best_places, search->places, search->size * sizeof search->places[0]);
}

// All ways to choose, in the order of the indexes: of equal ones the first counts.
static void descend(struct search *search, size_t from, struct partial partial, size_t musts_left)
{
	if (partial.count == search->size) {
		consider(search, &partial);
		return;
	}
	for (size_t i = from; i < search->free_count; i++) {
		size_t place = search->free_places[i];
		bool is_must = search->devices[place].is_must;
		size_t left = search->size - partial.count;
		if (search->free_count - i < left)
			return;
		if (is_must || left > musts_left) {
			struct partial next = with(search, partial, place);
			search->places[partial.count] = place;
			descend(search, i + 1, next, musts_left - (is_must ? 1 : 0));
		}
		if (is_must)
			return; // the others of this level would leave it out
	}
}

// The next one for a choice that grows: the seed, else what fits best.
static size_t best_next(const struct search *search, const struct partial *partial, size_t seed,
			const bool is_in[GPU_MAX])
{
	size_t best = SIZE_MAX;
	struct partial best_partial = { 0 };
	if (!is_in[seed])
		return seed;
	for (size_t i = 0; i < search->free_count; i++) {
		size_t place = search->free_places[i];
		struct partial next = with(search, *partial, place);
		bool is_better =
			best == SIZE_MAX || next.reserved < best_partial.reserved ||
			(next.reserved == best_partial.reserved && next.score > best_partial.score);
		if (is_in[place] || !is_better)
			continue;
		best = place;
		best_partial = next;
	}
	ASSERT(best != SIZE_MAX);
	return best;
}

// Musts, one device to begin with, and then always the one that fits best.
static void grow(struct search *search, size_t seed)
{
	bool is_in[GPU_MAX] = { false };
	struct partial partial = { 0 };
	for (size_t i = 0; i < search->free_count; i++) {
		size_t place = search->free_places[i];
		if (!search->devices[place].is_must)
			continue;
		partial = with(search, partial, place);
		search->places[partial.count - 1] = place;
		is_in[place] = true;
	}
	while (partial.count < search->size) {
		size_t place = best_next(search, &partial, seed, is_in);
		partial = with(search, partial, place);
		search->places[partial.count - 1] = place;
		is_in[place] = true;
	}
	consider(search, &partial);
}

static uint64_t ways(size_t count, size_t size)
{
	uint64_t result = 1;
	size = min_size(size, count - size);
	for (size_t i = 0; i < size && result <= WAYS_MAX; i++)
		result = result * (count - i) / (i + 1);
	return result;
}

static void sort_places(size_t *places, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		for (size_t j = i; j > 0 && places[j] < places[j - 1]; j--) {
			size_t place = places[j];
			places[j] = places[j - 1];
			places[j - 1] = place;
		}
	}
}

bool prefer_choose(const struct prefer_device *devices, size_t count, size_t size,
		   const struct topology *topology, size_t *ret_chosen)
{
	struct search search = { .devices = devices, .topology = topology, .size = size };
	size_t must = 0;
	ASSERT(count <= GPU_MAX);
	for (size_t i = 0; i < count; i++) {
		ASSERT(devices[i].index < GPU_MAX);
		ASSERT(i == 0 || devices[i].index > devices[i - 1].index);
		if (devices[i].is_must && !devices[i].is_available)
			return false;
		must += devices[i].is_must ? 1 : 0;
		if (devices[i].is_available)
			search.free_places[search.free_count++] = i;
	}
	if (size == 0 || size > search.free_count || must > size)
		return false;
	for (size_t i = 0; i < search.free_count; i++) {
		size_t place = search.free_places[i];
		for (size_t j = 0; j < search.free_count; j++)
			search.row[place] += score_of(&search, place, search.free_places[j]);
		search.total += search.row[place];
	}
	search.total /= 2; // each pair stands in two rows
	if (ways(search.free_count - must, size - must) <= WAYS_MAX) {
		descend(&search, 0, (struct partial){ 0 }, must);
	} else {
		for (size_t i = 0; i < search.free_count; i++)
			grow(&search, search.free_places[i]);
	}
	ASSERT(search.any); // there are enough
	sort_places(search.best_places, size);
	memcpy(ret_chosen, search.best_places, size * sizeof ret_chosen[0]);
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
