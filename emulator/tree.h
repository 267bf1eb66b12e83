// SPDX-License-Identifier: Apache-2.0
// What a driver shows of a machine in /proc and /sys, as plain files below proc/ and sys/ of the
// emulator's folder (the current one): minor numbers of the devices that guard MIG instances,
// and each GPU's NUMA node. Kept in line with the machine; a file that cannot be written is left
// out, as it would be without the driver. Nothing of it is read back.
#pragma once

#include "emulator/machine.h"

struct tree_bits { // of the instances that have files, by their ids
	uint32_t gis;
	uint8_t cis[MIG_GI_ID_MAX];
};

struct tree {
	struct {
		bool is_there;
		struct tree_bits bits;
	} gpus[WIRE_GPU_MAX];
	uint32_t minors_of; // slots whose minor numbers are listed
};

// Takes for granted that a former daemon left files of instances behind.
void tree_init(struct tree *tree);
// Writes and removes what changed since the last call.
void tree_sync(struct tree *tree, const struct machine *machine);
// Minor number of the device that guards a GPU instance, or a compute instance in it
// (WIRE_NO_INSTANCE: the GPU instance itself).
uint32_t tree_minor(uint32_t gpu_minor, uint32_t gi_id, uint32_t ci_id);
