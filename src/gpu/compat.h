// SPDX-License-Identifier: Apache-2.0
// Whether the versions on a node go together: driver, CUDA, Kubernetes, containerd and the
// container toolkit against the table in compat_table.h. Pure. What is not known (an empty
// version, another container runtime) is no finding: it is said elsewhere that it is not known.
#pragma once

#include "gpu/gpu.h"

enum { COMPAT_FINDINGS_MAX = 32, COMPAT_TEXT_BYTES = 160, COMPAT_VERSION_BYTES = 48 };

typedef enum compat_component {
	COMPAT_DRIVER,
	COMPAT_CUDA,
	COMPAT_KUBERNETES,
	COMPAT_CONTAINERD,
	COMPAT_TOOLKIT,
	COMPAT_COMPONENT_COUNT,
} compat_component;

typedef enum compat_level { COMPAT_WARNING, COMPAT_ERROR } compat_level;

struct compat_facts {
	const char *driver;  // "570.86.15"
	uint32_t cuda;       // 12080 is 12.8; 0: not known
	const char *kubelet; // "v1.36.3", also with a suffix
	const char *runtime; // "containerd://2.2.9"
	const char *toolkit; // "1.17.8"
	const struct gpu_info *const *gpus;
	size_t gpu_count;
};

struct compat_finding {
	compat_component component;
	compat_level level;
	char version[COMPAT_VERSION_BYTES];
	const char *code;
	char text[COMPAT_TEXT_BYTES];
	const char *source;
};

// At most COMPAT_FINDINGS_MAX, in the order of the table; the count.
size_t compat_check(const struct compat_facts *facts,
		    struct compat_finding ret[COMPAT_FINDINGS_MAX]);
const char *compat_component_name(compat_component component); // "container-toolkit"
const char *compat_level_name(compat_level level);
// Order of two versions by their numbers; what follows the numbers ("+k3s1", "-1") and a leading
// "v" do not count, a missing number is 0. Not both need have numbers.
int compat_version_cmp(struct str a, struct str b);
bool compat_is_version(struct str text); // begins with a number, after a "v" at most
