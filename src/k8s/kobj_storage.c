// SPDX-License-Identifier: Apache-2.0
#include "k8s/kobj_storage.h"
#include "k8s/kobj_tables.h"

// Only claims and pods are asked for their owners, so that nodes do not pay for it.
static const struct kobj_field CLAIM_META_ROWS[] = {
	KOBJ_ROW("name", 1, KOBJ_TEXT, struct kobj_claim, meta.name),
	KOBJ_ROW("namespace", 3, KOBJ_TEXT, struct kobj_claim, meta.namespace_),
	KOBJ_ROW("uid", 5, KOBJ_TEXT, struct kobj_claim, meta.uid),
	KOBJ_ROW("resourceVersion", 6, KOBJ_TEXT, struct kobj_claim, meta.resource_version),
	KOBJ_ROW("deletionTimestamp", 9, KOBJ_TIME, struct kobj_claim, meta.deleted_s),
	KOBJ_ROW("annotations", 12, KOBJ_PAIRS, struct kobj_claim, meta.annotations),
	KOBJ_SUB("ownerReferences", 13, KOBJ_OBJECTS, struct kobj_claim, owners, &KOBJ_OWNER),
};
static const struct kobj_table CLAIM_META =
	KOBJ_TABLE_OF("ObjectMeta", struct kobj_claim, CLAIM_META_ROWS, true);

static const struct kobj_field CLAIM_RESOURCES_ROWS[] = {
	KOBJ_ROW("requests", 2, KOBJ_QUANTITIES, struct kobj_claim, requests),
};
static const struct kobj_table CLAIM_RESOURCES =
	KOBJ_TABLE_OF("VolumeResourceRequirements", struct kobj_claim, CLAIM_RESOURCES_ROWS, true);

static const struct kobj_field CLAIM_SPEC_ROWS[] = {
	KOBJ_ROW("accessModes", 1, KOBJ_TEXTS, struct kobj_claim, access_modes),
	{ "resources", 2, KOBJ_PART, 0, &CLAIM_RESOURCES },
	KOBJ_ROW("volumeName", 3, KOBJ_TEXT, struct kobj_claim, volume_name),
	KOBJ_SUB("selector", 4, KOBJ_OBJECT, struct kobj_claim, selector, &KOBJ_LABEL_SELECTOR),
	KOBJ_ROW("storageClassName", 5, KOBJ_TEXT, struct kobj_claim, class_name),
	KOBJ_ROW("volumeMode", 6, KOBJ_TEXT, struct kobj_claim, volume_mode),
	KOBJ_ROW("volumeAttributesClassName", 9, KOBJ_TEXT, struct kobj_claim, attributes_class),
};
static const struct kobj_table CLAIM_SPEC =
	KOBJ_TABLE_OF("PersistentVolumeClaimSpec", struct kobj_claim, CLAIM_SPEC_ROWS, true);

static const struct kobj_field CLAIM_STATUS_ROWS[] = {
	KOBJ_ROW("phase", 1, KOBJ_TEXT, struct kobj_claim, phase),
};
static const struct kobj_table CLAIM_STATUS =
	KOBJ_TABLE_OF("PersistentVolumeClaimStatus", struct kobj_claim, CLAIM_STATUS_ROWS, true);

static const struct kobj_field CLAIM_ROWS[] = {
	{ "metadata", 1, KOBJ_PART, 0, &CLAIM_META },
	{ "spec", 2, KOBJ_PART, 0, &CLAIM_SPEC },
	{ "status", 3, KOBJ_PART, 0, &CLAIM_STATUS },
};
const struct kobj_table KOBJ_CLAIM =
	KOBJ_TABLE_OF("PersistentVolumeClaim", struct kobj_claim, CLAIM_ROWS, true);

static const struct kobj_field REF_ROWS[] = {
	KOBJ_ROW("namespace", 2, KOBJ_TEXT, struct kobj_object_ref, namespace_),
	KOBJ_ROW("name", 3, KOBJ_TEXT, struct kobj_object_ref, name),
	KOBJ_ROW("uid", 4, KOBJ_TEXT, struct kobj_object_ref, uid),
};
static const struct kobj_table REF =
	KOBJ_TABLE_OF("ObjectReference", struct kobj_object_ref, REF_ROWS, true);

static const struct kobj_field CSI_SOURCE_ROWS[] = {
	KOBJ_ROW("driver", 1, KOBJ_TEXT, struct kobj_csi_source, driver),
	KOBJ_ROW("volumeHandle", 2, KOBJ_TEXT, struct kobj_csi_source, handle),
};
static const struct kobj_table CSI_SOURCE =
	KOBJ_TABLE_OF("CSIPersistentVolumeSource", struct kobj_csi_source, CSI_SOURCE_ROWS, true);

