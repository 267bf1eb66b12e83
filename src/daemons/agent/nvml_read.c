// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/nvml_read.h"

#include "gpu/health.h"

#include <stdio.h>

enum { CELSIUS_INVALID_ABOVE = 200, NVML_SAMPLES_MAX = 1024, FABRIC_COMPLETED = 3 };

static uint64_t read_memory_total(const struct nvml_lib *lib, struct nvml_device *device)
{
	struct nvml_memory_v2 v2 = { .version = NVML_STRUCT_VERSION(struct nvml_memory_v2, 2) };
	struct nvml_memory v1 = { 0 };
	if (lib->memory_v2 != NULL && lib->memory_v2(device, &v2) == NVML_SUCCESS)
		return v2.total_bytes;
	if (lib->memory != NULL && lib->memory(device, &v1) == NVML_SUCCESS)
		return v1.total_bytes;
	return 0;
}

// The clique of the NVLink fabric as its label is written; empty where there is none.
static void read_clique(const struct nvml_lib *lib, struct nvml_device *device,
			char out[GPU_CLIQUE_BYTES])
{
	struct nvml_fabric fabric = { .version = NVML_STRUCT_VERSION(struct nvml_fabric, 2) };
	if (lib->fabric == NULL || lib->fabric(device, &fabric) != NVML_SUCCESS ||
	    fabric.state != FABRIC_COMPLETED || fabric.status != NVML_SUCCESS)
		return;
	size_t len = 0;
	for (size_t i = 0; i < sizeof fabric.cluster_uuid; i++) {
		bool is_cut = i == 4 || i == 6 || i == 8 || i == 10;
		len += (size_t)snprintf(out + len, GPU_CLIQUE_BYTES - len, "%s%02x",
					is_cut ? "-" : "", fabric.cluster_uuid[i]);
	}
	(void)snprintf(out + len, GPU_CLIQUE_BYTES - len, ".%u", fabric.clique_id);
}

static void count_peer(struct gpu_info *info, const char *bus_id)
{
	uint32_t i = 0;
	while (i < info->link_count && strncmp(info->links[i].pci_bus_id, bus_id, 31) != 0)
		i++;
	if (i == GPU_LINKS_MAX)
		return;
	if (i == info->link_count) {
		(void)snprintf(info->links[i].pci_bus_id, sizeof info->links[i].pci_bus_id, "%.31s",
			       bus_id);
		info->link_count++;
	}
	info->links[i].count++;
}

// NVLinks that are up; asked once when the device is opened, for each call costs its time.
static void read_links(const struct nvml_lib *lib, struct nvml_device *device,
		       struct gpu_info *info)
{
	if (lib->link_state == NULL || lib->link_pci == NULL)
		return;
	for (uint32_t link = 0; link < NVML_NVLINK_MAX_LINKS; link++) {
		struct nvml_pci_info pci = { 0 };
		uint32_t is_up = NVML_FEATURE_DISABLED, type = NVML_NVLINK_TO_GPU;
		nvml_return result = lib->link_state(device, link, &is_up);
		if (result == NVML_ERROR_NOT_SUPPORTED && link == 0)
			return; // a part without NVLink
		if (result != NVML_SUCCESS || is_up != NVML_FEATURE_ENABLED)
			continue;
		if (lib->link_type != NULL)
			(void)lib->link_type(device, link, &type);
		if (type == NVML_NVLINK_TO_SWITCH)
			info->switch_links++;
		else if (type == NVML_NVLINK_TO_GPU &&
			 lib->link_pci(device, link, &pci) == NVML_SUCCESS)
			count_peer(info, pci.bus_id);
	}
}

nvml_return nvml_read_info(const struct nvml_lib *lib, struct nvml_device *device, uint32_t index,
			   struct gpu_info *ret)
{
	struct gpu_info info = { .index = index, .minor = index, .numa_node = -1 };
	struct nvml_pci_info pci = { 0 };
	int major = 0, minor = 0;
	uint32_t current = 0, pending = 0;
	nvml_return result = lib->uuid(device, info.uuid, sizeof info.uuid);
	if (result != NVML_SUCCESS)
		return result;
	if (lib->name != NULL)
		(void)lib->name(device, info.model, sizeof info.model);
	if (lib->minor != NULL)
		(void)lib->minor(device, &info.minor);
	if (lib->pci != NULL && lib->pci(device, &pci) == NVML_SUCCESS) {
		(void)snprintf(info.pci_bus_id, sizeof info.pci_bus_id, "%.31s", pci.bus_id);
		info.pci_device_id = pci.pci_device_id;
	}
	if (lib->compute != NULL && lib->compute(device, &major, &minor) == NVML_SUCCESS) {
		info.compute_major = (uint32_t)major;
		info.compute_minor = (uint32_t)minor;
	}
	// Parts without MIG answer "not supported".
	info.mig_capable = lib->mig_mode != NULL &&
			   lib->mig_mode(device, &current, &pending) == NVML_SUCCESS;
	info.mig_enabled = info.mig_capable && current == NVML_FEATURE_ENABLED;
	read_clique(lib, device, info.clique);
	read_links(lib, device, &info);
	info.memory_bytes = read_memory_total(lib, device);
	*ret = info;
	return NVML_SUCCESS;
}

