// SPDX-License-Identifier: Apache-2.0
// NVML's structures for profiling counters, samples and lists of processes: same rules as
// gpu/nvml_abi.h, whose layouts are compared with the public Python bindings too.
#pragma once

#include "gpu/nvml_abi_perf.h"

struct nvml_sample {
	uint64_t time_us;
	union nvml_value value;
};
struct nvml_process_use {
	uint64_t time_us;
	uint32_t pid, sm_percent, memory_percent;
	uint32_t encoder_percent, decoder_percent, jpeg_percent, ofa_percent;
};
struct nvml_processes_use {
	uint32_t version; // NVML_STRUCT_VERSION(struct nvml_processes_use, 1)
	uint32_t count;
	uint64_t last_seen_us;
	struct nvml_process_use *processes;
};
struct nvml_process_detail {
	uint32_t pid;
	uint64_t used_bytes;
	uint32_t gpu_instance_id, compute_instance_id;
	uint64_t protected_bytes;
};
struct nvml_process_details {
	uint32_t version; // NVML_STRUCT_VERSION(struct nvml_process_details, 1)
	uint32_t mode;    // 0 compute, 1 graphics, 2 MPS
	uint32_t count;
	struct nvml_process_detail *processes;
};
struct nvml_power_value_v2 {
	uint32_t version; // NVML_STRUCT_VERSION(struct nvml_power_value_v2, 2)
	uint32_t scope;   // 0 GPU, 1 module, 2 memory
	uint32_t power_mw;
};
