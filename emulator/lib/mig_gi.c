// SPDX-License-Identifier: Apache-2.0
// GPU instances: their profiles, places, creation and end. The daemon decides; nothing here knows
// a rule.
#include "emulator/lib/client_mig.h"
#include "gpu/nvml_abi_mig.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct wire_mig_profile *by_number(const struct wire_mig *mig, uint32_t profile)
{
	for (uint32_t i = 0; i < mig->profile_count; i++)
		if (mig->profiles[i].profile == profile)
			return &mig->profiles[i];
	return NULL;
}

static const struct wire_mig_profile *by_id(const struct wire_mig *mig, uint32_t id)
{
	for (uint32_t i = 0; i < mig->profile_count; i++)
		if (mig->profiles[i].id == id)
			return &mig->profiles[i];
	return NULL;
}

static struct nvml_gi_profile_info info_of(const struct wire_mig_profile *profile)
{
	return (struct nvml_gi_profile_info){
		.id = profile->id,
		.slice_count = profile->slices,
		.instance_count = profile->count_max,
		.sm_count = profile->sm_count,
		.copy_count = profile->copy_count,
		.decoder_count = profile->decoder_count,
		.encoder_count = profile->encoder_count,
		.jpeg_count = profile->jpeg_count,
		.ofa_count = profile->ofa_count,
		.memory_mib = profile->memory_mib,
	};
}

// A profile that NVML knows and the board has not is not supported; the others are no profiles.
static nvml_return missing(uint32_t profile)
{
	enum { PROFILE_COUNT = 18 };

	return profile < PROFILE_COUNT ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT;
}

NVML_CALL(nvmlDeviceGetGpuInstanceProfileInfo, (const struct nvml_device *device, uint32_t profile,
						struct nvml_gi_profile_info *ret_info))
{
	struct wire_mig mig;

	if (ret_info == NULL)
		return client_bad_argument();
	nvml_return result = client_mig(device, "nvmlDeviceGetGpuInstanceProfileInfo", &mig);
	if (result != NVML_SUCCESS)
		return result;
	const struct wire_mig_profile *found = by_number(&mig, profile);
	if (found == NULL)
		return missing(profile);
	*ret_info = info_of(found);
	return NVML_SUCCESS;
}

static nvml_return fill_version(const struct wire_mig_profile *profile, void *ret_info)
{
	struct nvml_gi_profile_info info = info_of(profile);
	struct nvml_gi_profile_info_v2 v2 = {
		.version = NVML_STRUCT_VERSION(v2, 2),
		.id = info.id,
		.slice_count = info.slice_count,
		.instance_count = info.instance_count,
		.sm_count = info.sm_count,
		.copy_count = info.copy_count,
		.decoder_count = info.decoder_count,
		.encoder_count = info.encoder_count,
		.jpeg_count = info.jpeg_count,
		.ofa_count = info.ofa_count,
		.memory_mib = info.memory_mib,
	};
	struct nvml_gi_profile_info_v3 v3 = {
		.version = NVML_STRUCT_VERSION(v3, 3),
		.id = info.id,
		.slice_count = info.slice_count,
		.instance_count = info.instance_count,
		.sm_count = info.sm_count,
		.copy_count = info.copy_count,
		.decoder_count = info.decoder_count,
		.encoder_count = info.encoder_count,
		.jpeg_count = info.jpeg_count,
		.ofa_count = info.ofa_count,
		.memory_mib = info.memory_mib,
	};
	uint32_t version = 0;

	snprintf(v2.name, sizeof(v2.name), "%s", profile->name);
	snprintf(v3.name, sizeof(v3.name), "%s", profile->name);
	memcpy(&version, ret_info, sizeof(version));
	if (version == v2.version)
		memcpy(ret_info, &v2, sizeof(v2));
	else if (version == v3.version)
		memcpy(ret_info, &v3, sizeof(v3));
	else
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	return NVML_SUCCESS;
}

