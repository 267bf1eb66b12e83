// SPDX-License-Identifier: Apache-2.0
#include "emulator/answer.h"

#include "gpu/nvml_abi.h"

#include <string.h>

_Static_assert((int)WIRE_SAMPLE_MAX == (int)HISTORY_MAX, "samples fit into a message");

static size_t answer_gpm(const struct model_gpu *model, uint32_t gi_id,
			 struct wire_reply *ret_reply)
{
	struct wire_gpm *gpm = &ret_reply->body.gpm;
	uint32_t gi_i = 0, span = 0;

	if (model->board->architecture < NVML_DEVICE_ARCH_HOPPER)
		return answer_status(NVML_ERROR_NOT_SUPPORTED, ret_reply);
	if (gi_id != WIRE_NO_INSTANCE) {
		if (!mig_gi_find(&model->mig, gi_id, &gi_i))
			return answer_status(NVML_ERROR_INVALID_ARGUMENT, ret_reply);
		span = 1 + gi_i;
	}
	*gpm = (struct wire_gpm){
		.time_ns = model->now_ns,
		.busy = model->history.busy[span],
		.memory_busy = model->history.memory_busy[span],
		.nvlink_kib = span == 0 ? model->nvlink_kib.whole : 0,
		.nvlink_count = span == 0 ? model->board->nvlink_count : 0,
	};
	for (size_t i = 0; i < MIG_CI_MAX; i++)
		gpm->ci_count += model->mig.cis[i].is_used && model->mig.cis[i].gi_i == gi_i &&
				 span > 0;
	return answer_body(sizeof(*gpm), ret_reply);
}

static size_t answer_samples(const struct machine *machine, const struct model_gpu *model,
			     struct wire_reply *ret_reply)
{
	struct wire_samples *samples = &ret_reply->body.samples;

	memset(samples, 0, sizeof(*samples));
	samples->count = (uint32_t)model->history.count;
	for (size_t i = 0; i < model->history.count; i++) {
		const struct history_sample *from = history_at(&model->history, i);
		samples->samples[i] = (struct wire_sample){
			.time_us = (uint64_t)((int64_t)(from->time_ns / 1000) +
					      machine->wall_offset_us),
			.util_percent = (from->util_milli + 5) / 10,
			.memory_util_percent = (from->memory_util_milli + 5) / 10,
			.power_mw = from->power_mw,
			.sm_clock_mhz = from->sm_clock_mhz,
			.memory_clock_mhz = from->memory_clock_mhz,
		};
	}
	return answer_body(sizeof(*samples), ret_reply);
}

static uint32_t set_power(struct model_gpu *model, uint32_t limit_mw)
{
	const struct board *board = model->board;

	if (limit_mw < board->power_limit_min_w * 1000 ||
	    limit_mw > board->power_limit_max_w * 1000)
		return NVML_ERROR_INVALID_ARGUMENT;
	model->limits.power_mw = limit_mw;
	return NVML_SUCCESS;
}

static uint32_t set_clocks(struct model_gpu *model, uint32_t low_mhz, uint32_t high_mhz)
{
	const struct board *board = model->board;
	bool is_reset = low_mhz == 0 && high_mhz == 0;

	if (!is_reset && (low_mhz > high_mhz || high_mhz < board->sm_clock_idle_mhz ||
			  high_mhz > board->sm_clock_max_mhz))
		return NVML_ERROR_INVALID_ARGUMENT;
	model->limits.clock_min_mhz = low_mhz;
	model->limits.clock_max_mhz = high_mhz;
	return NVML_SUCCESS;
}

static uint32_t set_ecc(struct machine_gpu *gpu, uint32_t setting, uint32_t value)
{
	struct wire_errors *errors = &gpu->errors;

	if (!gpu->model.board->has_ecc)
		return NVML_ERROR_NOT_SUPPORTED;
	if (value > 1)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (setting == WIRE_SET_ECC_MODE)
		errors->ecc_mode_pending = value;
	else if (value == NVML_VOLATILE_ECC)
		memset(errors->ecc_volatile, 0, sizeof(errors->ecc_volatile));
	else
		memset(errors->ecc_aggregate, 0, sizeof(errors->ecc_aggregate));
	return NVML_SUCCESS;
}

static uint32_t set(struct machine_gpu *gpu, const uint32_t args[])
{
	switch (args[0]) {
	case WIRE_SET_POWER_LIMIT: return set_power(&gpu->model, args[1]);
	case WIRE_SET_CLOCKS: return set_clocks(&gpu->model, args[1], args[2]);
	case WIRE_SET_ECC_MODE:
	case WIRE_SET_ECC_CLEAR: return set_ecc(gpu, args[0], args[1]);
	default: return NVML_ERROR_INVALID_ARGUMENT;
	}
}

size_t answer_limits(struct machine *machine, const struct wire_request *request, uint64_t now_ns,
		     struct wire_reply *ret_reply)
{
	uint32_t slot = answer_slot(machine, request);

	if (slot == WIRE_NO_SLOT)
		return answer_status(NVML_ERROR_INVALID_ARGUMENT, ret_reply);
	struct machine_gpu *gpu = &machine->gpus[slot];
	if (!machine_has(machine, slot) || gpu->model.is_lost)
		return answer_status(NVML_ERROR_GPU_IS_LOST, ret_reply);
	model_advance(&gpu->model, now_ns);
	if (request->op == WIRE_GPM)
		return answer_gpm(&gpu->model, request->args[0], ret_reply);
	if (request->op == WIRE_SAMPLES)
		return answer_samples(machine, &gpu->model, ret_reply);
	return answer_status(set(gpu, request->args), ret_reply);
}
