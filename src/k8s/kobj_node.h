// SPDX-License-Identifier: Apache-2.0
// Plain structures of nodes, of our GPUNode objects and of namespaces, filled by the tables in
// kobj_node.c; otherwise as kobj_types.h.
#pragma once

#include "k8s/kobj_types.h"

struct kobj_taint {
	struct str key, value, effect;
};
struct kobj_node {
	struct kobj_meta meta;
	bool unschedulable;
	KOBJ_LIST_OF(struct kobj_taint) taints;
	struct kobj_pairs allocatable; // quantities
	kobj_conditions conditions;
	struct kobj_texts features; // status.declaredFeatures
};

struct kobj_gpu_link {
	struct str uuid;
};
struct kobj_mig { // a MIG device of a GPU
	struct str uuid, resource;
	int64_t memory_mib;
	int healthy; // tristate
};
struct kobj_gpu { // one of status.devices of a GPUNode
	struct str uuid, model, compute, resource;
	int64_t index, memory_mib, numa_node, switch_links;
	int64_t milli; // thousandths that are given out in shares; 0: it is given whole
	KOBJ_LIST_OF(struct kobj_gpu_link) links;
	KOBJ_LIST_OF(struct kobj_mig) migs;
	int healthy, mig_enabled; // tristate
};
struct kobj_gpu_node {
	struct kobj_meta meta;
	KOBJ_LIST_OF(struct kobj_gpu) devices;
	struct str driver, cuda;
};
struct kobj_namespace {
	struct kobj_meta meta;
};

extern const struct kobj_table KOBJ_NODE, KOBJ_GPU_NODE, KOBJ_NAMESPACE;
