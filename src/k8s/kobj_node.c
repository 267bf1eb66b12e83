// SPDX-License-Identifier: Apache-2.0
#include "k8s/kobj_node.h"
#include "k8s/kobj_tables.h"

static const struct kobj_field TAINT_ROWS[] = {
	KOBJ_ROW("key", 1, KOBJ_TEXT, struct kobj_taint, key),
	KOBJ_ROW("value", 2, KOBJ_TEXT, struct kobj_taint, value),
	KOBJ_ROW("effect", 3, KOBJ_TEXT, struct kobj_taint, effect),
};
static const struct kobj_table TAINT = KOBJ_TABLE_OF("Taint", struct kobj_taint, TAINT_ROWS, true);

// The parts of a node are laid flat into one structure. New fields of a node forbid nothing by
// themselves (what keeps pods away is a taint), so unknown ones are of no interest.
static const struct kobj_field SPEC_ROWS[] = {
	KOBJ_ROW("unschedulable", 4, KOBJ_BOOL, struct kobj_node, unschedulable),
	KOBJ_SUB("taints", 5, KOBJ_OBJECTS, struct kobj_node, taints, &TAINT),
};
static const struct kobj_table SPEC = KOBJ_TABLE_OF("NodeSpec", struct kobj_node, SPEC_ROWS, true);

static const struct kobj_field STATUS_ROWS[] = {
	KOBJ_ROW("allocatable", 2, KOBJ_QUANTITIES, struct kobj_node, allocatable),
	KOBJ_SUB("conditions", 4, KOBJ_OBJECTS, struct kobj_node, conditions, &KOBJ_CONDITION),
	KOBJ_ROW("declaredFeatures", 14, KOBJ_TEXTS, struct kobj_node, features),
};
static const struct kobj_table STATUS =
	KOBJ_TABLE_OF("NodeStatus", struct kobj_node, STATUS_ROWS, true);

static const struct kobj_field NODE_ROWS[] = {
	KOBJ_SUB("metadata", 1, KOBJ_PART, struct kobj_node, meta, &KOBJ_META),
	{ "spec", 2, KOBJ_PART, 0, &SPEC },
	{ "status", 3, KOBJ_PART, 0, &STATUS },
};
const struct kobj_table KOBJ_NODE = KOBJ_TABLE_OF("Node", struct kobj_node, NODE_ROWS, true);

static const struct kobj_field GPU_LINK_ROWS[] = {
	KOBJ_ROW("uuid", 0, KOBJ_TEXT, struct kobj_gpu_link, uuid),
};
static const struct kobj_table GPU_LINK =
	KOBJ_TABLE_OF("link", struct kobj_gpu_link, GPU_LINK_ROWS, true);

static const struct kobj_field MIG_ROWS[] = {
	KOBJ_ROW("uuid", 0, KOBJ_TEXT, struct kobj_mig, uuid),
	KOBJ_ROW("resource", 0, KOBJ_TEXT, struct kobj_mig, resource),
	KOBJ_ROW("memoryMiB", 0, KOBJ_INT, struct kobj_mig, memory_mib),
	KOBJ_ROW("healthy", 0, KOBJ_TRISTATE, struct kobj_mig, healthy),
};
static const struct kobj_table MIG = KOBJ_TABLE_OF("MIG device", struct kobj_mig, MIG_ROWS, true);

static const struct kobj_field GPU_ROWS[] = {
	KOBJ_ROW("uuid", 0, KOBJ_TEXT, struct kobj_gpu, uuid),
	KOBJ_ROW("model", 0, KOBJ_TEXT, struct kobj_gpu, model),
	KOBJ_ROW("index", 0, KOBJ_INT, struct kobj_gpu, index),
	KOBJ_ROW("memoryMiB", 0, KOBJ_INT, struct kobj_gpu, memory_mib),
	KOBJ_ROW("milli", 0, KOBJ_INT, struct kobj_gpu, milli),
	KOBJ_ROW("healthy", 0, KOBJ_TRISTATE, struct kobj_gpu, healthy),
	KOBJ_ROW("migEnabled", 0, KOBJ_TRISTATE, struct kobj_gpu, mig_enabled),
	KOBJ_ROW("resource", 0, KOBJ_TEXT, struct kobj_gpu, resource),
	KOBJ_SUB("mig", 0, KOBJ_OBJECTS, struct kobj_gpu, migs, &MIG),
	KOBJ_ROW("computeCapability", 0, KOBJ_TEXT, struct kobj_gpu, compute),
	KOBJ_ROW("numaNode", 0, KOBJ_INT, struct kobj_gpu, numa_node),
	KOBJ_ROW("switchLinks", 0, KOBJ_INT, struct kobj_gpu, switch_links),
	KOBJ_SUB("links", 0, KOBJ_OBJECTS, struct kobj_gpu, links, &GPU_LINK),
};
static const struct kobj_table GPU = KOBJ_TABLE_OF("device", struct kobj_gpu, GPU_ROWS, true);

static const struct kobj_field GPU_STATUS_ROWS[] = {
	KOBJ_SUB("devices", 0, KOBJ_OBJECTS, struct kobj_gpu_node, devices, &GPU),
	KOBJ_ROW("driverVersion", 0, KOBJ_TEXT, struct kobj_gpu_node, driver),
	KOBJ_ROW("cudaVersion", 0, KOBJ_TEXT, struct kobj_gpu_node, cuda),
};
static const struct kobj_table GPU_STATUS =
	KOBJ_TABLE_OF("GPUNodeStatus", struct kobj_gpu_node, GPU_STATUS_ROWS, true);

static const struct kobj_field GPU_NODE_ROWS[] = {
	KOBJ_SUB("metadata", 0, KOBJ_PART, struct kobj_gpu_node, meta, &KOBJ_META),
	{ "status", 0, KOBJ_PART, 0, &GPU_STATUS },
};
const struct kobj_table KOBJ_GPU_NODE =
	KOBJ_TABLE_OF("GPUNode", struct kobj_gpu_node, GPU_NODE_ROWS, true);

static const struct kobj_field NAMESPACE_ROWS[] = {
	KOBJ_SUB("metadata", 1, KOBJ_PART, struct kobj_namespace, meta, &KOBJ_META),
};
const struct kobj_table KOBJ_NAMESPACE =
	KOBJ_TABLE_OF("Namespace", struct kobj_namespace, NAMESPACE_ROWS, true);
