// SPDX-License-Identifier: Apache-2.0
#include "emulator/answer.h"

#include "gpu/nvml_abi.h"

#include <stdio.h>
#include <string.h>

#define MIB UINT64_C(1048576)

static const struct mig_ci *find_ci(const struct machine_gpu *gpu, const char *uuid)
{
	for (size_t i = 0; i < MIG_CI_MAX; i++)
		if (gpu->model.mig.cis[i].is_used && strcmp(gpu->model.mig.cis[i].uuid, uuid) == 0)
			return &gpu->model.mig.cis[i];
	return NULL;
}

static uint32_t find_text(const struct machine *machine, const struct wire_request *request)
{
	for (uint32_t slot = 0; slot < machine->slot_count; slot++) {
		const struct machine_gpu *gpu = &machine->gpus[slot];
		const char *text = request->op == WIRE_FIND_UUID ? gpu->uuid : gpu->serial;
		if (!machine_has(machine, slot))
			continue;
		if (strcmp(text, request->key) == 0 ||
		    (request->op == WIRE_FIND_UUID && find_ci(gpu, request->key) != NULL))
			return slot;
	}
	return WIRE_NO_SLOT;
}

// Takes the short form (0000:1a:00.0) and the long one, in both cases of letters.
static uint32_t find_pci(const struct machine *machine, const char *key)
{
	unsigned domain = 0, bus = 0, device = 0;

	if (sscanf(key, "%8x:%2x:%2x", &domain, &bus, &device) != 3)
		return WIRE_NO_SLOT;
	for (uint32_t slot = 0; slot < machine->slot_count; slot++) {
		const struct machine_gpu *gpu = &machine->gpus[slot];
		if (machine_has(machine, slot) && gpu->pci_domain == domain &&
		    gpu->pci_bus == bus && gpu->pci_device == device)
			return slot;
	}
	return WIRE_NO_SLOT;
}

uint32_t answer_slot(const struct machine *machine, const struct wire_request *request)
{
	switch ((enum wire_op)request->op) {
	case WIRE_HELLO:
	case WIRE_SYSTEM:
	case WIRE_EVENTS_WAIT: return WIRE_NO_SLOT;
	case WIRE_GPU:
	case WIRE_PROCESSES:
	case WIRE_EVENTS_ADD:
	case WIRE_MIG:
	case WIRE_GPM:
	case WIRE_SAMPLES:
	case WIRE_MIG_MODE:
	case WIRE_GI_CREATE:
	case WIRE_GI_DESTROY:
	case WIRE_CI_CREATE:
	case WIRE_CI_DESTROY:
	case WIRE_SET: return request->slot < machine->slot_count ? request->slot : WIRE_NO_SLOT;
	case WIRE_FIND_INDEX: return machine_slot_at(machine, request->slot);
	case WIRE_FIND_UUID:
	case WIRE_FIND_SERIAL: return find_text(machine, request);
	case WIRE_FIND_PCI: return find_pci(machine, request->key);
	}
	ASSERT(false); // wire_check_request lets no other operation through
	return WIRE_NO_SLOT;
}

static void fill_identity(const struct machine *machine, uint32_t slot, struct wire_gpu *ret)
{
	const struct machine_gpu *gpu = &machine->gpus[slot];
	const struct board *board = gpu->model.board;

	ret->slot = slot;
	ret->index = machine_index_of(machine, slot);
	ret->minor = gpu->minor;
	ret->numa = gpu->numa;
	snprintf(ret->name, sizeof(ret->name), "%s", board->name);
	snprintf(ret->uuid, sizeof(ret->uuid), "%s", gpu->uuid);
	snprintf(ret->serial, sizeof(ret->serial), "%s", gpu->serial);
	snprintf(ret->part_number, sizeof(ret->part_number), "%s", board->part_number);
	snprintf(ret->vbios, sizeof(ret->vbios), "%s", board->vbios);
	ret->pci_domain = gpu->pci_domain;
	ret->pci_bus = gpu->pci_bus;
	ret->pci_device = gpu->pci_device;
	ret->pci_device_id = board->pci_device_id;
	ret->pci_subsystem_id = board->pci_subsystem_id;
	ret->architecture = board->architecture;
	ret->compute_major = board->compute_major;
	ret->compute_minor = board->compute_minor;
	ret->core_count = board->core_count;
	ret->board_id = gpu->pci_bus << 8;
	ret->memory_bus_bits = board->memory_bus_bits;
	ret->has_ecc = board->has_ecc;
	ret->is_mig_capable = board->is_mig_capable;
	ret->has_memory_temp = board->has_memory_temp;
	ret->mig_mode = gpu->model.mig.mode;
	ret->mig_count_max = board->is_mig_capable ? mig_slices(board) : 0;
	ret->recovery_action = gpu->recovery_action;
	ret->pcie_gen_max = board->pcie_gen_max;
	ret->pcie_width = board->pcie_width;
	ret->nvlink_count = board->nvlink_count;
	ret->nvlink_version = board->nvlink_version;
	ret->nvlink_mb_s = board->nvlink_mb_s;
	ret->nvlink_switch_count = board->nvlink_switch_count;
	ret->nvlink_peer_slot = machine_bridge_peer(machine, slot);
	ret->errors = gpu->errors;
}

