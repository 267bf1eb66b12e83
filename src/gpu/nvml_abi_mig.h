// SPDX-License-Identifier: Apache-2.0
// NVML's structures about MIG instances: same rules as gpu/nvml_abi.h, whose layouts are compared
// with the public Python bindings too (third versions, which these lack, follow the second).
#pragma once

#include "gpu/nvml_abi.h"

struct nvml_gpu_instance;     // opaque
struct nvml_compute_instance; // opaque

enum { NVML_GI_PROFILE_COUNT = 18, NVML_CI_PROFILE_COUNT = 9, NVML_CI_ENGINE_SHARED = 0 };

struct nvml_placement { // of GPU instances in memory slices, of compute instances in slices
	uint32_t start, size;
};
struct nvml_gi_profile_info {
	uint32_t id, is_p2p_supported, slice_count, instance_count, sm_count;
	uint32_t copy_count, decoder_count, encoder_count, jpeg_count, ofa_count;
	uint64_t memory_mib;
};
struct nvml_gi_profile_info_v2 {
	uint32_t version;
	uint32_t id, is_p2p_supported, slice_count, instance_count, sm_count;
	uint32_t copy_count, decoder_count, encoder_count, jpeg_count, ofa_count;
	uint64_t memory_mib;
	char name[96];
};
struct nvml_gi_profile_info_v3 {
	uint32_t version;
	uint32_t id, slice_count, instance_count, sm_count;
	uint32_t copy_count, decoder_count, encoder_count, jpeg_count, ofa_count;
	uint64_t memory_mib;
	char name[96];
	uint32_t capabilities;
};
struct nvml_gi_info {
	struct nvml_device *device;
	uint32_t id, profile_id;
	struct nvml_placement placement;
};
struct nvml_ci_profile_info {
	uint32_t id, slice_count, instance_count, sm_count;
	uint32_t copy_count, decoder_count, encoder_count, jpeg_count, ofa_count;
};
struct nvml_ci_profile_info_v2 {
	uint32_t version;
	uint32_t id, slice_count, instance_count, sm_count;
	uint32_t copy_count, decoder_count, encoder_count, jpeg_count, ofa_count;
	char name[96];
};
struct nvml_ci_profile_info_v3 {
	uint32_t version;
	uint32_t id, slice_count, instance_count, sm_count;
	uint32_t copy_count, decoder_count, encoder_count, jpeg_count, ofa_count;
	char name[96];
	uint32_t capabilities;
};
struct nvml_ci_info {
	struct nvml_device *device;
	struct nvml_gpu_instance *gpu_instance;
	uint32_t id, profile_id;
	struct nvml_placement placement;
};
struct nvml_device_attributes {
	uint32_t sm_count;
	uint32_t copy_count, decoder_count, encoder_count, jpeg_count, ofa_count;
	uint32_t gi_slice_count, ci_slice_count;
	uint64_t memory_mib;
};
