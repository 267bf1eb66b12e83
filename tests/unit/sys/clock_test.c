// SPDX-License-Identifier: Apache-2.0
// Clocks: the right one, in nanoseconds.
#include "check.h"
#include "sys/clock.h"

#include <time.h>

int main(void)
{
	struct check c = { 0, 0 };
	uint64_t mono_ns = clock_mono_ns(), cpu_ns = clock_cpu_ns();
	int64_t before_s = time(NULL), wall_s = clock_wall_ns() / 1000000000, after_s = time(NULL);
	// time() may be a tick behind the clock that is read here.
	CHECK(&c, "UTC", wall_s >= before_s && wall_s <= after_s + 1);
	volatile uint64_t work = 0;
	while (clock_cpu_ns() - cpu_ns < 1000000)
		work++;
	CHECK(&c, "work takes CPU time", work > 0);
	CHECK(&c, "and time", clock_mono_ns() - mono_ns >= 500000);
	return check_done(&c);
}
