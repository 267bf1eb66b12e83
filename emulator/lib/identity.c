// SPDX-License-Identifier: Apache-2.0
// What a device is: names, addresses, capabilities, modes that never change here.
#include "emulator/lib/abi_more.h"
#include "emulator/lib/client_mig.h"
#include "emulator/lib/getter.h"
#include "emulator/mig_compute.h"

#include <stdio.h>
#include <string.h>

enum { NUMA_CORES_MAX = 1024 };

// A MIG device has a name, UUID and index of its own.
NVML_CALL(nvmlDeviceGetName,
	  (const struct nvml_device *device, char *ret_text, uint32_t size_bytes))
{
	static const char CALL[] = "nvmlDeviceGetName";
	struct client_instance instance;
	struct wire_gpu gpu;
	char text[2 * WIRE_TEXT_MAX], part[64];

	if (ret_text == NULL)
		return client_bad_argument();
	if (!client_is_mig(device)) {
		nvml_return result = client_gpu(device, CALL, &gpu);
		return result != NVML_SUCCESS ? result
					      : client_text(gpu.name, ret_text, size_bytes);
	}
	nvml_return result = client_mig_instance(device, CALL, &instance);
	if (result == NVML_SUCCESS)
		result = client_gpu(client_device(instance.place.slot), CALL, &gpu);
	if (result != NVML_SUCCESS)
		return result;
	mig_compute_name(instance.profile->name, instance.profile->slices, instance.ci->size, part,
			 sizeof(part));
	snprintf(text, sizeof(text), "%s MIG %s", gpu.name, part);
	return client_text(text, ret_text, size_bytes);
}

NVML_CALL(nvmlDeviceGetUUID,
	  (const struct nvml_device *device, char *ret_text, uint32_t size_bytes))
{
	static const char CALL[] = "nvmlDeviceGetUUID";
	struct client_instance instance;
	struct wire_gpu gpu;
	bool is_mig = client_is_mig(device);

	if (ret_text == NULL)
		return client_bad_argument();
	nvml_return result = is_mig ? client_mig_instance(device, CALL, &instance)
				    : client_gpu(device, CALL, &gpu);
	if (result != NVML_SUCCESS)
		return result;
	return client_text(is_mig ? instance.ci->uuid : gpu.uuid, ret_text, size_bytes);
}

NVML_CALL(nvmlDeviceGetIndex, (const struct nvml_device *device, uint32_t *ret_index))
{
	static const char CALL[] = "nvmlDeviceGetIndex";
	struct client_instance instance;
	struct wire_gpu gpu;
	bool is_mig = client_is_mig(device);

	if (ret_index == NULL)
		return client_bad_argument();
	nvml_return result = is_mig ? client_mig_instance(device, CALL, &instance)
				    : client_gpu(device, CALL, &gpu);
	if (result == NVML_SUCCESS)
		*ret_index = is_mig ? instance.index : gpu.index;
	return result;
}

