// SPDX-License-Identifier: Apache-2.0
// The values read from a GPU, in the driver's own integer units, and the table that says under
// which name, type and unit each is exposed ("classic" profile of dcgm-exporter). Pure.
#pragma once

#include "base/buf.h"

// Name, type, help, decimal factor (value / factor is shown; 1: as an integer).
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
	  "Whether remapping of rows has failed", 1)

enum gpu_field {
#define FIELD(id, name, type, help, factor) GPU_FIELD_##id,
	GPU_FIELDS(FIELD)
#undef FIELD
		GPU_FIELD_COUNT,
};

struct gpu_reading {
	uint64_t valid; // bit of each field that was read
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
