// SPDX-License-Identifier: Apache-2.0
// The labels of GPU feature discovery (nvidia.com/...) of one node, with the same names and
// formats, computed from facts alone. Unlike there, a node with several models has stable labels:
// the model with the most devices stands for the node (ties by name), and all models are listed
// as gpu.product.1, gpu.product.2, ... Pure; the result is plain memory in the order of its making.
#pragma once

#include "gpu/gpu.h"

enum {
	GPU_LABELS_MAX = 256,
	GPU_LABEL_NAME_BYTES = 64, // without "nvidia.com/", with the terminator
	GPU_MIGS_MAX = 224,        // of one node
};

typedef enum gpu_sharing {
	GPU_SHARING_NONE,
	GPU_SHARING_TIME_SLICING,
	GPU_SHARING_MPS
} gpu_sharing;
typedef enum gpu_mig_strategy { GPU_MIG_NONE, GPU_MIG_SINGLE, GPU_MIG_MIXED } gpu_mig_strategy;

struct gpu_label_gpu {
	const struct gpu_info *info;
	uint32_t replicas; // up to 1: not shared
	bool is_renamed;   // its shares have a name of their own
};

struct gpu_label_mig {
	const struct gpu_info *parent;
	char profile[GPU_PROFILE_BYTES]; // "1g.10gb", "1g.10gb+me"
	uint64_t memory_mib;
	uint32_t multiprocessors, gi_slices, ci_slices;
	uint32_t copy_engines, decoders, encoders, jpegs, ofas;
	uint32_t replicas;
	bool is_renamed;
};

struct gpu_label_facts {
	const struct gpu_label_gpu *gpus; // at most GPU_MAX
	size_t gpu_count;
	const struct gpu_label_mig *migs; // at most GPU_MIGS_MAX
	size_t mig_count;
	const char *driver_version; // "570.86.15"
	uint32_t cuda_version;      // 12080 is 12.8
	const char *machine;        // the product's name as the firmware tells it, may be empty
	gpu_sharing sharing;
	gpu_mig_strategy mig;
	int64_t timestamp_s; // 0: none
};

struct gpu_label {
	char name[GPU_LABEL_NAME_BYTES]; // without "nvidia.com/"
	char value[GPU_LABEL_BYTES];
};

struct gpu_labels {
	struct gpu_label items[GPU_LABELS_MAX];
	size_t count;
};

void gpu_labels_make(const struct gpu_label_facts *facts, struct gpu_labels *ret);
const char *gpu_labels_find(const struct gpu_labels *labels, const char *name); // NULL: none
const char *gpu_sharing_name(gpu_sharing sharing);                              // "time-slicing"
const char *gpu_mig_strategy_name(gpu_mig_strategy strategy);
