// SPDX-License-Identifier: Apache-2.0
#include "emulator/faults.h"

#include "check.h"

static err_status apply(struct faults *faults, const char *line)
{
	struct control_command command;

	if (control_parse(str_of(line), &command, NULL) != ERR_OK)
		return ERR_INVALID;
	return faults_apply(faults, &command, NULL);
}

static void finds(struct check *c)
{
	struct faults faults = { 0 };

	CHECK(c, "slow", apply(&faults, "slow nvmlDeviceGetMemoryInfo 50") == ERR_OK);
	CHECK_INT(c, "plain", faults_find(&faults, "nvmlDeviceGetMemoryInfo", 0).delay_us, 50);
	CHECK_INT(c, "version", faults_find(&faults, "nvmlDeviceGetMemoryInfo_v2", 0).delay_us, 50);
	CHECK_INT(c, "other call", faults_find(&faults, "nvmlDeviceGetMemoryInfos", 0).delay_us, 0);
	CHECK(c, "hang", apply(&faults, "hang nvmlDeviceGetMemoryInfo_v2 1") == ERR_OK);
	CHECK(c, "hung", faults_find(&faults, "nvmlDeviceGetMemoryInfo_v2", 1).is_hung);
	CHECK(c, "not this version", !faults_find(&faults, "nvmlDeviceGetMemoryInfo", 1).is_hung);
	CHECK(c, "not this GPU", !faults_find(&faults, "nvmlDeviceGetMemoryInfo_v2", 0).is_hung);
	CHECK(c, "no GPU",
	      !faults_find(&faults, "nvmlDeviceGetMemoryInfo_v2", WIRE_NO_SLOT).is_hung);
	CHECK(c, "all", apply(&faults, "error all 999") == ERR_OK);
	CHECK(c, "one", apply(&faults, "error nvmlDeviceGetUUID 15 2") == ERR_OK);
	CHECK_INT(c, "later wins", faults_find(&faults, "nvmlDeviceGetUUID", 2).error, 15);
	CHECK_INT(c, "all", faults_find(&faults, "nvmlInit_v2", WIRE_NO_SLOT).error, 999);
	CHECK(c, "end", apply(&faults, "error all 0") == ERR_OK);
	CHECK_INT(c, "ended", faults_find(&faults, "nvmlInit_v2", WIRE_NO_SLOT).error, 0);
	faults_clear_slot(&faults, 1);
	faults_clear_slot(&faults, 2);
	CHECK(c, "cleared", !faults_find(&faults, "nvmlDeviceGetMemoryInfo_v2", 1).is_hung);
	CHECK_INT(c, "slow stays", faults.count, 1);
}

static void limits(struct check *c)
{
	struct faults faults = { 0 };
	char line[64];

	for (int i = 0; i < 4; i++)
		CHECK(c, "replaced", apply(&faults, "hang all 3") == ERR_OK);
	CHECK_INT(c, "replaced", faults.count, 1);
	err_status status = ERR_OK;
	for (int slot = 0; slot < WIRE_GPU_MAX; slot++)
		for (int kind = 0; kind < 5 && status == ERR_OK; kind++) {
			const char *calls[] = { "nvmlDeviceGetUUID", "nvmlDeviceGetName", "all",
						"nvmlDeviceGetSerial", "nvmlDeviceGetIndex" };
			snprintf(line, sizeof(line), "hang %s %d", calls[kind], slot);
			status = apply(&faults, line);
		}
	CHECK_INT(c, "full", status, ERR_LIMIT);
	CHECK_INT(c, "full", faults.count, FAULTS_MAX);
}

int main(void)
{
	struct check c = { 0 };

	finds(&c);
	limits(&c);
	return check_done(&c);
}
