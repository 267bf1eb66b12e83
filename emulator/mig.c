// SPDX-License-Identifier: Apache-2.0
#include "emulator/mig.h"

#include "emulator/identity.h"
#include "gpu/nvml_abi.h"

#include <string.h>

static uint32_t span(uint32_t start, uint32_t size) { return ((1u << size) - 1) << start; }

static bool is_start(uint32_t starts, uint32_t start)
{
	return start < BOARD_MIG_SLICE_MAX && (starts >> start & 1) != 0;
}

bool mig_profile_find(const struct board *board, uint32_t profile, uint32_t *ret_profile_i)
{
	for (uint32_t i = 0; i < board->mig_profile_count; i++)
		if (board->mig_profiles[i].profile == profile) {
			*ret_profile_i = i;
			return true;
		}
	return false;
}

bool mig_profile_by_id(const struct board *board, uint32_t id, uint32_t *ret_profile_i)
{
	for (uint32_t i = 0; i < board->mig_profile_count; i++)
		if (board->mig_profiles[i].id == id) {
			*ret_profile_i = i;
			return true;
		}
	return false;
}

bool mig_profile_by_name(const struct board *board, const char *name, uint32_t *ret_profile_i)
{
	for (uint32_t i = 0; i < board->mig_profile_count; i++)
		if (strcmp(board->mig_profiles[i].name, name) == 0) {
			*ret_profile_i = i;
			return true;
		}
	return false;
}

uint32_t mig_slices(const struct board *board)
{
	uint32_t most = 1;

	for (uint32_t i = 0; i < board->mig_profile_count; i++)
		if (board->mig_profiles[i].slices > most)
			most = board->mig_profiles[i].slices;
	return most;
}

static uint32_t taken_slices(const struct board *board, const struct mig *mig)
{
	uint32_t taken = 0;

	for (size_t i = 0; i < MIG_GI_MAX; i++) {
		const struct mig_gi *gi = &mig->gis[i];
		if (!gi->is_used)
			continue;
		uint32_t own = span(gi->start, board->mig_profiles[gi->profile_i].size);
		ASSERT((taken & own) == 0);
		taken |= own;
	}
	return taken;
}

static uint32_t count_of_profile(const struct mig *mig, uint32_t profile_i)
{
	uint32_t count = 0;

	for (size_t i = 0; i < MIG_GI_MAX; i++)
		count += mig->gis[i].is_used && mig->gis[i].profile_i == profile_i ? 1 : 0;
	return count;
}

// The starts at which a span of this size meets nothing that is taken.
static uint32_t open_starts(uint32_t starts, uint32_t size, uint32_t taken)
{
	uint32_t open = 0;

	for (uint32_t start = 0; start < BOARD_MIG_SLICE_MAX; start++)
		if (is_start(starts, start) && (taken & span(start, size)) == 0)
			open |= 1u << start;
	return open;
}

uint32_t mig_free_starts(const struct board *board, const struct mig *mig, uint32_t profile_i)
{
	ASSERT(profile_i < board->mig_profile_count);
	const struct mig_profile *profile = &board->mig_profiles[profile_i];

	if (count_of_profile(mig, profile_i) >= profile->count_max)
		return 0;
	return open_starts(profile->starts, profile->size, taken_slices(board, mig));
}

uint32_t mig_remaining(const struct board *board, const struct mig *mig, uint32_t profile_i)
{
	const struct mig_profile *profile = &board->mig_profiles[profile_i];
	uint32_t fit = mig_compute_count(mig_free_starts(board, mig, profile_i), profile->size);
	uint32_t have = count_of_profile(mig, profile_i);

	ASSERT(have <= profile->count_max);
	return min_size(fit, profile->count_max - have) & 0xff;
}