static const struct kobj_field PV_SOURCE_ROWS[] = {
	KOBJ_ROW("gcePersistentDisk", 1, KOBJ_PRESENT, struct kobj_persistent, is_cloud),
	KOBJ_ROW("awsElasticBlockStore", 2, KOBJ_PRESENT, struct kobj_persistent, is_cloud),
	KOBJ_ROW("cinder", 8, KOBJ_PRESENT, struct kobj_persistent, is_cloud),
	KOBJ_ROW("azureDisk", 16, KOBJ_PRESENT, struct kobj_persistent, is_cloud),
	KOBJ_ROW("portworxVolume", 18, KOBJ_PRESENT, struct kobj_persistent, is_cloud),
	KOBJ_SUB("csi", 22, KOBJ_OBJECT, struct kobj_persistent, csi, &CSI_SOURCE),
};
static const struct kobj_table PV_SOURCE =
	KOBJ_TABLE_OF("PersistentVolumeSource", struct kobj_persistent, PV_SOURCE_ROWS, true);

static const struct kobj_field VOLUME_AFFINITY_ROWS[] = {
	KOBJ_SUB("required", 1, KOBJ_OBJECT, struct kobj_persistent, node_affinity,
		 &KOBJ_NODE_SELECTOR),
};
static const struct kobj_table VOLUME_AFFINITY =
	KOBJ_TABLE_OF("VolumeNodeAffinity", struct kobj_persistent, VOLUME_AFFINITY_ROWS, true);

static const struct kobj_field PV_SPEC_ROWS[] = {
	KOBJ_ROW("capacity", 1, KOBJ_QUANTITIES, struct kobj_persistent, capacity),
	{ "persistentVolumeSource", 2, KOBJ_INLINE, 0, &PV_SOURCE },
	KOBJ_ROW("accessModes", 3, KOBJ_TEXTS, struct kobj_persistent, access_modes),
	KOBJ_SUB("claimRef", 4, KOBJ_OBJECT, struct kobj_persistent, claim, &REF),
	KOBJ_ROW("storageClassName", 6, KOBJ_TEXT, struct kobj_persistent, class_name),
	KOBJ_ROW("volumeMode", 8, KOBJ_TEXT, struct kobj_persistent, volume_mode),
	{ "nodeAffinity", 9, KOBJ_PART, 0, &VOLUME_AFFINITY },
	KOBJ_ROW("volumeAttributesClassName", 10, KOBJ_TEXT, struct kobj_persistent,
		 attributes_class),
};
static const struct kobj_table PV_SPEC =
	KOBJ_TABLE_OF("PersistentVolumeSpec", struct kobj_persistent, PV_SPEC_ROWS, true);

static const struct kobj_field PV_STATUS_ROWS[] = {
	KOBJ_ROW("phase", 1, KOBJ_TEXT, struct kobj_persistent, phase),
};
static const struct kobj_table PV_STATUS =
	KOBJ_TABLE_OF("PersistentVolumeStatus", struct kobj_persistent, PV_STATUS_ROWS, true);

static const struct kobj_field PV_ROWS[] = {
	KOBJ_SUB("metadata", 1, KOBJ_PART, struct kobj_persistent, meta, &KOBJ_META),
	{ "spec", 2, KOBJ_PART, 0, &PV_SPEC },
	{ "status", 3, KOBJ_PART, 0, &PV_STATUS },
};
const struct kobj_table KOBJ_PERSISTENT =
	KOBJ_TABLE_OF("PersistentVolume", struct kobj_persistent, PV_ROWS, true);

static const struct kobj_field TOPOLOGY_LABEL_ROWS[] = {
	KOBJ_ROW("key", 1, KOBJ_TEXT, struct kobj_topology_label, key),
	KOBJ_ROW("values", 2, KOBJ_TEXTS, struct kobj_topology_label, values),
};
static const struct kobj_table TOPOLOGY_LABEL = KOBJ_TABLE_OF(
	"TopologySelectorLabelRequirement", struct kobj_topology_label, TOPOLOGY_LABEL_ROWS, true);

static const struct kobj_field TOPOLOGY_TERM_ROWS[] = {
	KOBJ_SUB("matchLabelExpressions", 1, KOBJ_OBJECTS, struct kobj_topology_term, labels,
		 &TOPOLOGY_LABEL),
};
static const struct kobj_table TOPOLOGY_TERM =
	KOBJ_TABLE_OF("TopologySelectorTerm", struct kobj_topology_term, TOPOLOGY_TERM_ROWS, true);

static const struct kobj_field CLASS_ROWS[] = {
	KOBJ_SUB("metadata", 1, KOBJ_PART, struct kobj_storage_class, meta, &KOBJ_META),
	KOBJ_ROW("provisioner", 2, KOBJ_TEXT, struct kobj_storage_class, provisioner),
	KOBJ_ROW("volumeBindingMode", 7, KOBJ_TEXT, struct kobj_storage_class, binding_mode),
	KOBJ_SUB("allowedTopologies", 8, KOBJ_OBJECTS, struct kobj_storage_class, topologies,
		 &TOPOLOGY_TERM),
};
const struct kobj_table KOBJ_STORAGE_CLASS =
	KOBJ_TABLE_OF("StorageClass", struct kobj_storage_class, CLASS_ROWS, true);

