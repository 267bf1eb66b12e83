// SPDX-License-Identifier: Apache-2.0
// Multi-instance GPUs: which GPU instances a board can hold, where, and which compute instances
// fit into them. Pure rules over plain values; who uses an instance is the model's business.
// A GPU instance takes a span of memory slices at one of its profile's places; no two overlap. A
// compute instance takes compute slices of its GPU instance. Places in the tables stay until an
// instance is destroyed, so their index names it. Failures are NVML return codes and change
// nothing.
#pragma once

#include "emulator/board.h"
#include "emulator/mig_compute.h"

enum { MIG_GI_MAX = 8, MIG_CI_MAX = 8, MIG_GI_ID_MAX = 15, MIG_CI_ID_MAX = 8 };
#define MIG_ANYWHERE UINT32_MAX // as a start: the driver chooses

struct mig_gi {
	bool is_used;
	uint32_t id, profile_i, start; // profile_i counts in the board's list
};

struct mig_ci {
	bool is_used;
	uint32_t gi_i; // of mig.gis
	uint32_t id;   // within its GPU instance
	uint32_t profile, start, size;
	char uuid[48];
};

struct mig {
	uint32_t mode, mode_pending; // NVML_FEATURE_...
	struct mig_gi gis[MIG_GI_MAX];
	struct mig_ci cis[MIG_CI_MAX];
};

// Index in the board's list of the profile with NVML's number, or with the id that tools show;
// false when the board has none.
bool mig_profile_find(const struct board *board, uint32_t profile, uint32_t *ret_profile_i);
bool mig_profile_by_id(const struct board *board, uint32_t id, uint32_t *ret_profile_i);
bool mig_profile_by_name(const struct board *board, const char *name, uint32_t *ret_profile_i);
// Compute slices of a whole board.
uint32_t mig_slices(const struct board *board);

// Bit i: an instance of the profile could begin at memory slice i now.
uint32_t mig_free_starts(const struct board *board, const struct mig *mig, uint32_t profile_i);
// How many more instances of the profile fit.
uint32_t mig_remaining(const struct board *board, const struct mig *mig, uint32_t profile_i);
uint32_t mig_gi_create(const struct board *board, struct mig *mig, uint32_t profile_i,
		       uint32_t start, uint32_t *ret_gi_i);
// Refused while it holds compute instances.
uint32_t mig_gi_destroy(struct mig *mig, uint32_t gi_id);
bool mig_gi_find(const struct mig *mig, uint32_t gi_id, uint32_t *ret_gi_i);

// As mig_compute_starts, but only where it could begin now.
uint32_t mig_ci_free_starts(const struct board *board, const struct mig *mig, uint32_t gi_i,
			    uint32_t profile);
// uuid_of: the GPU's, from which the instance's is derived (the same place has the same one).
uint32_t mig_ci_create(const struct board *board, struct mig *mig, const struct mig_ci *wanted,
		       const char *uuid_of, uint32_t *ret_ci_i);
uint32_t mig_ci_destroy(struct mig *mig, uint32_t gi_id, uint32_t ci_id);
bool mig_ci_find(const struct mig *mig, uint32_t gi_id, uint32_t ci_id, uint32_t *ret_ci_i);
// Multiprocessors of a compute instance of this size.
uint32_t mig_ci_sm_count(const struct board *board, const struct mig_gi *gi, uint32_t size);
// Destroys all.
void mig_clear(struct mig *mig);
