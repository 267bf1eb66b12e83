// SPDX-License-Identifier: Apache-2.0
#include "emulator/model.h"

#include "check.h"

#define S UINT64_C(1000000000)

static const struct board BOARD = {
	.memory_mib = 1000,
	.memory_reserved_mib = 100,
	.power_idle_w = 50,
	.power_limit_w = 350,
	.temp_idle_c = 30,
	.temp_busy_c = 80,
	.nvlink_count = 2,
	.nvlink_mb_s = 1024,
};

// Steps of utilization, each held for a time; the sum is exact however the time is cut.
static const struct {
	const char *name;
	uint32_t util_milli[3];
	uint64_t hold_ns[3];
	uint64_t want_mj;
} ENERGY[] = {
	{ "idle for an hour", { 0 }, { 3600 * S }, 180000000 },
	{ "full for a second", { 1000 }, { S }, 350000 },
	{ "half, full, idle", { 500, 1000, 0 }, { 2 * S, S, 10 * S }, 400000 + 350000 + 500000 },
	{ "one nanosecond is below a millijoule", { 1000 }, { 1 }, 0 },
	{ "a third of a second", { 1000 }, { 333333333 }, 116666 },
	{ "a year", { 1000 }, { 31536000 * S }, UINT64_C(11037600000000) },
};

static void energy(struct check *c)
{
	// Prime step, so that no step is a whole number of anything.
	const uint64_t cuts_ns[] = { 0, 7919, 1000003, 1000000007 };

	for (size_t i = 0; i < ARRAY_COUNT(ENERGY); i++)
		for (size_t k = 0; k < ARRAY_COUNT(cuts_ns); k++) {
			struct model_gpu gpu;
			uint64_t now_ns = 5 * S, total_ns = 0;
			for (size_t j = 0; j < 3; j++)
				total_ns += ENERGY[i].hold_ns[j];
			if (cuts_ns[k] != 0 && total_ns / cuts_ns[k] > 2000000)
				continue;
			model_init(&gpu, &BOARD, now_ns);
			for (size_t j = 0; j < 3; j++) {
				struct model_use use = { 0, ENERGY[i].util_milli[j], 0, 0 };
				uint64_t end_ns = now_ns + ENERGY[i].hold_ns[j];
				CHECK(c, ENERGY[i].name,
				      model_use_set(&gpu, 1, 1, use, now_ns) == MODEL_OK);
				for (; cuts_ns[k] != 0 && now_ns < end_ns; now_ns += cuts_ns[k])
					model_advance(&gpu, now_ns);
				now_ns = end_ns;
				model_advance(&gpu, now_ns);
			}
			CHECK_INT(c, ENERGY[i].name, gpu.energy_mj.whole, ENERGY[i].want_mj);
		}
}

static void users(struct check *c)
{
	struct model_gpu gpu;
	struct wire_process list[WIRE_PROCESS_MAX];

	model_init(&gpu, &BOARD, 0);
	CHECK_INT(c, "idle power", model_power_mw(&gpu), 50000);
	CHECK(c, "a",
	      model_use_set(&gpu, 1, 11, (struct model_use){ 600, 700, 100, 0 }, S) == MODEL_OK);
	CHECK(c, "b",
	      model_use_set(&gpu, 2, 12, (struct model_use){ 301, 700, 0, 0 }, S) ==
		      MODEL_NO_MEMORY);
	CHECK_INT(c, "refused changes nothing", model_util_milli(&gpu), 700);
	CHECK(c, "b",
	      model_use_set(&gpu, 2, 12, (struct model_use){ 300, 700, 0, 0 }, S) == MODEL_OK);
	CHECK_INT(c, "capped", model_util_milli(&gpu), 1000);
	CHECK_INT(c, "power of capped", model_power_mw(&gpu), 350000);
	CHECK_INT(c, "full", model_memory_free_mib(&gpu), 0);
	CHECK(c, "own memory counts as free",
	      model_use_set(&gpu, 1, 11, (struct model_use){ 500, 100, 100, 0 }, S) == MODEL_OK);
	CHECK(c, "same pid, other owner",
	      model_use_set(&gpu, 3, 11, (struct model_use){ 50, 120, 0, 0 }, S) == MODEL_OK);
	CHECK_INT(c, "processes", model_processes(&gpu, list, WIRE_PROCESS_MAX), 2);
	CHECK_INT(c, "sum of a pid", list[0].memory_bytes, UINT64_C(550) << 20);
	CHECK_INT(c, "util of a pid", list[0].util_percent, 22);
	model_use_drop(&gpu, 1, 11, 2 * S);
	model_use_drop(&gpu, 1, 11, 2 * S); // a second time is harmless
	CHECK_INT(c, "left", model_memory_used_mib(&gpu), 350);
	model_lose(&gpu, 3 * S);
	uint64_t lost_mj = gpu.energy_mj.whole;
	CHECK_INT(c, "lost draws nothing", model_power_mw(&gpu), 0);
	CHECK(c, "lost", model_use_set(&gpu, 4, 1, (struct model_use){ 0 }, 9 * S) == MODEL_LOST);
	CHECK_INT(c, "lost stands still", gpu.energy_mj.whole, lost_mj);
	model_restore(&gpu, 10 * S);
	model_advance(&gpu, 11 * S);
	CHECK_INT(c, "restored goes on", gpu.energy_mj.whole, lost_mj + 50000);
	model_new_driver(&gpu, 12 * S);
	CHECK_INT(c, "new driver", gpu.energy_mj.whole, 0);
	for (uint64_t owner = 1; owner <= MODEL_USER_MAX; owner++)
		CHECK(c, "room",
		      model_use_set(&gpu, owner, 1, (struct model_use){ 0 }, 12 * S) == MODEL_OK);
	CHECK(c, "no room",
	      model_use_set(&gpu, 99, 1, (struct model_use){ 0 }, 12 * S) == MODEL_FULL);
}

