// SPDX-License-Identifier: Apache-2.0
// Messages between the emulator's daemon and its clients, over SOCK_SEQPACKET unix sockets, one
// structure a packet, host byte order (both ends are on one machine). emu.sock carries requests
// of the NVML library, gpu-<slot>.sock those of workloads. The library and the workload include
// these two headers alone, nothing of src/. Receivers check size, magic, operation and terminated
// text before they use anything: wire_check_* below, which are pure and fuzzed.
#pragma once

#include "emulator/wire_body.h"

#include <stdbool.h>

enum {
	WIRE_MAGIC = 0x474d5531,
	WIRE_WORK_MAGIC = 0x474d5732,
	WIRE_CALL_MAX = 64, // with the terminating zero
	WIRE_ARGS_MAX = 4,
};
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
	WIRE_MIG,         // wire_mig of slot
	WIRE_GPM,         // wire_gpm of slot; args: GPU instance or WIRE_NO_INSTANCE
	WIRE_SAMPLES,     // wire_samples of slot
	// What follows changes the GPU in slot, needs a privileged peer and, but for the last, is
	// answered with the wire_mig after it.
	WIRE_MIG_MODE,   // args: 0 off, 1 on
	WIRE_GI_CREATE,  // args: profile id, start or WIRE_ANYWHERE
	WIRE_GI_DESTROY, // args: GPU instance
	WIRE_CI_CREATE,  // args: GPU instance, profile, start or WIRE_ANYWHERE
	WIRE_CI_DESTROY, // args: GPU instance, compute instance
	WIRE_SET,        // nothing; args: enum wire_setting, value, second value
};
#define WIRE_OP_LAST WIRE_SET
#define WIRE_CHANGE_FIRST WIRE_MIG_MODE

enum wire_setting {
	WIRE_SET_POWER_LIMIT = 1, // mW
	WIRE_SET_CLOCKS,          // lowest and highest MHz; 0 and 0: not locked
	WIRE_SET_ECC_MODE,
	WIRE_SET_ECC_CLEAR, // volatile 0, aggregate 1
};

struct wire_request {
	uint32_t magic;
	uint32_t op;
	uint32_t slot;
	uint32_t timeout_ms;
	uint64_t event_types;
	uint32_t args[WIRE_ARGS_MAX]; // what they mean is with the operation
	char call[WIRE_CALL_MAX];     // the NVML function, for injected faults
	char key[WIRE_TEXT_MAX];
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
		struct wire_mig mig;
		struct wire_gpm gpm;
		struct wire_samples samples;
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
	WIRE_WORK_MIG, // a GPU in MIG mode is used by its instances only
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
