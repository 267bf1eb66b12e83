// SPDX-License-Identifier: Apache-2.0
// What a device does now: memory, utilization, processes.
#include "emulator/lib/abi_gpm.h"
#include "emulator/lib/abi_more.h"
#include "emulator/lib/client_mig.h"
#include "emulator/lib/getter.h"

#include <string.h>
#include <time.h>

enum { SAMPLE_PERIOD_US = 167000 };

// Of the whole GPU, or of the GPU instance that a MIG device is in.
static nvml_return memory_of(const struct nvml_device *device, const char *call,
			     struct nvml_memory_v2 *ret)
{
	struct client_instance instance;
	struct wire_gpu gpu;
	nvml_return result = NVML_SUCCESS;

	if (client_is_mig(device)) {
		result = client_mig_instance(device, call, &instance);
		if (result != NVML_SUCCESS)
			return result;
		ret->total_bytes = (uint64_t)instance.profile->memory_mib << 20;
		ret->used_bytes = (uint64_t)instance.gi->memory_used_mib << 20;
		ret->reserved_bytes = 0;
	} else {
		result = client_gpu(device, call, &gpu);
		if (result != NVML_SUCCESS)
			return result;
		ret->total_bytes = gpu.memory_total_bytes;
		ret->reserved_bytes = gpu.memory_reserved_bytes;
		ret->used_bytes = gpu.memory_used_bytes;
	}
	uint64_t taken_bytes = ret->used_bytes + ret->reserved_bytes;
	ret->free_bytes = taken_bytes < ret->total_bytes ? ret->total_bytes - taken_bytes : 0;
	return NVML_SUCCESS;
}

NVML_CALL(nvmlDeviceGetMemoryInfo,
	  (const struct nvml_device *device, struct nvml_memory *ret_memory))
{
	struct nvml_memory_v2 memory;

	if (ret_memory == NULL)
		return client_bad_argument();
	nvml_return result = memory_of(device, "nvmlDeviceGetMemoryInfo", &memory);
	if (result != NVML_SUCCESS)
		return result;
	ret_memory->total_bytes = memory.total_bytes;
	ret_memory->used_bytes = memory.total_bytes - memory.free_bytes;
	ret_memory->free_bytes = memory.free_bytes;
	return NVML_SUCCESS;
}

NVML_CALL(nvmlDeviceGetMemoryInfo_v2,
	  (const struct nvml_device *device, struct nvml_memory_v2 *ret_memory))
{
	if (ret_memory == NULL)
		return client_bad_argument();
	if (ret_memory->version != NVML_STRUCT_VERSION(struct nvml_memory_v2, 2))
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	return memory_of(device, "nvmlDeviceGetMemoryInfo_v2", ret_memory);
}

// A GPU instance has the window in proportion to its memory slices.
static void bar1_of_instance(const struct client_instance *instance, struct wire_gpu *gpu)
{
	uint32_t whole = 1;

	for (uint32_t i = 0; i < instance->mig.profile_count; i++)
		if (instance->mig.profiles[i].size > whole)
			whole = instance->mig.profiles[i].size;
	gpu->bar1_total_bytes = gpu->bar1_total_bytes * instance->profile->size / whole;
	gpu->bar1_used_bytes = UINT64_C(1048576) * (instance->gi->memory_used_mib > 0 ? 4 : 1);
}

// Told of MIG devices too: nvitop relies on it.
NVML_CALL(nvmlDeviceGetBAR1MemoryInfo,
	  (const struct nvml_device *device, struct nvml_bar1_memory *ret_memory))
{
	struct client_instance instance;
	struct wire_gpu gpu;

	if (ret_memory == NULL)
		return client_bad_argument();
	nvml_return result = client_parent(device, "nvmlDeviceGetBAR1MemoryInfo", &gpu);
	if (result == NVML_SUCCESS && client_is_mig(device)) {
		result = client_mig_instance(device, "nvmlDeviceGetBAR1MemoryInfo", &instance);
		if (result == NVML_SUCCESS)
			bar1_of_instance(&instance, &gpu);
	}
	if (result != NVML_SUCCESS)
		return result;
	ret_memory->total_bytes = gpu.bar1_total_bytes;
	ret_memory->used_bytes = gpu.bar1_used_bytes;
	ret_memory->free_bytes = gpu.bar1_total_bytes - gpu.bar1_used_bytes;
	return NVML_SUCCESS;
}

NVML_CALL(nvmlDeviceGetUtilizationRates,
	  (const struct nvml_device *device, struct nvml_utilization *ret_utilization))
{
	struct wire_gpu gpu;

	if (ret_utilization == NULL)
		return client_bad_argument();
	nvml_return result = client_gpu(device, "nvmlDeviceGetUtilizationRates", &gpu);
	if (result != NVML_SUCCESS)
		return result;
	if (gpu.mig_mode != NVML_FEATURE_DISABLED)
		return NVML_ERROR_NOT_SUPPORTED;
	ret_utilization->gpu_percent = gpu.util_percent;
	ret_utilization->memory_percent = gpu.memory_util_percent;
	return NVML_SUCCESS;
}

