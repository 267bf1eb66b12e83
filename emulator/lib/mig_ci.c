// SPDX-License-Identifier: Apache-2.0
// Compute instances within a GPU instance.
#include "emulator/lib/client_mig.h"
#include "emulator/mig_compute.h"
#include "gpu/nvml_abi_mig.h"

#include <stdio.h>
#include <string.h>

enum { ENGINE_SHARED = 0, CI_PROFILE_COUNT = 9 };

static struct nvml_ci_profile_info info_of(const struct client_instance *gi, uint32_t profile,
					   uint32_t size, uint32_t starts)
{
	const struct wire_mig_profile *of_gi = gi->profile;

	return (struct nvml_ci_profile_info){
		.id = profile,
		.slice_count = size,
		.instance_count = mig_compute_count(starts, size),
		.sm_count = size == of_gi->slices ? of_gi->sm_count
						  : size * gi->mig.narrow_sm_count,
		.copy_count = of_gi->copy_count,
		.decoder_count = of_gi->decoder_count,
		.encoder_count = of_gi->encoder_count,
		.jpeg_count = of_gi->jpeg_count,
		.ofa_count = of_gi->ofa_count,
	};
}

// What a profile means in this GPU instance: its width and where it may begin.
static nvml_return profile_in(const struct nvml_gpu_instance *gi, const char *call,
			      uint32_t profile, struct client_instance *ret_gi,
			      struct nvml_ci_profile_info *ret_info)
{
	uint32_t size = 0;
	nvml_return result = client_gi_instance(gi, call, ret_gi);

	if (result != NVML_SUCCESS)
		return result;
	if (profile >= CI_PROFILE_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	uint32_t starts = mig_compute_starts(ret_gi->profile->slices, profile, &size);
	if (starts == 0)
		return NVML_ERROR_NOT_SUPPORTED;
	*ret_info = info_of(ret_gi, profile, size, starts);
	return NVML_SUCCESS;
}

NVML_CALL(nvmlGpuInstanceGetComputeInstanceProfileInfo,
	  (const struct nvml_gpu_instance *gi, uint32_t profile, uint32_t engine,
	   struct nvml_ci_profile_info *ret_info))
{
	static const char CALL[] = "nvmlGpuInstanceGetComputeInstanceProfileInfo";
	struct client_instance instance;

	if (ret_info == NULL || engine != ENGINE_SHARED)
		return client_bad_argument();
	return profile_in(gi, CALL, profile, &instance, ret_info);
}

static nvml_return fill_version(const struct nvml_ci_profile_info *info, const char *name,
				void *ret_info)
{
	struct nvml_ci_profile_info_v2 v2 = {
		.version = NVML_STRUCT_VERSION(v2, 2),
		.id = info->id,
		.slice_count = info->slice_count,
		.instance_count = info->instance_count,
		.sm_count = info->sm_count,
		.copy_count = info->copy_count,
		.decoder_count = info->decoder_count,
		.encoder_count = info->encoder_count,
		.jpeg_count = info->jpeg_count,
		.ofa_count = info->ofa_count,
	};
	struct nvml_ci_profile_info_v3 v3 = { .version = NVML_STRUCT_VERSION(v3, 3) };
	uint32_t version = 0;

	snprintf(v2.name, sizeof(v2.name), "%s", name);
	memcpy(&version, ret_info, sizeof(version));
	if (version == v2.version) {
		memcpy(ret_info, &v2, sizeof(v2));
	} else if (version == v3.version) {
		// The third version appends to the second.
		memcpy((char *)&v3 + sizeof(version), (const char *)&v2 + sizeof(version),
		       sizeof(v2) - sizeof(version));
		memcpy(ret_info, &v3, sizeof(v3));
	} else {
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	}
	return NVML_SUCCESS;
}

NVML_CALL(nvmlGpuInstanceGetComputeInstanceProfileInfoV,
	  (const struct nvml_gpu_instance *gi, uint32_t profile, uint32_t engine, void *ret_info))
{
	static const char CALL[] = "nvmlGpuInstanceGetComputeInstanceProfileInfoV";
	struct client_instance instance;
	struct nvml_ci_profile_info info;
	char name[96];

	if (ret_info == NULL || engine != ENGINE_SHARED)
		return client_bad_argument();
	nvml_return result = profile_in(gi, CALL, profile, &instance, &info);
	if (result != NVML_SUCCESS)
		return result;
	mig_compute_name(instance.profile->name, instance.profile->slices, info.slice_count, name,
			 sizeof(name));
	return fill_version(&info, name, ret_info);
}

NVML_CALL(nvmlGpuInstanceGetComputeInstanceRemainingCapacity,
	  (const struct nvml_gpu_instance *gi, uint32_t profile, uint32_t *ret_count))
{
	static const char CALL[] = "nvmlGpuInstanceGetComputeInstanceRemainingCapacity";
	struct client_instance instance;
	struct nvml_ci_profile_info info;

	if (ret_count == NULL)
		return client_bad_argument();
	nvml_return result = profile_in(gi, CALL, profile, &instance, &info);
	if (result == NVML_SUCCESS)
		*ret_count =
			mig_compute_count(instance.gi->ci_free_starts[profile], info.slice_count);
	return result;
}

NVML_CALL(nvmlGpuInstanceGetComputeInstancePossiblePlacements,
	  (const struct nvml_gpu_instance *gi, uint32_t profile,
	   struct nvml_placement *ret_placements, uint32_t *count))
{
	static const char CALL[] = "nvmlGpuInstanceGetComputeInstancePossiblePlacements";
	struct client_instance instance;
	struct nvml_ci_profile_info info;
	uint32_t have = 0, size = 0;

