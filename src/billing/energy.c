// SPDX-License-Identifier: Apache-2.0
#include "billing/energy.h"

#include "base/timefmt.h"
#include "billing/meter.h"
#include "billing/timeline.h"

struct work {
	struct arena *arena;
	const struct roster *roster;
	int64_t from_s, to_s;
	struct tariff_steps steps;
	struct timeline *timeline;
	struct meter *meter;
	struct money_share *shares; // room for the parties of one GPU
	struct energy_cost *cost;
};

static bool has_energy(const struct usage_gpu *gpu, int64_t from_s, int64_t to_s)
{
	return gpu != NULL && gpu->energy_count > 1 && gpu->energy[0].t_s < to_s &&
	       gpu->energy[gpu->energy_count - 1].t_s > from_s;
}

// Place of the step that holds at t_s, SIZE_MAX when all begin later.
static size_t step_at(const struct tariff_steps *steps, int64_t t_s)
{
	size_t low = 0, high = steps->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (steps->items[middle].from_s <= t_s)
			low = middle + 1;
		else
			high = middle;
	}
	return low - 1;
}

static int64_t step_after(const struct tariff_steps *steps, int64_t t_s)
{
	size_t next = step_at(steps, t_s) + 1;
	return next < steps->count ? steps->items[next].from_s : INT64_MAX;
}

// Where the piece that holds at t_s began.
static int64_t piece_start(const struct work *work, int64_t t_s)
{
	size_t i = step_at(&work->steps, t_s);
	int64_t edge_s = timeline_edge_before(work->timeline, t_s);
	return i == SIZE_MAX ? edge_s : max_i64(edge_s, work->steps.items[i].from_s);
}

// Energy of the period must have a price; what lies before the period only shifts the sum.
static err_status check_prices(const struct work *work, const struct usage_gpu *gpu,
			       struct err *err)
{
	char time[TIME_TEXT_BYTES];
	int64_t from_s = max_i64(work->from_s, gpu->energy[0].t_s);
	int64_t to_s = min_i64(work->to_s, gpu->energy[gpu->energy_count - 1].t_s);
	for (size_t i = step_at(&work->steps, from_s); i < work->steps.count; i++) {
		const struct tariff_step *step = &work->steps.items[i];
		if (step->from_s >= to_s)
			break;
		if (!step->is_known)
			return err_set(err, ERR_INVALID,
				       "GPU " STR_FMT " used energy at %s, "
				       "before the first energy_tariff or pue begins",
				       STR_ARG(gpu->id),
				       time_format(max_i64(from_s, step->from_s), time));
	}
	return ERR_OK;
}

// Adds sign * the split of nano by the shares of the segment.
static err_status split_piece(struct work *work, const struct segment *segment, int64_t nano,
			      int sign, struct err *err)
{
	const uint32_t *parties = timeline_parties(work->timeline);
	if (nano == 0)
		return ERR_OK;
	for (size_t i = 0; i < segment->holder_count; i++) {
		uint32_t party = segment->holders[i];
		work->shares[i].weight = segment->nums[party];
		work->shares[i].name = work->roster->parties[parties[party]];
	}
	if (!money_apportion(nano, work->shares, segment->holder_count))
		return err_set(err, ERR_LIMIT, "no memory to split an amount");
	for (size_t i = 0; i < segment->holder_count; i++)
		work->cost->nano[parties[segment->holders[i]]] += sign * (wide)work->shares[i].nano;
	return ERR_OK;
}

static err_status rate_pieces(struct work *work, const struct usage_gpu *gpu, struct err *err)
{
	int64_t start_s = piece_start(work, work->from_s), start_nano, from_nano, end_nano;
	err_status status =
		meter_at(work->meter, max_i64(start_s, gpu->energy[0].t_s), &start_nano, err);
	// The first reading may lie after from_s, then all up to it is 0.
	bool is_later = gpu->energy[0].t_s > work->from_s;
	from_nano = start_nano;
	if (status == ERR_OK && !is_later)
		status = meter_at(work->meter, work->from_s, &from_nano, err);
	if (status != ERR_OK)
		return status;
	wide from_mj = meter_energy_mj(work->meter);
	int64_t first_nano = from_nano;
	for (int64_t t_s = work->from_s; t_s < work->to_s;) {
		struct segment segment;
		int64_t end_s = min_i64(work->to_s, step_after(&work->steps, t_s));
		status = timeline_at(work->timeline, t_s, end_s, &segment, err);
		if (status == ERR_OK && t_s == work->from_s)
			status = split_piece(work, &segment, from_nano - start_nano, -1, err);
		if (status == ERR_OK)
			status = meter_at(work->meter, max_i64(segment.to_s, gpu->energy[0].t_s),
					  &end_nano, err);
		if (status == ERR_OK)
			status = split_piece(work, &segment, end_nano - start_nano, 1, err);
		if (status != ERR_OK)
			return status;
		start_nano = end_nano;
		t_s = segment.to_s;
	}
	work->cost->total_nano += end_nano - first_nano;
	work->cost->energy_mj += (wide)meter_energy_mj(work->meter) - from_mj;
	return ERR_OK;
}

static err_status rate_gpu(struct work *work, const struct usage_gpu *gpu, struct err *err)
{
	const struct roster *roster = work->roster;
	err_status status = check_prices(work, gpu, err);
	if (status == ERR_OK)
		status = timeline_start(work->timeline, gpu, roster->tenant_order,
					roster->unallocated, err);
	if (status != ERR_OK)
		return status;
	work->shares =
		ARENA_ARRAY(work->arena, struct money_share, timeline_party_count(work->timeline));
	if (work->shares == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the tenants of a GPU");
	meter_start(work->meter, gpu, &work->steps);
	return rate_pieces(work, gpu, err);
}

static err_status rate_all(struct work *work, const struct rate_input *input, struct err *err)
{
	int64_t range_s[2] = { INT64_MAX, input->to_s };
	for (size_t i = 0; i < work->roster->gpu_count; i++) {
		const struct usage_gpu *gpu = work->roster->gpus[i].usage;
		if (has_energy(gpu, input->from_s, input->to_s))
			range_s[0] = min_i64(range_s[0], gpu->energy[0].t_s);
	}
	if (range_s[0] == INT64_MAX)
		return ERR_OK;
	err_status status = tariff_steps_make(work->arena, input->prices, input->zone, range_s,
					      &work->steps, err);
	for (size_t i = 0; status == ERR_OK && i < work->roster->gpu_count; i++) {
		const struct usage_gpu *gpu = work->roster->gpus[i].usage;
		if (has_energy(gpu, input->from_s, input->to_s))
			status = rate_gpu(work, gpu, err);
	}
	return status;
}

err_status energy_rate(struct arena *arena, const struct roster *roster,
		       const struct rate_input *input, struct energy_cost *cost, struct err *err)
{
	AUTO(timeline_freep) struct timeline *timeline = timeline_new();
	AUTO(meter_freep) struct meter *meter = meter_new();
	struct work work = { .arena = arena,
			     .roster = roster,
			     .from_s = input->from_s,
			     .to_s = input->to_s,
			     .timeline = timeline,
			     .meter = meter,
			     .cost = cost };
	if (timeline == NULL || meter == NULL)
		return err_set(err, ERR_LIMIT, "no memory to rate energy");
	return rate_all(&work, input, err);
}
