// SPDX-License-Identifier: Apache-2.0
#include "emulator/mig_compute.h"

#include <stdio.h>

enum { CI_PROFILE_COUNT = 5 };

uint32_t mig_compute_starts(uint32_t gi_slices, uint32_t profile, uint32_t *ret_size)
{
	static const uint32_t SIZES[CI_PROFILE_COUNT] = { 1, 2, 3, 4, 7 };
	// Where an instance narrower than its GPU instance may begin.
	static const uint32_t STARTS[CI_PROFILE_COUNT] = { 0x7f, 0x15, 0x11, 0x01, 0 };

	if (profile >= CI_PROFILE_COUNT || SIZES[profile] > gi_slices)
		return 0;
	uint32_t size = SIZES[profile], starts = 0;
	if (size == 3 && gi_slices == 4)
		return 0; // the driver offers a 4g no 3c
	*ret_size = size;
	if (size == gi_slices)
		return 1;
	for (uint32_t start = 0; start + size <= gi_slices; start++)
		starts |= STARTS[profile] & 1u << start;
	return starts;
}

// Spans of one size: taking the first that fits, again and again, fits the most.
uint32_t mig_compute_count(uint32_t starts, uint32_t size)
{
	uint32_t count = 0;

	for (uint32_t start = 0; start < MIG_COMPUTE_SLICE_MAX;) {
		if ((starts >> start & 1) != 0) {
			count++;
			start += size;
		} else {
			start++;
		}
	}
	return count;
}

void mig_compute_name(const char *gi_name, uint32_t gi_slices, uint32_t size, char *ret,
		      size_t ret_bytes)
{
	if (size == gi_slices)
		snprintf(ret, ret_bytes, "%s", gi_name);
	else
		snprintf(ret, ret_bytes, "%uc.%s", size, gi_name);
}
