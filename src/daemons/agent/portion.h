// SPDX-License-Identifier: Apache-2.0
// What part of a GPU's use is whose, when several pods hold it: by their processes where the
// node's process table may be read, else by their shares. The parts never exceed the device.
#pragma once

#include "daemons/agent/nvml_wire.h"
#include "daemons/agent/usage.h"

enum { PORTIONS_MAX = 256 };

struct portion {
	const struct usage_allocation *holder;
	uint32_t util_milli;
	uint64_t memory_mib;
};

// Both fill util and memory of the portions, whose holders are given. What is used belongs to
// those who hold the GPU, in the ratio of their shares.
void portion_by_share(struct portion *portions, size_t count, const struct portion *device);
// Of a GPU in MIG mode: what each instance uses belongs to those who hold it. Utilization counts
// by its part of the GPU's compute slices; where the driver tells none it stays 0.
void portion_by_instance(struct portion *portions, size_t count, const struct mig_state *mig);
// Memory is what the pod's processes have; utilization that of its processes, or where the
// driver tells none, by the shares of those that have processes. A single holder has all.
void portion_by_process(struct portion *portions, size_t count, const struct portion *device,
			const struct nvml_processes *processes, const char *proc_root);
// The pod in the path of a cgroup ("...pod<uid>...", also with the underscores of systemd).
MUST_USE bool portion_pod_of(struct str cgroups, char ret_uid[POD_SHORT_BYTES]);
