// SPDX-License-Identifier: Apache-2.0
// Start, end, versions, and from names to handles.
#include "emulator/lib/abi_more.h"
#include "emulator/lib/client.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

NVML_CALL(nvmlInit_v2, (void)) { return client_init("nvmlInit_v2"); }
NVML_CALL(nvmlInit, (void)) { return client_init("nvmlInit"); }

NVML_CALL(nvmlInitWithFlags, (uint32_t flags))
{
	(void)flags; // "no GPUs" and "no attach" are both fine with us
	return client_init("nvmlInitWithFlags");
}

NVML_CALL(nvmlShutdown, (void)) { return client_shutdown(); }

NVML_EXPORT const char *nvmlErrorString(nvml_return result);
const char *nvmlErrorString(nvml_return result)
{
	static const struct {
		enum nvml_return code;
		const char *text;
	} TEXTS[] = {
		{ NVML_SUCCESS, "Success" },
		{ NVML_ERROR_UNINITIALIZED, "Uninitialized" },
		{ NVML_ERROR_INVALID_ARGUMENT, "Invalid Argument" },
		{ NVML_ERROR_NOT_SUPPORTED, "Not Supported" },
		{ NVML_ERROR_NO_PERMISSION, "Insufficient Permissions" },
		{ NVML_ERROR_NOT_FOUND, "Not Found" },
		{ NVML_ERROR_INSUFFICIENT_SIZE, "Insufficient Size" },
		{ NVML_ERROR_DRIVER_NOT_LOADED, "Driver Not Loaded" },
		{ NVML_ERROR_TIMEOUT, "Timeout" },
		{ NVML_ERROR_FUNCTION_NOT_FOUND, "Function Not Found" },
		{ NVML_ERROR_GPU_IS_LOST, "GPU is lost" },
		{ NVML_ERROR_RESET_REQUIRED, "GPU requires reset" },
		{ NVML_ERROR_LIB_RM_VERSION_MISMATCH, "Driver/library version mismatch" },
		{ NVML_ERROR_IN_USE, "In use by another client" },
		{ NVML_ERROR_MEMORY, "Insufficient Memory" },
		{ NVML_ERROR_ARGUMENT_VERSION_MISMATCH, "Argument version mismatch" },
		{ NVML_ERROR_GPU_NOT_FOUND, "GPU not found" },
	};

	for (size_t i = 0; i < sizeof(TEXTS) / sizeof(TEXTS[0]); i++)
		if (TEXTS[i].code == result)
			return TEXTS[i].text;
	return "Unknown Error";
}

NVML_CALL(nvmlSystemGetDriverVersion, (char *ret_text, uint32_t size_bytes))
{
	struct wire_system system;

	if (ret_text == NULL)
		return client_bad_argument();
	nvml_return result = client_system("nvmlSystemGetDriverVersion", &system);
	return result != NVML_SUCCESS ? result : client_text(system.driver, ret_text, size_bytes);
}

NVML_CALL(nvmlSystemGetNVMLVersion, (char *ret_text, uint32_t size_bytes))
{
	struct wire_system system;
	char text[WIRE_TEXT_MAX + 12];

	if (ret_text == NULL)
		return client_bad_argument();
	nvml_return result = client_system("nvmlSystemGetNVMLVersion", &system);
	if (result != NVML_SUCCESS)
		return result;
	snprintf(text, sizeof(text), "%u.%s", system.cuda_version / 1000, system.driver);
	return client_text(text, ret_text, size_bytes);
}

NVML_CALL(nvmlSystemGetDriverBranch, (struct nvml_driver_branch * ret, uint32_t size_bytes))
{
	struct wire_system system;
	char text[32];

	if (ret == NULL)
		return client_bad_argument();
	nvml_return result = client_system("nvmlSystemGetDriverBranch", &system);
	if (result != NVML_SUCCESS)
		return result;
	snprintf(text, sizeof(text), "r%lu_00", strtoul(system.driver, NULL, 10));
	uint32_t room = size_bytes < sizeof(ret->branch) ? size_bytes : sizeof(ret->branch);
	return client_text(text, ret->branch, room);
}