// The place that leaves the most others open, the highest of equals: 1g goes to the far end.
static uint32_t choose_start(const struct board *board, const struct mig *mig, uint32_t profile_i)
{
	uint32_t starts = mig_free_starts(board, mig, profile_i), place_i = 0;
	uint32_t best = MIG_ANYWHERE, best_left = 0;

	while (place_i < MIG_GI_MAX && mig->gis[place_i].is_used)
		place_i++;
	for (uint32_t start = 0; start < BOARD_MIG_SLICE_MAX; start++) {
		struct mig tried = *mig;
		uint32_t left = 0;
		if (!is_start(starts, start))
			continue;
		ASSERT(place_i < MIG_GI_MAX);
		tried.gis[place_i] = (struct mig_gi){ true, 0, profile_i, start };
		for (uint32_t i = 0; i < board->mig_profile_count; i++)
			left += (uint32_t)__builtin_popcount(mig_free_starts(board, &tried, i));
		if (best == MIG_ANYWHERE || left >= best_left) {
			best = start;
			best_left = left;
		}
	}
	return best;
}

// Numbers of a binary tree over the memory slices: the whole is 0, halves are 1 and 2, quarters
// 3 to 6, eighths 7 to 14. So an id is never in use twice.
static uint32_t gi_id_of(const struct board *board, uint32_t size, uint32_t start)
{
	uint32_t whole = 1, level = 1;

	for (uint32_t i = 0; i < board->mig_profile_count; i++) {
		const struct mig_profile *profile = &board->mig_profiles[i];
		uint32_t last = 31 - (uint32_t)__builtin_clz(profile->starts);
		while (whole < last + profile->size)
			whole *= 2;
	}
	while (whole / level > size)
		level *= 2;
	ASSERT(level - 1 + start / size < MIG_GI_ID_MAX);
	return level - 1 + start / size;
}

uint32_t mig_gi_create(const struct board *board, struct mig *mig, uint32_t profile_i,
		       uint32_t start, uint32_t *ret_gi_i)
{
	ASSERT(profile_i < board->mig_profile_count);
	const struct mig_profile *profile = &board->mig_profiles[profile_i];

	if (mig->mode != NVML_FEATURE_ENABLED)
		return NVML_ERROR_NOT_SUPPORTED;
	if (start != MIG_ANYWHERE && !is_start(profile->starts, start))
		return NVML_ERROR_INVALID_ARGUMENT;
	if (start == MIG_ANYWHERE)
		start = choose_start(board, mig, profile_i);
	if (start == MIG_ANYWHERE || !is_start(mig_free_starts(board, mig, profile_i), start))
		return NVML_ERROR_INSUFFICIENT_RESOURCES;
	uint32_t i = 0;
	while (i < MIG_GI_MAX && mig->gis[i].is_used)
		i++;
	ASSERT(i < MIG_GI_MAX);
	mig->gis[i] =
		(struct mig_gi){ true, gi_id_of(board, profile->size, start), profile_i, start };
	*ret_gi_i = i;
	return NVML_SUCCESS;
}

bool mig_gi_find(const struct mig *mig, uint32_t gi_id, uint32_t *ret_gi_i)
{
	for (uint32_t i = 0; i < MIG_GI_MAX; i++)
		if (mig->gis[i].is_used && mig->gis[i].id == gi_id) {
			*ret_gi_i = i;
			return true;
		}
	return false;
}

uint32_t mig_gi_destroy(struct mig *mig, uint32_t gi_id)
{
	uint32_t gi_i = 0;

	if (!mig_gi_find(mig, gi_id, &gi_i))
		return NVML_ERROR_NOT_FOUND;
	for (size_t i = 0; i < MIG_CI_MAX; i++)
		if (mig->cis[i].is_used && mig->cis[i].gi_i == gi_i)
			return NVML_ERROR_IN_USE;
	mig->gis[gi_i] = (struct mig_gi){ 0 };
	return NVML_SUCCESS;
}

uint32_t mig_ci_free_starts(const struct board *board, const struct mig *mig, uint32_t gi_i,
			    uint32_t profile)
{
	ASSERT(gi_i < MIG_GI_MAX && mig->gis[gi_i].is_used);
	uint32_t size = 0, taken = 0;
	uint32_t slices = board->mig_profiles[mig->gis[gi_i].profile_i].slices;
	uint32_t starts = mig_compute_starts(slices, profile, &size);

	for (size_t i = 0; i < MIG_CI_MAX; i++)
		if (mig->cis[i].is_used && mig->cis[i].gi_i == gi_i)
			taken |= span(mig->cis[i].start, mig->cis[i].size);
	return starts == 0 ? 0 : open_starts(starts, size, taken);
}