static void warmth(struct check *c)
{
	struct model_gpu gpu;

	model_init(&gpu, &BOARD, 0);
	CHECK_INT(c, "starts cool", model_temp_c(&gpu), 30);
	CHECK(c, "busy",
	      model_use_set(&gpu, 1, 1, (struct model_use){ 0, 1000, 0, 0 }, 0) == MODEL_OK);
	model_advance(&gpu, 15 * S);
	// After one time constant, 63 % of the way.
	CHECK(c, "lags", model_temp_c(&gpu) >= 60 && model_temp_c(&gpu) <= 63);
	model_advance(&gpu, 600 * S);
	CHECK_INT(c, "settles", model_temp_c(&gpu), 80);
	model_use_drop(&gpu, 1, 1, 600 * S);
	model_advance(&gpu, 1200 * S);
	CHECK_INT(c, "cools", model_temp_c(&gpu), 30);
	model_advance(&gpu, 100 * S); // time never goes back
	CHECK_INT(c, "earlier time is ignored", gpu.now_ns, 1200 * S);
}

static void links(struct check *c)
{
	struct model_gpu gpu;

	model_init(&gpu, &BOARD, 0);
	model_advance(&gpu, 10 * S);
	CHECK_INT(c, "idle links", gpu.nvlink_kib.whole, 0);
	CHECK(c, "busy",
	      model_use_set(&gpu, 1, 1, (struct model_use){ 0, 500, 0, 0 }, 10 * S) == MODEL_OK);
	model_advance(&gpu, 12 * S);
	CHECK_INT(c, "a tenth of two links, half busy, 2 s", gpu.nvlink_kib.whole, 200000);
}

// An instance's work counts by its share of the whole, its memory by its own.
static void parts(struct check *c)
{
	struct board board = BOARD;
	struct model_gpu gpu;
	uint32_t gi_i = 0, ci_i = 0;
	struct wire_process list[WIRE_PROCESS_MAX];

	board.is_mig_capable = 1;
	board.mig_profile_count = 2;
	board.mig_profiles[0] = (struct mig_profile){ .name = "1g",
						      .slices = 1,
						      .size = 1,
						      .starts = 15,
						      .count_max = 4,
						      .memory_mib = 200 };
	board.mig_profiles[1] = (struct mig_profile){ .name = "4g",
						      .profile = 3,
						      .slices = 4,
						      .size = 4,
						      .starts = 1,
						      .count_max = 1,
						      .memory_mib = 900 };
	model_init(&gpu, &board, 0);
	model_set_mig_mode(&gpu, 1, 0);
	CHECK_INT(c, "1g", mig_gi_create(&board, &gpu.mig, 0, 2, &gi_i), 0);
	struct mig_ci wanted = { .gi_i = gi_i };
	CHECK_INT(c, "1c", mig_ci_create(&board, &gpu.mig, &wanted, "GPU", &ci_i), 0);
	struct model_use use = { 150, 1000, 500, ci_i + 1 };
	CHECK(c, "part", model_use_set(&gpu, 1, 7, use, 0) == MODEL_OK);
	CHECK(c, "memory", model_use_set(&gpu, 2, 8, use, 0) == MODEL_NO_MEMORY);
	use.part = 0;
	CHECK(c, "whole", model_use_set(&gpu, 2, 8, use, 0) == MODEL_MIG);
	use.part = MIG_CI_MAX;
	CHECK(c, "no such part", model_use_set(&gpu, 2, 8, use, 0) == MODEL_LOST);
	CHECK_INT(c, "a quarter", model_util_milli(&gpu), 250);
	CHECK_INT(c, "a quarter", model_power_mw(&gpu), 50000 + 300 * 250);
	CHECK_INT(c, "one process", model_processes(&gpu, list, WIRE_PROCESS_MAX), 1);
	CHECK(c, "of the instance", list[0].gi == gpu.mig.gis[gi_i].id && list[0].ci == 0);
	CHECK_INT(c, "busy part", model_destroy_ci(&gpu, list[0].gi, 0), 19);
	model_use_drop(&gpu, 1, 7, 0);
	CHECK_INT(c, "free part", model_destroy_ci(&gpu, list[0].gi, 0), 0);
}

int main(void)
{
	struct check c = { 0 };

	energy(&c);
	users(&c);
	warmth(&c);
	links(&c);
	parts(&c);
	return check_done(&c);
}
