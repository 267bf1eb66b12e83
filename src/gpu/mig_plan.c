// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig_plan.h"

#include <inttypes.h>
#include <stdio.h>

static uint32_t span(uint32_t start, uint32_t size) { return ((1U << size) - 1) << start; }

uint32_t mig_open_starts(const struct mig_profile *profile, uint32_t taken, uint32_t count)
{
	uint32_t open = 0;
	for (uint32_t start = 0; count < profile->count_max && start < MIG_SLICES_MAX; start++) {
		bool is_open = (profile->starts >> start & 1) != 0 &&
			       (taken & span(start, profile->size)) == 0;
		open |= is_open ? 1U << start : 0;
	}
	return open;
}

uint32_t mig_profile_of(const struct mig_state *mig, const struct mig_instance *instance)
{
	uint32_t i = 0;
	while (i < mig->profile_count && mig->profiles[i].id != instance->profile_id)
		i++;
	return i;
}

void mig_want_print(const struct mig_state *mig, const struct mig_want *want, char *out,
		    size_t out_bytes)
{
	size_t len = 0;
	(void)snprintf(out, out_bytes, "nothing");
	for (uint32_t i = 0; i < mig->profile_count && len < out_bytes; i++) {
		if (want->counts[i] == 0)
			continue;
		int n = snprintf(out + len, out_bytes - len, "%s%" PRIu32 " x %s",
				 len == 0 ? "" : ", ", want->counts[i], mig->profiles[i].name);
		len += n < 0 ? 0 : (size_t)n;
	}
}

// What a complete choice is worth; more is better, member by member.
struct worth {
	uint32_t kept;                         // instances
	uint32_t largest_size, largest_slices; // of a profile that is still possible
	uint32_t open;                         // places of all profiles
	uint32_t far;                          // sum of the starts of what comes
};

// The search: by profile, places in ascending order. A place where an instance stands already
// is that instance kept.
struct search {
	const struct mig_state *mig;
	const struct mig_want *want;
	uint32_t stands[MIG_PROFILES_MAX]; // bit of each start where an instance stands
	uint32_t must[MIG_PROFILES_MAX];   // and must stay
	uint32_t chosen[MIG_PROFILES_MAX];
	uint32_t best[MIG_PROFILES_MAX];
	struct worth best_worth;
	bool has_best;
};

static struct worth worth_of(const struct search *search, uint32_t taken)
{
	struct worth worth = { 0 };
	for (uint32_t i = 0; i < search->mig->profile_count; i++) {
		const struct mig_profile *profile = &search->mig->profiles[i];
		uint32_t chosen = search->chosen[i];
		uint32_t count = (uint32_t)__builtin_popcount(chosen);
		uint32_t open = mig_open_starts(profile, taken, count);
		worth.kept += (uint32_t)__builtin_popcount(chosen & search->stands[i]);
		worth.open += (uint32_t)__builtin_popcount(open);
		for (uint32_t start = 0; start < MIG_SLICES_MAX; start++)
			worth.far += (chosen & ~search->stands[i]) >> start & 1 ? start : 0;
		if (open == 0 || profile->size < worth.largest_size)
			continue;
		if (profile->size > worth.largest_size || profile->slices > worth.largest_slices)
			worth.largest_slices = profile->slices;
		worth.largest_size = profile->size;
	}
	return worth;
}

static bool is_better(const struct worth *a, const struct worth *b)
{
	if (a->kept != b->kept)
		return a->kept > b->kept;
	if (a->largest_size != b->largest_size)
		return a->largest_size > b->largest_size;
	if (a->largest_slices != b->largest_slices)
		return a->largest_slices > b->largest_slices;
	return a->open != b->open ? a->open > b->open : a->far > b->far;
}

