// SPDX-License-Identifier: Apache-2.0
// Bits by which NVML says why clocks are below their maximum, as gpu/nvml_abi.h has its other
// constants: public names and numbers, needed by the emulator alone. The daemon decides which are
// set, the library passes them on. No code, so nothing can fail.
#pragma once

enum { // why clocks are below their maximum
	NVML_CLOCKS_REASON_IDLE = 0x1,
	NVML_CLOCKS_REASON_SETTING = 0x2,
	NVML_CLOCKS_REASON_SW_POWER_CAP = 0x4,
	NVML_CLOCKS_REASON_HW_SLOWDOWN = 0x8,
	NVML_CLOCKS_REASON_HW_THERMAL = 0x40,
	NVML_CLOCKS_REASON_HW_POWER_BRAKE = 0x80,
};
