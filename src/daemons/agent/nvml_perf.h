// SPDX-License-Identifier: Apache-2.0
// Values of a device that need two looks (profiling counters of Hopper and newer, traffic of
// NVLinks), and those that change seldom (errors, retired pages, times of throttling), which are
// asked each tenth second only. Used by the device's thread of the child process alone, which owns
// the state; what the library or the device has not is left out.
#pragma once

#include "daemons/agent/nvml_lib.h"
#include "gpu/field.h"
#include "gpu/mig.h"

struct nvml_perf {
	bool is_asked;                      // whether the device has profiling counters
	bool has_first;                     // samples[0] is filled
	struct nvml_gpm_sample *samples[2]; // NULL: it has none
	struct nvml_gpm_metrics *metrics;   // room for what is asked
	uint64_t link_kib, link_ns;         // 0: not read yet
	uint64_t slow_ns;                   // when; 0: never
	struct gpu_reading slow;
};

// The same counters of GPU instances, by id; an instance that has gone gives its place away.
struct nvml_mig_perf {
	struct {
		bool is_used, has_first;
		uint32_t gi;
		struct nvml_gpm_sample *samples[2];
	} places[MIG_INSTANCES_MAX];
};

// Fills has_use and use_milli of the instances; nothing where the device has no counters.
void nvml_read_mig_perf(const struct nvml_lib *lib, struct nvml_device *device,
			struct nvml_mig_perf *perf, struct mig_state *mig);
bool nvml_perf_has_counters(const struct nvml_perf *perf); // once it was read
void nvml_read_perf(const struct nvml_lib *lib, struct nvml_device *device, struct nvml_perf *perf,
		    uint64_t now_ns, struct gpu_reading *ret);
