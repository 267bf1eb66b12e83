// SPDX-License-Identifier: Apache-2.0
// Multi-instance GPUs as a driver tells them: the profiles of GPU instances that a board offers,
// with the places each may take, and the instances that there are. A GPU instance takes a span of
// memory slices; it is used through one compute instance over all of it, which is what the field
// calls a MIG device. Pure and plain memory of fixed size: it also travels between processes, so
// it holds no bool and mig_state_check says whether it is well formed.
#pragma once

#include "gpu/gpu.h"

enum {
	MIG_PROFILES_MAX = 18, // that NVML numbers
	MIG_INSTANCES_MAX = 8, // of one GPU
	MIG_SLICES_MAX = 8,    // memory slices of one GPU
};

struct mig_profile {
	char name[GPU_PROFILE_BYTES]; // "3g.40gb"
	uint32_t id;                  // as the driver takes it
	uint32_t slices;              // for compute
	uint32_t size;                // in memory slices
	uint32_t starts;              // bit i: may begin at memory slice i
	uint32_t count_max;
};

struct mig_instance {
	char uuid[GPU_UUID_BYTES]; // of the MIG device; empty: it has none over all of it
	char profile[GPU_PROFILE_BYTES];
	uint32_t profile_id, gi, ci, index; // index: of the MIG device, as the driver counts
	uint32_t start, size, slices;
	uint32_t multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
	uint64_t memory_mib, used_mib, free_mib, reserved_mib;
	uint32_t has_use, use_milli; // part of the time that its compute is busy, where it is told
};

struct mig_state {                       // of one GPU
	uint32_t is_enabled, is_pending; // pending: another mode waits for a reset
	uint32_t slices;                 // for compute, of the whole board
	uint32_t has_places;             // starts of the instances are the driver's
	uint32_t profile_count, instance_count;
	struct mig_profile profiles[MIG_PROFILES_MAX];
	struct mig_instance instances[MIG_INSTANCES_MAX]; // as the driver counts its MIG devices
};

// The name of a profile, from its slices, its memory and NVML's number of it, which says what
// else it has ("+me", "+gfx", "-me", "+me.all").
void mig_profile_name(uint32_t slices, uint32_t nvml_profile, uint64_t memory_mib,
		      uint64_t total_bytes, char out[GPU_PROFILE_BYTES]);
// The profile's resource: "nvidia.com/mig-1g.10gb.me" with the prefix "nvidia.com/".
void mig_resource_name(const char *prefix, struct str profile, char *out, size_t out_bytes);
// Compute slices of the profile of that name, 1 to 7; 0: it is no name of a profile.
uint32_t mig_profile_slices(struct str name);
// What one instance is of a GPU, in thousandths, for quotas: so many sevenths, rounded down, so
// that what fits a board is never more than it. 0: it is no name of a profile.
int64_t mig_profile_milli(struct str name);
// NULL: the board has none of that name, or no instance of that place.
const struct mig_profile *mig_profile_find(const struct mig_state *mig, struct str name);
const struct mig_instance *mig_instance_find(const struct mig_state *mig, struct str uuid);
// Whether the same instances and modes are there; what they use does not count.
bool mig_is_same(const struct mig_state *a, const struct mig_state *b);
// Whether bytes from outside are a state: counts, terminated texts, spans within the board.
MUST_USE bool mig_state_check(const struct mig_state *mig);
