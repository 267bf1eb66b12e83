// SPDX-License-Identifier: Apache-2.0
// NVML's structures for profiling counters (GPM) and for times of throttling: same rules as
// gpu/nvml_abi.h. Facts: public documentation of NVML, whose layouts the Python bindings repeat.
// Nothing here owns anything; samples are made and freed by the library.
#pragma once

#include "gpu/nvml_abi.h"

struct nvml_gpm_sample; // opaque
struct nvml_gpm_metric {
	uint32_t id;
	nvml_return status;
	double value;
	const char *short_name, *long_name, *unit; // of static texts
};
struct nvml_gpm_metrics { // the caller's array may be shorter or longer than any version says
	uint32_t version; // 1, not a structure version word
	uint32_t count;
	struct nvml_gpm_sample *first, *second;
	struct nvml_gpm_metric metrics[];
};
struct nvml_violation_time {
	uint64_t reference_us, violation_ns;
};