static void fill_clocks(const struct model_gpu *model, struct wire_gpu *ret)
{
	const struct board *board = model->board;
	bool is_busy = model->user_count > 0;
	uint32_t sm_mhz = model_sm_clock_mhz(model);
	uint32_t now[4] = { sm_mhz, sm_mhz, model_memory_clock_mhz(model),
			    is_busy ? board->video_clock_max_mhz : board->video_clock_idle_mhz };
	uint32_t max[4] = { board->sm_clock_max_mhz, board->sm_clock_max_mhz,
			    board->memory_clock_max_mhz, board->video_clock_max_mhz };

	memcpy(ret->clock_mhz, now, sizeof(now));
	memcpy(ret->clock_max_mhz, max, sizeof(max));
	ret->pstate = is_busy ? 0 : board->pstate_idle;
	ret->throttle_reasons = model_throttle_reasons(model);
	ret->power_capped_ns = model->history.power_capped_ns;
	ret->hot_ns = model->history.hot_ns;
}

static void fill_load(const struct model_gpu *model, struct wire_gpu *ret)
{
	const struct board *board = model->board;
	uint32_t util_milli = model_util_milli(model);

	ret->memory_total_bytes = board->memory_mib * MIB;
	ret->memory_reserved_bytes = board->memory_reserved_mib * MIB;
	ret->memory_used_bytes = model_memory_used_mib(model) * MIB;
	ret->bar1_total_bytes = board->bar1_mib * MIB;
	ret->bar1_used_bytes = (model->user_count > 0 ? 4 : 1) * MIB;
	ret->power_mw = model_power_mw(model);
	ret->power_limit_mw = model->limits.power_mw;
	ret->power_limit_default_mw = board->power_limit_w * 1000;
	ret->power_limit_min_mw = board->power_limit_min_w * 1000;
	ret->power_limit_max_mw = board->power_limit_max_w * 1000;
	ret->energy_mj = model->energy_mj.whole;
	ret->util_percent = (util_milli + 5) / 10;
	ret->memory_util_percent = (model_memory_util_milli(model) + 5) / 10;
	fill_clocks(model, ret);
	ret->temp_c = model_temp_c(model);
	ret->memory_temp_c = ret->temp_c + (int32_t)board->temp_memory_above_gpu_c;
	ret->temp_shutdown_c = (int32_t)board->temp_shutdown_c;
	ret->temp_slowdown_c = (int32_t)board->temp_slowdown_c;
	ret->temp_memory_max_c = (int32_t)board->temp_memory_max_c;
	ret->temp_gpu_max_c = (int32_t)board->temp_gpu_max_c;
	ret->pcie_tx_kib_s = util_milli * 1024;
	ret->pcie_rx_kib_s = util_milli * 2048;
	ret->nvlink_tx_kib = model->nvlink_kib.whole;
	ret->nvlink_rx_kib = model->nvlink_kib.whole;
}

size_t answer_status(uint32_t status, struct wire_reply *ret_reply)
{
	ret_reply->magic = WIRE_MAGIC;
	ret_reply->status = status;
	ret_reply->count = 0;
	ret_reply->body_bytes = 0;
	return WIRE_REPLY_HEAD_BYTES;
}

