// SPDX-License-Identifier: Apache-2.0
// Which compute instances fit into a GPU instance: the same on every board, so the library knows
// it too and this file includes nothing of src/. Pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MIG_COMPUTE_SLICE_MAX = 8 };

// Bit i: an instance of NVML's compute profile may begin at slice i of a GPU instance so wide; 0
// when there is no such profile. ret_size is its width.
uint32_t mig_compute_starts(uint32_t gi_slices, uint32_t profile, uint32_t *ret_size);
// Most spans of one size that fit when they begin at these starts.
uint32_t mig_compute_count(uint32_t starts, uint32_t size);
// "3g.40gb", or "1c.3g.40gb" of one narrower than its GPU instance.
void mig_compute_name(const char *gi_name, uint32_t gi_slices, uint32_t size, char *ret,
		      size_t ret_bytes);
