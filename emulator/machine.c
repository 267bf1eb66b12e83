// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine.h"

#include "gpu/compat_table.h"
#include "gpu/nvml_abi.h"

#include <stdio.h>
#include <string.h>

bool machine_has(const struct machine *machine, uint32_t slot)
{
	return slot < machine->slot_count && machine->gpus[slot].is_present;
}

uint32_t machine_gpu_count(const struct machine *machine)
{
	uint32_t count = 0;

	for (uint32_t slot = 0; slot < machine->slot_count; slot++)
		count += machine_has(machine, slot) ? 1 : 0;
	return count;
}

uint32_t machine_index_of(const struct machine *machine, uint32_t slot)
{
	uint32_t index = 0;

	ASSERT(machine_has(machine, slot));
	for (uint32_t i = 0; i < slot; i++)
		index += machine_has(machine, i) ? 1 : 0;
	return index;
}

uint32_t machine_slot_at(const struct machine *machine, uint32_t index)
{
	for (uint32_t slot = 0; slot < machine->slot_count; slot++) {
		if (!machine_has(machine, slot))
			continue;
		if (index == 0)
			return slot;
		index--;
	}
	return WIRE_NO_SLOT;
}

uint32_t machine_bridge_peer(const struct machine *machine, uint32_t slot)
{
	uint32_t peer = slot ^ 1;
	const struct board *board = machine->gpus[slot].model.board;

	if (board->nvlink_count == 0 || board->nvlink_switch_count > 0 ||
	    !machine_has(machine, peer) || machine->gpus[peer].model.is_lost ||
	    machine->gpus[peer].model.board != board)
		return WIRE_NO_SLOT;
	return peer;
}

void machine_bus_id(const struct machine_gpu *gpu, char ret_text[32])
{
	snprintf(ret_text, 32, "%08X:%02X:%02X.0", gpu->pci_domain, gpu->pci_bus, gpu->pci_device);
}

static err_status need(const struct machine *machine, uint32_t slot, struct err *err)
{
	if (!machine_has(machine, slot))
		return err_set(err, ERR_NOT_FOUND, "there is no GPU %u", slot);
	return ERR_OK;
}

// The newest CUDA that a driver of each branch serves, as NVIDIA's release notes pair them.
static uint32_t cuda_of_driver(const char *version, uint32_t otherwise)
{
	static const struct {
		const char *cuda, *driver;
	} PAIRS[] = {
#define PAIR(cuda, driver) { cuda, driver },
		COMPAT_CUDA(PAIR)
#undef PAIR
	};
	const char *dot = strchr(version, '.');
	size_t branch_bytes = dot == NULL ? 0 : (size_t)(dot - version) + 1;

	for (size_t i = 0; branch_bytes > 0 && i < ARRAY_COUNT(PAIRS); i++) {
		struct str rest = str_of(PAIRS[i].cuda), major;
		uint64_t numbers[2] = { 0 };

		if (strncmp(PAIRS[i].driver, version, branch_bytes) == 0 &&
		    str_split_next(&rest, '.', &major) && str_to_u64(major, &numbers[0]) &&
		    str_to_u64(rest, &numbers[1]))
			return (uint32_t)(numbers[0] * 1000 + numbers[1] * 10);
	}
	return otherwise;
}

// What a reset or a new driver does to errors: modes asked for come into force, volatile counts
// and what was pending are gone.
static void reset_errors(struct wire_errors *errors)
{
	errors->ecc_mode = errors->ecc_mode_pending;
	memset(errors->ecc_volatile, 0, sizeof(errors->ecc_volatile));
	errors->pages_pending = 0;
	errors->rows_pending = 0;
}

static void change_driver(struct machine *machine, const struct control_command *command,
			  uint64_t now_ns)
{
	snprintf(machine->driver, sizeof(machine->driver), "%s", command->word);
	machine->cuda_version = command->code != 0
					? command->code
					: cuda_of_driver(command->word, machine->cuda_version);
	for (uint32_t slot = 0; slot < machine->slot_count; slot++) {
		if (!machine_has(machine, slot))
			continue;
		model_new_driver(&machine->gpus[slot].model, now_ns);
		reset_errors(&machine->gpus[slot].errors);
	}
}

// Repairs the GPU: back on the bus, nothing injected, no action asked for. It also brings back
// a removed GPU, which is how a test re-seats one.
static err_status restore(struct machine *machine, uint32_t slot, uint64_t now_ns, struct err *err)
{
	if (slot >= machine->slot_count)
		return err_set(err, ERR_NOT_FOUND, "there was never a GPU %u", slot);
	struct machine_gpu *gpu = &machine->gpus[slot];
	gpu->is_present = true;
	gpu->recovery_action = 0;
	reset_errors(&gpu->errors);
	model_restore(&gpu->model, now_ns);
	faults_clear_slot(&machine->faults, slot);
	return ERR_OK;
}

