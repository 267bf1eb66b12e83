// SPDX-License-Identifier: Apache-2.0
// Errors a device has counted: what the control file said. All are of device memory.
#include "emulator/lib/abi_more.h"
#include "emulator/lib/getter.h"

#include <string.h>
#include <time.h>

enum { ERROR_TYPE_COUNT = 2, COUNTER_TYPE_COUNT = 2, LOCATION_COUNT = 8, CAUSE_COUNT = 2 };
enum { REMAPPER_BANK_COUNT = 640 };
enum { PERF_POLICY_POWER = 0, PERF_POLICY_THERMAL = 1, PERF_POLICY_COUNT = 12 };

GET_PAIR_IF(nvmlDeviceGetEccMode, gpu.has_ecc, gpu.errors.ecc_mode, gpu.errors.ecc_mode_pending)
GET_NUMBER_IF(nvmlDeviceGetDefaultEccMode, uint32_t, gpu.has_ecc, NVML_FEATURE_ENABLED)
GET_NUMBER_IF(nvmlDeviceGetRetiredPagesPendingStatus, uint32_t,
	      gpu.architecture < NVML_DEVICE_ARCH_AMPERE, gpu.errors.pages_pending)

static nvml_return need_ecc(const struct nvml_device *device, const char *call,
			    struct wire_gpu *ret_gpu)
{
	nvml_return result = client_gpu(device, call, ret_gpu);

	return result == NVML_SUCCESS && !ret_gpu->has_ecc ? NVML_ERROR_NOT_SUPPORTED : result;
}

// Counters stand still while ECC is off and are not to be had, as with the real driver.
static nvml_return need_counters(const struct nvml_device *device, const char *call,
				 struct wire_gpu *ret_gpu)
{
	nvml_return result = need_ecc(device, call, ret_gpu);

	return result == NVML_SUCCESS && ret_gpu->errors.ecc_mode == 0 ? NVML_ERROR_NOT_SUPPORTED
								       : result;
}

static uint64_t counted(const struct wire_gpu *gpu, uint32_t error_type, uint32_t counter_type)
{
	return counter_type == NVML_VOLATILE_ECC ? gpu->errors.ecc_volatile[error_type]
						 : gpu->errors.ecc_aggregate[error_type];
}

NVML_CALL(nvmlDeviceGetTotalEccErrors, (const struct nvml_device *device, uint32_t error_type,
					uint32_t counter_type, uint64_t *ret_count))
{
	struct wire_gpu gpu;

	if (ret_count == NULL || error_type >= ERROR_TYPE_COUNT ||
	    counter_type >= COUNTER_TYPE_COUNT)
		return client_bad_argument();
	nvml_return result = need_counters(device, "nvmlDeviceGetTotalEccErrors", &gpu);
	if (result == NVML_SUCCESS)
		*ret_count = counted(&gpu, error_type, counter_type);
	return result;
}

NVML_CALL(nvmlDeviceGetDetailedEccErrors,
	  (const struct nvml_device *device, uint32_t error_type, uint32_t counter_type,
	   struct nvml_ecc_counts *ret_counts))
{
	struct wire_gpu gpu;

	if (ret_counts == NULL || error_type >= ERROR_TYPE_COUNT ||
	    counter_type >= COUNTER_TYPE_COUNT)
		return client_bad_argument();
	nvml_return result = need_counters(device, "nvmlDeviceGetDetailedEccErrors", &gpu);
	if (result == NVML_SUCCESS)
		*ret_counts = (struct nvml_ecc_counts){ .device_memory = counted(&gpu, error_type,
										 counter_type) };
	return result;
}

NVML_CALL(nvmlDeviceGetMemoryErrorCounter,
	  (const struct nvml_device *device, uint32_t error_type, uint32_t counter_type,
	   uint32_t location, uint64_t *ret_count))
{
	enum { LOCATION_DEVICE_MEMORY = 2 };
	struct wire_gpu gpu;

	if (ret_count == NULL || error_type >= ERROR_TYPE_COUNT ||
	    counter_type >= COUNTER_TYPE_COUNT || location >= LOCATION_COUNT)
		return client_bad_argument();
	nvml_return result = need_counters(device, "nvmlDeviceGetMemoryErrorCounter", &gpu);
	if (result == NVML_SUCCESS)
		*ret_count = location == LOCATION_DEVICE_MEMORY
				     ? counted(&gpu, error_type, counter_type)
				     : 0;
	return result;
}