static uint32_t ci_id_of(const struct mig *mig, uint32_t gi_i)
{
	uint32_t id = 0;

	for (size_t i = 0; i < MIG_CI_MAX; i++)
		if (mig->cis[i].is_used && mig->cis[i].gi_i == gi_i && mig->cis[i].id == id) {
			id++;
			i = SIZE_MAX; // from the first again
		}
	ASSERT(id < MIG_CI_ID_MAX);
	return id;
}

uint32_t mig_ci_create(const struct board *board, struct mig *mig, const struct mig_ci *wanted,
		       const char *uuid_of, uint32_t *ret_ci_i)
{
	uint32_t size = 0, gi_i = wanted->gi_i, start = wanted->start, i = 0;
	ASSERT(gi_i < MIG_GI_MAX && mig->gis[gi_i].is_used);
	uint32_t slices = board->mig_profiles[mig->gis[gi_i].profile_i].slices;
	uint32_t possible = mig_compute_starts(slices, wanted->profile, &size);
	uint32_t open = mig_ci_free_starts(board, mig, gi_i, wanted->profile);

	if (possible == 0 || (start != MIG_ANYWHERE && !is_start(possible, start)))
		return NVML_ERROR_INVALID_ARGUMENT;
	if (open == 0 || (start != MIG_ANYWHERE && !is_start(open, start)))
		return NVML_ERROR_INSUFFICIENT_RESOURCES;
	if (start == MIG_ANYWHERE)
		start = (uint32_t)__builtin_ctz(open);
	while (i < MIG_CI_MAX && mig->cis[i].is_used)
		i++;
	ASSERT(i < MIG_CI_MAX);
	struct mig_ci made = { .is_used = true,
			       .gi_i = gi_i,
			       .id = ci_id_of(mig, gi_i),
			       .profile = wanted->profile,
			       .start = start,
			       .size = size };
	uint32_t place = mig->gis[gi_i].id << 16 | start << 8 | size;
	identity_uuid("MIG", uuid_of, place, made.uuid);
	mig->cis[i] = made;
	*ret_ci_i = i;
	return NVML_SUCCESS;
}

bool mig_ci_find(const struct mig *mig, uint32_t gi_id, uint32_t ci_id, uint32_t *ret_ci_i)
{
	uint32_t gi_i = 0;

	if (!mig_gi_find(mig, gi_id, &gi_i))
		return false;
	for (uint32_t i = 0; i < MIG_CI_MAX; i++)
		if (mig->cis[i].is_used && mig->cis[i].gi_i == gi_i && mig->cis[i].id == ci_id) {
			*ret_ci_i = i;
			return true;
		}
	return false;
}

uint32_t mig_ci_destroy(struct mig *mig, uint32_t gi_id, uint32_t ci_id)
{
	uint32_t ci_i = 0;

	if (!mig_ci_find(mig, gi_id, ci_id, &ci_i))
		return NVML_ERROR_NOT_FOUND;
	mig->cis[ci_i] = (struct mig_ci){ 0 };
	return NVML_SUCCESS;
}

uint32_t mig_ci_sm_count(const struct board *board, const struct mig_gi *gi, uint32_t size)
{
	const struct mig_profile *profile = &board->mig_profiles[gi->profile_i];
	uint32_t narrowest_i = gi->profile_i;

	if (size == profile->slices)
		return profile->sm_count;
	(void)mig_profile_find(board, NVML_GPU_INSTANCE_PROFILE_1_SLICE, &narrowest_i);
	return size * board->mig_profiles[narrowest_i].sm_count;
}

void mig_clear(struct mig *mig)
{
	memset(mig->gis, 0, sizeof(mig->gis));
	memset(mig->cis, 0, sizeof(mig->cis));
}
