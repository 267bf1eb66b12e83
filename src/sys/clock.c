// SPDX-License-Identifier: Apache-2.0
#include "sys/clock.h"

#include <time.h>

#define NS_PER_S INT64_C(1000000000)

static int64_t read_ns(clockid_t clock)
{
	struct timespec now;
	int rc = clock_gettime(clock, &now);
	ASSERT(rc == 0); // the kernel has all of them
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

uint64_t clock_mono_ns(void) { return (uint64_t)read_ns(CLOCK_MONOTONIC); }

int64_t clock_wall_ns(void) { return read_ns(CLOCK_REALTIME); }

uint64_t clock_cpu_ns(void) { return (uint64_t)read_ns(CLOCK_PROCESS_CPUTIME_ID); }
