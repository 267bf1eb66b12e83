// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/dcgm.h"

#include "gpu/dcgm_abi.h"
#include "gpu/gpu.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t S = UINT64_C(1000000000);
static const double KEEP_S = 10;

// Fields of DCGM and what they become; ratios are parts of one, the others bytes a second.
static const struct {
	uint16_t id;
	enum gpu_field field;
	int factor;
} rows[] = {
	{ 1001, GPU_FIELD_PROF_GRAPHICS, GPU_RATIO },  { 1002, GPU_FIELD_PROF_SM, GPU_RATIO },
	{ 1003, GPU_FIELD_PROF_OCCUPANCY, GPU_RATIO }, { 1004, GPU_FIELD_PROF_TENSOR, GPU_RATIO },
	{ 1005, GPU_FIELD_PROF_DRAM, GPU_RATIO },      { 1006, GPU_FIELD_PROF_FP64, GPU_RATIO },
	{ 1007, GPU_FIELD_PROF_FP32, GPU_RATIO },      { 1008, GPU_FIELD_PROF_FP16, GPU_RATIO },
	{ 1009, GPU_FIELD_PROF_PCIE_TX, 1 },           { 1010, GPU_FIELD_PROF_PCIE_RX, 1 },
	{ 1011, GPU_FIELD_PROF_NVLINK_TX, 1 },         { 1012, GPU_FIELD_PROF_NVLINK_RX, 1 },
};
enum { ROWS = ARRAY_COUNT(rows) };

typedef uintptr_t dcgm_handle;

// Member, name in the library, parameters.
#define DCGM_CALLS(X)                                                                              \
	X(init, "dcgmInit", (void))                                                                \
	X(start, "dcgmStartEmbedded", (int, dcgm_handle *))                                        \
	X(stop, "dcgmStopEmbedded", (dcgm_handle))                                                 \
	X(connect, "dcgmConnect", (const char *, dcgm_handle *))                                   \
	X(disconnect, "dcgmDisconnect", (dcgm_handle))                                             \
	X(devices, "dcgmGetAllDevices", (dcgm_handle, uint32_t *, int *))                          \
	X(group, "dcgmFieldGroupCreate",                                                           \
	  (dcgm_handle, int, const uint16_t *, const char *, uintptr_t *))                         \
	X(watch, "dcgmWatchFields", (dcgm_handle, uintptr_t, uintptr_t, long long, double, int))   \
	X(latest, "dcgmGetLatestValuesForFields",                                                  \
	  (dcgm_handle, int, uint16_t *, uint32_t, struct dcgm_value *))

struct seen {
	char uuid[GPU_UUID_BYTES];
	uint64_t at_ns;
	struct gpu_reading reading;
};

struct dcgm {
	void *library;
#define MEMBER(member, name, params) int(*member) params;
	DCGM_CALLS(MEMBER)
#undef MEMBER
	const char *address;
	dcgm_handle handle;
	bool is_init, is_connected;
	uint64_t retry_ns; // not before
	uint32_t ids[DCGM_GPUS_MAX];
	int count;
	struct dcgm_value values[ROWS + 1];
	pthread_mutex_t lock; // of what follows
	struct seen seen[DCGM_GPUS_MAX];
};

