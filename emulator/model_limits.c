// SPDX-License-Identifier: Apache-2.0
// What holds a GPU back: power limit, locked clocks, heat. Clocks follow; the work does not.
#include "emulator/model.h"

#include "emulator/nvml_reasons.h"

void model_limits_init(struct model_gpu *gpu)
{
	gpu->limits = (struct model_limits){ .power_mw = gpu->board->power_limit_w * 1000 };
}

uint32_t model_power_demand_mw(const struct model_gpu *gpu)
{
	const struct board *board = gpu->board;

	if (gpu->is_lost)
		return 0;
	// A watt over a full scale of 1000 is a milliwatt: the product is already in mW.
	return board->power_idle_w * 1000 +
	       (board->power_limit_w - board->power_idle_w) * model_util_milli(gpu);
}

uint32_t model_power_mw(const struct model_gpu *gpu)
{
	uint32_t demand_mw = model_power_demand_mw(gpu);

	return demand_mw < gpu->limits.power_mw ? demand_mw : gpu->limits.power_mw;
}

static bool is_capped(const struct model_gpu *gpu)
{
	return model_power_demand_mw(gpu) > gpu->limits.power_mw;
}

static bool is_hot(const struct model_gpu *gpu)
{
	return model_temp_c(gpu) >= (int32_t)gpu->board->temp_slowdown_c &&
	       gpu->board->temp_slowdown_c > 0;
}

uint64_t model_throttle_reasons(const struct model_gpu *gpu)
{
	uint64_t reasons = gpu->limits.throttle;

	// In whole per cent, as utilization is told.
	if ((model_util_milli(gpu) + 5) / 10 == 0)
		reasons |= NVML_CLOCKS_REASON_IDLE;
	if (gpu->limits.clock_max_mhz > 0)
		reasons |= NVML_CLOCKS_REASON_SETTING;
	if (is_capped(gpu))
		reasons |= NVML_CLOCKS_REASON_SW_POWER_CAP;
	if (is_hot(gpu))
		reasons |= NVML_CLOCKS_REASON_HW_SLOWDOWN | NVML_CLOCKS_REASON_HW_THERMAL;
	return reasons;
}

uint32_t model_sm_clock_mhz(const struct model_gpu *gpu)
{
	const uint64_t halving = NVML_CLOCKS_REASON_HW_SLOWDOWN | NVML_CLOCKS_REASON_HW_THERMAL |
				 NVML_CLOCKS_REASON_HW_POWER_BRAKE;
	const struct board *board = gpu->board;
	uint32_t low = board->sm_clock_idle_mhz, clock = board->sm_clock_max_mhz;

	// An idle context keeps the clocks up on data-centre boards, as a process of CUDA does.
	if (gpu->user_count == 0)
		clock = low;
	if (clock > low && is_capped(gpu))
		clock = (uint32_t)((uint64_t)clock * gpu->limits.power_mw /
				   model_power_demand_mw(gpu));
	if (gpu->limits.clock_max_mhz > 0 && clock > gpu->limits.clock_max_mhz)
		clock = gpu->limits.clock_max_mhz;
	if (clock < gpu->limits.clock_min_mhz)
		clock = gpu->limits.clock_min_mhz;
	if ((model_throttle_reasons(gpu) & halving) != 0)
		clock /= 2;
	return clock > low ? clock : low;
}

uint32_t model_memory_clock_mhz(const struct model_gpu *gpu)
{
	return gpu->user_count > 0 ? gpu->board->memory_clock_max_mhz
				   : gpu->board->memory_clock_idle_mhz;
}

// Utilization of a GPU instance counts by its own compute slices.
static void instance_rates(const struct model_gpu *gpu, struct history_rates *ret)
{
	for (size_t i = 0; i < gpu->user_count; i++) {
		const struct model_use *use = &gpu->users[i].use;
		if (use->part == 0)
			continue;
		const struct mig_ci *ci = &gpu->mig.cis[use->part - 1];
		uint32_t profile_i = gpu->mig.gis[ci->gi_i].profile_i;
		uint32_t slices = gpu->board->mig_profiles[profile_i].slices;
		ret->util_milli[1 + ci->gi_i] += use->util_milli * ci->size / slices;
		ret->memory_util_milli[1 + ci->gi_i] += use->memory_util_milli * ci->size / slices;
	}
	for (size_t i = 1; i < HISTORY_SPANS; i++) {
		if (ret->util_milli[i] > MODEL_UTIL_FULL_MILLI)
			ret->util_milli[i] = MODEL_UTIL_FULL_MILLI;
		if (ret->memory_util_milli[i] > MODEL_UTIL_FULL_MILLI)
			ret->memory_util_milli[i] = MODEL_UTIL_FULL_MILLI;
	}
}

struct history_rates model_rates(const struct model_gpu *gpu)
{
	struct history_rates rates = {
		.util_milli = { model_util_milli(gpu) },
		.memory_util_milli = { model_memory_util_milli(gpu) },
		.power_mw = model_power_mw(gpu),
		.sm_clock_mhz = model_sm_clock_mhz(gpu),
		.memory_clock_mhz = model_memory_clock_mhz(gpu),
		.is_power_capped = is_capped(gpu),
		.is_hot = is_hot(gpu),
	};

	instance_rates(gpu, &rates);
	return rates;
}
