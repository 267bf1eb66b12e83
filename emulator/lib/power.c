// SPDX-License-Identifier: Apache-2.0
// Power, energy, temperature and clocks.
#include "emulator/lib/abi_more.h"
#include "emulator/lib/getter.h"

#include <string.h>

enum {
	PSTATE_UNKNOWN = 32,
	THROTTLE_ALL = 0x1ff,
	CLOCK_STEP_MHZ = 15, // graphics clocks come in such steps
};

GET_NUMBER(nvmlDeviceGetPowerUsage, gpu.power_mw)
GET_NUMBER(nvmlDeviceGetPowerManagementMode, NVML_FEATURE_ENABLED)
GET_NUMBER(nvmlDeviceGetPowerManagementLimit, gpu.power_limit_mw)
GET_NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, gpu.power_limit_default_mw)
GET_NUMBER(nvmlDeviceGetEnforcedPowerLimit, gpu.power_limit_mw)
GET_PAIR_IF(nvmlDeviceGetPowerManagementLimitConstraints, true, gpu.power_limit_min_mw,
	    gpu.power_limit_max_mw)
GET_NUMBER_IF(nvmlDeviceGetTotalEnergyConsumption, uint64_t, true, gpu.energy_mj)
GET_NUMBER(nvmlDeviceGetPerformanceState, gpu.pstate)
GET_NUMBER(nvmlDeviceGetPowerState, gpu.pstate)
GET_NUMBER(nvmlDeviceGetPowerSource, 0) // mains
GET_NUMBER(nvmlDeviceGetNumFans, 0)     // passive boards, the server has the fans
GET_NUMBER_IF(nvmlDeviceGetCurrentClocksThrottleReasons, uint64_t, true, gpu.throttle_reasons)
GET_NUMBER_IF(nvmlDeviceGetSupportedClocksThrottleReasons, uint64_t, true, THROTTLE_ALL)
NVML_ALIAS(nvmlDeviceGetCurrentClocksEventReasons,
	   (const struct nvml_device *device, uint64_t *ret_value),
	   nvmlDeviceGetCurrentClocksThrottleReasons);
NVML_ALIAS(nvmlDeviceGetSupportedClocksEventReasons,
	   (const struct nvml_device *device, uint64_t *ret_value),
	   nvmlDeviceGetSupportedClocksThrottleReasons);

NVML_CALL(nvmlDeviceGetSupportedPerformanceStates,
	  (const struct nvml_device *device, uint32_t *ret_pstates, uint32_t size_bytes))
{
	enum { PSTATE_LIST_MAX = 16 };
	struct wire_gpu gpu;
	uint32_t room = size_bytes / (uint32_t)sizeof(*ret_pstates);

	if (ret_pstates == NULL || room == 0)
		return client_bad_argument();
	nvml_return result = client_gpu(device, "nvmlDeviceGetSupportedPerformanceStates", &gpu);
	if (result != NVML_SUCCESS)
		return result;
	for (uint32_t i = 0; i < room && i < PSTATE_LIST_MAX; i++)
		ret_pstates[i] = i == 0 ? 0 : PSTATE_UNKNOWN;
	return NVML_SUCCESS;
}

NVML_CALL(nvmlDeviceGetTemperature,
	  (const struct nvml_device *device, uint32_t sensor, uint32_t *ret_temperature_c))
{
	struct wire_gpu gpu;

	if (ret_temperature_c == NULL || sensor != NVML_TEMPERATURE_GPU)
		return client_bad_argument();
	nvml_return result = client_gpu(device, "nvmlDeviceGetTemperature", &gpu);
	if (result == NVML_SUCCESS)
		*ret_temperature_c = (uint32_t)gpu.temp_c;
	return result;
}

NVML_CALL(nvmlDeviceGetTemperatureV,
	  (const struct nvml_device *device, struct nvml_temperature_v1 *ret_temperature))
{
	struct wire_gpu gpu;

	if (ret_temperature == NULL)
		return client_bad_argument();
	if (ret_temperature->version != NVML_STRUCT_VERSION(struct nvml_temperature_v1, 1))
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (ret_temperature->sensor != NVML_TEMPERATURE_GPU)
		return client_bad_argument();
	nvml_return result = client_gpu(device, "nvmlDeviceGetTemperatureV", &gpu);
	if (result == NVML_SUCCESS)
		ret_temperature->temperature_c = gpu.temp_c;
	return result;
}

NVML_CALL(nvmlDeviceGetTemperatureThreshold,
	  (const struct nvml_device *device, uint32_t threshold, uint32_t *ret_temperature_c))
{
	struct wire_gpu gpu;

	if (ret_temperature_c == NULL)
		return client_bad_argument();
	nvml_return result = client_gpu(device, "nvmlDeviceGetTemperatureThreshold", &gpu);
	if (result != NVML_SUCCESS)
		return result;
	const int32_t by_threshold[] = {
		[NVML_TEMPERATURE_THRESHOLD_SHUTDOWN] = gpu.temp_shutdown_c,
		[NVML_TEMPERATURE_THRESHOLD_SLOWDOWN] = gpu.temp_slowdown_c,
		[NVML_TEMPERATURE_THRESHOLD_MEM_MAX] = gpu.temp_memory_max_c,
		[NVML_TEMPERATURE_THRESHOLD_GPU_MAX] = gpu.temp_gpu_max_c,
	};
	if (threshold >= sizeof(by_threshold) / sizeof(by_threshold[0]))
		return NVML_ERROR_NOT_SUPPORTED;
	if (threshold == NVML_TEMPERATURE_THRESHOLD_MEM_MAX && !gpu.has_memory_temp)
		return NVML_ERROR_NOT_SUPPORTED;
	*ret_temperature_c = (uint32_t)by_threshold[threshold];
	return NVML_SUCCESS;
}

