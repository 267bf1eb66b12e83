// SPDX-License-Identifier: Apache-2.0
// The emulated machine: driver version, boards and GPUs as boards.json describes them, plus all
// that changes while it runs (lost, added, removed, faults, uses). A GPU keeps its slot for life:
// it is its number in boards.json, in the control file and in gpu-<slot>.sock; the NVML index is
// its rank among those present. Pure but for reading files; time is passed in. The daemon owns
// the one machine; nothing of it outlives the daemon.
#pragma once

#include "base/buf.h"
#include "emulator/faults.h"
#include "emulator/model.h"

enum { MACHINE_BOARD_MAX = 16 };

struct machine_gpu {
	bool is_present; // false: empty slot, or removed
	char uuid[48], serial[24];
	uint32_t minor, numa;
	uint32_t pci_domain, pci_bus, pci_device;
	uint32_t recovery_action;
	struct wire_errors errors;
	struct model_gpu model;
};

struct machine {
	char driver[WIRE_TEXT_MAX];
	uint32_t cuda_version;
	uint32_t cpu_count, numa_count;
	int64_t wall_offset_us; // from the time that is passed in to the wall clock
	char seed[64];
	bool is_initfail, is_wait_error;
	struct faults faults;
	struct board boards[MACHINE_BOARD_MAX];
	size_t board_count;
	struct machine_gpu gpus[WIRE_GPU_MAX]; // by slot
	size_t slot_count;
};

struct machine_plan { // what --make is asked for
	const char *board_path;
	const char *seed;
	const char *driver, *cuda;
	uint32_t gpu_count, cpu_count;
};

// Prints a boards.json for so many GPUs of one board. UUIDs, serial numbers and addresses depend
// on the seed and the slot alone, so two seeds (node names) never share a GPU.
err_status machine_make(const struct machine_plan *plan, struct buf *out, struct err *err);
// Reads boards.json; boards that it does not hold come from board_dir/<name>.json.
err_status machine_read(const char *path, const char *board_dir, uint64_t now_ns,
			struct machine *ret_machine, struct err *err);
err_status machine_read_json(const json_t *root, const char *board_dir, uint64_t now_ns,
			     struct machine *ret_machine, struct err *err);
// Takes an added board; ret_slot is where it went.
err_status machine_add(struct machine *machine, const char *board_id, const char *board_dir,
		       uint64_t now_ns, uint32_t *ret_slot, struct err *err);
// Applies a command that concerns the machine's state alone (all but add and xid).
err_status machine_apply(struct machine *machine, const struct control_command *command,
			 uint64_t now_ns, struct err *err);

bool machine_has(const struct machine *machine, uint32_t slot);
uint32_t machine_gpu_count(const struct machine *machine);
uint32_t machine_index_of(const struct machine *machine, uint32_t slot);
// Slot of the GPU with this NVML index, or WIRE_NO_SLOT.
uint32_t machine_slot_at(const struct machine *machine, uint32_t index);
// Commands about MIG: mode, a GPU instance with one compute instance over all of it, and away.
err_status machine_apply_mig(struct machine *machine, const struct control_command *command,
			     uint64_t now_ns, struct err *err);
// Part of the compute instance for struct model_use: 0 when GPU and compute instance are
// WIRE_NO_INSTANCE; false when there is none.
bool machine_part_of(const struct machine_gpu *gpu, uint32_t gi_id, uint32_t ci_id,
		     uint32_t *ret_part);
// The GPU instance and all its compute instances; refused while one is in use.
uint32_t machine_destroy_gi(struct machine_gpu *gpu, uint32_t gi_id);
// The GPU at the other end of this one's NVLink bridge, or WIRE_NO_SLOT: links of a board without
// NVLink switches join two neighbours.
uint32_t machine_bridge_peer(const struct machine *machine, uint32_t slot);
// "00000000:1A:00.0"
void machine_bus_id(const struct machine_gpu *gpu, char ret_text[32]);
