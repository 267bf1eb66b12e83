// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine.h"

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

static void change_driver(struct machine *machine, const char *version, uint64_t now_ns)
{
	snprintf(machine->driver, sizeof(machine->driver), "%s", version);
	for (uint32_t slot = 0; slot < machine->slot_count; slot++)
		if (machine_has(machine, slot))
			model_reset_energy(&machine->gpus[slot].model, now_ns);
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
	model_restore(&gpu->model, now_ns);
	faults_clear_slot(&machine->faults, slot);
	return ERR_OK;
}

static err_status set_process(struct machine *machine, const struct control_command *command,
			      uint64_t now_ns, struct err *err)
{
	struct model_gpu *gpu = &machine->gpus[command->slot].model;
	struct model_use use = { .memory_mib = command->memory_mib };

	if (command->memory_mib == 0) {
		model_use_drop(gpu, 0, command->pid, now_ns);
		return ERR_OK;
	}
	switch (model_use_set(gpu, 0, command->pid, use, now_ns)) {
	case MODEL_OK: return ERR_OK;
	case MODEL_NO_MEMORY:
		return err_set(err, ERR_LIMIT, "GPU %u has only %u MiB free", command->slot,
			       model_memory_free_mib(gpu));
	case MODEL_FULL:
		return err_set(err, ERR_LIMIT, "GPU %u has %d processes already", command->slot,
			       MODEL_USER_MAX);
	case MODEL_LOST: return err_set(err, ERR_UNAVAILABLE, "GPU %u is lost", command->slot);
	}
	ASSERT(false);
	return ERR_INTERNAL;
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
	case CONTROL_DRIVER: change_driver(machine, command->word, now_ns); return ERR_OK;
	case CONTROL_SLOW:
	case CONTROL_HANG:
	case CONTROL_ERROR: return faults_apply(&machine->faults, command, err);
	case CONTROL_LOST:
	case CONTROL_REMOVE:
	case CONTROL_RESTORE:
	case CONTROL_RECOVERY:
	case CONTROL_PROCESS: return apply_to_gpu(machine, command, now_ns, err);
	case CONTROL_ADD:
	case CONTROL_XID: break;
	}
	ASSERT(false);
	return ERR_INTERNAL;
}
