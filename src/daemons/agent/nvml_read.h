// SPDX-License-Identifier: Apache-2.0
// What the child answers: identity, probe, readings and processes of one device, by calls into
// the driver library. Each may take long or never return; that is the parent's to notice.
// A value that the driver does not give is left out and hurts no other.
#pragma once

#include "daemons/agent/nvml_lib.h"
#include "daemons/agent/nvml_wire.h"

nvml_return nvml_read_info(const struct nvml_lib *lib, struct nvml_device *device, uint32_t index,
			   struct gpu_info *ret);
// uuid: what the device said when it was opened; another one now is a lost device.
nvml_return nvml_read_probe(const struct nvml_lib *lib, struct nvml_device *device,
			    const char *uuid, struct nvml_probe *ret);
void nvml_read_fields(const struct nvml_lib *lib, struct nvml_device *device,
		      struct gpu_reading *ret);
nvml_return nvml_read_processes(const struct nvml_lib *lib, struct nvml_device *device,
				struct nvml_processes *ret);
// profiles: of the board, as they were read before (profile_count 0: they are read now).
nvml_return nvml_read_mig(const struct nvml_lib *lib, struct nvml_device *device,
			  const struct gpu_info *info, const struct mig_state *profiles,
			  struct mig_state *ret);
// Does the change whole or not at all, as far as the driver lets it. ret_text: what failed.
nvml_return nvml_change_mig(const struct nvml_lib *lib, struct nvml_device *device,
			    const struct nvml_mig_change *change, char ret_text[NVML_TEXT_BYTES]);
