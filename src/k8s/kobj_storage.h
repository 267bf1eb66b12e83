// SPDX-License-Identifier: Apache-2.0
// Plain structures of what scheduling looks at in storage objects, filled by the tables in
// kobj_storage.c; otherwise as kobj_types.h. All tables are open: what a volume can do beyond
// these fields decides nothing about where a pod may run.
#pragma once

#include "k8s/kobj_types.h"

struct kobj_claim { // PersistentVolumeClaim
	struct kobj_meta meta;
	KOBJ_LIST_OF(struct kobj_owner) owners;
	struct kobj_texts access_modes;
	struct kobj_label_selector *selector;
	struct kobj_pairs requests; // quantities
	struct str volume_name, class_name, volume_mode, attributes_class, phase;
};

struct kobj_object_ref {
	struct str namespace_, name, uid;
};
struct kobj_csi_source {
	struct str driver, handle;
};
struct kobj_persistent { // PersistentVolume
	struct kobj_meta meta;
	struct kobj_pairs capacity; // quantities
	struct kobj_texts access_modes;
	struct kobj_object_ref *claim;
	struct kobj_node_selector *node_affinity;
	struct kobj_csi_source *csi;
	bool is_cloud; // a cloud's disk in the old in-tree form
	struct str class_name, volume_mode, attributes_class, phase;
};

struct kobj_topology_label {
	struct str key;
	struct kobj_texts values;
};
struct kobj_topology_term {
	KOBJ_LIST_OF(struct kobj_topology_label) labels;
};
struct kobj_storage_class {
	struct kobj_meta meta;
	struct str provisioner, binding_mode;
	KOBJ_LIST_OF(struct kobj_topology_term) topologies;
};

struct kobj_volume_count {
	int64_t count;
};
struct kobj_csi_node_driver {
	struct str name;
	struct kobj_volume_count *allocatable;
};
struct kobj_csi_node {
	struct kobj_meta meta;
	KOBJ_LIST_OF(struct kobj_csi_node_driver) drivers;
};
struct kobj_csi_driver {
	struct kobj_meta meta;
	bool has_capacity;
};
struct kobj_csi_capacity { // JSON only: protobuf nests its quantities
	struct kobj_meta meta;
	struct kobj_label_selector *topology;
	struct str class_name, capacity, volume_size_max;
};
struct kobj_attachment {
	struct kobj_meta meta;
	struct str attacher, node_name, volume_name;
};

extern const struct kobj_table KOBJ_CLAIM, KOBJ_PERSISTENT, KOBJ_STORAGE_CLASS, KOBJ_CSI_NODE,
	KOBJ_CSI_DRIVER, KOBJ_CSI_CAPACITY, KOBJ_ATTACHMENT;
