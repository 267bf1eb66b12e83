// SPDX-License-Identifier: Apache-2.0
#include "emulator/control.h"

#include "check.h"
#include "gpu/nvml_abi.h"

static const struct {
	const char *line;
	struct control_command want; // kind CONTROL_NOTHING with ok false: refused
	bool ok;
} CASES[] = {
	{ "", { .kind = CONTROL_NOTHING, .slot = WIRE_NO_SLOT }, true },
	{ "   \t ", { .kind = CONTROL_NOTHING, .slot = WIRE_NO_SLOT }, true },
	{ "# lost 1", { .kind = CONTROL_NOTHING, .slot = WIRE_NO_SLOT }, true },
	{ "lost 1", { .kind = CONTROL_LOST, .slot = 1 }, true },
	{ " \tlost \t 31 \r", { .kind = CONTROL_LOST, .slot = 31 }, true },
	{ "lost 32", { 0 }, false },
	{ "lost -1", { 0 }, false },
	{ "lost", { 0 }, false },
	{ "lost 1 2", { 0 }, false },
	{ "lost 1 2 3 4 5 6 7 8", { 0 }, false },
	{ "LOST 1", { 0 }, false },
	{ "xid 0 79",
	  { .kind = CONTROL_XID,
	    .code = 79,
	    .gpu_instance_id = NVML_NO_INSTANCE,
	    .compute_instance_id = NVML_NO_INSTANCE },
	  true },
	{ "xid 2 94 3 0",
	  { .kind = CONTROL_XID, .slot = 2, .code = 94, .gpu_instance_id = 3 },
	  true },
	{ "xid 2 94 3", { 0 }, false },
	{ "xid 2 -94", { 0 }, false },
	{ "xid 2 4294967296", { 0 }, false },
	{ "initfail on", { .kind = CONTROL_INITFAIL, .slot = WIRE_NO_SLOT, .is_on = true }, true },
	{ "initfail off", { .kind = CONTROL_INITFAIL, .slot = WIRE_NO_SLOT }, true },
	{ "initfail maybe", { 0 }, false },
	{ "wait-error on",
	  { .kind = CONTROL_WAIT_ERROR, .slot = WIRE_NO_SLOT, .is_on = true },
	  true },
	{ "slow nvmlDeviceGetPowerUsage 5000",
	  { .kind = CONTROL_SLOW,
	    .slot = WIRE_NO_SLOT,
	    .word = "nvmlDeviceGetPowerUsage",
	    .delay_us = 5000 },
	  true },
	{ "slow all 0", { .kind = CONTROL_SLOW, .slot = WIRE_NO_SLOT, .word = "all" }, true },
	{ "slow nvmlDeviceGetPowerUsed 5000", { 0 }, false },
	{ "slow nvmlDeviceGetPowerUsage 600000001", { 0 }, false },
	{ "hang nvmlDeviceGetMemoryInfo 3",
	  { .kind = CONTROL_HANG, .slot = 3, .word = "nvmlDeviceGetMemoryInfo" },
	  true },
	{ "hang nvmlDeviceGetMemoryInfo_v2 3",
	  { .kind = CONTROL_HANG, .slot = 3, .word = "nvmlDeviceGetMemoryInfo_v2" },
	  true },
	{ "hang nvmlDeviceGetMemoryInfo_v9 3", { 0 }, false },
	{ "hang nvmlDeviceGetMemoryInfo", { 0 }, false },
	{ "error nvmlDeviceGetUUID 15 7",
	  { .kind = CONTROL_ERROR, .slot = 7, .word = "nvmlDeviceGetUUID", .code = 15 },
	  true },
	{ "error nvmlDeviceGetUUID 999",
	  { .kind = CONTROL_ERROR, .slot = WIRE_NO_SLOT, .word = "nvmlDeviceGetUUID", .code = 999 },
	  true },
	{ "error nvmlDeviceGetUUID 1000", { 0 }, false },
	{ "add L40S", { .kind = CONTROL_ADD, .slot = WIRE_NO_SLOT, .word = "L40S" }, true },
	{ "add ../L40S", { 0 }, false },
	{ "add .L40S", { 0 }, false },
	{ "remove 4", { .kind = CONTROL_REMOVE, .slot = 4 }, true },
	{ "driver 575.1.2",
	  { .kind = CONTROL_DRIVER, .slot = WIRE_NO_SLOT, .word = "575.1.2" },
	  true },
	{ "driver 5%", { 0 }, false },
	{ "restore 0", { .kind = CONTROL_RESTORE }, true },
	{ "recovery 0 2", { .kind = CONTROL_RECOVERY, .code = 2 }, true },
	{ "recovery 0 8", { 0 }, false },
	{ "process 1 4242 512",
	  { .kind = CONTROL_PROCESS,
	    .slot = 1,
	    .pid = 4242,
	    .memory_mib = 512,
	    .gpu_instance_id = WIRE_NO_INSTANCE,
	    .compute_instance_id = WIRE_NO_INSTANCE },
	  true },
	{ "process 1 4242 512 7 0",
	  { .kind = CONTROL_PROCESS,
	    .slot = 1,
	    .pid = 4242,
	    .memory_mib = 512,
	    .gpu_instance_id = 7 },
	  true },
	{ "process 1 4242 512 7", { 0 }, false },
	{ "mig 2 on", { .kind = CONTROL_MIG_MODE, .slot = 2, .is_on = true }, true },
	{ "mig 2 off", { .kind = CONTROL_MIG_MODE, .slot = 2 }, true },
	{ "mig 2 create", { 0 }, false },
	{ "mig 0 create 1g.10gb+me",
	  { .kind = CONTROL_MIG_CREATE, .word = "1g.10gb+me", .numbers = { WIRE_ANYWHERE } },
	  true },
	{ "mig 0 create 3g.40gb 4",
	  { .kind = CONTROL_MIG_CREATE, .word = "3g.40gb", .numbers = { 4 } },
	  true },
	{ "mig 0 create 3g.40gb 8", { 0 }, false },
	{ "mig 0 destroy 2",
	  { .kind = CONTROL_MIG_DESTROY, .gpu_instance_id = 2, .numbers = { WIRE_ANYWHERE } },
	  true },
	{ "mig 0 destroy all",
	  { .kind = CONTROL_MIG_DESTROY,
	    .gpu_instance_id = WIRE_NO_INSTANCE,
	    .numbers = { WIRE_ANYWHERE } },
	  true },
	{ "mig 0 destroy", { 0 }, false },
	{ "mig 0 destroy 1 2", { 0 }, false },
	{ "mig 0 explode 1", { 0 }, false },
	{ "mig 33 on", { 0 }, false },
	{ "temp 1 95", { .kind = CONTROL_TEMP, .slot = 1, .code = 95 }, true },
	{ "temp 1 151", { 0 }, false },
	{ "throttle 0 72", { .kind = CONTROL_THROTTLE, .code = 72 }, true },
	{ "throttle 0 512", { 0 }, false },
	{ "throttle 0", { 0 }, false },
	{ "driver 580.65.06 13.0",
	  { .kind = CONTROL_DRIVER, .slot = WIRE_NO_SLOT, .word = "580.65.06", .code = 13000 },
	  true },
	{ "driver 580.65.06 13", { 0 }, false },
	{ "driver 580.65.06 13.100", { 0 }, false },
	{ "ecc 1 off", { .kind = CONTROL_ECC_MODE, .slot = 1 }, true },
	{ "ecc 1 on", { .kind = CONTROL_ECC_MODE, .slot = 1, .is_on = true }, true },
	{ "ecc 1 maybe", { 0 }, false },
	{ "ecc 2 corrected 5", { .kind = CONTROL_ECC, .slot = 2, .numbers = { 5 } }, true },
	{ "ecc 2 uncorrected 1",
	  { .kind = CONTROL_ECC, .slot = 2, .code = 1, .numbers = { 1 } },
	  true },
	{ "ecc 2 bad 1", { 0 }, false },
	{ "ecc 2 corrected 1000000001", { 0 }, false },
	{ "pages 0 1 2 1", { .kind = CONTROL_PAGES, .numbers = { 1, 2, 1 } }, true },
	{ "pages 0 1 2", { 0 }, false },
	{ "rows 3 4 5 1 0", { .kind = CONTROL_ROWS, .slot = 3, .numbers = { 4, 5, 1, 0 } }, true },
	{ "rows 3 4 5 1 0 6", { 0 }, false },
	{ "rows 3 4 5 1 x", { 0 }, false },
	{ "process 1 0 512", { 0 }, false },
	{ "process 1 4242 18446744073709551616", { 0 }, false },
	{ "explode 1", { 0 }, false },
};

