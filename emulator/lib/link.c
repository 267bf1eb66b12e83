// SPDX-License-Identifier: Apache-2.0
// How devices are joined: PCIe, NVLink through switches, distance between two GPUs.
#include "emulator/lib/abi_more.h"
#include "emulator/lib/getter.h"

#include <stdio.h>
#include <string.h>

enum {
	LINK_MAX = 36,
	LINK_CAP_COUNT = 6,
	LINK_ERROR_COUNT = 5,
	DEVICE_TYPE_GPU = 0,
	DEVICE_TYPE_SWITCH = 2,
	SWITCH_BUS_FIRST = 0xe0,
	P2P_OK = 0,
	P2P_NOT_SUPPORTED = 5,
	P2P_NVLINK = 2,
	P2P_INDEX_COUNT = 5,
};

// Transfers of one lane in millions a second, by generation.
static uint32_t lane_mt_s(uint32_t generation)
{
	static const uint32_t RATES[] = { 2500, 5000, 8000, 16000, 32000, 64000 };
	enum { GENERATION_MAX = sizeof(RATES) / sizeof(RATES[0]) };

	return generation >= 1 && generation <= GENERATION_MAX ? RATES[generation - 1] : 0;
}

GET_NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, gpu.pcie_gen_max)
GET_NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, gpu.pcie_gen_max)
GET_NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, gpu.pcie_gen_max)
GET_NUMBER(nvmlDeviceGetCurrPcieLinkWidth, gpu.pcie_width)
GET_NUMBER(nvmlDeviceGetMaxPcieLinkWidth, gpu.pcie_width)
GET_NUMBER(nvmlDeviceGetPcieReplayCounter, 0)
GET_NUMBER(nvmlDeviceGetPcieSpeed, lane_mt_s(gpu.pcie_gen_max))

// An enumeration: 1 is 2.5 GT/s of generation 1, and so on.
GET_NUMBER(nvmlDeviceGetPcieLinkMaxSpeed, gpu.pcie_gen_max)

NVML_CALL(nvmlDeviceGetPcieThroughput,
	  (const struct nvml_device *device, uint32_t counter, uint32_t *ret_kib_s))
{
	struct wire_gpu gpu;

	if (ret_kib_s == NULL || counter > NVML_PCIE_UTIL_RX_BYTES)
		return client_bad_argument();
	nvml_return result = client_gpu(device, "nvmlDeviceGetPcieThroughput", &gpu);
	if (result == NVML_SUCCESS)
		*ret_kib_s = counter == NVML_PCIE_UTIL_TX_BYTES ? gpu.pcie_tx_kib_s
								: gpu.pcie_rx_kib_s;
	return result;
}

