// SPDX-License-Identifier: Apache-2.0
// Settings of a GPU that hold until the next driver: power limit, clocks, ECC mode. The daemon
// decides who may and what is possible.
#include "emulator/lib/abi_gpm.h"
#include "emulator/lib/client.h"

static nvml_return set(const struct nvml_device *device, const char *call,
		       enum wire_setting setting, uint32_t value, uint32_t second)
{
	struct wire_request request = client_request(WIRE_SET, call);
	struct wire_reply reply;

	if (!client_slot(device, &request.slot))
		return client_bad_argument();
	request.args[0] = setting;
	request.args[1] = value;
	request.args[2] = second;
	return client_ask_once(&request, &reply);
}

NVML_CALL(nvmlDeviceSetPowerManagementLimit, (const struct nvml_device *device, uint32_t limit_mw))
{
	return set(device, "nvmlDeviceSetPowerManagementLimit", WIRE_SET_POWER_LIMIT, limit_mw, 0);
}

NVML_CALL(nvmlDeviceSetPowerManagementLimit_v2,
	  (const struct nvml_device *device, const struct nvml_power_value_v2 *value))
{
	if (value == NULL)
		return client_bad_argument();
	if (value->version != NVML_STRUCT_VERSION(*value, 2))
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (value->scope != 0)
		return NVML_ERROR_NOT_SUPPORTED;
	return set(device, "nvmlDeviceSetPowerManagementLimit_v2", WIRE_SET_POWER_LIMIT,
		   value->power_mw, 0);
}

NVML_CALL(nvmlDeviceSetGpuLockedClocks,
	  (const struct nvml_device *device, uint32_t low_mhz, uint32_t high_mhz))
{
	return low_mhz == 0 && high_mhz == 0 ? client_bad_argument()
					     : set(device, "nvmlDeviceSetGpuLockedClocks",
						   WIRE_SET_CLOCKS, low_mhz, high_mhz);
}

NVML_CALL(nvmlDeviceResetGpuLockedClocks, (const struct nvml_device *device))
{
	return set(device, "nvmlDeviceResetGpuLockedClocks", WIRE_SET_CLOCKS, 0, 0);
}

NVML_CALL(nvmlDeviceSetEccMode, (const struct nvml_device *device, uint32_t mode))
{
	return set(device, "nvmlDeviceSetEccMode", WIRE_SET_ECC_MODE, mode, 0);
}

NVML_CALL(nvmlDeviceClearEccErrorCounts, (const struct nvml_device *device, uint32_t counter))
{
	return set(device, "nvmlDeviceClearEccErrorCounts", WIRE_SET_ECC_CLEAR, counter, 0);
}
