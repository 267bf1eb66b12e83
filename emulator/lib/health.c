// SPDX-License-Identifier: Apache-2.0
// Errors a device has counted: all zero, an emulated fault comes as an XID or a return code.
#include "emulator/lib/abi_more.h"
#include "emulator/lib/getter.h"

#include <string.h>

enum { ERROR_TYPE_COUNT = 2, COUNTER_TYPE_COUNT = 2, LOCATION_COUNT = 8, CAUSE_COUNT = 2 };
enum { REMAPPER_BANK_COUNT = 640, PERF_POLICY_COUNT = 12 };

GET_PAIR_IF(nvmlDeviceGetEccMode, gpu.has_ecc, NVML_FEATURE_ENABLED, NVML_FEATURE_ENABLED)
GET_NUMBER_IF(nvmlDeviceGetDefaultEccMode, uint32_t, gpu.has_ecc, NVML_FEATURE_ENABLED)
// Ampere and later remap rows instead of retiring pages.
GET_NUMBER_IF(nvmlDeviceGetRetiredPagesPendingStatus, uint32_t,
	      gpu.architecture < NVML_DEVICE_ARCH_AMPERE, 0)

static nvml_return need_ecc(const struct nvml_device *device, const char *call)
{
	struct wire_gpu gpu;
	nvml_return result = client_gpu(device, call, &gpu);

	return result == NVML_SUCCESS && !gpu.has_ecc ? NVML_ERROR_NOT_SUPPORTED : result;
}

NVML_CALL(nvmlDeviceGetTotalEccErrors, (const struct nvml_device *device, uint32_t error_type,
					uint32_t counter_type, uint64_t *ret_count))
{
	if (ret_count == NULL || error_type >= ERROR_TYPE_COUNT ||
	    counter_type >= COUNTER_TYPE_COUNT)
		return client_bad_argument();
	nvml_return result = need_ecc(device, "nvmlDeviceGetTotalEccErrors");
	if (result == NVML_SUCCESS)
		*ret_count = 0;
	return result;
}

NVML_CALL(nvmlDeviceGetDetailedEccErrors,
	  (const struct nvml_device *device, uint32_t error_type, uint32_t counter_type,
	   struct nvml_ecc_counts *ret_counts))
{
	if (ret_counts == NULL || error_type >= ERROR_TYPE_COUNT ||
	    counter_type >= COUNTER_TYPE_COUNT)
		return client_bad_argument();
	nvml_return result = need_ecc(device, "nvmlDeviceGetDetailedEccErrors");
	if (result == NVML_SUCCESS)
		*ret_counts = (struct nvml_ecc_counts){ 0 };
	return result;
}

NVML_CALL(nvmlDeviceGetMemoryErrorCounter,
	  (const struct nvml_device *device, uint32_t error_type, uint32_t counter_type,
	   uint32_t location, uint64_t *ret_count))
{
	if (ret_count == NULL || error_type >= ERROR_TYPE_COUNT ||
	    counter_type >= COUNTER_TYPE_COUNT || location >= LOCATION_COUNT)
		return client_bad_argument();
	nvml_return result = need_ecc(device, "nvmlDeviceGetMemoryErrorCounter");
	if (result == NVML_SUCCESS)
		*ret_count = 0;
	return result;
}

static nvml_return retired(const struct nvml_device *device, const char *call, uint32_t cause,
			   uint32_t *count)
{
	struct wire_gpu gpu;

	if (count == NULL || cause >= CAUSE_COUNT)
		return client_bad_argument();
	nvml_return result = client_gpu(device, call, &gpu);
	if (result != NVML_SUCCESS)
		return result;
	if (gpu.architecture >= NVML_DEVICE_ARCH_AMPERE)
		return NVML_ERROR_NOT_SUPPORTED;
	*count = 0;
	return NVML_SUCCESS;
}

NVML_CALL(nvmlDeviceGetRetiredPages, (const struct nvml_device *device, uint32_t cause,
				      uint32_t *count, uint64_t *ret_addresses))
{
	(void)ret_addresses; // there are none
	return retired(device, "nvmlDeviceGetRetiredPages", cause, count);
}

