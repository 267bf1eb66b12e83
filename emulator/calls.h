// SPDX-License-Identifier: Apache-2.0
// Names of all NVML functions that the library exports, as lists to expand with a macro. The
// daemon takes `slow`, `hang` and `error` commands only for these names, so that a typing error
// in a test is reported instead of ignored; lib/stubs.c makes the functions of the last two
// lists, which answer NOT_SUPPORTED on a healthy GPU. emulator_test.py compares with `nm`.
#pragma once

// The formatter breaks such lists badly.
// clang-format off

// Implemented by hand in lib/, aliases with and without version suffix included.
#define CALLS_IMPLEMENTED(X) \
	X(nvmlInit) X(nvmlInit_v2) X(nvmlInitWithFlags) X(nvmlShutdown) X(nvmlErrorString) \
	X(nvmlSystemGetDriverVersion) X(nvmlSystemGetNVMLVersion) X(nvmlSystemGetDriverBranch) \
	X(nvmlSystemGetCudaDriverVersion) X(nvmlSystemGetCudaDriverVersion_v2) \
	X(nvmlSystemGetProcessName) X(nvmlUnitGetCount) X(nvmlGetExcludedDeviceCount) \
	X(nvmlDeviceGetCount) X(nvmlDeviceGetCount_v2) X(nvmlDeviceGetHandleByIndex) \
	X(nvmlDeviceGetHandleByIndex_v2) X(nvmlDeviceGetHandleByUUID) \
	X(nvmlDeviceGetHandleByUUIDV) X(nvmlDeviceGetHandleBySerial) \
	X(nvmlDeviceGetHandleByPciBusId) X(nvmlDeviceGetHandleByPciBusId_v2) \
	X(nvmlDeviceGetName) X(nvmlDeviceGetUUID) X(nvmlDeviceGetIndex) \
	X(nvmlDeviceGetMinorNumber) X(nvmlDeviceGetSerial) X(nvmlDeviceGetBrand) \
	X(nvmlDeviceGetBoardPartNumber) X(nvmlDeviceGetVbiosVersion) X(nvmlDeviceGetBoardId) \
	X(nvmlDeviceGetMultiGpuBoard) X(nvmlDeviceGetPciInfo) X(nvmlDeviceGetPciInfo_v2) \
	X(nvmlDeviceGetPciInfo_v3) X(nvmlDeviceGetPciInfoExt) X(nvmlDeviceGetArchitecture) \
	X(nvmlDeviceGetBusType) X(nvmlDeviceGetCudaComputeCapability) \
	X(nvmlDeviceGetNumGpuCores) X(nvmlDeviceGetMemoryBusWidth) X(nvmlDeviceGetDisplayMode) \
	X(nvmlDeviceGetDisplayActive) X(nvmlDeviceGetPersistenceMode) \
	X(nvmlDeviceGetComputeMode) X(nvmlDeviceGetVirtualizationMode) \
	X(nvmlDeviceGetGspFirmwareMode) X(nvmlDeviceGetGspFirmwareVersion) \
	X(nvmlDeviceGetModuleId) X(nvmlDeviceGetMemoryInfo) X(nvmlDeviceGetMemoryInfo_v2) \
	X(nvmlDeviceGetBAR1MemoryInfo) X(nvmlDeviceGetUtilizationRates) \
	X(nvmlDeviceGetEncoderUtilization) X(nvmlDeviceGetDecoderUtilization) \
	X(nvmlDeviceGetJpgUtilization) X(nvmlDeviceGetOfaUtilization) \
	X(nvmlDeviceGetEncoderCapacity) X(nvmlDeviceGetEncoderStats) X(nvmlDeviceGetFBCStats) \
	X(nvmlDeviceGetPowerUsage) X(nvmlDeviceGetPowerManagementMode) \
	X(nvmlDeviceGetPowerManagementLimit) X(nvmlDeviceGetPowerManagementDefaultLimit) \
	X(nvmlDeviceGetEnforcedPowerLimit) X(nvmlDeviceGetPowerManagementLimitConstraints) \
	X(nvmlDeviceGetTotalEnergyConsumption) X(nvmlDeviceGetPowerState) \
	X(nvmlDeviceGetPowerSource) X(nvmlDeviceGetPerformanceState) \
	X(nvmlDeviceGetSupportedPerformanceStates) X(nvmlDeviceGetTemperature) \
	X(nvmlDeviceGetTemperatureV) X(nvmlDeviceGetTemperatureThreshold) \
	X(nvmlDeviceGetMarginTemperature) X(nvmlDeviceGetThermalSettings) \
	X(nvmlDeviceGetNumFans) X(nvmlDeviceGetClockInfo) X(nvmlDeviceGetMaxClockInfo) \
	X(nvmlDeviceGetApplicationsClock) X(nvmlDeviceGetDefaultApplicationsClock) \
	X(nvmlDeviceGetClock) X(nvmlDeviceGetMaxCustomerBoostClock) \
	X(nvmlDeviceGetSupportedMemoryClocks) X(nvmlDeviceGetSupportedGraphicsClocks) \
	X(nvmlDeviceGetCurrentClocksThrottleReasons) X(nvmlDeviceGetCurrentClocksEventReasons) \
	X(nvmlDeviceGetSupportedClocksThrottleReasons) \
	X(nvmlDeviceGetSupportedClocksEventReasons) X(nvmlDeviceGetViolationStatus) \
	X(nvmlDeviceGetEccMode) X(nvmlDeviceGetDefaultEccMode) X(nvmlDeviceGetTotalEccErrors) \
	X(nvmlDeviceGetDetailedEccErrors) X(nvmlDeviceGetMemoryErrorCounter) \
	X(nvmlDeviceGetRetiredPages) X(nvmlDeviceGetRetiredPages_v2) \
	X(nvmlDeviceGetRetiredPagesPendingStatus) X(nvmlDeviceGetRemappedRows) \
	X(nvmlDeviceGetRowRemapperHistogram) X(nvmlDeviceGetMigMode) \
	X(nvmlDeviceGetMaxMigDeviceCount) X(nvmlDeviceIsMigDeviceHandle) \
	X(nvmlDeviceGetMigDeviceHandleByIndex) X(nvmlDeviceGetCurrPcieLinkGeneration) \
	X(nvmlDeviceGetCurrPcieLinkWidth) X(nvmlDeviceGetMaxPcieLinkGeneration) \
	X(nvmlDeviceGetGpuMaxPcieLinkGeneration) X(nvmlDeviceGetMaxPcieLinkWidth) \
	X(nvmlDeviceGetPcieLinkMaxSpeed) X(nvmlDeviceGetPcieSpeed) \
	X(nvmlDeviceGetPcieThroughput) X(nvmlDeviceGetPcieReplayCounter) \
	X(nvmlDeviceGetNvLinkState) X(nvmlDeviceGetNvLinkVersion) \
	X(nvmlDeviceGetNvLinkCapability) X(nvmlDeviceGetNvLinkErrorCounter) \
	X(nvmlDeviceGetNvLinkRemotePciInfo) X(nvmlDeviceGetNvLinkRemotePciInfo_v2) \
	X(nvmlDeviceGetNvLinkRemoteDeviceType) X(nvmlDeviceGetTopologyCommonAncestor) \
	X(nvmlDeviceGetTopologyNearestGpus) X(nvmlDeviceGetP2PStatus) X(nvmlDeviceOnSameBoard) \
	X(nvmlDeviceGetCpuAffinity) X(nvmlDeviceGetCpuAffinityWithinScope) \
	X(nvmlDeviceGetMemoryAffinity) X(nvmlDeviceGetComputeRunningProcesses) \
	X(nvmlDeviceGetComputeRunningProcesses_v2) X(nvmlDeviceGetComputeRunningProcesses_v3) \
	X(nvmlDeviceGetGraphicsRunningProcesses) X(nvmlDeviceGetGraphicsRunningProcesses_v2) \
	X(nvmlDeviceGetGraphicsRunningProcesses_v3) X(nvmlDeviceGetMPSComputeRunningProcesses) \
	X(nvmlDeviceGetMPSComputeRunningProcesses_v2) \
	X(nvmlDeviceGetMPSComputeRunningProcesses_v3) X(nvmlDeviceGetProcessUtilization) \
	X(nvmlDeviceGetAccountingMode) X(nvmlDeviceGetAccountingBufferSize) \
	X(nvmlEventSetCreate) X(nvmlEventSetFree) X(nvmlEventSetWait) X(nvmlEventSetWait_v2) \
	X(nvmlDeviceRegisterEvents) X(nvmlDeviceGetSupportedEventTypes) \
	X(nvmlDeviceGetFieldValues) X(nvmlGpmQueryDeviceSupport) X(nvmlDeviceGetGpuFabricInfo) \
	X(nvmlDeviceGetGpuFabricInfoV) X(nvmlDeviceGetAttributes_v2) \
	X(nvmlDeviceGetComputeInstanceId) X(nvmlDeviceGetGpuInstanceById) \
	X(nvmlDeviceGetGpuInstanceId) X(nvmlDeviceGetGpuInstancePossiblePlacements_v2) \
	X(nvmlDeviceGetGpuInstanceProfileInfo) X(nvmlDeviceGetGpuInstanceProfileInfoByIdV) \
	X(nvmlDeviceGetGpuInstanceProfileInfoV) X(nvmlDeviceGetGpuInstanceRemainingCapacity) \
	X(nvmlDeviceGetGpuInstances) X(nvmlDeviceCreateGpuInstance) \
	X(nvmlDeviceCreateGpuInstanceWithPlacement) X(nvmlDeviceSetMigMode) \
	X(nvmlComputeInstanceDestroy) X(nvmlComputeInstanceGetInfo_v2) \
	X(nvmlDeviceGetDeviceHandleFromMigDeviceHandle) X(nvmlGpuInstanceCreateComputeInstance) \
	X(nvmlGpuInstanceCreateComputeInstanceWithPlacement) X(nvmlGpuInstanceDestroy) \
	X(nvmlGpuInstanceGetComputeInstanceById) \
	X(nvmlGpuInstanceGetComputeInstancePossiblePlacements) \
	X(nvmlGpuInstanceGetComputeInstanceProfileInfo) \
	X(nvmlGpuInstanceGetComputeInstanceProfileInfoV) \
	X(nvmlGpuInstanceGetComputeInstanceRemainingCapacity) \
	X(nvmlGpuInstanceGetComputeInstances) X(nvmlGpuInstanceGetInfo) \
	X(nvmlDeviceGetGpuInstancePossiblePlacements) X(nvmlDeviceGetProcessesUtilizationInfo) \
	X(nvmlDeviceGetRunningProcessDetailList) X(nvmlDeviceGetSamples) \
	X(nvmlDeviceClearEccErrorCounts) X(nvmlDeviceResetGpuLockedClocks) \
	X(nvmlDeviceSetEccMode) X(nvmlDeviceSetGpuLockedClocks) \
	X(nvmlDeviceSetPowerManagementLimit) X(nvmlDeviceSetPowerManagementLimit_v2) \
	X(nvmlGpmMetricsGet) X(nvmlGpmMigSampleGet) X(nvmlGpmSampleAlloc) X(nvmlGpmSampleFree) \
	X(nvmlGpmSampleGet)