// Chooses places for so many more of the profile, from `start` on.
static void choose(struct search *search, uint32_t profile_i, uint32_t left, uint32_t start,
		   uint32_t taken)
{
	if (profile_i == search->mig->profile_count) {
		struct worth worth = worth_of(search, taken);
		if (search->has_best && !is_better(&worth, &search->best_worth))
			return;
		search->has_best = true;
		search->best_worth = worth;
		memcpy(search->best, search->chosen, sizeof search->best);
		return;
	}
	const struct mig_profile *profile = &search->mig->profiles[profile_i];
	if (left == 0) {
		bool has_all = (search->must[profile_i] & ~search->chosen[profile_i]) == 0;
		uint32_t next = profile_i + 1;
		if (has_all)
			choose(search, next,
			       next < search->mig->profile_count ? search->want->counts[next] : 0,
			       0, taken);
		return;
	}
	for (; start < MIG_SLICES_MAX; start++) {
		uint32_t own = span(start, profile->size);
		if ((profile->starts >> start & 1) == 0 || (taken & own) != 0)
			continue;
		search->chosen[profile_i] |= 1U << start;
		choose(search, profile_i, left - 1, start + 1, taken | own);
		search->chosen[profile_i] &= ~(1U << start);
	}
}

static bool is_within_counts(const struct mig_state *mig, const struct mig_want *want)
{
	uint32_t size = 0;
	for (uint32_t i = 0; i < mig->profile_count; i++) {
		const struct mig_profile *profile = &mig->profiles[i];
		if (want->counts[i] > profile->count_max)
			return false;
		size += want->counts[i] * profile->size;
	}
	return size <= MIG_SLICES_MAX;
}

static bool find(struct search *search)
{
	if (!is_within_counts(search->mig, search->want))
		return false;
	choose(search, 0, search->mig->profile_count > 0 ? search->want->counts[0] : 0, 0, 0);
	return search->has_best;
}

static err_status refuse(const struct mig_state *mig, const struct mig_want *want,
			 const struct search *search, struct err *err)
{
	struct search empty = { .mig = mig, .want = want };
	char text[160];
	mig_want_print(mig, want, text, sizeof text);
	if (!find(&empty))
		return err_set(err, ERR_INVALID, "the board cannot hold %s", text);
	for (uint32_t i = 0; i < mig->profile_count; i++) {
		uint32_t kept = (uint32_t)__builtin_popcount(search->must[i]);
		if (kept > want->counts[i])
			return err_set(err, ERR_CONFLICT,
				       "%" PRIu32 " x %s are in use or reserved, the layout has "
				       "%" PRIu32,
				       kept, mig->profiles[i].name, want->counts[i]);
	}
	return err_set(err, ERR_CONFLICT,
		       "%s do not fit beside the instances that are in use or reserved", text);
}

static void add_steps(const struct search *search, bool is_create, struct mig_plan *plan)
{
	for (uint32_t i = 0; i < search->mig->profile_count; i++) {
		uint32_t bits = is_create ? search->best[i] & ~search->stands[i]
					  : search->stands[i] & ~search->best[i];
		for (uint32_t start = 0; start < MIG_SLICES_MAX; start++) {
			if ((bits >> start & 1) == 0)
				continue;
			ASSERT(plan->count < MIG_STEPS_MAX);
			plan->steps[plan->count++] = (struct mig_step){ is_create, i, start };
		}
	}
}

err_status mig_plan_make(const struct mig_state *mig, const bool *is_kept,
			 const struct mig_want *want, struct mig_plan *ret, struct err *err)
{
	struct search search = { .mig = mig, .want = want };
	struct mig_plan plan = { 0 };
	for (uint32_t i = 0; i < mig->instance_count; i++) {
		const struct mig_instance *instance = &mig->instances[i];
		uint32_t profile_i = mig_profile_of(mig, instance);
		if (profile_i == mig->profile_count || instance->start >= MIG_SLICES_MAX)
			return err_set(err, ERR_UNSUPPORTED,
				       "GPU instance %" PRIu32 " is of no known profile",
				       instance->gi);
		// One without a device over all of it is of no use: it goes, and comes anew.
		uint32_t bit = 1U << instance->start;
		search.stands[profile_i] |= instance->uuid[0] != '\0' ? bit : 0;
		search.must[profile_i] |= is_kept[i] ? bit : 0;
	}
	if (!find(&search))
		return refuse(mig, want, &search, err);
	for (uint32_t i = 0; i < mig->instance_count; i++) {
		const struct mig_instance *instance = &mig->instances[i];
		if (instance->uuid[0] == '\0')
			plan.steps[plan.count++] = (struct mig_step){ false,
								      mig_profile_of(mig, instance),
								      instance->start };
	}
	add_steps(&search, false, &plan);
	add_steps(&search, true, &plan);
	*ret = plan;
	return ERR_OK;
}
