// SPDX-License-Identifier: Apache-2.0
#include "billing/capacity.h"

#include "billing/asset_cost.h"
#include "billing/timeline.h"

struct work {
	struct arena *arena;
	const struct roster *roster;
	struct capacity *capacity;
	struct timeline *timeline;
	struct weights since_start; // of the stretch
	struct weights since_from;  // of the part that is rated
	int64_t *before, *after;    // results of splits, one a party of the GPU
};

// A stretch of constant cost of one GPU and the part of it that is rated.
struct stretch {
	const struct roster_gpu *gpu;
	int64_t start_s;      // of the stretch
	int64_t from_s, to_s; // of the part
};

// What the GPU has cost since the stretch began.
static err_status gpu_cost(const struct stretch *stretch, int64_t t_s, int64_t *ret_nano,
			   struct err *err)
{
	const struct asset *asset = stretch->gpu->asset;
	int64_t start_nano, t_nano;
	*ret_nano = 0;
	if (asset == NULL)
		return ERR_OK;
	if (!asset_cost_until(asset, stretch->start_s, &start_nano) ||
	    !asset_cost_until(asset, t_s, &t_nano))
		return err_set(err, ERR_LIMIT, "asset " STR_FMT " costs more than fits",
			       STR_ARG(asset->id));
	*ret_nano = asset_cost_of_gpu(asset, stretch->gpu->asset_gpu_i, t_nano - start_nano);
	return ERR_OK;
}

static err_status add_segment(struct weights *weights, const struct segment *segment,
			      struct err *err)
{
	err_status status = ERR_OK;
	for (size_t i = 0; status == ERR_OK && i < segment->holder_count; i++) {
		uint32_t party = segment->holders[i];
		wide num = (wide)segment->nums[party] * (segment->to_s - segment->from_s);
		status = weights_add(weights, party, num, segment->den, err);
	}
	return status;
}

// Gathers the weights from the start of the stretch to to_s into weights.
static err_status gather(struct work *work, struct weights *weights, int64_t from_s, int64_t to_s,
			 struct err *err)
{
	struct segment segment;
	err_status status = ERR_OK;
	for (int64_t t_s = from_s; status == ERR_OK && t_s < to_s; t_s = segment.to_s) {
		status = timeline_at(work->timeline, t_s, to_s, &segment, err);
		if (status == ERR_OK)
			status = add_segment(weights, &segment, err);
	}
	return status;
}

static void add_parts(const struct work *work, wide *sums, const int64_t *parts, int sign)
{
	const uint32_t *parties = timeline_parties(work->timeline);
	for (size_t i = 0; i < timeline_party_count(work->timeline); i++)
		sums[parties[i]] += sign * (wide)parts[i];
}

// The second view: what the part cost goes to those who used the GPU in it.
static err_status share_idle(struct work *work, int64_t cost_nano, struct err *err)
{
	bool was_used;
	size_t unallocated = timeline_unallocated(work->timeline);
	err_status status = weights_split(&work->since_from, cost_nano, unallocated, work->after,
					  &was_used, err);
	if (status != ERR_OK)
		return status;
	if (!was_used)
		work->after[unallocated] = cost_nano;
	add_parts(work, work->capacity->idle_shared_nano, work->after, 1);
	return ERR_OK;
}

// since_start and since_from hold the weights up to the end of the part; what the parties had
// at its beginning stands in before.
static err_status split_part(struct work *work, const struct stretch *stretch, struct err *err)
{
	int64_t from_nano, to_nano;
	bool any;
	err_status status = gpu_cost(stretch, stretch->from_s, &from_nano, err);
	if (status == ERR_OK)
		status = gpu_cost(stretch, stretch->to_s, &to_nano, err);
	if (status == ERR_OK)
		status = weights_split(&work->since_start, to_nano, WEIGHTS_NOBODY, work->after,
				       &any, err);
	if (status != ERR_OK)
		return status;
	ASSERT(any); // the stretch has a length, and shares sum to 1 at every instant
	add_parts(work, work->capacity->kept_nano, work->after, 1);
	add_parts(work, work->capacity->kept_nano, work->before, -1);
	return share_idle(work, to_nano - from_nano, err);
}

