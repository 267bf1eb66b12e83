// SPDX-License-Identifier: Apache-2.0
// What a container gets so that it can use its GPUs, by the configured strategies: CDI names in
// the answer's field or in an annotation, an environment variable, empty mounts that a runtime
// hook reads, device nodes; and what a share under MPS needs. Looks at device nodes on the disk,
// never at the driver.
#pragma once

#include "base/buf.h"
#include "daemons/agent/dp_config.h"

struct inject {
	const struct dp_config *config;
	const char *driver_root; // as we see it
};

struct inject_request {                       // of one container
	const struct gpu_info *gpus[GPU_MAX]; // each once, ascending
	size_t count;
	const char *resource;
	uint32_t mps_shares, mps_of; // of its one GPU; 0: no MPS
};

// Appends the container's answer; false: no memory.
MUST_USE bool inject_put(const struct inject *inject, const struct inject_request *request,
			 struct buf *out);
