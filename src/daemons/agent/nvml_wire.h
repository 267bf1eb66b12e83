// SPDX-License-Identifier: Apache-2.0
// Messages between the agent and its child that calls the driver, one structure of a fixed size a
// packet (SOCK_SEQPACKET), host byte order. Neither side believes the other: size, magic, type,
// ranges and terminated text are checked before anything is used (nvml_request_check and
// nvml_reply_check, pure and fuzzed). Seq and slot of an answer are those of its question.
#pragma once

#include "gpu/field.h"
#include "gpu/mig.h"

enum {
	NVML_WIRE_MAGIC = 0x4e564d31,
	NVML_WIRE_FD = 3, // of the child
	NVML_TEXT_BYTES = 96,
	NVML_PROCESSES_MAX = 64,
};
#define NVML_SLOT_NONE UINT32_MAX
#define NVML_UTIL_UNKNOWN UINT32_MAX

enum nvml_ask {
	NVML_ASK_OPEN = 1,   // answer: NVML_SAY_INFO
	NVML_ASK_PROBE,      // NVML_SAY_PROBE
	NVML_ASK_READ,       // NVML_SAY_READING
	NVML_ASK_PROCESSES,  // NVML_SAY_PROCESSES
	NVML_ASK_MIG,        // NVML_SAY_MIG
	NVML_ASK_MIG_CHANGE, // NVML_SAY_MIG_CHANGED
	NVML_ASK_END,
};

enum nvml_say {
	NVML_SAY_HELLO = 1, // unasked, first
	NVML_SAY_INFO,
	NVML_SAY_PROBE,
	NVML_SAY_READING,
	NVML_SAY_PROCESSES,
	NVML_SAY_MIG,
	NVML_SAY_MIG_CHANGED,
	NVML_SAY_XID,    // unasked
	NVML_SAY_EVENTS, // unasked: the waiting thread lives; status of its last wait
	NVML_SAY_END,
};

typedef enum nvml_mig_op {
	NVML_MIG_MODE = 1, // a: on or off
	NVML_MIG_CREATE,   // a: id of the profile, b: where; with a compute instance over all of it
	NVML_MIG_DESTROY,  // a: id of the GPU instance; its compute instances go with it
} nvml_mig_op;

struct nvml_mig_change {
	uint32_t op, a, b;
};

struct nvml_request {
	uint32_t magic, type, seq, slot;
	uint32_t index;                // of OPEN: the driver's
	struct nvml_mig_change change; // of MIG_CHANGE
};

struct nvml_hello {                 // status 0: the driver answers
	char text[NVML_TEXT_BYTES]; // what failed
	char driver_version[NVML_TEXT_BYTES], library_version[NVML_TEXT_BYTES];
	uint32_t cuda_version; // 12080 is 12.8
	uint32_t gpu_count;
};

struct nvml_probe {     // also of MIG_CHANGED, which has no action
	int32_t action; // recovery action, HEALTH_ACTION_UNKNOWN
	uint32_t zero;
	char text[NVML_TEXT_BYTES]; // of the driver, when status is not 0
};

struct nvml_process {
	uint32_t pid;
	uint32_t util_percent; // NVML_UTIL_UNKNOWN
	uint64_t memory_bytes;
};

struct nvml_processes {
	uint32_t count, zero;
	struct nvml_process items[NVML_PROCESSES_MAX];
};

struct nvml_xid {
	uint64_t xid;
	uint32_t gpu_instance, compute_instance;
};

struct nvml_reply {
	uint32_t magic, type, seq, slot;
	int32_t status; // the driver's return code
	uint32_t zero;
	union {
		struct nvml_hello hello;
		struct gpu_info info;
		struct nvml_probe probe;
		struct gpu_reading reading;
		struct nvml_processes processes;
		struct nvml_xid xid;
		struct mig_state mig;
	} body;
};

size_t nvml_reply_bytes(uint32_t type); // of the whole packet; 0: no such type
uint32_t nvml_answer_of(uint32_t ask);  // the type of the answer
// Copies to ret only what is well formed.
MUST_USE bool nvml_request_check(const void *data, size_t size_bytes, struct nvml_request *ret);
MUST_USE bool nvml_reply_check(const void *data, size_t size_bytes, struct nvml_reply *ret);