static err_status set_process(struct machine *machine, const struct control_command *command,
			      uint64_t now_ns, struct err *err)
{
	struct model_gpu *gpu = &machine->gpus[command->slot].model;
	struct model_use use = { .memory_mib = command->memory_mib };

	if (!machine_part_of(&machine->gpus[command->slot], command->gpu_instance_id,
			     command->compute_instance_id, &use.part))
		return err_set(err, ERR_NOT_FOUND, "GPU %u has no such instance", command->slot);
	if (command->memory_mib == 0) {
		model_use_drop(gpu, 0, command->pid, now_ns);
		return ERR_OK;
	}
	switch (model_use_set(gpu, 0, command->pid, use, now_ns)) {
	case MODEL_OK: return ERR_OK;
	case MODEL_NO_MEMORY:
		return err_set(err, ERR_LIMIT, "GPU %u has only %u MiB free", command->slot,
			       model_part_free_mib(gpu, use.part));
	case MODEL_FULL:
		return err_set(err, ERR_LIMIT, "GPU %u has %d processes already", command->slot,
			       MODEL_USER_MAX);
	case MODEL_LOST: return err_set(err, ERR_UNAVAILABLE, "GPU %u is lost", command->slot);
	case MODEL_MIG: return err_set(err, ERR_CONFLICT, "GPU %u is in MIG mode", command->slot);
	}
	ASSERT(false);
	return ERR_INTERNAL;
}

static err_status set_errors(struct machine_gpu *gpu, const struct control_command *command,
			     struct err *err)
{
	const struct board *board = gpu->model.board;
	const uint32_t *numbers = command->numbers;
	struct wire_errors *errors = &gpu->errors;
	bool is_ampere = board->architecture >= NVML_DEVICE_ARCH_AMPERE;

	if (!board->has_ecc)
		return err_set(err, ERR_INVALID, "a %s has no ECC", board->name);
	if (command->kind == CONTROL_ECC_MODE) {
		errors->ecc_mode_pending = command->is_on ? 1 : 0;
	} else if (command->kind == CONTROL_ECC) {
		if (errors->ecc_mode == 0)
			return err_set(err, ERR_CONFLICT, "ECC of GPU %u is off", command->slot);
		errors->ecc_volatile[command->code] += numbers[0];
		errors->ecc_aggregate[command->code] += numbers[0];
	} else if (command->kind == CONTROL_PAGES) {
		if (is_ampere)
			return err_set(err, ERR_INVALID, "a %s remaps rows", board->name);
		memcpy(errors->pages, numbers, sizeof(errors->pages));
		errors->pages_pending = numbers[2] != 0;
	} else {
		ASSERT(command->kind == CONTROL_ROWS);
		if (!is_ampere)
			return err_set(err, ERR_INVALID, "a %s retires pages", board->name);
		memcpy(errors->rows, numbers, sizeof(errors->rows));
		errors->rows_pending = numbers[2] != 0;
		errors->rows_failed = numbers[3] != 0;
	}
	return ERR_OK;
}

static bool is_of_errors(enum control_kind kind)
{
	return kind == CONTROL_ECC || kind == CONTROL_ECC_MODE || kind == CONTROL_PAGES ||
	       kind == CONTROL_ROWS;
}

static err_status apply_to_gpu(struct machine *machine, const struct control_command *command,
			       uint64_t now_ns, struct err *err)
{
	if (command->kind == CONTROL_RESTORE)
		return restore(machine, command->slot, now_ns, err);
	if (need(machine, command->slot, err) != ERR_OK)
		return ERR_NOT_FOUND;
	struct machine_gpu *gpu = &machine->gpus[command->slot];
	if (command->kind == CONTROL_PROCESS)
		return set_process(machine, command, now_ns, err);
	if (command->kind == CONTROL_TEMP || command->kind == CONTROL_THROTTLE) {
		model_advance(&gpu->model, now_ns);
		if (command->kind == CONTROL_TEMP)
			gpu->model.limits.temp_c = command->code;
		else
			gpu->model.limits.throttle = command->code;
		return ERR_OK;
	}
	if (command->kind == CONTROL_MIG_MODE || command->kind == CONTROL_MIG_CREATE ||
	    command->kind == CONTROL_MIG_DESTROY)
		return machine_apply_mig(machine, command, now_ns, err);
	if (is_of_errors(command->kind))
		return set_errors(gpu, command, err);
	if (command->kind == CONTROL_RECOVERY) {
		gpu->recovery_action = command->code;
		return ERR_OK;
	}
	ASSERT(command->kind == CONTROL_LOST || command->kind == CONTROL_REMOVE);
	model_lose(&gpu->model, now_ns);
	gpu->is_present = command->kind == CONTROL_LOST;
	return ERR_OK;
}

err_status machine_apply(struct machine *machine, const struct control_command *command,
			 uint64_t now_ns, struct err *err)
{
	switch (command->kind) {
	case CONTROL_NOTHING: return ERR_OK;
	case CONTROL_INITFAIL: machine->is_initfail = command->is_on; return ERR_OK;
	case CONTROL_WAIT_ERROR: machine->is_wait_error = command->is_on; return ERR_OK;
	case CONTROL_DRIVER: change_driver(machine, command, now_ns); return ERR_OK;
	case CONTROL_SLOW:
	case CONTROL_HANG:
	case CONTROL_ERROR: return faults_apply(&machine->faults, command, err);
	case CONTROL_LOST:
	case CONTROL_REMOVE:
	case CONTROL_RESTORE:
	case CONTROL_RECOVERY:
	case CONTROL_PROCESS:
	case CONTROL_ECC:
	case CONTROL_ECC_MODE:
	case CONTROL_PAGES:
	case CONTROL_ROWS:
	case CONTROL_TEMP:
	case CONTROL_THROTTLE:
	case CONTROL_MIG_MODE:
	case CONTROL_MIG_CREATE:
	case CONTROL_MIG_DESTROY: return apply_to_gpu(machine, command, now_ns, err);
	case CONTROL_ADD:
	case CONTROL_XID: break;
	}
	ASSERT(false);
	return ERR_INTERNAL;
}
