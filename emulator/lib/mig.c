// SPDX-License-Identifier: Apache-2.0
// MIG mode, and MIG devices as devices.
#include "emulator/lib/client_mig.h"
#include "emulator/lib/getter.h"
#include "gpu/nvml_abi_mig.h"

// On a board without MIG the question itself is not supported.
NVML_CALL(nvmlDeviceGetMigMode,
	  (const struct nvml_device *device, uint32_t *ret_mode, uint32_t *ret_pending))
{
	struct wire_mig mig;

	if (ret_mode == NULL || ret_pending == NULL)
		return client_bad_argument();
	nvml_return result = client_mig(device, "nvmlDeviceGetMigMode", &mig);
	if (result != NVML_SUCCESS)
		return result;
	*ret_mode = mig.mode;
	*ret_pending = mig.mode_pending;
	return NVML_SUCCESS;
}

// The call succeeds when the mode is noted; what the activation came to is its second result.
NVML_CALL(nvmlDeviceSetMigMode,
	  (const struct nvml_device *device, uint32_t mode, nvml_return *ret_activation))
{
	struct wire_mig mig;
	uint32_t slot = 0;
	const uint32_t args[WIRE_ARGS_MAX] = { mode };

	if (ret_activation == NULL || mode > NVML_FEATURE_ENABLED || !client_slot(device, &slot))
		return client_bad_argument();
	nvml_return result = client_change(slot, WIRE_MIG_MODE, "nvmlDeviceSetMigMode", args, &mig);
	if (result == NVML_SUCCESS)
		*ret_activation = mig.mode == mode ? NVML_SUCCESS : NVML_ERROR_IN_USE;
	return result;
}

GET_NUMBER(nvmlDeviceGetMaxMigDeviceCount, gpu.mig_count_max)

NVML_CALL(nvmlDeviceIsMigDeviceHandle, (const struct nvml_device *device, uint32_t *ret_is_mig))
{
	struct client_instance instance;
	struct wire_gpu gpu;
	bool is_mig = client_is_mig(device);

	if (ret_is_mig == NULL)
		return client_bad_argument();
	nvml_return result =
		is_mig ? client_mig_instance(device, "nvmlDeviceIsMigDeviceHandle", &instance)
		       : client_gpu(device, "nvmlDeviceIsMigDeviceHandle", &gpu);
	if (result == NVML_SUCCESS)
		*ret_is_mig = is_mig ? 1 : 0;
	return result;
}

NVML_CALL(nvmlDeviceGetMigDeviceHandleByIndex,
	  (const struct nvml_device *device, uint32_t index, struct nvml_device **ret_device))
{
	struct wire_mig mig;
	struct client_place place;

	if (ret_device == NULL || !client_slot(device, &place.slot))
		return client_bad_argument();
	nvml_return result = client_mig(device, "nvmlDeviceGetMigDeviceHandleByIndex", &mig);
	if (result != NVML_SUCCESS)
		return result;
	if (index >= mig.ci_count)
		return NVML_ERROR_NOT_FOUND;
	place.gi = mig.cis[index].gi;
	place.ci = mig.cis[index].id;
	struct nvml_device *found = client_mig_device(place);
	if (found == NULL)
		return NVML_ERROR_UNKNOWN;
	*ret_device = found;
	return NVML_SUCCESS;
}

NVML_CALL(nvmlDeviceGetDeviceHandleFromMigDeviceHandle,
	  (const struct nvml_device *device, struct nvml_device **ret_device))
{
	struct client_instance instance;

	if (ret_device == NULL)
		return client_bad_argument();
	nvml_return result = client_mig_instance(
		device, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle", &instance);
	if (result == NVML_SUCCESS)
		*ret_device = client_device(instance.place.slot);
	return result;
}

#define GET_OF_INSTANCE(name, value)                                                               \
	NVML_CALL(name, (const struct nvml_device *device, uint32_t *ret_value))                   \
	{                                                                                          \
		struct client_instance instance;                                                   \
		struct wire_gpu gpu;                                                               \
		if (ret_value == NULL)                                                             \
			return client_bad_argument();                                              \
		if (!client_is_mig(device)) {                                                      \
			nvml_return alive = client_gpu(device, #name, &gpu);                       \
			return alive == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : alive;           \
		}                                                                                  \
		nvml_return result = client_mig_instance(device, #name, &instance);                \
		if (result == NVML_SUCCESS)                                                        \
			*ret_value = (value);                                                      \
		return result;                                                                     \
	}
GET_OF_INSTANCE(nvmlDeviceGetGpuInstanceId, instance.place.gi)
GET_OF_INSTANCE(nvmlDeviceGetComputeInstanceId, instance.place.ci)

NVML_CALL(nvmlDeviceGetAttributes_v2,
	  (const struct nvml_device *device, struct nvml_device_attributes *ret_attributes))
{
	struct client_instance instance;
	struct wire_gpu gpu;

	if (ret_attributes == NULL)
		return client_bad_argument();
	if (!client_is_mig(device)) {
		nvml_return alive = client_gpu(device, "nvmlDeviceGetAttributes_v2", &gpu);
		return alive == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : alive;
	}
	nvml_return result = client_mig_instance(device, "nvmlDeviceGetAttributes_v2", &instance);
	if (result != NVML_SUCCESS)
		return result;
	const struct wire_mig_profile *profile = instance.profile;
	*ret_attributes = (struct nvml_device_attributes){
		.sm_count = instance.ci->sm_count,
		.copy_count = profile->copy_count,
		.decoder_count = profile->decoder_count,
		.encoder_count = profile->encoder_count,
		.jpeg_count = profile->jpeg_count,
		.ofa_count = profile->ofa_count,
		.gi_slice_count = profile->slices,
		.ci_slice_count = instance.ci->size,
		.memory_mib = profile->memory_mib,
	};
	return NVML_SUCCESS;
}
