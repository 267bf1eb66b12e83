// SPDX-License-Identifier: Apache-2.0
// From the GPU instances that there are to those that a layout wants, one instance at a time: what
// goes, what comes and where. Instances that are held stay, whatever happens; of the others as few
// as possible go. Among the places for what comes those are taken that leave the largest profile
// still possible, then the most places open, then lie furthest back. Pure; every plan of a board
// of eight slices is looked at. A plan is refused when the board could never hold the layout
// (ERR_INVALID), or not while what is held stays (ERR_CONFLICT).
#pragma once

#include "gpu/mig.h"

enum { MIG_STEPS_MAX = 2 * MIG_INSTANCES_MAX };

struct mig_want { // how many of each profile, in the order of the state's profiles
	uint32_t counts[MIG_PROFILES_MAX];
};

struct mig_step {
	bool is_create; // else the instance of that profile and start goes
	uint32_t profile_i, start;
};

struct mig_plan {
	struct mig_step steps[MIG_STEPS_MAX]; // what goes first
	size_t count;
};

// is_kept: by instance, it may not go (held, or reserved).
MUST_USE err_status mig_plan_make(const struct mig_state *mig, const bool *is_kept,
				  const struct mig_want *want, struct mig_plan *ret,
				  struct err *err);
// Bit i: an instance of the profile may begin at i while these slices and counts are taken.
uint32_t mig_open_starts(const struct mig_profile *profile, uint32_t taken, uint32_t count);
// Index of the instance's profile in the state; profile_count: it is none of them.
uint32_t mig_profile_of(const struct mig_state *mig, const struct mig_instance *instance);
// "2 x 1g.10gb, 1 x 3g.40gb"; "nothing".
void mig_want_print(const struct mig_state *mig, const struct mig_want *want, char *out,
		    size_t out_bytes);
