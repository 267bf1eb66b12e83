// SPDX-License-Identifier: Apache-2.0
// What a container gets so that it can use its GPUs, by the configured strategies: CDI names in
// the answer's field or in an annotation, an environment variable, empty mounts that a runtime
// hook reads, device nodes; and what a share under MPS needs. Looks at device nodes on the disk,
// never at the driver.
#pragma once

#include "base/buf.h"
#include "daemons/agent/dp_config.h"
#include "daemons/agent/mig_caps.h"

enum { INJECT_MIGS_MAX = 64 };

struct inject {
	const struct dp_config *config;
	const char *driver_root; // as we see it
	const char *proc_root;   // whose driver/nvidia-caps names capabilities
};

struct inject_request {                       // of one container
	const struct gpu_info *gpus[GPU_MAX]; // each once, ascending
	size_t count;
	const struct mig_device *migs; // at most INJECT_MIGS_MAX; GPUs or MIG devices, never both
	size_t mig_count;
	const char *resource;
	uint32_t mps_shares, mps_of; // of its one GPU; 0: no MPS
};

// Appends the container's answer; false: no memory.
MUST_USE bool inject_put(const struct inject *inject, const struct inject_request *request,
			 struct buf *out);