static nvml_return link_of(const struct nvml_device *device, const char *call, uint32_t link,
			   struct wire_gpu *ret_gpu)
{
	if (link >= LINK_MAX)
		return client_bad_argument();
	nvml_return result = client_gpu(device, call, ret_gpu);
	if (result != NVML_SUCCESS)
		return result;
	if (ret_gpu->nvlink_count == 0)
		return NVML_ERROR_NOT_SUPPORTED;
	return link < ret_gpu->nvlink_count ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

#define GET_OF_LINK(name, value)                                                                   \
	NVML_CALL(name, (const struct nvml_device *device, uint32_t link, uint32_t *ret_value))    \
	{                                                                                          \
		struct wire_gpu gpu;                                                               \
		if (ret_value == NULL)                                                             \
			return client_bad_argument();                                              \
		nvml_return result = link_of(device, #name, link, &gpu);                           \
		if (result == NVML_SUCCESS)                                                        \
			*ret_value = (value);                                                      \
		return result;                                                                     \
	}
GET_OF_LINK(nvmlDeviceGetNvLinkState,
	    client_link_up(&gpu) ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED)
GET_OF_LINK(nvmlDeviceGetNvLinkVersion, gpu.nvlink_version)
GET_OF_LINK(nvmlDeviceGetNvLinkRemoteDeviceType,
	    gpu.nvlink_switch_count > 0 ? DEVICE_TYPE_SWITCH : DEVICE_TYPE_GPU)

NVML_CALL(nvmlDeviceGetNvLinkCapability, (const struct nvml_device *device, uint32_t link,
					  uint32_t capability, uint32_t *ret_value))
{
	enum { CAP_SLI = 4 };
	struct wire_gpu gpu;

	if (ret_value == NULL || capability >= LINK_CAP_COUNT)
		return client_bad_argument();
	nvml_return result = link_of(device, "nvmlDeviceGetNvLinkCapability", link, &gpu);
	if (result == NVML_SUCCESS)
		*ret_value = capability == CAP_SLI ? 0 : 1;
	return result;
}

NVML_CALL(nvmlDeviceGetNvLinkErrorCounter,
	  (const struct nvml_device *device, uint32_t link, uint32_t counter, uint64_t *ret_count))
{
	struct wire_gpu gpu;

	if (ret_count == NULL || counter >= LINK_ERROR_COUNT)
		return client_bad_argument();
	nvml_return result = link_of(device, "nvmlDeviceGetNvLinkErrorCounter", link, &gpu);
	if (result == NVML_SUCCESS)
		*ret_count = 0;
	return result;
}

// Links are dealt to the switches in turn; a switch sits at a bus no GPU has.
NVML_CALL(nvmlDeviceGetNvLinkRemotePciInfo_v2,
	  (const struct nvml_device *device, uint32_t link, struct nvml_pci_info *ret_info))
{
	struct wire_gpu gpu;

	if (ret_info == NULL)
		return client_bad_argument();
	nvml_return result = link_of(device, "nvmlDeviceGetNvLinkRemotePciInfo_v2", link, &gpu);
	if (result != NVML_SUCCESS)
		return result;
	if (!client_link_up(&gpu))
		return NVML_ERROR_NOT_SUPPORTED;
	if (gpu.nvlink_switch_count == 0)
		return nvmlDeviceGetPciInfo_v3(client_device(gpu.nvlink_peer_slot), ret_info);
	struct nvml_pci_info info = { .bus = SWITCH_BUS_FIRST + link % gpu.nvlink_switch_count };
	snprintf(info.bus_id_legacy, sizeof(info.bus_id_legacy), "0000:%02X:00.0", info.bus & 0xff);
	snprintf(info.bus_id, sizeof(info.bus_id), "00000000:%02X:00.0", info.bus & 0xff);
	*ret_info = info;
	return NVML_SUCCESS;
}

NVML_CALL(nvmlDeviceGetNvLinkRemotePciInfo,
	  (const struct nvml_device *device, uint32_t link, struct nvml_pci_info_v2 *ret_info))
{
	struct nvml_pci_info info;

	if (ret_info == NULL)
		return client_bad_argument();
	nvml_return result = nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, &info);
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

// Two neighbours share a PCIe switch, a socket has a host bridge for each switch.
static uint32_t distance(const struct wire_gpu *a, const struct wire_gpu *b)
{
	if (a->slot == b->slot)
		return NVML_TOPOLOGY_INTERNAL;
	if (a->numa != b->numa)
		return NVML_TOPOLOGY_SYSTEM;
	return a->slot / 2 == b->slot / 2 ? NVML_TOPOLOGY_MULTIPLE : NVML_TOPOLOGY_NODE;
}

static nvml_return pair(const struct nvml_device *const devices[2], const char *call,
			struct wire_gpu ret[2])
{
	nvml_return result = client_gpu(devices[0], call, &ret[0]);

	return result != NVML_SUCCESS ? result : client_gpu(devices[1], call, &ret[1]);
}

NVML_CALL(nvmlDeviceGetTopologyCommonAncestor,
	  (const struct nvml_device *a, const struct nvml_device *b, uint32_t *ret_level))
{
	const struct nvml_device *const devices[2] = { a, b };
	struct wire_gpu gpus[2];

	if (ret_level == NULL)
		return client_bad_argument();
	nvml_return result = pair(devices, "nvmlDeviceGetTopologyCommonAncestor", gpus);
	if (result == NVML_SUCCESS)
		*ret_level = distance(&gpus[0], &gpus[1]);
	return result;
}

NVML_CALL(nvmlDeviceGetTopologyNearestGpus, (const struct nvml_device *device, uint32_t level,
					     uint32_t *count, struct nvml_device **ret_devices))
{
	static const char CALL[] = "nvmlDeviceGetTopologyNearestGpus";
	struct wire_gpu own, other;
	uint32_t have = 0;

	if (count == NULL)
		return client_bad_argument();
	nvml_return result = client_gpu(device, CALL, &own);
	if (result != NVML_SUCCESS)
		return result;
	for (uint32_t slot = 0; slot < WIRE_GPU_MAX; slot++) {
		if (slot == own.slot || client_gpu(client_device(slot), CALL, &other) != 0 ||
		    distance(&own, &other) > level)
			continue;
		if (ret_devices != NULL && have < *count)
			ret_devices[have] = client_device(slot);
		have++;
	}
	bool fits = ret_devices == NULL || have <= *count;
	*count = have;
	return fits ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

NVML_CALL(nvmlDeviceGetP2PStatus, (const struct nvml_device *a, const struct nvml_device *b,
				   uint32_t index, uint32_t *ret_status))
{
	const struct nvml_device *const devices[2] = { a, b };
	struct wire_gpu gpus[2];

	if (ret_status == NULL || index >= P2P_INDEX_COUNT)
		return client_bad_argument();
	nvml_return result = pair(devices, "nvmlDeviceGetP2PStatus", gpus);
	if (result != NVML_SUCCESS)
		return result;
	bool switched = gpus[0].nvlink_switch_count > 0 && gpus[1].nvlink_switch_count > 0;
	bool linked = switched || gpus[0].nvlink_peer_slot == gpus[1].slot;
	*ret_status = index == P2P_NVLINK && !linked ? P2P_NOT_SUPPORTED : P2P_OK;
	return NVML_SUCCESS;
}

NVML_CALL(nvmlDeviceOnSameBoard,
	  (const struct nvml_device *a, const struct nvml_device *b, int32_t *ret_is_same))
{
	const struct nvml_device *const devices[2] = { a, b };
	struct wire_gpu gpus[2];

	if (ret_is_same == NULL)
		return client_bad_argument();
	nvml_return result = pair(devices, "nvmlDeviceOnSameBoard", gpus);
	if (result == NVML_SUCCESS)
		*ret_is_same = gpus[0].slot == gpus[1].slot;
	return result;
}
