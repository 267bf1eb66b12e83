// SPDX-License-Identifier: Apache-2.0
// One child process with its packet socket, and the bodies of those that were ended: starting,
// ending, reaping. A killed child that hangs in the kernel stays on the list of bodies until it
// is gone; how many there may be is bounded.
#pragma once

#include "sys/loop.h"

#include <sys/types.h>

enum { NVML_BODIES_MAX = 48 };

struct nvml_bodies {
	struct loop *loop;
	struct nvml_body {
		pid_t pid; // 0: free
		int pidfd;
		uint32_t owner;
		struct loop_fd *watch;
	} items[NVML_BODIES_MAX];
};

struct nvml_spawned {
	pid_t pid;
	int pidfd;
	int fd; // our end of the socket, non-blocking
};

// What the child opens: the driver's library, and DCGM's with its address (see nvml_child.h).
struct nvml_libraries {
	const char *nvml, *dcgm, *dcgm_address;
};

MUST_USE err_status nvml_spawn(const char *program, const struct nvml_libraries *libraries,
			       struct nvml_spawned *ret, struct err *err);
// Kills the process and reaps it when it is gone; takes over pid and pidfd. The caller sees to
// it that there are never more than NVML_BODIES_MAX.
void nvml_bodies_add(struct nvml_bodies *bodies, const struct nvml_spawned *child, uint32_t owner);
uint32_t nvml_bodies_of(const struct nvml_bodies *bodies, uint32_t owner); // UINT32_MAX: all
void nvml_bodies_done(struct nvml_bodies *bodies);
