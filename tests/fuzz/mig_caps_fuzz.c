// SPDX-License-Identifier: Apache-2.0
// The driver's list of MIG capabilities, and the kernel's of device numbers.
#include "daemons/agent/mig_caps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };
	uint32_t minor = 7, major = 0;
	if (!mig_caps_minor(text, 0, 1, UINT32_MAX, &minor))
		ASSERT(minor == 7);
	if (mig_caps_minor(text, 0, 1, 0, &minor))
		ASSERT(text.len > 0);
	if (mig_caps_major(text, "nvidia-caps", &major))
		ASSERT(major > 0 && major <= 0xfff);
	return 0;
}
