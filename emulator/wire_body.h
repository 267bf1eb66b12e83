// SPDX-License-Identifier: Apache-2.0
// What the daemon tells the library of a machine, a GPU, its processes and its MIG instances: the
// bodies of the replies in wire.h. Plain numbers and texts of fixed size, host byte order; texts
// end with a zero, which the library sees to itself. Nothing here can fail.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
	WIRE_GPU_MAX = 32,     // slots of one machine, removed ones included
	WIRE_PROCESS_MAX = 64, // processes of one GPU
	WIRE_MIG_PROFILE_MAX = 12,
	WIRE_MIG_MAX = 8, // GPU instances, and compute instances, of one GPU
	WIRE_TEXT_MAX = 96,
	WIRE_SAMPLE_MAX = 120,
};
#define WIRE_NO_SLOT UINT32_MAX
#define WIRE_NO_INSTANCE UINT32_MAX // of a whole GPU
#define WIRE_ANYWHERE UINT32_MAX    // a place that the driver chooses

struct wire_system {
	char driver[WIRE_TEXT_MAX];
	uint32_t cuda_version; // 12080 is 12.8
	uint32_t gpu_count;
	uint32_t cpu_count, numa_count;
};

struct wire_errors {                                // index 0 corrected (single-bit), 1 uncorrected
	uint64_t ecc_volatile[2], ecc_aggregate[2]; // of device memory
	uint32_t ecc_mode, ecc_mode_pending;
	uint32_t pages[2], pages_pending;            // retired, before Ampere
	uint32_t rows[2], rows_pending, rows_failed; // remapped, from Ampere on
	uint32_t zero;
};

struct wire_gpu {
	uint32_t slot, index, minor, numa;
	uint32_t gi, ci; // the instance that was looked for, or WIRE_NO_INSTANCE
	uint32_t mig_mode, mig_count_max;
	char name[WIRE_TEXT_MAX], uuid[WIRE_TEXT_MAX], serial[32], part_number[32], vbios[32];
	uint32_t pci_domain, pci_bus, pci_device, pci_device_id, pci_subsystem_id;
	uint32_t architecture, compute_major, compute_minor, core_count, board_id;
	uint32_t memory_bus_bits, has_ecc, is_mig_capable, has_memory_temp, recovery_action;
	uint64_t memory_total_bytes, memory_reserved_bytes, memory_used_bytes;
	uint64_t bar1_total_bytes, bar1_used_bytes;
	uint32_t power_mw, power_limit_mw, power_limit_min_mw, power_limit_max_mw;
	uint64_t throttle_reasons, power_capped_ns, hot_ns;
	uint64_t energy_mj;
	uint32_t util_percent, memory_util_percent;
	uint32_t clock_mhz[4], clock_max_mhz[4]; // in the order of NVML's clock types
	uint32_t pstate;
	int32_t temp_c, memory_temp_c;
	int32_t temp_shutdown_c, temp_slowdown_c, temp_memory_max_c, temp_gpu_max_c;
	uint32_t pcie_gen_max, pcie_width, pcie_tx_kib_s, pcie_rx_kib_s;
	uint32_t nvlink_count, nvlink_version, nvlink_mb_s, nvlink_switch_count;
	uint32_t nvlink_peer_slot; // at the other end of a bridge; WIRE_NO_SLOT: nobody
	uint32_t power_limit_default_mw;
	uint64_t nvlink_tx_kib, nvlink_rx_kib;
	struct wire_errors errors;
};

struct wire_process {
	uint32_t pid;
	uint32_t util_percent, memory_util_percent;
	uint32_t gi, ci; // WIRE_NO_INSTANCE: the whole GPU
	uint32_t zero;
	uint64_t memory_bytes;
};

struct wire_mig_profile {
	char name[24];
	uint32_t profile, id, slices, size;
	uint32_t starts, free_starts; // bit i: may begin at memory slice i, could now
	uint32_t count_max, remaining;
	uint32_t memory_mib, sm_count;
	uint32_t copy_count, decoder_count, encoder_count, jpeg_count, ofa_count;
	uint32_t zero;
};

struct wire_gi {
	uint32_t id, profile_i, start; // profile_i counts in wire_mig.profiles
	uint32_t memory_used_mib;
	uint32_t ci_free_starts[8]; // by profile of compute instances
};

struct wire_ci {
	uint32_t gi, id, profile, start, size, sm_count;
	char uuid[48];
};

struct wire_mig {
	uint32_t mode, mode_pending;
	uint32_t made;            // id of the instance that this request created
	uint32_t narrow_sm_count; // multiprocessors of one slice
	uint32_t profile_count, gi_count, ci_count, zero;
	struct wire_mig_profile profiles[WIRE_MIG_PROFILE_MAX];
	struct wire_gi gis[WIRE_MIG_MAX]; // by id
	struct wire_ci cis[WIRE_MIG_MAX]; // by GPU instance, then id: the order of MIG devices
};

struct wire_event {
	uint32_t slot;
	uint32_t gpu_instance_id, compute_instance_id;
	uint32_t zero;
	uint64_t event_type, event_data;
};

// Counters of the whole GPU or a GPU instance since the daemon began; they may wrap.
struct wire_gpm {
	uint64_t time_ns;
	uint64_t busy, memory_busy; // thousandths times nanoseconds
	uint64_t nvlink_kib;        // 0 of an instance
	uint32_t ci_count;          // of a GPU instance: without one it measures nothing
	uint32_t nvlink_count;
};

struct wire_sample {
	uint64_t time_us; // of the machine's wall clock
	uint32_t util_percent, memory_util_percent, power_mw, sm_clock_mhz, memory_clock_mhz, zero;
};

struct wire_samples {
	uint32_t count, zero;
	struct wire_sample samples[WIRE_SAMPLE_MAX]; // oldest first
};