GET_TEXT(nvmlDeviceGetSerial, gpu.serial)
GET_TEXT(nvmlDeviceGetBoardPartNumber, gpu.part_number)
GET_TEXT(nvmlDeviceGetVbiosVersion, gpu.vbios)
GET_NUMBER(nvmlDeviceGetMinorNumber, gpu.minor)
GET_NUMBER(nvmlDeviceGetBrand, NVML_BRAND_NVIDIA)
GET_NUMBER(nvmlDeviceGetBoardId, gpu.board_id)
GET_NUMBER(nvmlDeviceGetMultiGpuBoard, 0)
GET_NUMBER(nvmlDeviceGetArchitecture, gpu.architecture)
GET_NUMBER(nvmlDeviceGetBusType, NVML_BUS_TYPE_PCIE)
GET_NUMBER(nvmlDeviceGetNumGpuCores, gpu.core_count)
GET_NUMBER(nvmlDeviceGetMemoryBusWidth, gpu.memory_bus_bits)
GET_NUMBER(nvmlDeviceGetDisplayMode, NVML_FEATURE_DISABLED)
GET_NUMBER(nvmlDeviceGetDisplayActive, NVML_FEATURE_DISABLED)
GET_NUMBER(nvmlDeviceGetPersistenceMode, NVML_FEATURE_ENABLED)
GET_NUMBER(nvmlDeviceGetComputeMode, 0)
GET_NUMBER(nvmlDeviceGetVirtualizationMode, 0)
GET_NUMBER(nvmlDeviceGetModuleId, gpu.index)
GET_NUMBER(nvmlDeviceGetAccountingMode, NVML_FEATURE_DISABLED)
GET_NUMBER(nvmlDeviceGetAccountingBufferSize, 4000)
GET_PAIR_IF(nvmlDeviceGetGspFirmwareMode, true, 1, 1)
// In NVML's order: major, minor.
NVML_CALL(nvmlDeviceGetCudaComputeCapability,
	  (const struct nvml_device *device, int32_t *ret_major, int32_t *ret_minor))
{
	struct wire_gpu gpu;

	if (ret_major == NULL || ret_minor == NULL)
		return client_bad_argument();
	nvml_return result = client_parent(device, "nvmlDeviceGetCudaComputeCapability", &gpu);
	if (result != NVML_SUCCESS)
		return result;
	*ret_major = (int32_t)gpu.compute_major;
	*ret_minor = (int32_t)gpu.compute_minor;
	return NVML_SUCCESS;
}

// The interface passes no size; callers provide 64 bytes.
NVML_CALL(nvmlDeviceGetGspFirmwareVersion, (const struct nvml_device *device, char *ret_text))
{
	enum { GSP_VERSION_MAX = 64 };
	struct wire_gpu gpu;
	struct wire_system system;

	if (ret_text == NULL)
		return client_bad_argument();
	nvml_return result = client_gpu(device, "nvmlDeviceGetGspFirmwareVersion", &gpu);
	if (result == NVML_SUCCESS)
		result = client_system("nvmlDeviceGetGspFirmwareVersion", &system);
	return result != NVML_SUCCESS ? result
				      : client_text(system.driver, ret_text, GSP_VERSION_MAX);
}

NVML_CALL(nvmlDeviceGetPciInfo_v3,
	  (const struct nvml_device *device, struct nvml_pci_info *ret_info))
{
	struct wire_gpu gpu;

	if (ret_info == NULL)
		return client_bad_argument();
	nvml_return result = client_parent(device, "nvmlDeviceGetPciInfo_v3", &gpu);
	if (result != NVML_SUCCESS)
		return result;
	struct nvml_pci_info info = { .domain = gpu.pci_domain,
				      .bus = gpu.pci_bus,
				      .device = gpu.pci_device,
				      .pci_device_id = gpu.pci_device_id,
				      .pci_subsystem_id = gpu.pci_subsystem_id };
	snprintf(info.bus_id_legacy, sizeof(info.bus_id_legacy), "%04X:%02X:%02X.0",
		 gpu.pci_domain & 0xffff, gpu.pci_bus & 0xff, gpu.pci_device & 0xff);
	snprintf(info.bus_id, sizeof(info.bus_id), "%08X:%02X:%02X.0", gpu.pci_domain,
		 gpu.pci_bus & 0xff, gpu.pci_device & 0xff);
	*ret_info = info;
	return NVML_SUCCESS;
}