// Workloads here compute; nothing ever encodes. As all utilization, not told in MIG mode.
GET_PAIR_IF(nvmlDeviceGetEncoderUtilization, gpu.mig_mode == NVML_FEATURE_DISABLED, 0,
	    SAMPLE_PERIOD_US)
GET_PAIR_IF(nvmlDeviceGetDecoderUtilization, gpu.mig_mode == NVML_FEATURE_DISABLED, 0,
	    SAMPLE_PERIOD_US)
GET_PAIR_IF(nvmlDeviceGetJpgUtilization, gpu.mig_mode == NVML_FEATURE_DISABLED, 0, SAMPLE_PERIOD_US)
GET_PAIR_IF(nvmlDeviceGetOfaUtilization, gpu.mig_mode == NVML_FEATURE_DISABLED, 0, SAMPLE_PERIOD_US)

NVML_CALL(nvmlDeviceGetEncoderCapacity,
	  (const struct nvml_device *device, uint32_t codec, uint32_t *ret_percent))
{
	struct wire_gpu gpu;

	if (ret_percent == NULL || codec > 2)
		return client_bad_argument();
	nvml_return result = client_gpu(device, "nvmlDeviceGetEncoderCapacity", &gpu);
	if (result == NVML_SUCCESS)
		*ret_percent = 100;
	return result;
}

NVML_CALL(nvmlDeviceGetEncoderStats, (const struct nvml_device *device, uint32_t *ret_sessions,
				      uint32_t *ret_fps, uint32_t *ret_latency_us))
{
	struct wire_gpu gpu;

	if (ret_sessions == NULL || ret_fps == NULL || ret_latency_us == NULL)
		return client_bad_argument();
	nvml_return result = client_gpu(device, "nvmlDeviceGetEncoderStats", &gpu);
	if (result == NVML_SUCCESS)
		*ret_sessions = *ret_fps = *ret_latency_us = 0;
	return result;
}

NVML_CALL(nvmlDeviceGetFBCStats,
	  (const struct nvml_device *device, struct nvml_fbc_stats *ret_stats))
{
	struct wire_gpu gpu;

	if (ret_stats == NULL)
		return client_bad_argument();
	nvml_return result = client_gpu(device, "nvmlDeviceGetFBCStats", &gpu);
	if (result == NVML_SUCCESS)
		*ret_stats = (struct nvml_fbc_stats){ 0 };
	return result;
}

// NVML's way of asking for the count first: room 0 and no array.
static nvml_return take_room(uint32_t have, uint32_t *count, const void *array, bool *ret_copy)
{
	uint32_t room = *count;

	*count = have;
	*ret_copy = false;
	if (have == 0)
		return NVML_SUCCESS;
	if (room < have)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	if (array == NULL)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret_copy = true;
	return NVML_SUCCESS;
}

NVML_CALL(nvmlDeviceGetComputeRunningProcesses_v3,
	  (const struct nvml_device *device, uint32_t *count, struct nvml_process_info *ret_infos))
{
	struct wire_process processes[WIRE_PROCESS_MAX];
	uint32_t have = 0;
	bool copy = false;

	if (count == NULL)
		return client_bad_argument();
	nvml_return result = client_processes(device, "nvmlDeviceGetComputeRunningProcesses_v3",
					      processes, &have);
	if (result == NVML_SUCCESS)
		result = take_room(have, count, ret_infos, &copy);
	for (uint32_t i = 0; copy && i < have; i++)
		ret_infos[i] = (struct nvml_process_info){
			.pid = processes[i].pid,
			.used_bytes = processes[i].memory_bytes,
			.gpu_instance_id = processes[i].gi,
			.compute_instance_id = processes[i].ci,
		};
	return result;
}
NVML_ALIAS(nvmlDeviceGetComputeRunningProcesses_v2,
	   (const struct nvml_device *device, uint32_t *count, struct nvml_process_info *ret_infos),
	   nvmlDeviceGetComputeRunningProcesses_v3);

NVML_CALL(nvmlDeviceGetComputeRunningProcesses, (const struct nvml_device *device, uint32_t *count,
						 struct nvml_process_info_v1 *ret_infos))
{
	struct wire_process processes[WIRE_PROCESS_MAX];
	uint32_t have = 0;
	bool copy = false;

	if (count == NULL)
		return client_bad_argument();
	nvml_return result =
		client_processes(device, "nvmlDeviceGetComputeRunningProcesses", processes, &have);
	if (result == NVML_SUCCESS)
		result = take_room(have, count, ret_infos, &copy);
	for (uint32_t i = 0; copy && i < have; i++)
		ret_infos[i] = (struct nvml_process_info_v1){ processes[i].pid,
							      processes[i].memory_bytes };
	return result;
}