	if (count == NULL)
		return client_bad_argument();
	nvml_return result = profile_in(gi, CALL, profile, &instance, &info);
	if (result != NVML_SUCCESS)
		return result;
	uint32_t starts = mig_compute_starts(instance.profile->slices, profile, &size);
	for (uint32_t start = 0; start < 32; start++) {
		if ((starts >> start & 1) == 0)
			continue;
		if (ret_placements != NULL && have < *count)
			ret_placements[have] = (struct nvml_placement){ start, size };
		have++;
	}
	bool fits = ret_placements == NULL || have <= *count;
	*count = have;
	return fits ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

static nvml_return create(const struct nvml_gpu_instance *gi, const char *call, uint32_t profile,
			  uint32_t start, struct nvml_compute_instance **ret_ci)
{
	struct client_instance instance;
	struct wire_mig mig;

	if (ret_ci == NULL)
		return client_bad_argument();
	nvml_return result = client_gi_instance(gi, call, &instance);
	if (result != NVML_SUCCESS)
		return result;
	const uint32_t args[WIRE_ARGS_MAX] = { instance.place.gi, profile, start };
	result = client_change(instance.place.slot, WIRE_CI_CREATE, call, args, &mig);
	if (result != NVML_SUCCESS)
		return result;
	instance.place.ci = mig.made;
	*ret_ci = client_ci(instance.place);
	return *ret_ci == NULL ? NVML_ERROR_UNKNOWN : NVML_SUCCESS;
}

NVML_CALL(nvmlGpuInstanceCreateComputeInstance,
	  (const struct nvml_gpu_instance *gi, uint32_t profile,
	   struct nvml_compute_instance **ret_ci))
{
	return create(gi, "nvmlGpuInstanceCreateComputeInstance", profile, WIRE_ANYWHERE, ret_ci);
}

NVML_CALL(nvmlGpuInstanceCreateComputeInstanceWithPlacement,
	  (const struct nvml_gpu_instance *gi, uint32_t profile,
	   const struct nvml_placement *placement, struct nvml_compute_instance **ret_ci))
{
	if (placement == NULL || placement->start == WIRE_ANYWHERE)
		return client_bad_argument();
	return create(gi, "nvmlGpuInstanceCreateComputeInstanceWithPlacement", profile,
		      placement->start, ret_ci);
}

NVML_CALL(nvmlComputeInstanceDestroy, (const struct nvml_compute_instance *ci))
{
	struct client_instance instance;
	nvml_return result = client_ci_instance(ci, "nvmlComputeInstanceDestroy", &instance);

	if (result != NVML_SUCCESS)
		return result;
	const uint32_t args[WIRE_ARGS_MAX] = { instance.place.gi, instance.place.ci };
	return client_change(instance.place.slot, WIRE_CI_DESTROY, "nvmlComputeInstanceDestroy",
			     args, NULL);
}

NVML_CALL(nvmlGpuInstanceGetComputeInstances,
	  (const struct nvml_gpu_instance *gi, uint32_t profile,
	   struct nvml_compute_instance **ret_cis, uint32_t *ret_count))
{
	struct client_instance instance;

	if (ret_cis == NULL || ret_count == NULL)
		return client_bad_argument();
	nvml_return result =
		client_gi_instance(gi, "nvmlGpuInstanceGetComputeInstances", &instance);
	if (result != NVML_SUCCESS)
		return result;
	*ret_count = 0;
	for (uint32_t i = 0; i < instance.mig.ci_count; i++) {
		const struct wire_ci *ci = &instance.mig.cis[i];
		if (ci->gi != instance.place.gi || ci->profile != profile)
			continue;
		instance.place.ci = ci->id;
		ret_cis[(*ret_count)++] = client_ci(instance.place);
	}
	return NVML_SUCCESS;
}

NVML_CALL(nvmlGpuInstanceGetComputeInstanceById,
	  (const struct nvml_gpu_instance *gi, uint32_t id, struct nvml_compute_instance **ret_ci))
{
	struct client_instance instance;

	if (ret_ci == NULL)
		return client_bad_argument();
	nvml_return result =
		client_gi_instance(gi, "nvmlGpuInstanceGetComputeInstanceById", &instance);
	if (result != NVML_SUCCESS)
		return result;
	instance.place.ci = id;
	for (uint32_t i = 0; i < instance.mig.ci_count; i++)
		if (instance.mig.cis[i].gi == instance.place.gi && instance.mig.cis[i].id == id) {
			*ret_ci = client_ci(instance.place);
			return *ret_ci == NULL ? NVML_ERROR_UNKNOWN : NVML_SUCCESS;
		}
	return NVML_ERROR_NOT_FOUND;
}

NVML_CALL(nvmlComputeInstanceGetInfo_v2,
	  (const struct nvml_compute_instance *ci, struct nvml_ci_info *ret_info))
{
	struct client_instance instance;

	if (ret_info == NULL)
		return client_bad_argument();
	nvml_return result = client_ci_instance(ci, "nvmlComputeInstanceGetInfo_v2", &instance);
	if (result == NVML_SUCCESS)
		*ret_info = (struct nvml_ci_info){
			.device = client_device(instance.place.slot),
			.gpu_instance = client_gi(instance.place),
			.id = instance.place.ci,
			.profile_id = instance.ci->profile,
			.placement = { instance.ci->start, instance.ci->size },
		};
	return result;
}
