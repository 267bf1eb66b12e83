// SPDX-License-Identifier: Apache-2.0
// Answers as DCGM's library does, as its headers say; device i is "GPU-i". In a program that knows
// nothing of it the environment says FAKE_DCGM_UUIDS, of its two devices, and FAKE_DCGM_HANGS.
#include "fake_dcgm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FAILED = -1, HANDLE = 77, GROUP = 5 };

extern struct fake_dcgm fake_dcgm;
struct fake_dcgm fake_dcgm = { .devices = 2, .ratio = 0.5, .bytes = 1000 };

int dcgmInit(void);
int dcgmStartEmbedded(int mode, uintptr_t *ret);
int dcgmStopEmbedded(uintptr_t handle);
int dcgmConnect(const char *address, uintptr_t *ret);
int dcgmDisconnect(uintptr_t handle);
int dcgmGetAllDevices(uintptr_t handle, uint32_t *ids, int *count);
int dcgmFieldGroupCreate(uintptr_t handle, int count, const uint16_t *ids, const char *name,
			 uintptr_t *ret);
int dcgmWatchFields(uintptr_t handle, uintptr_t gpus, uintptr_t fields, long long period_us,
		    double keep_s, int keep_count);
int dcgmGetLatestValuesForFields(uintptr_t handle, int gpu, uint16_t *ids, uint32_t count,
				 struct dcgm_value *values);

int dcgmInit(void)
{
	fake_dcgm.inits++;
	return 0;
}

int dcgmStartEmbedded(int mode, uintptr_t *ret)
{
	fake_dcgm.starts++;
	*ret = HANDLE;
	return mode == DCGM_MODE_AUTO && !fake_dcgm.fails_connect ? 0 : FAILED;
}

int dcgmStopEmbedded(uintptr_t handle)
{
	fake_dcgm.stops++;
	return handle == HANDLE ? 0 : FAILED;
}

int dcgmConnect(const char *address, uintptr_t *ret)
{
	fake_dcgm.connects++;
	(void)snprintf(fake_dcgm.address, sizeof fake_dcgm.address, "%s", address);
	*ret = HANDLE;
	return fake_dcgm.fails_connect ? FAILED : 0;
}

int dcgmDisconnect(uintptr_t handle)
{
	fake_dcgm.disconnects++;
	return handle == HANDLE ? 0 : FAILED;
}

int dcgmGetAllDevices(uintptr_t handle, uint32_t *ids, int *count)
{
	for (int i = 0; i < fake_dcgm.devices; i++)
		ids[i] = (uint32_t)(fake_dcgm.devices - 1 - i); // in no order of use
	*count = fake_dcgm.devices;
	return handle == HANDLE ? 0 : FAILED;
}

int dcgmFieldGroupCreate(uintptr_t handle, int count, const uint16_t *ids, const char *name,
			 uintptr_t *ret)
{
	*ret = GROUP;
	return handle == HANDLE && count > 0 && ids[0] >= 1001 && name[0] != '\0' ? 0 : FAILED;
}

int dcgmWatchFields(uintptr_t handle, uintptr_t gpus, uintptr_t fields, long long period_us,
		    double keep_s, int keep_count)
{
	fake_dcgm.watches++;
	return handle == HANDLE && gpus == DCGM_GROUP_ALL && fields == GROUP &&
			       period_us >= 100000 && keep_s > 0 && keep_count > 0
		       ? 0
		       : FAILED;
}

static void fill_uuid(struct dcgm_value *value, int gpu)
{
	const char *uuids = getenv("FAKE_DCGM_UUIDS"); // both of one length
	value->type = DCGM_TYPE_TEXT;
	if (uuids == NULL)
		(void)snprintf(value->value.text, sizeof value->value.text, "GPU-%d", gpu);
	else
		(void)snprintf(value->value.text, sizeof value->value.text, "%.40s",
			       uuids + gpu * 40);
}

static void fill_ratio(struct dcgm_value *value)
{
	value->type = fake_dcgm.is_bad_type ? 'b' : DCGM_TYPE_DOUBLE;
	value->value.real = fake_dcgm.is_blank ? DCGM_BLANK_DOUBLE + 2 : fake_dcgm.ratio;
	if (fake_dcgm.is_nan)
		value->value.real = (double)NAN;
}

int dcgmGetLatestValuesForFields(uintptr_t handle, int gpu, uint16_t *ids, uint32_t count,
				 struct dcgm_value *values)
{
	fake_dcgm.looks++;
	while (getenv("FAKE_DCGM_HANGS") != NULL)
		(void)pause();
	for (uint32_t i = 0; i < count; i++) {
		values[i].version = 1;
		values[i].field = ids[i];
		values[i].at_us = fake_dcgm.is_old ? 0 : 1;
		if (ids[i] == DCGM_FIELD_UUID) {
			fill_uuid(&values[i], gpu);
		} else if (ids[i] <= 1008) {
			fill_ratio(&values[i]);
		} else {
			values[i].type = DCGM_TYPE_INT64;
			values[i].value.i64 = fake_dcgm.is_blank ? DCGM_BLANK_INT64 + 1
								 : fake_dcgm.bytes + gpu;
		}
		values[i].status = ids[i] == 1006 ? -6 : 0; // the board has no such pipe
	}
	return handle == HANDLE && !fake_dcgm.fails_latest ? 0 : FAILED;
}
