// SPDX-License-Identifier: Apache-2.0
#include "emulator/lib/client_mig.h"

#include <string.h>

enum { GI_ID_COUNT = 16, CI_ID_COUNT = 8 };

struct nvml_gpu_instance {
	char unused;
};
struct nvml_compute_instance {
	char unused;
};

static struct nvml_gpu_instance gis[WIRE_GPU_MAX * GI_ID_COUNT];
static struct nvml_compute_instance cis[WIRE_GPU_MAX * GI_ID_COUNT * CI_ID_COUNT];
// A MIG device is a compute instance seen as a device.
static char mig_devices[WIRE_GPU_MAX * GI_ID_COUNT * CI_ID_COUNT];

static bool is_place(struct client_place place)
{
	return place.slot < WIRE_GPU_MAX && place.gi < GI_ID_COUNT && place.ci < CI_ID_COUNT;
}

static uint32_t ci_at(struct client_place place)
{
	return (place.slot * GI_ID_COUNT + place.gi) * CI_ID_COUNT + place.ci;
}

static struct client_place place_at(uint32_t at)
{
	return (struct client_place){ at / CI_ID_COUNT / GI_ID_COUNT,
				      at / CI_ID_COUNT % GI_ID_COUNT, at % CI_ID_COUNT };
}

// Members of all three tables are one byte long.
static bool index_in(const void *pointer, const void *table, size_t size_bytes, uint32_t *ret_at)
{
	uintptr_t at = (uintptr_t)pointer, first = (uintptr_t)table;

	if (at < first || at >= first + size_bytes)
		return false;
	*ret_at = (uint32_t)(at - first);
	return true;
}

struct nvml_device *client_mig_device(struct client_place place)
{
	return is_place(place) ? (struct nvml_device *)&mig_devices[ci_at(place)] : NULL;
}

struct nvml_gpu_instance *client_gi(struct client_place place)
{
	place.ci = 0;
	return is_place(place) ? &gis[place.slot * GI_ID_COUNT + place.gi] : NULL;
}

struct nvml_compute_instance *client_ci(struct client_place place)
{
	return is_place(place) ? &cis[ci_at(place)] : NULL;
}

bool client_is_mig(const struct nvml_device *device)
{
	uint32_t at = 0;

	return index_in(device, mig_devices, sizeof(mig_devices), &at);
}

// The daemon is another program: its texts end where we say and its numbers are in range.
static bool check(struct wire_mig *mig)
{
	if (mig->profile_count > WIRE_MIG_PROFILE_MAX || mig->gi_count > WIRE_MIG_MAX ||
	    mig->ci_count > WIRE_MIG_MAX)
		return false;
	for (uint32_t i = 0; i < mig->profile_count; i++)
		mig->profiles[i].name[sizeof(mig->profiles[i].name) - 1] = 0;
	for (uint32_t i = 0; i < mig->gi_count; i++)
		if (mig->gis[i].profile_i >= mig->profile_count)
			return false;
	for (uint32_t i = 0; i < mig->ci_count; i++)
		mig->cis[i].uuid[sizeof(mig->cis[i].uuid) - 1] = 0;
	return true;
}

nvml_return client_change(uint32_t slot, enum wire_op op, const char *call,
			  const uint32_t args[WIRE_ARGS_MAX], struct wire_mig *ret_mig)
{
	struct wire_request request = client_request(op, call);
	struct wire_reply reply;

	request.slot = slot;
	memcpy(request.args, args, sizeof(request.args));
	nvml_return result = client_ask_once(&request, &reply);
	if (result == NVML_SUCCESS && !check(&reply.body.mig))
		result = NVML_ERROR_UNKNOWN;
	if (result == NVML_SUCCESS && ret_mig != NULL)
		*ret_mig = reply.body.mig;
	return result;
}

nvml_return client_mig(const struct nvml_device *device, const char *call, struct wire_mig *ret)
{
	static const uint32_t NONE[WIRE_ARGS_MAX] = { 0 };
	struct wire_gpu gpu;
	uint32_t slot = 0;
	nvml_return result = client_gpu(device, call, &gpu);

	if (result != NVML_SUCCESS)
		return result;
	if (!gpu.is_mig_capable)
		return NVML_ERROR_NOT_SUPPORTED;
	if (!client_slot(device, &slot))
		return client_bad_argument();
	return client_change(slot, WIRE_MIG, call, NONE, ret);
}

static nvml_return instance_at(struct client_place place, const char *call,
			       struct client_instance *ret)
{
	static const uint32_t NONE[WIRE_ARGS_MAX] = { 0 };
	nvml_return result = client_change(place.slot, WIRE_MIG, call, NONE, &ret->mig);

	if (result != NVML_SUCCESS)
		return result;
	ret->place = place;
	ret->gi = NULL;
	ret->ci = NULL;
	for (uint32_t i = 0; i < ret->mig.gi_count; i++)
		if (ret->mig.gis[i].id == place.gi)
			ret->gi = &ret->mig.gis[i];
	for (uint32_t i = 0; i < ret->mig.ci_count; i++)
		if (ret->mig.cis[i].gi == place.gi && ret->mig.cis[i].id == place.ci) {
			ret->ci = &ret->mig.cis[i];
			ret->index = i;
		}
	if (ret->gi == NULL || (place.ci != WIRE_NO_INSTANCE && ret->ci == NULL))
		return NVML_ERROR_INVALID_ARGUMENT;
	ret->profile = &ret->mig.profiles[ret->gi->profile_i];
	return NVML_SUCCESS;
}

nvml_return client_mig_instance(const struct nvml_device *device, const char *call,
				struct client_instance *ret)
{
	uint32_t at = 0;

	if (!index_in(device, mig_devices, sizeof(mig_devices), &at))
		return client_bad_argument();
	return instance_at(place_at(at), call, ret);
}

nvml_return client_parent(const struct nvml_device *device, const char *call, struct wire_gpu *ret)
{
	struct client_instance instance;

	if (!client_is_mig(device))
		return client_gpu(device, call, ret);
	nvml_return result = client_mig_instance(device, call, &instance);
	return result != NVML_SUCCESS ? result
				      : client_gpu(client_device(instance.place.slot), call, ret);
}

nvml_return client_gi_instance(const struct nvml_gpu_instance *gi, const char *call,
			       struct client_instance *ret)
{
	uint32_t at = 0;

	if (!index_in(gi, gis, sizeof(gis), &at))
		return client_bad_argument();
	struct client_place place = { at / GI_ID_COUNT, at % GI_ID_COUNT, WIRE_NO_INSTANCE };
	return instance_at(place, call, ret);
}

nvml_return client_ci_instance(const struct nvml_compute_instance *ci, const char *call,
			       struct client_instance *ret)
{
	uint32_t at = 0;

	if (!index_in(ci, cis, sizeof(cis), &at))
		return client_bad_argument();
	return instance_at(place_at(at), call, ret);
}