static void parses(struct check *c)
{
	for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
		struct control_command got, before;
		struct err err = { 0 };
		memset(&got, 0x5a, sizeof(got));
		before = got;
		bool ok = control_parse(str_of(CASES[i].line), &got, &err) == ERR_OK;
		CHECK(c, CASES[i].line, ok == CASES[i].ok);
		if (!ok) {
			CHECK(c, CASES[i].line, memcmp(&got, &before, sizeof(got)) == 0);
			CHECK(c, CASES[i].line, err.text[0] != 0);
			continue;
		}
		const struct control_command *want = &CASES[i].want;
		CHECK_INT(c, CASES[i].line, got.kind, want->kind);
		CHECK_INT(c, CASES[i].line, got.slot, want->slot);
		CHECK(c, CASES[i].line, got.is_on == want->is_on);
		CHECK_STR(c, CASES[i].line, str_of(got.word), want->word);
		CHECK_INT(c, CASES[i].line, got.code, want->code);
		CHECK_INT(c, CASES[i].line, got.gpu_instance_id, want->gpu_instance_id);
		CHECK_INT(c, CASES[i].line, got.compute_instance_id, want->compute_instance_id);
		CHECK_INT(c, CASES[i].line, got.delay_us, want->delay_us);
		CHECK_INT(c, CASES[i].line, got.pid, want->pid);
		CHECK_INT(c, CASES[i].line, got.memory_mib, want->memory_mib);
		for (size_t k = 0; k < CONTROL_NUMBERS_MAX; k++)
			CHECK_INT(c, CASES[i].line, got.numbers[k], want->numbers[k]);
	}
	CHECK(c, "nul",
	      control_parse((struct str){ "lost 1\0", 7 }, &(struct control_command){ 0 }, NULL) !=
		      ERR_OK);
}