// Addresses of retired pages are made up: one page after the other, cause after cause.
static nvml_return retired(const struct nvml_device *device, const char *call, uint32_t cause,
			   uint32_t *count, uint64_t *ret_addresses)
{
	enum { PAGE_BYTES = 65536, CAUSE_APART = 1024 };
	struct wire_gpu gpu;

	if (count == NULL || cause >= CAUSE_COUNT)
		return client_bad_argument();
	nvml_return result = client_gpu(device, call, &gpu);
	if (result != NVML_SUCCESS)
		return result;
	if (gpu.architecture >= NVML_DEVICE_ARCH_AMPERE)
		return NVML_ERROR_NOT_SUPPORTED;
	uint32_t room = ret_addresses == NULL ? 0 : *count, have = gpu.errors.pages[cause];
	*count = have;
	if (have > 0 && room < have)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	for (uint32_t i = 0; i < have; i++)
		ret_addresses[i] = (uint64_t)(cause * CAUSE_APART + i + 1) * PAGE_BYTES;
	return NVML_SUCCESS;
}

NVML_CALL(nvmlDeviceGetRetiredPages, (const struct nvml_device *device, uint32_t cause,
				      uint32_t *count, uint64_t *ret_addresses))
{
	return retired(device, "nvmlDeviceGetRetiredPages", cause, count, ret_addresses);
}

NVML_CALL(nvmlDeviceGetRetiredPages_v2,
	  (const struct nvml_device *device, uint32_t cause, uint32_t *count,
	   uint64_t *ret_addresses, uint64_t *ret_times))
{
	nvml_return result =
		retired(device, "nvmlDeviceGetRetiredPages_v2", cause, count, ret_addresses);

	if (result == NVML_SUCCESS && ret_times != NULL)
		memset(ret_times, 0, *count * sizeof(*ret_times)); // when, is not known
	return result;
}

// Ampere and later remap rows, older ones retire pages.
static nvml_return need_rows(const struct nvml_device *device, const char *call,
			     struct wire_gpu *ret_gpu)
{
	nvml_return result = need_ecc(device, call, ret_gpu);

	return result == NVML_SUCCESS && ret_gpu->architecture < NVML_DEVICE_ARCH_AMPERE
		       ? NVML_ERROR_NOT_SUPPORTED
		       : result;
}

NVML_CALL(nvmlDeviceGetRemappedRows,
	  (const struct nvml_device *device, uint32_t *ret_correctable, uint32_t *ret_uncorrectable,
	   uint32_t *ret_is_pending, uint32_t *ret_is_failed))
{
	struct wire_gpu gpu;

	if (ret_correctable == NULL || ret_uncorrectable == NULL || ret_is_pending == NULL ||
	    ret_is_failed == NULL)
		return client_bad_argument();
	nvml_return result = need_rows(device, "nvmlDeviceGetRemappedRows", &gpu);
	if (result != NVML_SUCCESS)
		return result;
	*ret_correctable = gpu.errors.rows[0];
	*ret_uncorrectable = gpu.errors.rows[1];
	*ret_is_pending = gpu.errors.rows_pending;
	*ret_is_failed = gpu.errors.rows_failed;
	return NVML_SUCCESS;
}

NVML_CALL(nvmlDeviceGetRowRemapperHistogram,
	  (const struct nvml_device *device, struct nvml_row_remapper_histogram *ret_histogram))
{
	struct wire_gpu gpu;

	if (ret_histogram == NULL)
		return client_bad_argument();
	nvml_return result = need_rows(device, "nvmlDeviceGetRowRemapperHistogram", &gpu);
	if (result == NVML_SUCCESS)
		*ret_histogram = (struct nvml_row_remapper_histogram){ .max = REMAPPER_BANK_COUNT };
	return result;
}

static uint64_t wall_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now); // cannot fail for this clock
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

NVML_CALL(nvmlDeviceGetViolationStatus,
	  (const struct nvml_device *device, uint32_t policy, struct nvml_violation_time *ret_time))
{
	struct wire_gpu gpu;

	if (ret_time == NULL || policy >= PERF_POLICY_COUNT)
		return client_bad_argument();
	nvml_return result = client_gpu(device, "nvmlDeviceGetViolationStatus", &gpu);
	if (result != NVML_SUCCESS)
		return result;
	*ret_time = (struct nvml_violation_time){ .reference_us = wall_us() };
	if (policy == PERF_POLICY_POWER)
		ret_time->violation_ns = gpu.power_capped_ns;
	if (policy == PERF_POLICY_THERMAL)
		ret_time->violation_ns = gpu.hot_ns;
	return NVML_SUCCESS;
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