static err_status rate_stretch(struct work *work, const struct stretch *stretch, struct err *err)
{
	size_t count = timeline_party_count(work->timeline);
	int64_t from_nano;
	bool any;
	err_status status = weights_reset(&work->since_start, count, err);
	if (status == ERR_OK)
		status = weights_reset(&work->since_from, count, err);
	if (status == ERR_OK)
		status = gather(work, &work->since_start, stretch->start_s, stretch->from_s, err);
	if (status == ERR_OK)
		status = gpu_cost(stretch, stretch->from_s, &from_nano, err);
	if (status == ERR_OK)
		status = weights_split(&work->since_start, from_nano, WEIGHTS_NOBODY, work->before,
				       &any, err);
	if (status == ERR_OK)
		status = gather(work, &work->since_from, stretch->from_s, stretch->to_s, err);
	if (status != ERR_OK)
		return status;
	uint32_t *same = ARENA_ARRAY(work->arena, uint32_t, count);
	if (same == NULL)
		return err_set(err, ERR_LIMIT, "no memory for %zu tenants", count);
	for (size_t i = 0; i < count; i++)
		same[i] = (uint32_t)i;
	status = weights_merge(&work->since_start, &work->since_from, same, err);
	if (status == ERR_OK)
		status = split_part(work, stretch, err);
	if (status == ERR_OK)
		status = weights_merge(&work->capacity->seconds, &work->since_from,
				       timeline_parties(work->timeline), err);
	return status;
}

static err_status rate_gpu(struct work *work, const struct roster_gpu *gpu,
			   const int64_t period_s[2], struct err *err)
{
	const struct roster *roster = work->roster;
	err_status status = timeline_start(work->timeline, gpu->usage, roster->tenant_order,
					   roster->unallocated, err);
	size_t count = timeline_party_count(work->timeline);
	work->before = ARENA_ARRAY(work->arena, int64_t, count);
	work->after = ARENA_ARRAY(work->arena, int64_t, count);
	if (status == ERR_OK && (work->before == NULL || work->after == NULL))
		return err_set(err, ERR_LIMIT, "no memory for %zu tenants", count);
	for (int64_t t_s = period_s[0]; status == ERR_OK && t_s < period_s[1];) {
		int64_t range_s[2] = { period_s[0], period_s[1] };
		if (gpu->asset != NULL)
			asset_cost_stretch(gpu->asset, t_s, range_s);
		if (range_s[0] == INT64_MIN) // before it was in service: costs nothing
			range_s[0] = t_s;
		struct stretch stretch = { .gpu = gpu,
					   .start_s = range_s[0],
					   .from_s = t_s,
					   .to_s = min_i64(range_s[1], period_s[1]) };
		status = rate_stretch(work, &stretch, err);
		t_s = stretch.to_s;
	}
	return status;
}

err_status capacity_rate(struct arena *arena, const struct roster *roster,
			 const int64_t period_s[2], struct capacity *capacity, struct err *err)
{
	AUTO(timeline_freep) struct timeline *timeline = timeline_new();
	struct work work = {
		.arena = arena, .roster = roster, .capacity = capacity, .timeline = timeline
	};
	err_status status = timeline == NULL
				    ? err_set(err, ERR_LIMIT, "no memory for timelines")
				    : weights_reset(&capacity->seconds, roster->party_count, err);
	for (size_t i = 0; status == ERR_OK && i < roster->gpu_count; i++)
		status = rate_gpu(&work, &roster->gpus[i], period_s, err);
	weights_done(&work.since_start);
	weights_done(&work.since_from);
	return status;
}
