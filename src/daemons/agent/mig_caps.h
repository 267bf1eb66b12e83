// SPDX-License-Identifier: Apache-2.0
// The capability devices that open a MIG device to a container: /dev/nvidia-caps/nvidia-capN of
// its GPU instance and of its compute instance. Which N is which the driver says in
// /proc/driver/nvidia-caps/mig-minors, and the major number is in /proc/devices; both are read
// below a folder that stands for /proc. Parsing is pure; text from outside is not believed.
#pragma once

#include "base/buf.h"
#include "gpu/mig.h"

enum { MIG_CAPS_NAME_BYTES = 40 };

struct mig_caps {
	struct buf minors; // text of mig-minors; empty: not there
	uint32_t major;    // 0: not known
};

// One MIG device with what opens it.
struct mig_device {
	const struct gpu_info *gpu;
	const struct mig_instance *instance;
	bool has_caps; // what follows is known
	uint32_t gi_cap, ci_cap;
};

void mig_caps_read(const char *proc_root, struct mig_caps *ret); // what is not there stays empty
void mig_caps_done(struct mig_caps *caps);
// Fills the capabilities of the device.
void mig_caps_find(const struct mig_caps *caps, struct mig_device *device);
// The minor number of "gpuG/giI/access" or "gpuG/giI/ciC/access" (ci UINT32_MAX: the former).
MUST_USE bool mig_caps_minor(struct str minors, uint32_t gpu_minor, uint32_t gi, uint32_t ci,
			     uint32_t *ret_minor);
// The major number of that name in /proc/devices.
MUST_USE bool mig_caps_major(struct str devices, const char *name, uint32_t *ret_major);
// "nvidia-caps/nvidia-cap21"
char *mig_caps_name(uint32_t cap, char out[MIG_CAPS_NAME_BYTES]);
