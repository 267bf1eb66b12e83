// SPDX-License-Identifier: Apache-2.0
// Handles of MIG devices, GPU instances and compute instances, and what the daemon says of them.
// A handle stands for a place (GPU, instance ids), so it is checked against the daemon's list at
// each use: that of an instance that was destroyed is invalid, and valid again when one with the
// same ids is made.
#pragma once

#include "emulator/lib/client.h"

struct nvml_gpu_instance;     // opaque
struct nvml_compute_instance; // opaque

struct client_place {
	uint32_t slot, gi, ci; // WIRE_NO_INSTANCE
};

// A MIG device with all that is known of it; the pointers are into mig.
struct client_instance {
	struct client_place place;
	struct wire_mig mig;
	const struct wire_mig_profile *profile;
	const struct wire_gi *gi;
	const struct wire_ci *ci; // NULL for a GPU instance
	uint32_t index;           // of the MIG device on its GPU
};

struct nvml_device *client_mig_device(struct client_place place);
struct nvml_gpu_instance *client_gi(struct client_place place);
struct nvml_compute_instance *client_ci(struct client_place place);

// What is told of the GPU also when the handle is one of its MIG devices.
nvml_return client_parent(const struct nvml_device *device, const char *call, struct wire_gpu *ret);
bool client_is_mig(const struct nvml_device *device);
// The GPU's instances and what else fits; device is a whole GPU's.
nvml_return client_mig(const struct nvml_device *device, const char *call, struct wire_mig *ret);
nvml_return client_mig_instance(const struct nvml_device *device, const char *call,
				struct client_instance *ret);
nvml_return client_gi_instance(const struct nvml_gpu_instance *gi, const char *call,
			       struct client_instance *ret);
nvml_return client_ci_instance(const struct nvml_compute_instance *ci, const char *call,
			       struct client_instance *ret);
// Asks for a change; args as in enum wire_op. ret_mig may be NULL.
nvml_return client_change(uint32_t slot, enum wire_op op, const char *call,
			  const uint32_t args[WIRE_ARGS_MAX], struct wire_mig *ret_mig);
