// SPDX-License-Identifier: Apache-2.0
// Objects that say how large a gang is: PodGroups of Kubernetes (scheduling.k8s.io, where it is
// served) and of the coscheduling plugin, and Jobs. Plain structures filled by the tables in
// kobj_group.c from JSON; what is absent is zero, empty or NULL.
#pragma once

#include "k8s/kobj_types.h"

struct kobj_topology_key {
	struct str key;
};
struct kobj_pod_group {
	struct kobj_meta meta;
	int64_t min_count; // of the gang policy
	KOBJ_LIST_OF(struct kobj_topology_key) topology;
};
struct kobj_cosched_group {
	struct kobj_meta meta;
	int64_t min_member, timeout_s;
};
struct kobj_job {
	struct kobj_meta meta, pods; // pods: metadata of the template
	int64_t parallelism, completions, succeeded;
	bool is_suspended;
	KOBJ_LIST_OF(struct kobj_condition) conditions;
};

extern const struct kobj_table KOBJ_POD_GROUP, KOBJ_COSCHED_GROUP, KOBJ_JOB;
