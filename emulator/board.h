// SPDX-License-Identifier: Apache-2.0
// A board: the figures of one GPU model, read from emulator/boards/*.json (data, so that a new
// model needs no code). In the file every figure names the source it was taken from. A board is
// plain values; the machine owns it and GPUs point to it. Reading fails on a missing, unknown or
// out-of-range figure and on one without a source.
#pragma once

#include "base/err.h"

#include <jansson.h>

enum { BOARD_MIG_PROFILE_MAX = 12, BOARD_MIG_SLICE_MAX = 8 };

struct mig_profile {      // a kind of GPU instance
	char name[24];    // "1g.10gb+me"
	uint32_t profile; // NVML's number of it
	uint32_t id;      // the number that tools show and that instances are made by
	uint32_t slices;  // for compute
	uint32_t size;    // memory slices
	uint32_t starts;  // bit i: may begin at memory slice i
	uint32_t count_max;
	uint32_t memory_mib, sm_count;
	uint32_t copy_count, decoder_count, encoder_count, jpeg_count, ofa_count;
};

struct board {
	char id[64];   // "A100-SXM4-80GB"
	char name[64]; // as NVML says it: "NVIDIA A100-SXM4-80GB"
	char part_number[32], vbios[32];
	uint32_t architecture, compute_major, compute_minor, core_count;
	uint32_t memory_mib, memory_reserved_mib, bar1_mib, memory_bus_bits;
	uint32_t power_idle_w, power_limit_w, power_limit_min_w, power_limit_max_w;
	uint32_t sm_clock_idle_mhz, sm_clock_max_mhz;
	uint32_t memory_clock_idle_mhz, memory_clock_max_mhz;
	uint32_t video_clock_idle_mhz, video_clock_max_mhz;
	uint32_t pstate_idle;
	uint32_t temp_idle_c, temp_busy_c, temp_shutdown_c, temp_slowdown_c, temp_gpu_max_c;
	uint32_t temp_memory_above_gpu_c, temp_memory_max_c;
	uint32_t pci_device_id, pci_subsystem_id, pcie_gen_max, pcie_width;
	uint32_t nvlink_count, nvlink_version, nvlink_mb_s, nvlink_switch_count;
	uint32_t has_ecc, is_mig_capable, has_memory_temp;
	struct mig_profile mig_profiles[BOARD_MIG_PROFILE_MAX]; // none: MIG mode without instances
	uint32_t mig_profile_count;
};

err_status board_read(const json_t *object, struct board *ret_board, struct err *err);
// Reads a board's file; ret_json (may be NULL) gets a new reference to its object.
err_status board_read_file(const char *path, struct board *ret_board, json_t **ret_json,
			   struct err *err);