NVML_CALL(nvmlDeviceGetMarginTemperature,
	  (const struct nvml_device *device, struct nvml_margin_temperature *ret_margin))
{
	struct wire_gpu gpu;

	if (ret_margin == NULL)
		return client_bad_argument();
	if (ret_margin->version != NVML_STRUCT_VERSION(struct nvml_margin_temperature, 1))
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	nvml_return result = client_gpu(device, "nvmlDeviceGetMarginTemperature", &gpu);
	if (result == NVML_SUCCESS)
		ret_margin->margin_c = gpu.temp_gpu_max_c - gpu.temp_c;
	return result;
}

NVML_CALL(nvmlDeviceGetThermalSettings, (const struct nvml_device *device, uint32_t sensor,
					 struct nvml_thermal_settings *ret_settings))
{
	enum { ONE_SENSOR = 0, ALL_SENSORS = 15, CONTROLLER_INTERNAL = 1, TARGET_GPU = 1 };
	struct wire_gpu gpu;

	if (ret_settings == NULL || (sensor != ONE_SENSOR && sensor != ALL_SENSORS))
		return client_bad_argument();
	nvml_return result = client_gpu(device, "nvmlDeviceGetThermalSettings", &gpu);
	if (result != NVML_SUCCESS)
		return result;
	memset(ret_settings, 0, sizeof(*ret_settings));
	ret_settings->count = 1;
	ret_settings->sensor[0].controller = CONTROLLER_INTERNAL;
	ret_settings->sensor[0].default_max_c = gpu.temp_shutdown_c;
	ret_settings->sensor[0].current_c = gpu.temp_c;
	ret_settings->sensor[0].target = TARGET_GPU;
	return NVML_SUCCESS;
}

static nvml_return clock_of(const struct nvml_device *device, const char *call, uint32_t type,
			    bool is_max, uint32_t *ret_mhz)
{
	struct wire_gpu gpu;

	if (ret_mhz == NULL || type > NVML_CLOCK_VIDEO)
		return client_bad_argument();
	nvml_return result = client_gpu(device, call, &gpu);
	if (result == NVML_SUCCESS)
		*ret_mhz = is_max ? gpu.clock_max_mhz[type] : gpu.clock_mhz[type];
	return result;
}

#define GET_CLOCK(name, is_max)                                                                    \
	NVML_CALL(name, (const struct nvml_device *device, uint32_t type, uint32_t *ret_mhz))      \
	{                                                                                          \
		return clock_of(device, #name, type, is_max, ret_mhz);                             \
	}
GET_CLOCK(nvmlDeviceGetClockInfo, false)
GET_CLOCK(nvmlDeviceGetMaxClockInfo, true)
GET_CLOCK(nvmlDeviceGetApplicationsClock, true)
GET_CLOCK(nvmlDeviceGetDefaultApplicationsClock, true)
GET_CLOCK(nvmlDeviceGetMaxCustomerBoostClock, true)

NVML_CALL(nvmlDeviceGetClock,
	  (const struct nvml_device *device, uint32_t type, uint32_t id, uint32_t *ret_mhz))
{
	enum { ID_CURRENT = 0, ID_COUNT = 4 };

	if (id >= ID_COUNT)
		return client_bad_argument();
	return clock_of(device, "nvmlDeviceGetClock", type, id != ID_CURRENT, ret_mhz);
}

NVML_CALL(nvmlDeviceGetSupportedMemoryClocks,
	  (const struct nvml_device *device, uint32_t *count, uint32_t *ret_mhz))
{
	struct wire_gpu gpu;

	if (count == NULL)
		return client_bad_argument();
	nvml_return result = client_gpu(device, "nvmlDeviceGetSupportedMemoryClocks", &gpu);
	if (result != NVML_SUCCESS)
		return result;
	uint32_t room = ret_mhz == NULL ? 0 : *count;
	*count = 1;
	if (room < 1)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	ret_mhz[0] = gpu.clock_max_mhz[NVML_CLOCK_MEM];
	return NVML_SUCCESS;
}

NVML_CALL(nvmlDeviceGetSupportedGraphicsClocks,
	  (const struct nvml_device *device, uint32_t memory_mhz, uint32_t *count,
	   uint32_t *ret_mhz))
{
	struct wire_gpu gpu;

	if (count == NULL)
		return client_bad_argument();
	nvml_return result = client_gpu(device, "nvmlDeviceGetSupportedGraphicsClocks", &gpu);
	if (result != NVML_SUCCESS)
		return result;
	if (memory_mhz != gpu.clock_max_mhz[NVML_CLOCK_MEM])
		return NVML_ERROR_NOT_FOUND;
	uint32_t high = gpu.clock_max_mhz[NVML_CLOCK_GRAPHICS];
	uint32_t have = high / CLOCK_STEP_MHZ / 2 + 1;
	uint32_t room = ret_mhz == NULL ? 0 : *count;
	*count = have;
	if (room < have)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	for (uint32_t i = 0; i < have; i++)
		ret_mhz[i] = high - i * CLOCK_STEP_MHZ;
	return NVML_SUCCESS;
}
