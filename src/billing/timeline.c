// SPDX-License-Identifier: Apache-2.0
#include "billing/timeline.h"

#include "billing/slots.h"

#include <stdlib.h>

static const wide DEN_MAX = (wide)1 << 62;

struct edge {
	int64_t t_s;
	uint32_t allocation_i;
	bool is_release;
};

struct timeline {
	const struct usage_gpu *gpu;
	struct edge *edges; // by t_s
	size_t edge_count, edge_cap;
	size_t next;         // the first edge not applied yet
	uint32_t *active;    // allocations held now
	uint32_t *active_at; // place of each allocation in active
	size_t active_count, active_cap, active_at_cap;
	uint32_t *parties; // their places in the order of all names, ascending
	size_t party_count, party_cap;
	uint32_t *party_of; // party of each allocation
	size_t party_of_cap;
	size_t unallocated;
	int64_t *nums;
	size_t nums_cap;
	uint32_t *holders;
	size_t holder_count, holder_cap;
	int64_t den;
	bool is_current; // nums, holders and den are those of active
};

struct timeline *timeline_new(void) { return calloc(1, sizeof(struct timeline)); }

void timeline_free(struct timeline *timeline)
{
	if (timeline == NULL)
		return;
	free(timeline->edges);
	free(timeline->active);
	free(timeline->active_at);
	free(timeline->parties);
	free(timeline->party_of);
	free(timeline->nums);
	free(timeline->holders);
	free(timeline);
}

void timeline_freep(struct timeline **timeline)
{
	timeline_free(*timeline);
	*timeline = NULL;
}

// Room for count items in an array that keeps nothing.
static bool room_for(void *data, size_t *cap, size_t count, size_t item_bytes)
{
	void *old = NULL;
	if (count <= *cap)
		return true;
	memcpy(&old, data, sizeof old);
	free(old);
	void *fresh = calloc(count, item_bytes);
	memcpy(data, &fresh, sizeof fresh);
	*cap = fresh == NULL ? 0 : count;
	return fresh != NULL;
}

static bool make_room(struct timeline *t, size_t count)
{
	return room_for(&t->edges, &t->edge_cap, count * 3, sizeof *t->edges) &&
	       room_for(&t->active, &t->active_cap, count, sizeof *t->active) &&
	       room_for(&t->active_at, &t->active_at_cap, count, sizeof *t->active_at) &&
	       room_for(&t->parties, &t->party_cap, count + 1, sizeof *t->parties) &&
	       room_for(&t->party_of, &t->party_of_cap, count, sizeof *t->party_of) &&
	       room_for(&t->nums, &t->nums_cap, count + 1, sizeof *t->nums) &&
	       room_for(&t->holders, &t->holder_cap, count + 1, sizeof *t->holders);
}

static int by_number(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	return a < b ? -1 : a > b;
}

static uint32_t party_of(const struct timeline *t, uint32_t order)
{
	const uint32_t *found =
		bsearch(&order, t->parties, t->party_count, sizeof *t->parties, by_number);
	ASSERT(found != NULL);
	return (uint32_t)(found - t->parties);
}

static void number_parties(struct timeline *t, const uint32_t *tenant_order, uint32_t unallocated)
{
	size_t count = t->gpu == NULL ? 0 : t->gpu->allocation_count;
	for (size_t i = 0; i < count; i++)
		t->parties[i] = tenant_order[t->gpu->allocations[i].tenant];
	t->parties[count] = unallocated;
	qsort(t->parties, count + 1, sizeof *t->parties, by_number);
	t->party_count = 0;
	for (size_t i = 0; i <= count; i++)
		if (i == 0 || t->parties[i] != t->parties[t->party_count - 1])
			t->parties[t->party_count++] = t->parties[i];
	for (size_t i = 0; i < count; i++)
		t->party_of[i] = party_of(t, tenant_order[t->gpu->allocations[i].tenant]);
	t->unallocated = party_of(t, unallocated);
}

static int by_time(const void *left, const void *right)
{
	const struct edge *a = left, *b = right;
	return a->t_s < b->t_s ? -1 : a->t_s > b->t_s;
}

// Allocations come by the instant of binding, so only the releases need to be sorted; they are
// gathered behind the room for all edges and then merged in.
static void list_edges(struct timeline *t)
{
	size_t count = t->gpu == NULL ? 0 : t->gpu->allocation_count, release_count = 0;
	struct edge *releases = t->edges + count * 2;
	for (size_t i = 0; i < count; i++) {
		const struct usage_allocation *allocation = &t->gpu->allocations[i];
		if (allocation->released_s != USAGE_OPEN)
			releases[release_count++] =
				(struct edge){ allocation->released_s, (uint32_t)i, true };
	}
	if (release_count > 0)
		qsort(releases, release_count, sizeof *releases, by_time);
	t->edge_count = 0;
	for (size_t i = 0, k = 0; i < count || k < release_count;) {
		bool is_release = i == count || (k < release_count &&
						 releases[k].t_s < t->gpu->allocations[i].bound_s);
		struct edge edge = is_release ? releases[k++]
					      : (struct edge){ t->gpu->allocations[i].bound_s,
							       (uint32_t)i, false };
		i += is_release ? 0 : 1;
		t->edges[t->edge_count++] = edge;
	}
}