NVML_CALL(nvmlDeviceGetGpuInstanceProfileInfoV,
	  (const struct nvml_device *device, uint32_t profile, void *ret_info))
{
	struct wire_mig mig;

	if (ret_info == NULL)
		return client_bad_argument();
	nvml_return result = client_mig(device, "nvmlDeviceGetGpuInstanceProfileInfoV", &mig);
	if (result != NVML_SUCCESS)
		return result;
	const struct wire_mig_profile *found = by_number(&mig, profile);
	return found == NULL ? missing(profile) : fill_version(found, ret_info);
}

NVML_CALL(nvmlDeviceGetGpuInstanceProfileInfoByIdV,
	  (const struct nvml_device *device, uint32_t id, void *ret_info))
{
	struct wire_mig mig;

	if (ret_info == NULL)
		return client_bad_argument();
	nvml_return result = client_mig(device, "nvmlDeviceGetGpuInstanceProfileInfoByIdV", &mig);
	if (result != NVML_SUCCESS)
		return result;
	const struct wire_mig_profile *found = by_id(&mig, id);
	return found == NULL ? NVML_ERROR_INVALID_ARGUMENT : fill_version(found, ret_info);
}

// All places a profile can ever take, free or not, and also while MIG mode is off.
NVML_CALL(nvmlDeviceGetGpuInstancePossiblePlacements_v2,
	  (const struct nvml_device *device, uint32_t id, struct nvml_placement *ret_placements,
	   uint32_t *count))
{
	static const char CALL[] = "nvmlDeviceGetGpuInstancePossiblePlacements_v2";
	struct wire_mig mig;
	uint32_t have = 0;

	if (count == NULL)
		return client_bad_argument();
	nvml_return result = client_mig(device, CALL, &mig);
	if (result != NVML_SUCCESS)
		return result;
	const struct wire_mig_profile *found = by_id(&mig, id);
	if (found == NULL)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (uint32_t start = 0; start < 32; start++) {
		if ((found->starts >> start & 1) == 0)
			continue;
		if (ret_placements != NULL && have < *count)
			ret_placements[have] = (struct nvml_placement){ start, found->size };
		have++;
	}
	bool fits = ret_placements == NULL || have <= *count;
	*count = have;
	return fits ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}
NVML_ALIAS(nvmlDeviceGetGpuInstancePossiblePlacements,
	   (const struct nvml_device *device, uint32_t id, struct nvml_placement *ret_placements,
	    uint32_t *count),
	   nvmlDeviceGetGpuInstancePossiblePlacements_v2);

// For calls that need MIG mode.
static nvml_return mig_on(const struct nvml_device *device, const char *call, struct wire_mig *ret)
{
	nvml_return result = client_mig(device, call, ret);

	return result == NVML_SUCCESS && ret->mode != NVML_FEATURE_ENABLED
		       ? NVML_ERROR_NOT_SUPPORTED
		       : result;
}

NVML_CALL(nvmlDeviceGetGpuInstanceRemainingCapacity,
	  (const struct nvml_device *device, uint32_t id, uint32_t *ret_count))
{
	struct wire_mig mig;

	if (ret_count == NULL)
		return client_bad_argument();
	nvml_return result = mig_on(device, "nvmlDeviceGetGpuInstanceRemainingCapacity", &mig);
	if (result != NVML_SUCCESS)
		return result;
	const struct wire_mig_profile *found = by_id(&mig, id);
	if (found == NULL)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret_count = found->remaining;
	return NVML_SUCCESS;
}

static nvml_return create(const struct nvml_device *device, const char *call,
			  const uint32_t args[WIRE_ARGS_MAX], struct nvml_gpu_instance **ret_gi)
{
	struct client_place place = { .ci = WIRE_NO_INSTANCE };
	struct wire_mig mig;

	if (ret_gi == NULL || !client_slot(device, &place.slot))
		return client_bad_argument();
	nvml_return result = client_change(place.slot, WIRE_GI_CREATE, call, args, &mig);
	if (result != NVML_SUCCESS)
		return result;
	place.gi = mig.made;
	*ret_gi = client_gi(place);
	return *ret_gi == NULL ? NVML_ERROR_UNKNOWN : NVML_SUCCESS;
}

