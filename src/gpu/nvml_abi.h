// SPDX-License-Identifier: Apache-2.0
// The part of NVML's binary interface that we use: return codes, selectors and the layout of
// structures, so that no NVIDIA header is needed to build. The agent calls a driver library
// through it, the emulator's library implements it; tests/integration/emulator_test.py compares
// every layout with the public Python bindings. Constants keep their public names; structures
// have our own member names with units. Handles are opaque and belong to the library.
#pragma once

#include <stdint.h>

enum nvml_return {
	NVML_SUCCESS = 0,
	NVML_ERROR_UNINITIALIZED = 1,
	NVML_ERROR_INVALID_ARGUMENT = 2,
	NVML_ERROR_NOT_SUPPORTED = 3,
	NVML_ERROR_NO_PERMISSION = 4,
	NVML_ERROR_NOT_FOUND = 6,
	NVML_ERROR_INSUFFICIENT_SIZE = 7,
	NVML_ERROR_DRIVER_NOT_LOADED = 9,
	NVML_ERROR_TIMEOUT = 10,
	NVML_ERROR_LIBRARY_NOT_FOUND = 12,
	NVML_ERROR_FUNCTION_NOT_FOUND = 13,
	NVML_ERROR_GPU_IS_LOST = 15,
	NVML_ERROR_RESET_REQUIRED = 16,
	NVML_ERROR_OPERATING_SYSTEM = 17,
	NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
	NVML_ERROR_IN_USE = 19,
	NVML_ERROR_MEMORY = 20,
	NVML_ERROR_NO_DATA = 21,
	NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
	NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
	NVML_ERROR_NOT_READY = 27,
	NVML_ERROR_GPU_NOT_FOUND = 28,
	NVML_ERROR_UNKNOWN = 999,
};
typedef uint32_t nvml_return;

struct nvml_device;    // opaque
struct nvml_event_set; // opaque

// The version word that versioned structures carry in their first member.
#define NVML_STRUCT_VERSION(type, number) ((uint32_t)sizeof(type) | (uint32_t)(number) << 24)

enum { NVML_CLOCK_GRAPHICS = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2, NVML_CLOCK_VIDEO = 3 };
enum { NVML_TEMPERATURE_GPU = 0 };
enum {
	NVML_TEMPERATURE_THRESHOLD_SHUTDOWN = 0,
	NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1,
	NVML_TEMPERATURE_THRESHOLD_MEM_MAX = 2,
	NVML_TEMPERATURE_THRESHOLD_GPU_MAX = 3,
};
enum { NVML_PCIE_UTIL_TX_BYTES = 0, NVML_PCIE_UTIL_RX_BYTES = 1 };
enum { NVML_MEMORY_ERROR_TYPE_CORRECTED = 0, NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1 };
enum { NVML_VOLATILE_ECC = 0, NVML_AGGREGATE_ECC = 1 };
enum { NVML_FEATURE_DISABLED = 0, NVML_FEATURE_ENABLED = 1 };
enum { NVML_BRAND_NVIDIA = 14, NVML_BUS_TYPE_PCIE = 2 };
enum {
	NVML_DEVICE_ARCH_AMPERE = 7,
	NVML_DEVICE_ARCH_ADA = 8,
	NVML_DEVICE_ARCH_HOPPER = 9,
	NVML_DEVICE_ARCH_BLACKWELL = 10,
};
enum {
	NVML_TOPOLOGY_INTERNAL = 0,
	NVML_TOPOLOGY_SINGLE = 10,
	NVML_TOPOLOGY_MULTIPLE = 20,
	NVML_TOPOLOGY_HOSTBRIDGE = 30,
	NVML_TOPOLOGY_NODE = 40,
	NVML_TOPOLOGY_SYSTEM = 50,
};
enum {
	NVML_EVENT_SINGLE_BIT_ECC = 1,
	NVML_EVENT_DOUBLE_BIT_ECC = 2,
	NVML_EVENT_XID_CRITICAL = 8,
};
enum { NVML_VALUE_UINT = 1, NVML_VALUE_ULL = 3 }; // of a field's value
enum {
	NVML_FI_DEV_MEMORY_TEMP = 82,
	NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION = 83,
	NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX = 138, // scope UINT32_MAX: all links
	NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX = 139,
	NVML_FI_DEV_GET_GPU_RECOVERY_ACTION = 230,
};
enum { NVML_NVLINK_MAX_LINKS = 18, NVML_NVLINK_TO_GPU = 0, NVML_NVLINK_TO_SWITCH = 2 };
enum { NVML_NO_INSTANCE = 0xffffffffu }; // GPU or compute instance id of a whole GPU
enum { NVML_GPU_INSTANCE_PROFILE_1_SLICE = 0 };
enum { NVML_NAME_MAX = 96, NVML_UUID_MAX = 80, NVML_SERIAL_MAX = 30, NVML_VERSION_MAX = 80 };

struct nvml_memory {
	uint64_t total_bytes, free_bytes, used_bytes; // used includes what the driver reserves
};
struct nvml_memory_v2 {
	uint32_t version; // NVML_STRUCT_VERSION(struct nvml_memory_v2, 2)
	uint64_t total_bytes, reserved_bytes, free_bytes, used_bytes;
};
struct nvml_utilization {
	uint32_t gpu_percent, memory_percent;
};
struct nvml_pci_info { // of _v3
	char bus_id_legacy[16];
	uint32_t domain, bus, device, pci_device_id, pci_subsystem_id;
	char bus_id[32]; // 00000000:1A:00.0
};
struct nvml_process_info { // of _v2 and _v3; _v1 ends after used_bytes
	uint32_t pid;
	uint64_t used_bytes;
	uint32_t gpu_instance_id, compute_instance_id;
};
struct nvml_process_sample {
	uint32_t pid;
	uint64_t time_us;
	uint32_t sm_percent, memory_percent, encoder_percent, decoder_percent;
};
struct nvml_event_data {
	struct nvml_device *device;
	uint64_t event_type, event_data; // event_data: the XID
	uint32_t gpu_instance_id, compute_instance_id;
};
union nvml_value {
	double double_value;
	uint32_t uint_value;
	uint64_t ull_value;
};
struct nvml_field_value {
	uint32_t field_id, scope_id;
	int64_t time_us, latency_us;
	uint32_t value_type;
	nvml_return status;
	union nvml_value value;
};
struct nvml_fabric {      // nvmlGpuFabricInfo_v2_t
	uint32_t version; // NVML_STRUCT_VERSION(struct nvml_fabric, 2)
	unsigned char cluster_uuid[16];
	nvml_return status;
	uint32_t clique_id;
	unsigned char state; // 3: the clique is right
	uint32_t health;
};
struct nvml_bar1_memory {
	uint64_t total_bytes, free_bytes, used_bytes;
};
struct nvml_gpm_support {
	uint32_t version; // 1, not a structure version word
	uint32_t is_supported;
};
struct nvml_temperature_v1 {
	uint32_t version; // NVML_STRUCT_VERSION(struct nvml_temperature_v1, 1)
	uint32_t sensor;
	int32_t temperature_c;
};