size_t answer_body(size_t body_bytes, struct wire_reply *ret_reply)
{
	ASSERT(body_bytes <= sizeof(ret_reply->body));
	(void)answer_status(NVML_SUCCESS, ret_reply);
	ret_reply->body_bytes = (uint32_t)body_bytes;
	return WIRE_REPLY_HEAD_BYTES + body_bytes;
}

static size_t answer_system(const struct machine *machine, struct wire_reply *ret_reply)
{
	struct wire_system *system = &ret_reply->body.system;

	memset(system, 0, sizeof(*system));
	snprintf(system->driver, sizeof(system->driver), "%s", machine->driver);
	system->cuda_version = machine->cuda_version;
	system->gpu_count = machine_gpu_count(machine);
	system->cpu_count = machine->cpu_count;
	system->numa_count = machine->numa_count;
	return answer_body(sizeof(*system), ret_reply);
}

static size_t answer_gpu(struct machine *machine, const struct wire_request *request,
			 uint64_t now_ns, struct wire_reply *ret_reply)
{
	uint32_t slot = answer_slot(machine, request), op = request->op;

	if (slot == WIRE_NO_SLOT)
		return answer_status(op == WIRE_FIND_INDEX || op == WIRE_GPU || op == WIRE_PROCESSES
					     ? NVML_ERROR_INVALID_ARGUMENT
					     : NVML_ERROR_NOT_FOUND,
				     ret_reply);
	// A handle of a GPU that was taken out meets the same error as one off the bus.
	struct model_gpu *model = &machine->gpus[slot].model;
	if (!machine_has(machine, slot) || model->is_lost)
		return answer_status(NVML_ERROR_GPU_IS_LOST, ret_reply);
	model_advance(model, now_ns);
	if (op == WIRE_PROCESSES) {
		memset(&ret_reply->body, 0, sizeof(ret_reply->body.processes));
		size_t count = model_processes(model, ret_reply->body.processes, WIRE_PROCESS_MAX);
		size_t size_bytes = answer_body(count * sizeof(struct wire_process), ret_reply);
		ret_reply->count = (uint32_t)count;
		return size_bytes;
	}
	memset(&ret_reply->body.gpu, 0, sizeof(ret_reply->body.gpu));
	fill_identity(machine, slot, &ret_reply->body.gpu);
	fill_load(model, &ret_reply->body.gpu);
	const struct mig_ci *ci = op == WIRE_FIND_UUID ? find_ci(&machine->gpus[slot], request->key)
						       : NULL;
	ret_reply->body.gpu.gi = ci == NULL ? WIRE_NO_INSTANCE : model->mig.gis[ci->gi_i].id;
	ret_reply->body.gpu.ci = ci == NULL ? WIRE_NO_INSTANCE : ci->id;
	return answer_body(sizeof(ret_reply->body.gpu), ret_reply);
}

size_t answer_request(struct machine *machine, const struct wire_request *request, uint64_t now_ns,
		      struct wire_reply *ret_reply)
{
	switch ((enum wire_op)request->op) {
	case WIRE_HELLO:
		if (machine->is_initfail)
			return answer_status(NVML_ERROR_DRIVER_NOT_LOADED, ret_reply);
		return answer_system(machine, ret_reply);
	case WIRE_SYSTEM: return answer_system(machine, ret_reply);
	case WIRE_GPU:
	case WIRE_FIND_INDEX:
	case WIRE_FIND_UUID:
	case WIRE_FIND_SERIAL:
	case WIRE_FIND_PCI:
	case WIRE_PROCESSES: return answer_gpu(machine, request, now_ns, ret_reply);
	case WIRE_MIG:
	case WIRE_MIG_MODE:
	case WIRE_GI_CREATE:
	case WIRE_GI_DESTROY:
	case WIRE_CI_CREATE:
	case WIRE_CI_DESTROY: return answer_mig(machine, request, now_ns, ret_reply);
	case WIRE_GPM:
	case WIRE_SAMPLES:
	case WIRE_SET: return answer_limits(machine, request, now_ns, ret_reply);
	case WIRE_EVENTS_ADD:
	case WIRE_EVENTS_WAIT: break;
	}
	ASSERT(false);
	return 0;
}
