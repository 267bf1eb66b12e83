// SPDX-License-Identifier: Apache-2.0
// Configuration of the device plugin: file v1 of NVIDIA's device plugin (YAML or JSON), read
// unchanged, and its environment and flags, which stand above the file in that order. Strict:
// unknown keys, wrong types and counts that cannot be are refused with line, path and remedy;
// what is valid there and has no effect here is noted. Plain memory: a value is copied at will.
#pragma once

#include "base/json.h"
#include "gpu/gpu.h"

enum {
	DP_SHARED_MAX = 16, // entries of sharing
	DP_REFS_MAX = 32,   // devices named by one entry
	DP_RESOURCE_BYTES = 64,
	DP_PATH_BYTES = 256,
	DP_PREFIX_BYTES = 128,
	DP_NOTES_MAX = 16,
	DP_NOTE_BYTES = 200,
	DP_REPLICAS_MAX = 65535,
	DP_CONFIG_MAX_BYTES = 256 * 1024,
	DP_OPTIONS_MAX = 24,
};

typedef enum dp_mig { DP_MIG_NONE, DP_MIG_SINGLE, DP_MIG_MIXED } dp_mig;
typedef enum dp_policy { DP_DISTRIBUTED, DP_PACKED } dp_policy;
typedef enum dp_sharing { DP_EXCLUSIVE, DP_TIME_SLICED, DP_MPS } dp_sharing;
typedef enum dp_limit { DP_LIMIT_NONE, DP_LIMIT_MPS } dp_limit; // of memory
typedef enum dp_list {
	DP_LIST_ENVVAR = 1,
	DP_LIST_VOLUME_MOUNTS = 2,
	DP_LIST_CDI_ANNOTATIONS = 4,
	DP_LIST_CDI_CRI = 8,
} dp_list; // bits
enum { DP_LIST_ANY_CDI = DP_LIST_CDI_ANNOTATIONS | DP_LIST_CDI_CRI };

struct dp_ref { // one GPU named by an entry: by index, else by UUID
	bool is_index;
	uint32_t index;
	char uuid[GPU_UUID_BYTES];
};

struct dp_shared {
	char resource[DP_RESOURCE_BYTES]; // of the whole GPU
	char renamed[DP_RESOURCE_BYTES];  // under which its shares are offered
	uint32_t replicas;
	uint32_t first; // 0: not used; else the first so many GPUs
	struct dp_ref refs[DP_REFS_MAX];
	size_t ref_count; // 0 and first 0: all GPUs
};

struct dp_config {
	dp_mig mig;
	dp_policy policy;
	unsigned lists; // of dp_list
	bool fail_on_init, pass_device_specs, ids_by_index;
	bool gdrcopy, gds, mofed, node_feature_api;
	char mps_root[DP_PATH_BYTES], driver_root[DP_PATH_BYTES], dev_root[DP_PATH_BYTES];
	char container_driver_root[DP_PATH_BYTES], hook_path[DP_PATH_BYTES];
	char annotation_prefix[DP_PREFIX_BYTES];
	bool has_imex_channel;
	dp_sharing sharing; // of all entries
	bool fails_above_one;
	struct dp_shared shared[DP_SHARED_MAX];
	size_t shared_count;
	bool has_shares; // one of them is of GPUs set aside for gpuaas.io/gpu-milli, gpu-memory
	dp_limit share_limit; // what keeps those to their memory
	char notes[DP_NOTES_MAX][DP_NOTE_BYTES];
	size_t note_count;
};

// Ours where upstream's differ: CDI names in the CRI field instead of an environment variable.
void dp_config_init(struct dp_config *config);
// The file over the values that are there; config is untouched on failure.
MUST_USE err_status dp_config_read(struct str text, struct dp_config *config, struct err *err);
// Across the keys, after file, environment and flags; adds the notes.
MUST_USE err_status dp_config_check(struct dp_config *config, struct err *err);
void dp_note(struct dp_config *config, const char *fmt, ...) PRINTF_LIKE(2, 3);

// Environment and flags over the file, then the check. flags: DP_OPTIONS_MAX, NULL: not given.
MUST_USE err_status dp_config_overlay(struct dp_config *config, const char *const *flags,
				      struct err *err);

// Options below `flags` of the file, which are also flags and environment.
size_t dp_option_find(struct str flag, bool *ret_is_switch); // SIZE_MAX: none; switch: --x alone
// name: as the value was given, for the message.
MUST_USE err_status dp_option_set(size_t i, const json_t *value, const char *name,
				  struct dp_config *config, struct err *err);
const char *dp_limit_name(dp_limit limit); // as the file says it
// Index of the option with that key below `flags` ("plugin.passDeviceSpecs"), SIZE_MAX: none.
size_t dp_option_of_key(const char *key);