NVML_CALL(nvmlDeviceGetRetiredPages_v2,
	  (const struct nvml_device *device, uint32_t cause, uint32_t *count,
	   uint64_t *ret_addresses, uint64_t *ret_times))
{
	(void)ret_addresses; // there are none
	(void)ret_times;
	return retired(device, "nvmlDeviceGetRetiredPages_v2", cause, count);
}

NVML_CALL(nvmlDeviceGetRemappedRows,
	  (const struct nvml_device *device, uint32_t *ret_correctable, uint32_t *ret_uncorrectable,
	   uint32_t *ret_is_pending, uint32_t *ret_is_failed))
{
	if (ret_correctable == NULL || ret_uncorrectable == NULL || ret_is_pending == NULL ||
	    ret_is_failed == NULL)
		return client_bad_argument();
	nvml_return result = need_ecc(device, "nvmlDeviceGetRemappedRows");
	if (result == NVML_SUCCESS)
		*ret_correctable = *ret_uncorrectable = *ret_is_pending = *ret_is_failed = 0;
	return result;
}

NVML_CALL(nvmlDeviceGetRowRemapperHistogram,
	  (const struct nvml_device *device, struct nvml_row_remapper_histogram *ret_histogram))
{
	if (ret_histogram == NULL)
		return client_bad_argument();
	nvml_return result = need_ecc(device, "nvmlDeviceGetRowRemapperHistogram");
	if (result == NVML_SUCCESS)
		*ret_histogram = (struct nvml_row_remapper_histogram){ .max = REMAPPER_BANK_COUNT };
	return result;
}

NVML_CALL(nvmlDeviceGetViolationStatus,
	  (const struct nvml_device *device, uint32_t policy, struct nvml_violation_time *ret_time))
{
	struct wire_gpu gpu;

	if (ret_time == NULL || policy >= PERF_POLICY_COUNT)
		return client_bad_argument();
	nvml_return result = client_gpu(device, "nvmlDeviceGetViolationStatus", &gpu);
	if (result == NVML_SUCCESS)
		*ret_time = (struct nvml_violation_time){ 0 };
	return result;
}

// Profiling counters need hardware; no emulated board claims them.
NVML_CALL(nvmlGpmQueryDeviceSupport,
	  (const struct nvml_device *device, struct nvml_gpm_support *ret_support))
{
	enum { SUPPORT_VERSION = 1 };
	struct wire_gpu gpu;

	if (ret_support == NULL)
		return client_bad_argument();
	if (ret_support->version != SUPPORT_VERSION)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	nvml_return result = client_gpu(device, "nvmlGpmQueryDeviceSupport", &gpu);
	if (result == NVML_SUCCESS)
		ret_support->is_supported = 0;
	return result;
}

// No fabric across machines: state 0 says that it is not supported.
NVML_CALL(nvmlDeviceGetGpuFabricInfo,
	  (const struct nvml_device *device, struct nvml_fabric_info *ret_info))
{
	struct wire_gpu gpu;

	if (ret_info == NULL)
		return client_bad_argument();
	nvml_return result = client_gpu(device, "nvmlDeviceGetGpuFabricInfo", &gpu);
	if (result == NVML_SUCCESS)
		*ret_info = (struct nvml_fabric_info){ 0 };
	return result;
}

NVML_CALL(nvmlDeviceGetGpuFabricInfoV, (const struct nvml_device *device, void *ret_info))
{
	struct wire_gpu gpu;
	uint32_t version = 0;
	size_t size_bytes = sizeof(struct nvml_fabric_info_v2);

	if (ret_info == NULL)
		return client_bad_argument();
	memcpy(&version, ret_info, sizeof(version));
	if (version == NVML_STRUCT_VERSION(struct nvml_fabric_info_v3, 3))
		size_bytes = sizeof(struct nvml_fabric_info_v3);
	else if (version != NVML_STRUCT_VERSION(struct nvml_fabric_info_v2, 2))
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	nvml_return result = client_gpu(device, "nvmlDeviceGetGpuFabricInfoV", &gpu);
	if (result == NVML_SUCCESS)
		memset((char *)ret_info + sizeof(version), 0, size_bytes - sizeof(version));
	return result;
}