static err_status load(struct dcgm *dcgm, const char *path, struct err *err)
{
	dcgm->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (dcgm->library == NULL)
		return err_set(err, ERR_NOT_FOUND, "DCGM's library %s: %s", path, dlerror());
#define LOAD(member, name, params)                                                                 \
	void *member##_symbol = dlsym(dcgm->library, name);                                        \
	if (member##_symbol == NULL)                                                               \
		return err_set(err, ERR_UNSUPPORTED, "DCGM's library %s lacks " name, path);       \
	memcpy(&dcgm->member, &member##_symbol, sizeof member##_symbol);
	DCGM_CALLS(LOAD)
#undef LOAD
	return ERR_OK;
}

err_status dcgm_new(const char *library, const char *address, struct dcgm **ret, struct err *err)
{
	struct dcgm *dcgm = calloc(1, sizeof *dcgm);
	if (dcgm == NULL)
		return err_set(err, ERR_LIMIT, "memory for DCGM");
	dcgm->address = address != NULL && address[0] != '\0' ? address : NULL;
	(void)pthread_mutex_init(&dcgm->lock, NULL);
	err_status status = load(dcgm, library, err);
	if (status != ERR_OK)
		dcgm_free(dcgm);
	else
		*ret = dcgm;
	return status;
}

static void drop(struct dcgm *dcgm, uint64_t now_ns)
{
	if (dcgm->is_connected)
		(void)(dcgm->address == NULL ? dcgm->stop(dcgm->handle)
					     : dcgm->disconnect(dcgm->handle));
	dcgm->is_connected = false;
	dcgm->count = 0;
	dcgm->retry_ns = now_ns + DCGM_RETRY_S * S;
}

void dcgm_free(struct dcgm *dcgm)
{
	if (dcgm == NULL)
		return;
	drop(dcgm, 0);
	if (dcgm->library != NULL)
		(void)dlclose(dcgm->library);
	(void)pthread_mutex_destroy(&dcgm->lock);
	free(dcgm);
}

static void put_ids(uint16_t ids[ROWS + 1])
{
	for (size_t i = 0; i < ROWS; i++)
		ids[i] = rows[i].id;
	ids[ROWS] = DCGM_FIELD_UUID;
}

static bool connect_to(struct dcgm *dcgm)
{
	uint16_t ids[ROWS + 1];
	uintptr_t group = 0;
	put_ids(ids);
	if (!dcgm->is_init && dcgm->init() != 0)
		return false;
	dcgm->is_init = true;
	dcgm->is_connected = (dcgm->address == NULL
				      ? dcgm->start(DCGM_MODE_AUTO, &dcgm->handle)
				      : dcgm->connect(dcgm->address, &dcgm->handle)) == 0;
	return dcgm->is_connected && dcgm->devices(dcgm->handle, dcgm->ids, &dcgm->count) == 0 &&
	       dcgm->count >= 0 && dcgm->count <= DCGM_GPUS_MAX &&
	       dcgm->group(dcgm->handle, ROWS + 1, ids, "gpuaas", &group) == 0 &&
	       dcgm->watch(dcgm->handle, DCGM_GROUP_ALL, group, 1000000, KEEP_S, 2) == 0;
}

static void take(const struct dcgm_value *value, size_t i, struct gpu_reading *ret)
{
	double number = -1;
	if (value->status != 0 || value->at_us == 0 || value->field != rows[i].id)
		return;
	if (value->type == DCGM_TYPE_DOUBLE && isfinite(value->value.real) &&
	    value->value.real < DCGM_BLANK_DOUBLE)
		number = value->value.real;
	else if (value->type == DCGM_TYPE_INT64 && value->value.i64 < DCGM_BLANK_INT64)
		number = (double)value->value.i64;
	if (rows[i].factor == GPU_RATIO && number > 1)
		number = 1;
	if (number >= 0 && number < 1e18 / GPU_RATIO)
		gpu_reading_set(ret, rows[i].field, (int64_t)(number * rows[i].factor + 0.5));
}

static void keep(struct dcgm *dcgm, int i, uint64_t now_ns)
{
	const struct dcgm_value *uuid = &dcgm->values[ROWS];
	struct seen seen = { .at_ns = now_ns };
	if (uuid->status != 0 || uuid->type != DCGM_TYPE_TEXT)
		return; // not told yet
	(void)snprintf(seen.uuid, sizeof seen.uuid, "%.*s", (int)sizeof seen.uuid - 1,
		       uuid->value.text);
	for (size_t row = 0; row < ROWS; row++)
		take(&dcgm->values[row], row, &seen.reading);
	pthread_mutex_lock(&dcgm->lock);
	dcgm->seen[i] = seen;
	pthread_mutex_unlock(&dcgm->lock);
}

void dcgm_look(struct dcgm *dcgm, uint64_t now_ns)
{
	uint16_t ids[ROWS + 1];
	if (!dcgm->is_connected && now_ns < dcgm->retry_ns)
		return;
	if (!dcgm->is_connected && !connect_to(dcgm)) {
		drop(dcgm, now_ns);
		return;
	}
	put_ids(ids);
	for (int i = 0; i < dcgm->count; i++) {
		memset(dcgm->values, 0, sizeof dcgm->values);
		if (dcgm->latest(dcgm->handle, (int)dcgm->ids[i], ids, ROWS + 1, dcgm->values) !=
		    0) {
			drop(dcgm, now_ns); // with what it has of devices that have gone
			return;
		}
		keep(dcgm, i, now_ns);
	}
}

void dcgm_add(struct dcgm *dcgm, const char *uuid, uint64_t now_ns, struct gpu_reading *reading)
{
	ASSERT(uuid[0] != '\0');
	pthread_mutex_lock(&dcgm->lock);
	for (size_t i = 0; i < DCGM_GPUS_MAX; i++) {
		const struct seen *seen = &dcgm->seen[i];
		if (strcmp(seen->uuid, uuid) != 0 || now_ns - seen->at_ns > DCGM_FRESH_S * S)
			continue;
		for (size_t row = 0; row < ROWS; row++) {
			enum gpu_field field = rows[row].field;
			if (gpu_reading_has(&seen->reading, field) &&
			    !gpu_reading_has(reading, field))
				gpu_reading_set(reading, field, seen->reading.values[field]);
		}
	}
	pthread_mutex_unlock(&dcgm->lock);
}
