// SPDX-License-Identifier: Apache-2.0
// The values read from a GPU, in the driver's own integer units, and the table that says under
// which name, type and unit each is exposed ("classic" profile of dcgm-exporter). Pure.
#pragma once

#include "base/buf.h"

// Of the classic default: name, type, help, decimal factor (value / factor is shown; 1: as an
// integer).
#define GPU_FIELDS(X)                                                                              \
	X(SM_CLOCK, "DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock frequency (in MHz).", 1)            \
	X(MEM_CLOCK, "DCGM_FI_DEV_MEM_CLOCK", "gauge", "Memory clock frequency (in MHz).", 1)      \
	X(MEMORY_TEMP, "DCGM_FI_DEV_MEMORY_TEMP", "gauge", "Memory temperature (in C).", 1)        \
	X(GPU_TEMP, "DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature (in C).", 1)                 \
	X(POWER_MW, "DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw (in W).", 1000)                \
	X(ENERGY_MJ, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter",                            \
	  "Total energy consumption since boot (in mJ).", 1)                                       \
	X(PCIE_REPLAY, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter",                               \
	  "Total number of PCIe retries.", 1)                                                      \
	X(UTIL_PERCENT, "DCGM_FI_DEV_GPU_UTIL", "gauge", "GPU utilization (in %).", 1)             \
	X(MEM_UTIL_PERCENT, "DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", "Memory utilization (in %).", 1) \
	X(ENC_UTIL_PERCENT, "DCGM_FI_DEV_ENC_UTIL", "gauge", "Encoder utilization (in %).", 1)     \
	X(DEC_UTIL_PERCENT, "DCGM_FI_DEV_DEC_UTIL", "gauge", "Decoder utilization (in %).", 1)     \
	X(FB_FREE_MIB, "DCGM_FI_DEV_FB_FREE", "gauge", "Framebuffer memory free (in MiB).", 1)     \
	X(FB_USED_MIB, "DCGM_FI_DEV_FB_USED", "gauge", "Framebuffer memory used (in MiB).", 1)     \
	X(FB_RESERVED_MIB, "DCGM_FI_DEV_FB_RESERVED", "gauge",                                     \
	  "Framebuffer memory reserved (in MiB).", 1)                                              \
	X(ROWS_UNCORRECTABLE, "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "counter",                \
	  "Number of remapped rows for uncorrectable errors", 1)                                   \
	X(ROWS_CORRECTABLE, "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "counter",                    \
	  "Number of remapped rows for correctable errors", 1)                                     \
	X(ROW_REMAP_FAILURE, "DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge",                             \
	  "Whether remapping of rows has failed", 1)                                               \
	X(NVLINK_MB_S, "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "counter",                            \
	  "Rate of data over all NVLinks, both directions (in MB/s).", 1)                          \
	X(PROF_GRAPHICS, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge",                                 \
	  "Ratio of time the graphics engine is active.", GPU_RATIO)                               \
	X(PROF_TENSOR, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge",                                 \
	  "Ratio of cycles the tensor (HMMA) pipe is active.", GPU_RATIO)                          \
	X(PROF_DRAM, "DCGM_FI_PROF_DRAM_ACTIVE", "gauge",                                          \
	  "Ratio of cycles the device memory interface is active sending or receiving data.",      \
	  GPU_RATIO)                                                                               \
	X(PROF_PCIE_TX, "DCGM_FI_PROF_PCIE_TX_BYTES", "gauge",                                     \
	  "Rate of data sent over PCIe, protocol headers and payload (in bytes per second).", 1)   \
	X(PROF_PCIE_RX, "DCGM_FI_PROF_PCIE_RX_BYTES", "gauge",                                     \
	  "Rate of data received over PCIe, protocol headers and payload (in bytes per second).",  \
	  1)

// Shown where a file of counters names them.
#define GPU_FIELDS_ON_REQUEST(X)                                                                   \
	X(PROF_SM, "DCGM_FI_PROF_SM_ACTIVE", "gauge", "Ratio of cycles an SM has a warp.",         \
	  GPU_RATIO)                                                                               \
	X(PROF_OCCUPANCY, "DCGM_FI_PROF_SM_OCCUPANCY", "gauge",                                    \
	  "Ratio of warps resident on an SM.", GPU_RATIO)                                          \
	X(PROF_FP64, "DCGM_FI_PROF_PIPE_FP64_ACTIVE", "gauge",                                     \
	  "Ratio of cycles the fp64 pipe is active.", GPU_RATIO)                                   \
	X(PROF_FP32, "DCGM_FI_PROF_PIPE_FP32_ACTIVE", "gauge",                                     \
	  "Ratio of cycles the fp32 pipe is active.", GPU_RATIO)                                   \
	X(PROF_FP16, "DCGM_FI_PROF_PIPE_FP16_ACTIVE", "gauge",                                     \
	  "Ratio of cycles the fp16 pipe is active.", GPU_RATIO)                                   \
	X(PROF_NVLINK_TX, "DCGM_FI_PROF_NVLINK_TX_BYTES", "gauge",                                 \
	  "Rate of data sent over NVLink (in bytes per second).", 1)                               \
	X(PROF_NVLINK_RX, "DCGM_FI_PROF_NVLINK_RX_BYTES", "gauge",                                 \
	  "Rate of data received over NVLink (in bytes per second).", 1)                           \
	X(ECC_SBE_VOLATILE, "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "counter",                            \
	  "Single-bit ECC errors since the driver was loaded.", 1)                                 \
	X(ECC_DBE_VOLATILE, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "counter",                            \
	  "Double-bit ECC errors since the driver was loaded.", 1)                                 \
	X(ECC_SBE_AGGREGATE, "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", "counter",                           \
	  "Single-bit ECC errors in the board's life.", 1)                                         \
	X(ECC_DBE_AGGREGATE, "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", "counter",                           \
	  "Double-bit ECC errors in the board's life.", 1)                                         \
	X(RETIRED_SBE, "DCGM_FI_DEV_RETIRED_SBE", "counter",                                       \
	  "Retired pages due to single-bit errors.", 1)                                            \
	X(RETIRED_DBE, "DCGM_FI_DEV_RETIRED_DBE", "counter",                                       \
	  "Retired pages due to double-bit errors.", 1)                                            \
	X(RETIRED_PENDING, "DCGM_FI_DEV_RETIRED_PENDING", "counter",                               \
	  "Whether pages are to be retired.", 1)                                                   \
	X(POWER_VIOLATION, "DCGM_FI_DEV_POWER_VIOLATION", "counter",                               \
	  "Time of throttling due to power (in ns).", 1)                                           \
	X(THERMAL_VIOLATION, "DCGM_FI_DEV_THERMAL_VIOLATION", "counter",                           \
	  "Time of throttling due to heat (in ns).", 1)                                            \
	X(SYNC_BOOST_VIOLATION, "DCGM_FI_DEV_SYNC_BOOST_VIOLATION", "counter",                     \
	  "Time of throttling due to sync boost (in ns).", 1)                                      \
	X(BOARD_LIMIT_VIOLATION, "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", "counter",                   \
	  "Time of throttling due to the board's limit (in ns).", 1)                               \
	X(LOW_UTIL_VIOLATION, "DCGM_FI_DEV_LOW_UTIL_VIOLATION", "counter",                         \
	  "Time of throttling due to low utilization (in ns).", 1)                                 \
	X(RELIABILITY_VIOLATION, "DCGM_FI_DEV_RELIABILITY_VIOLATION", "counter",                   \
	  "Time of throttling due to reliability (in ns).", 1)                                     \
	X(CLOCK_REASONS, "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "gauge",                            \
	  "Bits of the reasons why clocks are throttled.", 1)                                      \
	X(LINK_CRC_FLIT, "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "counter",               \
	  "NVLink flow-control CRC errors.", 1)                                                    \
	X(LINK_CRC_DATA, "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", "counter",               \
	  "NVLink data CRC errors.", 1)                                                            \
	X(LINK_REPLAY, "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "counter",                   \
	  "NVLink retries.", 1)                                                                    \
	X(LINK_RECOVERY, "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "counter",               \
	  "NVLink recovery errors.", 1)

enum { GPU_RATIO = 1000000 }; // parts of one

enum gpu_field {
#define FIELD(id, name, type, help, factor) GPU_FIELD_##id,
	GPU_FIELDS(FIELD) GPU_FIELD_DEFAULT_COUNT,
	GPU_FIELD_DEFAULT_LAST = GPU_FIELD_DEFAULT_COUNT - 1,
	GPU_FIELDS_ON_REQUEST(FIELD)
#undef FIELD
		GPU_FIELD_COUNT,
};

struct gpu_reading {
	uint64_t valid; // bit of each field that was read; there are at most 63
	int64_t values[GPU_FIELD_COUNT];
};

struct gpu_field_info {
	const char *name, *type, *help;
	int factor;
};

const struct gpu_field_info *gpu_field_info(enum gpu_field field);
bool gpu_reading_has(const struct gpu_reading *reading, enum gpu_field field);
void gpu_reading_set(struct gpu_reading *reading, enum gpu_field field, int64_t value);
// The value as the classic profile prints it: an integer, or six decimals.
void gpu_field_print(struct buf *out, enum gpu_field field, int64_t value);