static int32_t read_action(const struct nvml_lib *lib, struct nvml_device *device)
{
	struct nvml_field_value value = { .field_id = NVML_FI_DEV_GET_GPU_RECOVERY_ACTION };
	if (lib->field_values == NULL || lib->field_values(device, 1, &value) != NVML_SUCCESS ||
	    value.status != NVML_SUCCESS || value.value.uint_value > 64)
		return HEALTH_ACTION_UNKNOWN;
	return (int32_t)value.value.uint_value;
}

nvml_return nvml_read_probe(const struct nvml_lib *lib, struct nvml_device *device,
			    const char *uuid, struct nvml_probe *ret)
{
	char now[GPU_UUID_BYTES] = "";
	struct nvml_memory memory = { 0 };
	uint32_t celsius = 0;
	*ret = (struct nvml_probe){ .action = HEALTH_ACTION_UNKNOWN };
	nvml_return result = lib->uuid(device, now, sizeof now);
	if (result == NVML_SUCCESS && strcmp(now, uuid) != 0)
		result = NVML_ERROR_GPU_NOT_FOUND;
	// The UUID may come from a cache; these two ask the hardware.
	if (result == NVML_SUCCESS && lib->memory != NULL)
		result = lib->memory(device, &memory);
	if (result == NVML_SUCCESS && lib->temperature != NULL)
		result = lib->temperature(device, NVML_TEMPERATURE_GPU, &celsius);
	if (result == NVML_ERROR_NOT_SUPPORTED)
		result = NVML_SUCCESS;
	if (result == NVML_SUCCESS)
		ret->action = read_action(lib, device);
	else
		(void)snprintf(ret->text, sizeof ret->text, "%.60s (code %u)",
			       nvml_lib_error_text(lib, result), result);
	return result;
}

static void read_memory(const struct nvml_lib *lib, struct nvml_device *device,
			struct gpu_reading *ret)
{
	struct nvml_memory_v2 v2 = { .version = NVML_STRUCT_VERSION(struct nvml_memory_v2, 2) };
	struct nvml_memory v1 = { 0 };
	if (lib->memory_v2 != NULL && lib->memory_v2(device, &v2) == NVML_SUCCESS) {
		gpu_reading_set(ret, GPU_FIELD_FB_FREE_MIB, (int64_t)(v2.free_bytes >> 20));
		gpu_reading_set(ret, GPU_FIELD_FB_USED_MIB, (int64_t)(v2.used_bytes >> 20));
		gpu_reading_set(ret, GPU_FIELD_FB_RESERVED_MIB, (int64_t)(v2.reserved_bytes >> 20));
	} else if (lib->memory != NULL && lib->memory(device, &v1) == NVML_SUCCESS) {
		gpu_reading_set(ret, GPU_FIELD_FB_FREE_MIB, (int64_t)(v1.free_bytes >> 20));
		gpu_reading_set(ret, GPU_FIELD_FB_USED_MIB, (int64_t)(v1.used_bytes >> 20));
	}
}

static void read_use(const struct nvml_lib *lib, struct nvml_device *device,
		     struct gpu_reading *ret)
{
	struct nvml_utilization use = { 0 };
	uint32_t value = 0, period_us = 0;
	if (lib->utilization != NULL && lib->utilization(device, &use) == NVML_SUCCESS) {
		gpu_reading_set(ret, GPU_FIELD_UTIL_PERCENT, use.gpu_percent);
		gpu_reading_set(ret, GPU_FIELD_MEM_UTIL_PERCENT, use.memory_percent);
	}
	if (lib->encoder != NULL && lib->encoder(device, &value, &period_us) == NVML_SUCCESS)
		gpu_reading_set(ret, GPU_FIELD_ENC_UTIL_PERCENT, value);
	if (lib->decoder != NULL && lib->decoder(device, &value, &period_us) == NVML_SUCCESS)
		gpu_reading_set(ret, GPU_FIELD_DEC_UTIL_PERCENT, value);
}

static void read_memory_temperature(const struct nvml_lib *lib, struct nvml_device *device,
				    struct gpu_reading *ret)
{
	struct nvml_field_value value = { .field_id = NVML_FI_DEV_MEMORY_TEMP };
	if (lib->field_values == NULL || lib->field_values(device, 1, &value) != NVML_SUCCESS ||
	    value.status != NVML_SUCCESS || value.value.uint_value > CELSIUS_INVALID_ABOVE)
		return;
	gpu_reading_set(ret, GPU_FIELD_MEMORY_TEMP, value.value.uint_value);
}