// First argument is a device; these answer NOT_SUPPORTED.
#define CALLS_STUB_GET(X) \
	X(nvmlDeviceGetNumaNodeId) X(nvmlDeviceGetAPIRestriction) \
	X(nvmlDeviceGetAccountingPids) X(nvmlDeviceGetAdaptiveClockInfoStatus) \
	X(nvmlDeviceGetAutoBoostedClocksEnabled) X(nvmlDeviceGetBridgeChipInfo) \
	X(nvmlDeviceGetC2cModeInfoV) X(nvmlDeviceGetCapabilities) X(nvmlDeviceGetClkMonStatus) \
	X(nvmlDeviceGetClockOffsets) X(nvmlDeviceGetCurrentClockFreqs) \
	X(nvmlDeviceGetDriverModel) X(nvmlDeviceGetDynamicPstatesInfo) \
	X(nvmlDeviceGetEncoderSessions) X(nvmlDeviceGetFanSpeed) X(nvmlDeviceGetFanSpeedRPM) \
	X(nvmlDeviceGetFanSpeed_v2) X(nvmlDeviceGetGpuOperationMode) \
	X(nvmlDeviceGetInforomConfigurationChecksum) X(nvmlDeviceGetInforomImageVersion) \
	X(nvmlDeviceGetInforomVersion) X(nvmlDeviceGetIrqNum) \
	X(nvmlDeviceGetMinMaxClockOfPState) X(nvmlDeviceGetMinMaxFanSpeed) \
	X(nvmlDeviceGetNvLinkUtilizationControl) X(nvmlDeviceGetNvLinkUtilizationCounter) \
	X(nvmlDeviceGetNvlinkSupportedBwModes) X(nvmlDeviceGetPerformanceModes) \
	X(nvmlDeviceGetPgpuMetadataString) X(nvmlDeviceGetPlatformInfo) \
	X(nvmlDeviceGetSramEccErrorStatus) X(nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts) \
	X(nvmlDeviceGetTargetFanSpeed) X(nvmlDeviceValidateInforom)

