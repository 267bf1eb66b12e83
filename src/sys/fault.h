// SPDX-License-Identifier: Apache-2.0
// Fault injection for tests: system calls that files and sockets depend on go through fault_due,
// and the n-th of them after fault_arm fails with the error given, without being made. A test
// runs a scenario for n = 1, 2, 3, ... until one passes untouched: so every error path of it has
// been taken. Not armed (always, but in tests) it costs one comparison. One thread only.
#pragma once

#include "base/defs.h"

// The nth call from now on fails, and with count > 1 those after it, too.
void fault_arm(size_t nth, size_t count, int sys_errno);
// Disarms; true if the fault came to be.
bool fault_disarm(void);
// True: fail now; errno is set. For use as "fault_due() ? -1 : fsync(fd)".
bool fault_due(void);