// No graphics and no MPS clients: always an empty list.
#define NO_PROCESSES(name)                                                                         \
	NVML_CALL(name, (const struct nvml_device *device, uint32_t *count, void *ret_infos))      \
	{                                                                                          \
		struct wire_gpu gpu;                                                               \
		(void)ret_infos;                                                                   \
		if (count == NULL)                                                                 \
			return client_bad_argument();                                              \
		nvml_return result = client_parent(device, #name, &gpu);                           \
		if (result == NVML_SUCCESS)                                                        \
			*count = 0;                                                                \
		return result;                                                                     \
	}
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3)

static uint64_t wall_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now); // cannot fail for this clock
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

// One sample a process, of the last sampling period that is over.
NVML_CALL(nvmlDeviceGetProcessUtilization,
	  (const struct nvml_device *device, struct nvml_process_sample *ret_samples,
	   uint32_t *count, uint64_t last_seen_us))
{
	struct wire_process processes[WIRE_PROCESS_MAX];
	struct wire_gpu gpu;
	uint32_t have = 0;
	bool copy = false;
	uint64_t time_us = wall_us() / SAMPLE_PERIOD_US * SAMPLE_PERIOD_US;

	if (count == NULL)
		return client_bad_argument();
	nvml_return result = client_gpu(device, "nvmlDeviceGetProcessUtilization", &gpu);
	if (result == NVML_SUCCESS && gpu.mig_mode != NVML_FEATURE_DISABLED)
		result = NVML_ERROR_NOT_SUPPORTED;
	if (result == NVML_SUCCESS)
		result = client_processes(device, "nvmlDeviceGetProcessUtilization", processes,
					  &have);
	if (result != NVML_SUCCESS)
		return result;
	if (have == 0 || time_us <= last_seen_us) {
		*count = 0;
		return NVML_ERROR_NOT_FOUND;
	}
	result = take_room(have, count, ret_samples, &copy);
	for (uint32_t i = 0; copy && i < have; i++)
		ret_samples[i] = (struct nvml_process_sample){
			.pid = processes[i].pid,
			.time_us = time_us,
			.sm_percent = processes[i].util_percent,
			.memory_percent = processes[i].memory_util_percent,
		};
	return result;
}

// The same with a structure that has room for more engines.
NVML_CALL(nvmlDeviceGetProcessesUtilizationInfo,
	  (const struct nvml_device *device, struct nvml_processes_use *ret_use))
{
	static const char CALL[] = "nvmlDeviceGetProcessesUtilizationInfo";
	struct wire_process processes[WIRE_PROCESS_MAX];
	struct wire_gpu gpu;
	uint32_t have = 0;
	bool copy = false;
	uint64_t time_us = wall_us() / SAMPLE_PERIOD_US * SAMPLE_PERIOD_US;

	if (ret_use == NULL)
		return client_bad_argument();
	if (ret_use->version != NVML_STRUCT_VERSION(*ret_use, 1))
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	nvml_return result = client_gpu(device, CALL, &gpu);
	if (result == NVML_SUCCESS && gpu.mig_mode != NVML_FEATURE_DISABLED)
		result = NVML_ERROR_NOT_SUPPORTED;
	if (result == NVML_SUCCESS)
		result = client_processes(device, CALL, processes, &have);
	if (result != NVML_SUCCESS)
		return result;
	if (have == 0 || time_us <= ret_use->last_seen_us) {
		ret_use->count = 0;
		return NVML_ERROR_NOT_FOUND;
	}
	result = take_room(have, &ret_use->count, ret_use->processes, &copy);
	for (uint32_t i = 0; copy && i < have; i++)
		ret_use->processes[i] = (struct nvml_process_use){
			.time_us = time_us,
			.pid = processes[i].pid,
			.sm_percent = processes[i].util_percent,
			.memory_percent = processes[i].memory_util_percent,
		};
	return result;
}

NVML_CALL(nvmlDeviceGetRunningProcessDetailList,
	  (const struct nvml_device *device, struct nvml_process_details *ret_details))
{
	enum { MODE_COMPUTE = 0, MODE_COUNT = 3 };
	static const char CALL[] = "nvmlDeviceGetRunningProcessDetailList";
	struct wire_process processes[WIRE_PROCESS_MAX];
	uint32_t have = 0;
	bool copy = false;

	if (ret_details == NULL)
		return client_bad_argument();
	if (ret_details->version != NVML_STRUCT_VERSION(*ret_details, 1))
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (ret_details->mode >= MODE_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	nvml_return result = client_processes(device, CALL, processes, &have);
	if (result != NVML_SUCCESS)
		return result;
	if (ret_details->mode != MODE_COMPUTE)
		have = 0;
	result = take_room(have, &ret_details->count, ret_details->processes, &copy);
	for (uint32_t i = 0; copy && i < have; i++)
		ret_details->processes[i] = (struct nvml_process_detail){
			.pid = processes[i].pid,
			.used_bytes = processes[i].memory_bytes,
			.gpu_instance_id = processes[i].gi,
			.compute_instance_id = processes[i].ci,
		};
	return result;
}