// First argument is a device; these would change it and answer NO_PERMISSION.
#define CALLS_STUB_SET(X) \
	X(nvmlDeviceClearCpuAffinity) X(nvmlDeviceClearFieldValues) \
	X(nvmlDeviceFreezeNvLinkUtilizationCounter) X(nvmlDeviceResetApplicationsClocks) \
	X(nvmlDeviceResetMemoryLockedClocks) X(nvmlDeviceResetNvLinkErrorCounters) \
	X(nvmlDeviceResetNvLinkUtilizationCounter) X(nvmlDeviceSetAPIRestriction) \
	X(nvmlDeviceSetAccountingMode) X(nvmlDeviceSetApplicationsClocks) \
	X(nvmlDeviceSetAutoBoostedClocksEnabled) X(nvmlDeviceSetClockOffsets) \
	X(nvmlDeviceSetComputeMode) X(nvmlDeviceSetCpuAffinity) \
	X(nvmlDeviceSetDefaultAutoBoostedClocksEnabled) X(nvmlDeviceSetDefaultFanSpeed_v2) \
	X(nvmlDeviceSetDriverModel) X(nvmlDeviceSetFanSpeed_v2) \
	X(nvmlDeviceSetGpuOperationMode) X(nvmlDeviceSetMemoryLockedClocks) \
	X(nvmlDeviceSetNvLinkDeviceLowPowerThreshold) X(nvmlDeviceSetNvLinkUtilizationControl) \
	X(nvmlDeviceSetPersistenceMode) X(nvmlDeviceSetTemperatureThreshold) \
	X(nvmlDeviceSetVirtualizationMode)

// No device first; NOT_SUPPORTED.
#define CALLS_STUB_OTHER(X) \
	X(nvmlDeviceDiscoverGpus) X(nvmlSystemGetHicVersion) X(nvmlSystemGetTopologyGpuSet) \
	X(nvmlUnitGetHandleByIndex)

// All of them.
#define CALLS_ALL(X) CALLS_IMPLEMENTED(X) CALLS_STUB_GET(X) CALLS_STUB_SET(X) CALLS_STUB_OTHER(X)