NVML_CALL(nvmlDeviceGetPciInfo_v2,
	  (const struct nvml_device *device, struct nvml_pci_info_v2 *ret_info))
{
	struct nvml_pci_info info;

	if (ret_info == NULL)
		return client_bad_argument();
	nvml_return result = nvmlDeviceGetPciInfo_v3(device, &info);
	if (result != NVML_SUCCESS)
		return result;
	*ret_info = (struct nvml_pci_info_v2){ .domain = info.domain,
					       .bus = info.bus,
					       .device = info.device,
					       .pci_device_id = info.pci_device_id,
					       .pci_subsystem_id = info.pci_subsystem_id };
	memcpy(ret_info->bus_id, info.bus_id_legacy, sizeof(ret_info->bus_id));
	return NVML_SUCCESS;
}
NVML_ALIAS(nvmlDeviceGetPciInfo,
	   (const struct nvml_device *device, struct nvml_pci_info_v2 *ret_info),
	   nvmlDeviceGetPciInfo_v2);

NVML_CALL(nvmlDeviceGetPciInfoExt,
	  (const struct nvml_device *device, struct nvml_pci_info_ext *ret_info))
{
	enum { CLASS_DISPLAY = 3, SUBCLASS_3D = 2 };
	struct nvml_pci_info info;

	if (ret_info == NULL)
		return client_bad_argument();
	if (ret_info->version != NVML_STRUCT_VERSION(struct nvml_pci_info_ext, 1))
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	nvml_return result = nvmlDeviceGetPciInfo_v3(device, &info);
	if (result != NVML_SUCCESS)
		return result;
	ret_info->domain = info.domain;
	ret_info->bus = info.bus;
	ret_info->device = info.device;
	ret_info->pci_device_id = info.pci_device_id;
	ret_info->pci_subsystem_id = info.pci_subsystem_id;
	ret_info->base_class = CLASS_DISPLAY;
	ret_info->sub_class = SUBCLASS_3D;
	memcpy(ret_info->bus_id, info.bus_id, sizeof(ret_info->bus_id));
	return NVML_SUCCESS;
}

static void set_bits(unsigned long *set, uint32_t word_count, uint32_t from, uint32_t to)
{
	enum { WORD_BITS = sizeof(*set) * 8 };

	memset(set, 0, word_count * sizeof(*set));
	for (uint32_t bit = from; bit < to && bit / WORD_BITS < word_count; bit++)
		set[bit / WORD_BITS] |= 1UL << bit % WORD_BITS;
}

// The processors of the machine are dealt out to its NUMA nodes in order.
NVML_CALL(nvmlDeviceGetCpuAffinityWithinScope,
	  (const struct nvml_device *device, uint32_t word_count, unsigned long *ret_set,
	   uint32_t scope))
{
	struct wire_gpu gpu;
	struct wire_system system;

	if (ret_set == NULL || word_count == 0 || scope > 1)
		return client_bad_argument();
	nvml_return result = client_gpu(device, "nvmlDeviceGetCpuAffinityWithinScope", &gpu);
	if (result == NVML_SUCCESS)
		result = client_system("nvmlDeviceGetCpuAffinityWithinScope", &system);
	if (result != NVML_SUCCESS)
		return result;
	if (system.numa_count == 0 || system.cpu_count > NUMA_CORES_MAX)
		return NVML_ERROR_UNKNOWN;
	uint32_t each = system.cpu_count / system.numa_count;
	set_bits(ret_set, word_count, gpu.numa * each, (gpu.numa + 1) * each);
	return NVML_SUCCESS;
}

NVML_CALL(nvmlDeviceGetCpuAffinity,
	  (const struct nvml_device *device, uint32_t word_count, unsigned long *ret_set))
{
	return nvmlDeviceGetCpuAffinityWithinScope(device, word_count, ret_set, 0);
}

NVML_CALL(nvmlDeviceGetMemoryAffinity, (const struct nvml_device *device, uint32_t word_count,
					unsigned long *ret_set, uint32_t scope))
{
	struct wire_gpu gpu;

	if (ret_set == NULL || word_count == 0 || scope > 1)
		return client_bad_argument();
	nvml_return result = client_gpu(device, "nvmlDeviceGetMemoryAffinity", &gpu);
	if (result == NVML_SUCCESS)
		set_bits(ret_set, word_count, gpu.numa, gpu.numa + 1);
	return result;
}