NVML_CALL(nvmlDeviceCreateGpuInstance,
	  (const struct nvml_device *device, uint32_t id, struct nvml_gpu_instance **ret_gi))
{
	const uint32_t args[WIRE_ARGS_MAX] = { id, WIRE_ANYWHERE };

	return create(device, "nvmlDeviceCreateGpuInstance", args, ret_gi);
}

NVML_CALL(nvmlDeviceCreateGpuInstanceWithPlacement,
	  (const struct nvml_device *device, uint32_t id, const struct nvml_placement *placement,
	   struct nvml_gpu_instance **ret_gi))
{
	if (placement == NULL || placement->start == WIRE_ANYWHERE)
		return client_bad_argument();
	const uint32_t args[WIRE_ARGS_MAX] = { id, placement->start };
	return create(device, "nvmlDeviceCreateGpuInstanceWithPlacement", args, ret_gi);
}

NVML_CALL(nvmlGpuInstanceDestroy, (const struct nvml_gpu_instance *gi))
{
	struct client_instance instance;
	nvml_return result = client_gi_instance(gi, "nvmlGpuInstanceDestroy", &instance);

	if (result != NVML_SUCCESS)
		return result;
	const uint32_t args[WIRE_ARGS_MAX] = { instance.place.gi };
	return client_change(instance.place.slot, WIRE_GI_DESTROY, "nvmlGpuInstanceDestroy", args,
			     NULL);
}

// The caller's array has room for as many as the profile says there can be.
NVML_CALL(nvmlDeviceGetGpuInstances, (const struct nvml_device *device, uint32_t id,
				      struct nvml_gpu_instance **ret_gis, uint32_t *ret_count))
{
	struct client_place place = { .ci = WIRE_NO_INSTANCE };
	struct wire_mig mig;

	if (ret_gis == NULL || ret_count == NULL || !client_slot(device, &place.slot))
		return client_bad_argument();
	nvml_return result = mig_on(device, "nvmlDeviceGetGpuInstances", &mig);
	if (result != NVML_SUCCESS)
		return result;
	const struct wire_mig_profile *found = by_id(&mig, id);
	if (found == NULL)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret_count = 0;
	for (uint32_t i = 0; i < mig.gi_count; i++) {
		place.gi = mig.gis[i].id;
		if (&mig.profiles[mig.gis[i].profile_i] == found)
			ret_gis[(*ret_count)++] = client_gi(place);
	}
	return NVML_SUCCESS;
}

NVML_CALL(nvmlDeviceGetGpuInstanceById,
	  (const struct nvml_device *device, uint32_t id, struct nvml_gpu_instance **ret_gi))
{
	struct client_place place = { .gi = id, .ci = WIRE_NO_INSTANCE };
	struct wire_mig mig;

	if (ret_gi == NULL || !client_slot(device, &place.slot))
		return client_bad_argument();
	nvml_return result = mig_on(device, "nvmlDeviceGetGpuInstanceById", &mig);
	if (result != NVML_SUCCESS)
		return result;
	for (uint32_t i = 0; i < mig.gi_count; i++)
		if (mig.gis[i].id == id) {
			*ret_gi = client_gi(place);
			return NVML_SUCCESS;
		}
	return NVML_ERROR_NOT_FOUND;
}

NVML_CALL(nvmlGpuInstanceGetInfo,
	  (const struct nvml_gpu_instance *gi, struct nvml_gi_info *ret_info))
{
	struct client_instance instance;

	if (ret_info == NULL)
		return client_bad_argument();
	nvml_return result = client_gi_instance(gi, "nvmlGpuInstanceGetInfo", &instance);
	if (result == NVML_SUCCESS)
		*ret_info = (struct nvml_gi_info){
			.device = client_device(instance.place.slot),
			.id = instance.place.gi,
			.profile_id = instance.profile->id,
			.placement = { instance.gi->start, instance.profile->size },
		};
	return result;
}
