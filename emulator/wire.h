// SPDX-License-Identifier: Apache-2.0
// Messages between the emulator's daemon and its clients, over SOCK_SEQPACKET unix sockets, one
// structure a packet, host byte order (both ends are on one machine). emu.sock carries requests
// of the NVML library, gpu-<slot>.sock those of workloads. The library and the workload include
// this header alone, nothing of src/. Receivers check size, magic, operation and terminated
// text before they use anything: wire_check_* below, which are pure and fuzzed.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	WIRE_MAGIC = 0x474d5531,
	WIRE_WORK_MAGIC = 0x474d5732,
	WIRE_GPU_MAX = 32,     // slots of one machine, removed ones included
	WIRE_PROCESS_MAX = 64, // processes of one GPU
	WIRE_CALL_MAX = 64,    // with the terminating zero
	WIRE_TEXT_MAX = 96,
};
#define WIRE_NO_SLOT UINT32_MAX
#define WIRE_DEFAULT_DIR "/run/gpuaas-emu"
#define WIRE_LIBRARY_SOCKET "emu.sock"

enum wire_op {
	WIRE_HELLO = 1,   // wire_system; what nvmlInit asks
	WIRE_SYSTEM,      // wire_system
	WIRE_GPU,         // wire_gpu of slot
	WIRE_FIND_INDEX,  // wire_gpu; slot holds the NVML index
	WIRE_FIND_UUID,   // wire_gpu; key
	WIRE_FIND_SERIAL, // wire_gpu; key
	WIRE_FIND_PCI,    // wire_gpu; key
	WIRE_PROCESSES,   // wire_process[count] of slot
	WIRE_EVENTS_ADD,  // makes the connection an event set; adds event_types of slot
	WIRE_EVENTS_WAIT, // wire_event within timeout_ms
};

struct wire_request {
	uint32_t magic;
	uint32_t op;
	uint32_t slot;
	uint32_t timeout_ms;
	uint64_t event_types;
	char call[WIRE_CALL_MAX]; // the NVML function, for injected faults
	char key[WIRE_TEXT_MAX];
};

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
	char name[WIRE_TEXT_MAX], uuid[WIRE_TEXT_MAX], serial[32], part_number[32], vbios[32];
	uint32_t pci_domain, pci_bus, pci_device, pci_device_id, pci_subsystem_id;
	uint32_t architecture, compute_major, compute_minor, core_count, board_id;
	uint32_t memory_bus_bits, has_ecc, is_mig_capable, has_memory_temp, recovery_action;
	uint64_t memory_total_bytes, memory_reserved_bytes, memory_used_bytes;
	uint64_t bar1_total_bytes, bar1_used_bytes;
	uint32_t power_mw, power_limit_mw, power_limit_min_mw, power_limit_max_mw;
	uint64_t energy_mj;
	uint32_t util_percent, memory_util_percent;
	uint32_t clock_mhz[4], clock_max_mhz[4]; // in the order of NVML's clock types
	uint32_t pstate;
	int32_t temp_c, memory_temp_c;
	int32_t temp_shutdown_c, temp_slowdown_c, temp_memory_max_c, temp_gpu_max_c;
	uint32_t pcie_gen_max, pcie_width, pcie_tx_kib_s, pcie_rx_kib_s;
	uint32_t nvlink_count, nvlink_version, nvlink_mb_s, nvlink_switch_count;
	uint32_t nvlink_peer_slot, zero; // at the other end of a bridge; WIRE_NO_SLOT: nobody
	uint64_t nvlink_tx_kib, nvlink_rx_kib;
	struct wire_errors errors;
};

struct wire_process {
	uint32_t pid;
	uint32_t util_percent, memory_util_percent;
	uint32_t zero;
	uint64_t memory_bytes;
};

struct wire_event {
	uint32_t slot;
	uint32_t gpu_instance_id, compute_instance_id;
	uint32_t zero;
	uint64_t event_type, event_data;
};

struct wire_reply {
	uint32_t magic;
	uint32_t status; // an NVML return code; the body is there only with 0
	uint32_t count;  // of processes
	uint32_t body_bytes;
	union {
		struct wire_system system;
		struct wire_gpu gpu;
		struct wire_process processes[WIRE_PROCESS_MAX];
		struct wire_event event;
	} body;
};
#define WIRE_REPLY_HEAD_BYTES offsetof(struct wire_reply, body)

// A workload's wish replaces the one before on the same connection; closing it releases all.
struct wire_work {
	uint32_t magic;
	uint32_t memory_mib;
	uint32_t util_milli;
	uint32_t memory_util_milli;
};

enum wire_work_status {
	WIRE_WORK_OK = 0,
	WIRE_WORK_BAD_REQUEST,
	WIRE_WORK_NO_MEMORY, // nothing changed; free_mib says what is there
	WIRE_WORK_FULL,      // too many processes on the GPU
	WIRE_WORK_LOST,
};

struct wire_work_reply {
	uint32_t magic;
	uint32_t status;
	uint32_t free_mib;
	uint32_t pid; // as the daemon sees the workload
	char name[WIRE_TEXT_MAX], uuid[WIRE_TEXT_MAX];
};

// Whether size_bytes at data are one well-formed request; ret gets an aligned copy of it.
bool wire_check_request(const void *data, size_t size_bytes, struct wire_request *ret);
bool wire_check_work(const void *data, size_t size_bytes, struct wire_work *ret);
// Used by the library on what the daemon says; body_want is the size the operation promises,
// or SIZE_MAX for a list of processes.
bool wire_check_reply(const struct wire_reply *reply, size_t size_bytes, size_t body_want);
