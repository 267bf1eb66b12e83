// SPDX-License-Identifier: Apache-2.0
// The driver library, opened at run time: one pointer for each function that we call. What a
// driver lacks (older or newer than we know) stays NULL, and its value is left out; only what
// nothing works without is demanded. Used by the child process alone.
#pragma once

#include "base/err.h"
#include "gpu/nvml_abi_mig.h"
#include "gpu/nvml_abi_perf.h"

// Result, name in the library, parameters; required ones first.
#define NVML_REQUIRED(X)                                                                           \
	X(init, "nvmlInit_v2", (void))                                                             \
	X(device_count, "nvmlDeviceGetCount_v2", (uint32_t *))                                     \
	X(device_by_index, "nvmlDeviceGetHandleByIndex_v2", (uint32_t, struct nvml_device **))     \
	X(uuid, "nvmlDeviceGetUUID", (struct nvml_device *, char *, uint32_t))

#define NVML_OPTIONAL(X)                                                                           \
	X(driver_version, "nvmlSystemGetDriverVersion", (char *, uint32_t))                        \
	X(library_version, "nvmlSystemGetNVMLVersion", (char *, uint32_t))                         \
	X(cuda_version, "nvmlSystemGetCudaDriverVersion_v2", (int *))                              \
	X(name, "nvmlDeviceGetName", (struct nvml_device *, char *, uint32_t))                     \
	X(minor, "nvmlDeviceGetMinorNumber", (struct nvml_device *, uint32_t *))                   \
	X(pci, "nvmlDeviceGetPciInfo_v3", (struct nvml_device *, struct nvml_pci_info *))          \
	X(memory_v2, "nvmlDeviceGetMemoryInfo_v2",                                                 \
	  (struct nvml_device *, struct nvml_memory_v2 *))                                         \
	X(memory, "nvmlDeviceGetMemoryInfo", (struct nvml_device *, struct nvml_memory *))         \
	X(compute, "nvmlDeviceGetCudaComputeCapability", (struct nvml_device *, int *, int *))     \
	X(mig_mode, "nvmlDeviceGetMigMode", (struct nvml_device *, uint32_t *, uint32_t *))        \
	X(fabric, "nvmlDeviceGetGpuFabricInfoV", (struct nvml_device *, struct nvml_fabric *))     \
	X(link_state, "nvmlDeviceGetNvLinkState", (struct nvml_device *, uint32_t, uint32_t *))    \
	X(link_type, "nvmlDeviceGetNvLinkRemoteDeviceType",                                        \
	  (struct nvml_device *, uint32_t, uint32_t *))                                            \
	X(link_pci, "nvmlDeviceGetNvLinkRemotePciInfo_v2",                                         \
	  (struct nvml_device *, uint32_t, struct nvml_pci_info *))                                \
	X(temperature, "nvmlDeviceGetTemperature", (struct nvml_device *, uint32_t, uint32_t *))   \
	X(power, "nvmlDeviceGetPowerUsage", (struct nvml_device *, uint32_t *))                    \
	X(energy, "nvmlDeviceGetTotalEnergyConsumption", (struct nvml_device *, uint64_t *))       \
	X(utilization, "nvmlDeviceGetUtilizationRates",                                            \
	  (struct nvml_device *, struct nvml_utilization *))                                       \
	X(encoder, "nvmlDeviceGetEncoderUtilization",                                              \
	  (struct nvml_device *, uint32_t *, uint32_t *))                                          \
	X(decoder, "nvmlDeviceGetDecoderUtilization",                                              \
	  (struct nvml_device *, uint32_t *, uint32_t *))                                          \
	X(clock, "nvmlDeviceGetClockInfo", (struct nvml_device *, uint32_t, uint32_t *))           \
	X(pcie_replay, "nvmlDeviceGetPcieReplayCounter", (struct nvml_device *, uint32_t *))       \
	X(remapped_rows, "nvmlDeviceGetRemappedRows",                                              \
	  (struct nvml_device *, uint32_t *, uint32_t *, uint32_t *, uint32_t *))                  \
	X(ecc_errors, "nvmlDeviceGetTotalEccErrors",                                               \
	  (struct nvml_device *, uint32_t, uint32_t, uint64_t *))                                  \
	X(retired_pages, "nvmlDeviceGetRetiredPages",                                              \
	  (struct nvml_device *, uint32_t, uint32_t *, uint64_t *))                                \
	X(retired_pending, "nvmlDeviceGetRetiredPagesPendingStatus",                               \
	  (struct nvml_device *, uint32_t *))                                                      \
	X(violation, "nvmlDeviceGetViolationStatus",                                               \
	  (struct nvml_device *, uint32_t, struct nvml_violation_time *))                          \
	X(clock_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons",                              \
	  (struct nvml_device *, uint64_t *))                                                      \
	X(gpm_support, "nvmlGpmQueryDeviceSupport",                                                \
	  (struct nvml_device *, struct nvml_gpm_support *))                                       \
	X(gpm_alloc, "nvmlGpmSampleAlloc", (struct nvml_gpm_sample **))                            \
	X(gpm_free, "nvmlGpmSampleFree", (struct nvml_gpm_sample *))                               \
	X(gpm_sample, "nvmlGpmSampleGet", (struct nvml_device *, struct nvml_gpm_sample *))        \
	X(gpm_mig_sample, "nvmlGpmMigSampleGet",                                                   \
	  (struct nvml_device *, uint32_t, struct nvml_gpm_sample *))                              \
	X(gpm_metrics, "nvmlGpmMetricsGet", (struct nvml_gpm_metrics *))                           \
	X(field_values, "nvmlDeviceGetFieldValues",                                                \
	  (struct nvml_device *, int, struct nvml_field_value *))                                  \
	X(processes, "nvmlDeviceGetComputeRunningProcesses_v3",                                    \
	  (struct nvml_device *, uint32_t *, struct nvml_process_info *))                          \
	X(process_use, "nvmlDeviceGetProcessUtilization",                                          \
	  (struct nvml_device *, struct nvml_process_sample *, uint32_t *, uint64_t))              \
	X(event_set_create, "nvmlEventSetCreate", (struct nvml_event_set **))                      \
	X(event_register, "nvmlDeviceRegisterEvents",                                              \
	  (struct nvml_device *, uint64_t, struct nvml_event_set *))                               \
	X(event_wait, "nvmlEventSetWait_v2",                                                       \
	  (struct nvml_event_set *, struct nvml_event_data *, uint32_t))                           \
	NVML_MIG(X)

// All of them are there, or MIG is not served.
#define NVML_MIG(X)                                                                                \
	X(set_mig_mode, "nvmlDeviceSetMigMode", (struct nvml_device *, uint32_t, nvml_return *))   \
	X(mig_count, "nvmlDeviceGetMaxMigDeviceCount", (struct nvml_device *, uint32_t *))         \
	X(mig_device, "nvmlDeviceGetMigDeviceHandleByIndex",                                       \
	  (struct nvml_device *, uint32_t, struct nvml_device **))                                 \
	X(gi_id_of, "nvmlDeviceGetGpuInstanceId", (struct nvml_device *, uint32_t *))              \
	X(ci_id_of, "nvmlDeviceGetComputeInstanceId", (struct nvml_device *, uint32_t *))          \
	X(attributes, "nvmlDeviceGetAttributes_v2",                                                \
	  (struct nvml_device *, struct nvml_device_attributes *))                                 \
	X(gi_profile, "nvmlDeviceGetGpuInstanceProfileInfo",                                       \
	  (struct nvml_device *, uint32_t, struct nvml_gi_profile_info *))                         \
	X(gi_places, "nvmlDeviceGetGpuInstancePossiblePlacements_v2",                              \
	  (struct nvml_device *, uint32_t, struct nvml_placement *, uint32_t *))                   \
	X(gis, "nvmlDeviceGetGpuInstances",                                                        \
	  (struct nvml_device *, uint32_t, struct nvml_gpu_instance **, uint32_t *))               \
	X(gi_info, "nvmlGpuInstanceGetInfo", (struct nvml_gpu_instance *, struct nvml_gi_info *))  \
	X(gi_by_id, "nvmlDeviceGetGpuInstanceById",                                                \
	  (struct nvml_device *, uint32_t, struct nvml_gpu_instance **))                           \
	X(gi_create, "nvmlDeviceCreateGpuInstanceWithPlacement",                                   \
	  (struct nvml_device *, uint32_t, const struct nvml_placement *,                          \
	   struct nvml_gpu_instance **))                                                           \
	X(gi_destroy, "nvmlGpuInstanceDestroy", (struct nvml_gpu_instance *))                      \
	X(ci_profile, "nvmlGpuInstanceGetComputeInstanceProfileInfo",                              \
	  (struct nvml_gpu_instance *, uint32_t, uint32_t, struct nvml_ci_profile_info *))         \
	X(ci_create, "nvmlGpuInstanceCreateComputeInstance",                                       \
	  (struct nvml_gpu_instance *, uint32_t, struct nvml_compute_instance **))                 \
	X(cis, "nvmlGpuInstanceGetComputeInstances",                                               \
	  (struct nvml_gpu_instance *, uint32_t, struct nvml_compute_instance **, uint32_t *))     \
	X(ci_destroy, "nvmlComputeInstanceDestroy", (struct nvml_compute_instance *))

struct nvml_lib {
#define MEMBER(member, name, params) nvml_return(*member) params;
	NVML_REQUIRED(MEMBER)
	NVML_OPTIONAL(MEMBER)
#undef MEMBER
	const char *(*error_text)(nvml_return);
};

MUST_USE err_status nvml_lib_open(const char *path, struct nvml_lib *ret, struct err *err);
// Never NULL.
const char *nvml_lib_error_text(const struct nvml_lib *lib, nvml_return code);