static void splits(struct check *c)
{
	struct control_lines lines = { 0 };
	char wide[400];
	struct str line, rest = STR("los");
	bool too_long = false;

	memset(wide, 'x', sizeof(wide));
	CHECK(c, "piece", !control_lines_next(&lines, &rest, &line, &too_long));
	rest = STR("t 1\n\nxid 0 1\nre");
	CHECK(c, "joined", control_lines_next(&lines, &rest, &line, &too_long));
	CHECK_STR(c, "joined", line, "lost 1");
	CHECK(c, "empty", control_lines_next(&lines, &rest, &line, &too_long));
	CHECK_STR(c, "empty", line, "");
	CHECK(c, "third", control_lines_next(&lines, &rest, &line, &too_long));
	CHECK_STR(c, "third", line, "xid 0 1");
	CHECK_INT(c, "third", lines.line_number, 3);
	CHECK(c, "partial", !control_lines_next(&lines, &rest, &line, &too_long));
	CHECK(c, "short", !too_long);
	control_lines_reset(&lines);
	rest = (struct str){ wide, sizeof(wide) };
	CHECK(c, "long", !control_lines_next(&lines, &rest, &line, &too_long));
	rest = STR("\nlost 2\n");
	CHECK(c, "long", control_lines_next(&lines, &rest, &line, &too_long));
	CHECK(c, "long", too_long && line.len == CONTROL_LINE_MAX);
	CHECK(c, "after long", control_lines_next(&lines, &rest, &line, &too_long));
	CHECK(c, "after long", !too_long);
	CHECK_STR(c, "after long", line, "lost 2");
}

int main(void)
{
	struct check c = { 0 };

	parses(&c);
	splits(&c);
	return check_done(&c);
}