err_status timeline_start(struct timeline *t, const struct usage_gpu *gpu,
			  const uint32_t *tenant_order, uint32_t unallocated_order, struct err *err)
{
	size_t count = gpu == NULL ? 0 : gpu->allocation_count;
	if (!make_room(t, max_size(count, 1)))
		return err_set(err, ERR_LIMIT,
			       "no memory for the timeline of a GPU with %zu "
			       "allocations",
			       count);
	t->gpu = gpu;
	t->next = 0;
	t->active_count = 0;
	t->holder_count = 0;
	t->is_current = false;
	number_parties(t, tenant_order, unallocated_order);
	memset(t->nums, 0, t->party_count * sizeof *t->nums);
	list_edges(t);
	return ERR_OK;
}

size_t timeline_party_count(const struct timeline *t) { return t->party_count; }
const uint32_t *timeline_parties(const struct timeline *t) { return t->parties; }
size_t timeline_unallocated(const struct timeline *t) { return t->unallocated; }

// Number of edges not after t_s.
static size_t edges_until(const struct timeline *t, int64_t t_s)
{
	size_t low = 0, high = t->edge_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (t->edges[middle].t_s <= t_s)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int64_t timeline_edge_before(const struct timeline *t, int64_t t_s)
{
	size_t count = edges_until(t, t_s);
	return count == 0 ? INT64_MIN : t->edges[count - 1].t_s;
}

static void apply(struct timeline *t, const struct edge *edge)
{
	if (!edge->is_release) {
		t->active_at[edge->allocation_i] = (uint32_t)t->active_count;
		t->active[t->active_count++] = edge->allocation_i;
		return;
	}
	ASSERT(t->active_count > 0);
	uint32_t at = t->active_at[edge->allocation_i], last = t->active[--t->active_count];
	ASSERT(t->active[at] == edge->allocation_i || last == edge->allocation_i);
	t->active[at] = last;
	t->active_at[last] = at;
}

static err_status too_fine(const struct timeline *t, struct err *err)
{
	return err_set(err, ERR_LIMIT,
		       "the shares of GPU " STR_FMT " held at one time have no "
		       "common denominator below 2^62",
		       STR_ARG(t->gpu->id));
}

static err_status add_shares(struct timeline *t, wide den, wide *ret_sum, struct err *err)
{
	wide sum = 0;
	for (size_t i = 0; i < t->active_count; i++) {
		const struct usage_allocation *allocation = &t->gpu->allocations[t->active[i]];
		uint32_t party = t->party_of[t->active[i]];
		wide num = den / allocation->share_den * allocation->share_num;
		sum += num;
		if (sum > DEN_MAX)
			return too_fine(t, err);
		if (t->nums[party] == 0)
			t->holders[t->holder_count++] = party;
		t->nums[party] += (int64_t)num;
	}
	*ret_sum = sum;
	return ERR_OK;
}

// Adds up by party what is held now.
static err_status add_up(struct timeline *t, struct err *err)
{
	wide den = 1, sum = 0;
	for (size_t i = 0; i < t->holder_count; i++)
		t->nums[t->holders[i]] = 0;
	t->holder_count = 0;
	for (size_t i = 0; i < t->active_count; i++) {
		wide other = t->gpu->allocations[t->active[i]].share_den;
		den = den / money_gcd(den, other) * other;
		if (den > DEN_MAX)
			return too_fine(t, err);
	}
	err_status status = add_shares(t, den, &sum, err);
	if (status != ERR_OK)
		return status;
	if (sum < den) {
		t->nums[t->unallocated] = (int64_t)(den - sum);
		t->holders[t->holder_count++] = (uint32_t)t->unallocated;
	}
	t->den = (int64_t)(sum > den ? sum : den);
	t->is_current = true;
	return ERR_OK;
}

err_status timeline_at(struct timeline *t, int64_t from_s, int64_t to_s,
		       struct segment *ret_segment, struct err *err)
{
	ASSERT(from_s < to_s);
	ASSERT(t->next == 0 || t->edges[t->next - 1].t_s <= from_s);
	for (; t->next < t->edge_count && t->edges[t->next].t_s <= from_s; t->next++) {
		apply(t, &t->edges[t->next]);
		t->is_current = false;
	}
	if (!t->is_current) {
		err_status status = add_up(t, err);
		if (status != ERR_OK)
			return status;
	}
	int64_t edge_s = t->next < t->edge_count ? t->edges[t->next].t_s : INT64_MAX;
	*ret_segment = (struct segment){ from_s,     min_i64(edge_s, to_s), t->den, t->nums,
					 t->holders, t->holder_count };
	return ERR_OK;
}
