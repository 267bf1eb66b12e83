// SPDX-License-Identifier: Apache-2.0
// The kernel's clocks, read nowhere else. Programs take time from their world (base/world.h),
// which a test can replace; what is here is for that world itself and for measuring.
// Cannot fail.
#pragma once

#include "base/defs.h"

uint64_t clock_mono_ns(void); // since some instant; never goes back
int64_t clock_wall_ns(void);  // since 1970 UTC; may jump
uint64_t clock_cpu_ns(void);  // used by this process, all threads
