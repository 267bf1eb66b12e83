// SPDX-License-Identifier: Apache-2.0
#include "sys/fault.h"

#include <errno.h>

static struct {
	size_t before; // calls that still pass
	size_t count;  // calls that fail then; 0: not armed
	int sys_errno;
	bool fired;
} fault;

void fault_arm(size_t nth, size_t count, int sys_errno)
{
	ASSERT(nth > 0 && count > 0 && sys_errno > 0);
	fault.before = nth - 1;
	fault.count = count;
	fault.sys_errno = sys_errno;
	fault.fired = false;
}

bool fault_disarm(void)
{
	fault.count = 0;
	return fault.fired;
}

bool fault_due(void)
{
	if (fault.count == 0)
		return false;
	if (fault.before > 0) {
		fault.before--;
		return false;
	}
	fault.count--;
	fault.fired = true;
	errno = fault.sys_errno;
	return true;
}