static const struct kobj_field VOLUME_COUNT_ROWS[] = {
	KOBJ_ROW("count", 1, KOBJ_INT, struct kobj_volume_count, count),
};
static const struct kobj_table VOLUME_COUNT =
	KOBJ_TABLE_OF("VolumeNodeResources", struct kobj_volume_count, VOLUME_COUNT_ROWS, true);

static const struct kobj_field NODE_DRIVER_ROWS[] = {
	KOBJ_ROW("name", 1, KOBJ_TEXT, struct kobj_csi_node_driver, name),
	KOBJ_SUB("allocatable", 4, KOBJ_OBJECT, struct kobj_csi_node_driver, allocatable,
		 &VOLUME_COUNT),
};
static const struct kobj_table NODE_DRIVER =
	KOBJ_TABLE_OF("CSINodeDriver", struct kobj_csi_node_driver, NODE_DRIVER_ROWS, true);

static const struct kobj_field CSI_NODE_SPEC_ROWS[] = {
	KOBJ_SUB("drivers", 1, KOBJ_OBJECTS, struct kobj_csi_node, drivers, &NODE_DRIVER),
};
static const struct kobj_table CSI_NODE_SPEC =
	KOBJ_TABLE_OF("CSINodeSpec", struct kobj_csi_node, CSI_NODE_SPEC_ROWS, true);

static const struct kobj_field CSI_NODE_ROWS[] = {
	KOBJ_SUB("metadata", 1, KOBJ_PART, struct kobj_csi_node, meta, &KOBJ_META),
	{ "spec", 2, KOBJ_PART, 0, &CSI_NODE_SPEC },
};
const struct kobj_table KOBJ_CSI_NODE =
	KOBJ_TABLE_OF("CSINode", struct kobj_csi_node, CSI_NODE_ROWS, true);

static const struct kobj_field CSI_DRIVER_SPEC_ROWS[] = {
	KOBJ_ROW("storageCapacity", 4, KOBJ_BOOL, struct kobj_csi_driver, has_capacity),
};
static const struct kobj_table CSI_DRIVER_SPEC =
	KOBJ_TABLE_OF("CSIDriverSpec", struct kobj_csi_driver, CSI_DRIVER_SPEC_ROWS, true);

static const struct kobj_field CSI_DRIVER_ROWS[] = {
	KOBJ_SUB("metadata", 1, KOBJ_PART, struct kobj_csi_driver, meta, &KOBJ_META),
	{ "spec", 2, KOBJ_PART, 0, &CSI_DRIVER_SPEC },
};
const struct kobj_table KOBJ_CSI_DRIVER =
	KOBJ_TABLE_OF("CSIDriver", struct kobj_csi_driver, CSI_DRIVER_ROWS, true);

static const struct kobj_field CSI_CAPACITY_ROWS[] = {
	KOBJ_SUB("metadata", 0, KOBJ_PART, struct kobj_csi_capacity, meta, &KOBJ_META),
	KOBJ_SUB("nodeTopology", 0, KOBJ_OBJECT, struct kobj_csi_capacity, topology,
		 &KOBJ_LABEL_SELECTOR),
	KOBJ_ROW("storageClassName", 0, KOBJ_TEXT, struct kobj_csi_capacity, class_name),
	KOBJ_ROW("capacity", 0, KOBJ_TEXT, struct kobj_csi_capacity, capacity),
	KOBJ_ROW("maximumVolumeSize", 0, KOBJ_TEXT, struct kobj_csi_capacity, volume_size_max),
};
const struct kobj_table KOBJ_CSI_CAPACITY =
	KOBJ_TABLE_OF("CSIStorageCapacity", struct kobj_csi_capacity, CSI_CAPACITY_ROWS, true);

static const struct kobj_field ATTACHMENT_SOURCE_ROWS[] = {
	KOBJ_ROW("persistentVolumeName", 1, KOBJ_TEXT, struct kobj_attachment, volume_name),
};
static const struct kobj_table ATTACHMENT_SOURCE = KOBJ_TABLE_OF(
	"VolumeAttachmentSource", struct kobj_attachment, ATTACHMENT_SOURCE_ROWS, true);

static const struct kobj_field ATTACHMENT_SPEC_ROWS[] = {
	KOBJ_ROW("attacher", 1, KOBJ_TEXT, struct kobj_attachment, attacher),
	{ "source", 2, KOBJ_PART, 0, &ATTACHMENT_SOURCE },
	KOBJ_ROW("nodeName", 3, KOBJ_TEXT, struct kobj_attachment, node_name),
};
static const struct kobj_table ATTACHMENT_SPEC =
	KOBJ_TABLE_OF("VolumeAttachmentSpec", struct kobj_attachment, ATTACHMENT_SPEC_ROWS, true);

static const struct kobj_field ATTACHMENT_ROWS[] = {
	KOBJ_SUB("metadata", 1, KOBJ_PART, struct kobj_attachment, meta, &KOBJ_META),
	{ "spec", 2, KOBJ_PART, 0, &ATTACHMENT_SPEC },
};
const struct kobj_table KOBJ_ATTACHMENT =
	KOBJ_TABLE_OF("VolumeAttachment", struct kobj_attachment, ATTACHMENT_ROWS, true);