NVML_CALL(nvmlSystemGetCudaDriverVersion, (int32_t * ret_version))
{
	struct wire_system system;

	if (ret_version == NULL)
		return client_bad_argument();
	nvml_return result = client_system("nvmlSystemGetCudaDriverVersion", &system);
	if (result == NVML_SUCCESS)
		*ret_version = (int32_t)system.cuda_version;
	return result;
}
NVML_ALIAS(nvmlSystemGetCudaDriverVersion_v2, (int32_t * ret_version),
	   nvmlSystemGetCudaDriverVersion);

NVML_CALL(nvmlSystemGetProcessName, (uint32_t pid, char *ret_text, uint32_t size_bytes))
{
	struct wire_system system;
	char path[64], text[256];

	if (ret_text == NULL || size_bytes == 0)
		return client_bad_argument();
	nvml_return result = client_system("nvmlSystemGetProcessName", &system);
	if (result != NVML_SUCCESS)
		return result;
	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NVML_ERROR_NOT_FOUND;
	ssize_t got = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (got <= 0)
		return NVML_ERROR_NOT_FOUND;
	text[got] = 0; // the program ends at the first zero, its arguments follow
	snprintf(ret_text, size_bytes, "%s", text);
	return NVML_SUCCESS;
}

static nvml_return none(const char *call, uint32_t *ret_count)
{
	struct wire_system system;

	if (ret_count == NULL)
		return client_bad_argument();
	nvml_return result = client_system(call, &system);
	if (result == NVML_SUCCESS)
		*ret_count = 0;
	return result;
}

NVML_CALL(nvmlUnitGetCount, (uint32_t * ret_count)) { return none("nvmlUnitGetCount", ret_count); }

NVML_CALL(nvmlGetExcludedDeviceCount, (uint32_t * ret_count))
{
	return none("nvmlGetExcludedDeviceCount", ret_count);
}

NVML_CALL(nvmlDeviceGetCount_v2, (uint32_t * ret_count))
{
	struct wire_system system;

	if (ret_count == NULL)
		return client_bad_argument();
	nvml_return result = client_system("nvmlDeviceGetCount_v2", &system);
	if (result == NVML_SUCCESS)
		*ret_count = system.gpu_count;
	return result;
}
NVML_ALIAS(nvmlDeviceGetCount, (uint32_t * ret_count), nvmlDeviceGetCount_v2);

NVML_CALL(nvmlDeviceGetHandleByIndex_v2, (uint32_t index, struct nvml_device **ret_device))
{
	return client_find(WIRE_FIND_INDEX, index, "", "nvmlDeviceGetHandleByIndex_v2", ret_device);
}
NVML_ALIAS(nvmlDeviceGetHandleByIndex, (uint32_t index, struct nvml_device **ret_device),
	   nvmlDeviceGetHandleByIndex_v2);

NVML_CALL(nvmlDeviceGetHandleByUUID, (const char *uuid, struct nvml_device **ret_device))
{
	if (uuid == NULL)
		return client_bad_argument();
	return client_find(WIRE_FIND_UUID, 0, uuid, "nvmlDeviceGetHandleByUUID", ret_device);
}

NVML_CALL(nvmlDeviceGetHandleByUUIDV,
	  (const struct nvml_uuid *uuid, struct nvml_device **ret_device))
{
	enum { TYPE_TEXT = 1 };

	if (uuid == NULL)
		return client_bad_argument();
	if (uuid->version != NVML_STRUCT_VERSION(struct nvml_uuid, 1))
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (uuid->type != TYPE_TEXT || memchr(uuid->text, 0, sizeof(uuid->text)) == NULL)
		return client_bad_argument();
	return client_find(WIRE_FIND_UUID, 0, uuid->text, "nvmlDeviceGetHandleByUUIDV", ret_device);
}

NVML_CALL(nvmlDeviceGetHandleBySerial, (const char *serial, struct nvml_device **ret_device))
{
	if (serial == NULL)
		return client_bad_argument();
	return client_find(WIRE_FIND_SERIAL, 0, serial, "nvmlDeviceGetHandleBySerial", ret_device);
}

NVML_CALL(nvmlDeviceGetHandleByPciBusId_v2, (const char *bus_id, struct nvml_device **ret_device))
{
	if (bus_id == NULL)
		return client_bad_argument();
	return client_find(WIRE_FIND_PCI, 0, bus_id, "nvmlDeviceGetHandleByPciBusId_v2",
			   ret_device);
}
NVML_ALIAS(nvmlDeviceGetHandleByPciBusId, (const char *bus_id, struct nvml_device **ret_device),
	   nvmlDeviceGetHandleByPciBusId_v2);
