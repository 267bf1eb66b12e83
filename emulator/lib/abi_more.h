// SPDX-License-Identifier: Apache-2.0
// The rest of NVML's structures that the emulator's library fills and the agent does not use:
// same rules as gpu/nvml_abi.h, whose layouts are compared with the public Python bindings too.
#pragma once

#include "gpu/nvml_abi_perf.h"

struct nvml_pci_info_v2 { // of v1 and v2
	char bus_id[16];
	uint32_t domain, bus, device, pci_device_id, pci_subsystem_id;
	uint32_t reserved[4];
};
struct nvml_pci_info_ext {
	uint32_t version; // NVML_STRUCT_VERSION(struct nvml_pci_info_ext, 1)
	uint32_t domain, bus, device, pci_device_id, pci_subsystem_id, base_class, sub_class;
	char bus_id[32];
};
struct nvml_uuid {
	uint32_t version; // NVML_STRUCT_VERSION(struct nvml_uuid, 1)
	uint32_t type;    // 1: text
	char text[44];
};
struct nvml_driver_branch {
	uint32_t version;
	char branch[80];
};
struct nvml_process_info_v1 {
	uint32_t pid;
	uint64_t used_bytes;
};
struct nvml_ecc_counts {
	uint64_t l1, l2, device_memory, register_file;
};
struct nvml_row_remapper_histogram {
	uint32_t max, high, partial, low, none;
};
struct nvml_fbc_stats {
	uint32_t session_count, average_fps, average_latency_us;
};
struct nvml_margin_temperature {
	uint32_t version; // NVML_STRUCT_VERSION(struct nvml_margin_temperature, 1)
	int32_t margin_c;
};
struct nvml_thermal_settings {
	uint32_t count;
	struct {
		int32_t controller, default_min_c, default_max_c, current_c, target;
	} sensor[3];
};
struct nvml_fabric_info {
	uint8_t cluster_uuid[16];
	nvml_return status;
	uint32_t clique_id, state;
};
struct nvml_fabric_info_v2 {
	uint32_t version;
	uint8_t cluster_uuid[16];
	nvml_return status;
	uint32_t clique_id, state, health_mask;
};
struct nvml_fabric_info_v3 {
	uint32_t version;
	uint8_t cluster_uuid[16];
	nvml_return status;
	uint32_t clique_id, state, health_mask;
	uint8_t health_summary;
};