static void read_rows(const struct nvml_lib *lib, struct nvml_device *device,
		      struct gpu_reading *ret)
{
	uint32_t corrected = 0, uncorrected = 0, pending = 0, failed = 0;
	if (lib->remapped_rows == NULL ||
	    lib->remapped_rows(device, &corrected, &uncorrected, &pending, &failed) != NVML_SUCCESS)
		return;
	gpu_reading_set(ret, GPU_FIELD_ROWS_CORRECTABLE, corrected);
	gpu_reading_set(ret, GPU_FIELD_ROWS_UNCORRECTABLE, uncorrected);
	gpu_reading_set(ret, GPU_FIELD_ROW_REMAP_FAILURE, failed);
}

void nvml_read_fields(const struct nvml_lib *lib, struct nvml_device *device,
		      struct gpu_reading *ret)
{
	uint32_t value = 0;
	uint64_t energy_mj = 0;
	*ret = (struct gpu_reading){ 0 };
	// Energy first: it is what the bill rests on, and its time is taken at the answer.
	if (lib->energy != NULL && lib->energy(device, &energy_mj) == NVML_SUCCESS &&
	    energy_mj <= INT64_MAX)
		gpu_reading_set(ret, GPU_FIELD_ENERGY_MJ, (int64_t)energy_mj);
	if (lib->power != NULL && lib->power(device, &value) == NVML_SUCCESS)
		gpu_reading_set(ret, GPU_FIELD_POWER_MW, value);
	read_use(lib, device, ret);
	read_memory(lib, device, ret);
	if (lib->temperature != NULL &&
	    lib->temperature(device, NVML_TEMPERATURE_GPU, &value) == NVML_SUCCESS)
		gpu_reading_set(ret, GPU_FIELD_GPU_TEMP, value);
	if (lib->clock != NULL && lib->clock(device, NVML_CLOCK_SM, &value) == NVML_SUCCESS)
		gpu_reading_set(ret, GPU_FIELD_SM_CLOCK, value);
	if (lib->clock != NULL && lib->clock(device, NVML_CLOCK_MEM, &value) == NVML_SUCCESS)
		gpu_reading_set(ret, GPU_FIELD_MEM_CLOCK, value);
	if (lib->pcie_replay != NULL && lib->pcie_replay(device, &value) == NVML_SUCCESS)
		gpu_reading_set(ret, GPU_FIELD_PCIE_REPLAY, value);
	read_memory_temperature(lib, device, ret);
	read_rows(lib, device, ret);
}

// The newest sample of each process; what the driver has none of stays unknown.
static void read_process_use(const struct nvml_lib *lib, struct nvml_device *device,
			     struct nvml_processes *processes)
{
	struct nvml_process_sample samples[NVML_SAMPLES_MAX] = { 0 };
	uint64_t newest_us[NVML_PROCESSES_MAX] = { 0 };
	uint32_t count = NVML_SAMPLES_MAX;
	if (lib->process_use == NULL ||
	    lib->process_use(device, samples, &count, 0) != NVML_SUCCESS)
		return;
	for (uint32_t i = 0; i < count && i < NVML_SAMPLES_MAX; i++) {
		for (uint32_t j = 0; j < processes->count; j++) {
			if (processes->items[j].pid != samples[i].pid ||
			    samples[i].time_us < newest_us[j] || samples[i].sm_percent > 100)
				continue;
			newest_us[j] = samples[i].time_us;
			processes->items[j].util_percent = samples[i].sm_percent;
		}
	}
}

nvml_return nvml_read_processes(const struct nvml_lib *lib, struct nvml_device *device,
				struct nvml_processes *ret)
{
	struct nvml_process_info items[NVML_PROCESSES_MAX] = { 0 };
	uint32_t count = NVML_PROCESSES_MAX;
	*ret = (struct nvml_processes){ 0 };
	if (lib->processes == NULL)
		return NVML_ERROR_FUNCTION_NOT_FOUND;
	nvml_return result = lib->processes(device, &count, items);
	if (result == NVML_ERROR_INSUFFICIENT_SIZE) // more than we show: the first are enough
		count = NVML_PROCESSES_MAX;
	else if (result != NVML_SUCCESS)
		return result;
	for (uint32_t i = 0; i < count && i < NVML_PROCESSES_MAX; i++) {
		if (items[i].pid == 0)
			continue;
		// The driver says "not available" with all ones.
		uint64_t used = items[i].used_bytes == UINT64_MAX ? 0 : items[i].used_bytes;
		ret->items[ret->count++] = (struct nvml_process){ .pid = items[i].pid,
								  .util_percent = NVML_UTIL_UNKNOWN,
								  .memory_bytes = used };
	}
	read_process_use(lib, device, ret);
	return NVML_SUCCESS;
}
