// SPDX-License-Identifier: Apache-2.0
// Functions that exist and say no. Their other parameters are never looked at, so one prototype
// serves all; an initialised library and a live GPU are asked for first, as the real one does,
// and faults injected into them work.
#include "emulator/lib/client.h"

#include "emulator/calls.h"

static nvml_return stub_device(const struct nvml_device *device, const char *call,
			       nvml_return answer)
{
	struct wire_gpu gpu;
	nvml_return result = client_gpu(device, call, &gpu);

	return result == NVML_SUCCESS ? answer : result;
}

static nvml_return stub_other(const char *call)
{
	struct wire_system system;
	nvml_return result = client_system(call, &system);

	return result == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : result;
}

#define STUB_GET(name)                                                                             \
	NVML_CALL(name, (const struct nvml_device *device))                                        \
	{                                                                                          \
		return stub_device(device, #name, NVML_ERROR_NOT_SUPPORTED);                       \
	}
#define STUB_SET(name)                                                                             \
	NVML_CALL(name, (const struct nvml_device *device))                                        \
	{                                                                                          \
		return stub_device(device, #name, NVML_ERROR_NO_PERMISSION);                       \
	}
#define STUB_OTHER(name)                                                                           \
	NVML_CALL(name, (void)) { return stub_other(#name); }

CALLS_STUB_GET(STUB_GET)
CALLS_STUB_SET(STUB_SET)
CALLS_STUB_OTHER(STUB_OTHER)
