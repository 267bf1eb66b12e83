// SPDX-License-Identifier: Apache-2.0
// Named layouts of MIG devices, in the form of the upstream MIG manager: a list of entries, each
// for some GPUs, with the mode and how many instances of which profile. They come from its file
// (version v1, mig-configs) or from GPUPolicy objects (spec.layouts, with reservations). What is
// not right is refused with line, path and remedy. A layout becomes a goal for the GPUs of this
// node, where a profile that a board has not, and more than it holds, are refused too. Pure.
#pragma once

#include "base/json.h"
#include "gpu/mig_plan.h"

enum {
	MIG_LAYOUT_NAME_BYTES = 64,
	MIG_LAYOUT_MAX_BYTES = 256 * 1024,
	MIG_ENTRIES_MAX = 32,
	MIG_FILTERS_MAX = 32,
	MIG_COUNTS_MAX = 16,
	MIG_RESERVES_MAX = 64,
	MIG_TENANT_BYTES = 64,
};

struct mig_entry {
	bool is_all;
	uint32_t gpus;                     // else: bit of each index
	uint32_t filters[MIG_FILTERS_MAX]; // PCI ids, device before vendor
	size_t filter_count;               // 0: every model
	bool is_enabled;
	struct {
		char profile[GPU_PROFILE_BYTES];
		uint32_t count;
	} counts[MIG_COUNTS_MAX];
	size_t count_count;
};

struct mig_layout {
	char name[MIG_LAYOUT_NAME_BYTES];
	struct mig_entry entries[MIG_ENTRIES_MAX];
	size_t entry_count;
};

struct mig_reserve {                              // so many instances stay whatever layout comes
	char tenant[MIG_TENANT_BYTES], node[254]; // node empty: on every node with MIG
	char profile[GPU_PROFILE_BYTES];
	uint32_t count;
};

struct mig_reserves {
	struct mig_reserve items[MIG_RESERVES_MAX];
	size_t count;
};

// What one GPU should be; a GPU that no entry is for stays as it is.
struct mig_goal {
	bool is_set, is_enabled;
	struct mig_want want;
};

bool mig_goal_is_same(const struct mig_goal *a, const struct mig_goal *b);
bool mig_reserves_is_same(const struct mig_reserves *a, const struct mig_reserves *b);

// The mapping of names to layouts in a file's text.
MUST_USE err_status mig_layouts_open(struct str text, json_t **ret_root, struct err *err);
// Reads every layout, so that a broken one is refused before it is chosen. path: of the mapping in
// the text ("mig-configs"); text empty: messages have no line.
MUST_USE err_status mig_layouts_check(struct str text, const json_t *layouts, const char *path,
				      struct err *err);
// ERR_NOT_FOUND: there is none of that name, and which there are.
MUST_USE err_status mig_layout_read(struct str text, const json_t *layouts, const char *path,
				    const char *name, struct mig_layout *ret, struct err *err);
MUST_USE err_status mig_reserves_read(const json_t *list, struct mig_reserves *reserves,
				      struct err *err);
// Of one GPU; the last entry for it counts.
MUST_USE err_status mig_layout_goal(const struct mig_layout *layout, const struct gpu_info *gpu,
				    const struct mig_state *mig, struct mig_goal *ret,
				    struct err *err);
