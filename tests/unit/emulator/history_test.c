// SPDX-License-Identifier: Apache-2.0
// Integrals and samples do not depend on how the time is cut; limits hold power and clocks down.
#include "emulator/model.h"
#include "emulator/nvml_reasons.h"

#include "check.h"

#define S UINT64_C(1000000000)

static void cuts(struct check *c)
{
	const uint64_t steps_ns[] = { 20 * S, 7919333, 166999999, 167000000, 167000001 };

	for (size_t k = 0; k < ARRAY_COUNT(steps_ns); k++) {
		struct history history = { 0 };
		uint64_t now_ns = 5;
		while (now_ns < 40 * S) {
			uint64_t end_ns = now_ns + steps_ns[k];
			end_ns = end_ns < 40 * S ? end_ns : 40 * S;
			// Two levels, the border between them always is a cut.
			if (now_ns < 30 * S && end_ns > 30 * S)
				end_ns = 30 * S;
			struct history_rates rates = {
				.util_milli = { now_ns < 30 * S ? 200 : 700, 0, 1000 },
				.memory_util_milli = { 100 },
				.power_mw = now_ns < 30 * S ? 100 : 300,
				.is_power_capped = now_ns >= 30 * S,
			};
			history_advance(&history, &rates, now_ns, end_ns);
			now_ns = end_ns;
		}
		CHECK_INT(c, "busy", history.busy[0], 200 * (30 * S - 5) + 700 * 10 * S);
		CHECK_INT(c, "busy instance", history.busy[2], 1000 * (40 * S - 5));
		CHECK_INT(c, "memory", history.memory_busy[0], 100 * (40 * S - 5));
		CHECK_INT(c, "capped", history.power_capped_ns, 10 * S);
		CHECK_INT(c, "full ring", history.count, HISTORY_MAX);
		uint64_t last = 40 * S / HISTORY_PERIOD_NS;
		for (size_t i = 0; i < history.count; i++) {
			const struct history_sample *sample = history_at(&history, i);
			uint64_t want_ns = (last - HISTORY_MAX + 1 + i) * HISTORY_PERIOD_NS;
			CHECK_INT(c, "instant", sample->time_ns, want_ns);
			CHECK_INT(c, "value", sample->util_milli, want_ns <= 30 * S ? 200 : 700);
		}
	}
}

static const struct board BOARD = {
	.memory_mib = 1000,
	.power_idle_w = 50,
	.power_limit_w = 350,
	.sm_clock_idle_mhz = 200,
	.sm_clock_max_mhz = 1400,
	.temp_idle_c = 30,
	.temp_busy_c = 80,
	.temp_slowdown_c = 90,
};

static void limits(struct check *c)
{
	struct model_gpu gpu;
	struct model_use use = { 0, 1000, 0, 0 };

	model_init(&gpu, &BOARD, 0);
	CHECK_INT(c, "idle", model_throttle_reasons(&gpu), NVML_CLOCKS_REASON_IDLE);
	CHECK_INT(c, "idle", model_sm_clock_mhz(&gpu), 200);
	CHECK(c, "use", model_use_set(&gpu, 1, 1, use, 0) == MODEL_OK);
	CHECK_INT(c, "busy", model_throttle_reasons(&gpu), 0);
	CHECK_INT(c, "busy", model_sm_clock_mhz(&gpu), 1400);
	gpu.limits.power_mw = 175000;
	CHECK_INT(c, "capped", model_power_mw(&gpu), 175000);
	CHECK_INT(c, "would draw", model_power_demand_mw(&gpu), 350000);
	CHECK_INT(c, "slower", model_sm_clock_mhz(&gpu), 700);
	CHECK_INT(c, "says so", model_throttle_reasons(&gpu), NVML_CLOCKS_REASON_SW_POWER_CAP);
	model_advance(&gpu, 10 * S);
	CHECK_INT(c, "energy", gpu.energy_mj.whole, 1750000);
	CHECK_INT(c, "for so long", gpu.history.power_capped_ns, 10 * S);
	gpu.limits.power_mw = 350000;
	gpu.limits.clock_max_mhz = 900;
	CHECK_INT(c, "locked", model_sm_clock_mhz(&gpu), 900);
	CHECK_INT(c, "says so", model_throttle_reasons(&gpu), NVML_CLOCKS_REASON_SETTING);
	gpu.limits.temp_c = 95;
	CHECK_INT(c, "hot", model_temp_c(&gpu), 95);
	CHECK_INT(c, "half", model_sm_clock_mhz(&gpu), 450);
	CHECK(c, "says so", (model_throttle_reasons(&gpu) & NVML_CLOCKS_REASON_HW_THERMAL) != 0);
	model_new_driver(&gpu, 10 * S);
	CHECK_INT(c, "a new driver forgets", model_sm_clock_mhz(&gpu), 1400);
	CHECK_INT(c, "counts anew", gpu.history.power_capped_ns, 0);
}

int main(void)
{
	struct check c = { 0 };

	cuts(&c);
	limits(&c);
	return check_done(&c);
}
