// SPDX-License-Identifier: Apache-2.0
// Volumes of a pod. What is skipped decides nothing about where a pod may run, also not for
// kube-scheduler: the kubelet mounts it on any node, or fails on all.
#include "k8s/kobj_tables.h"

static const struct kobj_field CLAIM_SOURCE_ROWS[] = {
	KOBJ_ROW("claimName", 1, KOBJ_TEXT, struct kobj_claim_source, claim_name),
	KOBJ_SKIP("readOnly", 2),
};
static const struct kobj_table CLAIM_SOURCE = KOBJ_TABLE_OF(
	"PersistentVolumeClaimVolumeSource", struct kobj_claim_source, CLAIM_SOURCE_ROWS, false);

static const struct kobj_field ISCSI_ROWS[] = {
	KOBJ_ROW("iqn", 2, KOBJ_TEXT, struct kobj_iscsi_source, iqn),
	KOBJ_ROW("readOnly", 6, KOBJ_BOOL, struct kobj_iscsi_source, is_read_only),
};
static const struct kobj_table ISCSI =
	KOBJ_TABLE_OF("ISCSIVolumeSource", struct kobj_iscsi_source, ISCSI_ROWS, true);

static const struct kobj_field RBD_ROWS[] = {
	KOBJ_ROW("monitors", 1, KOBJ_TEXTS, struct kobj_rbd_source, monitors),
	KOBJ_ROW("image", 2, KOBJ_TEXT, struct kobj_rbd_source, image),
	KOBJ_ROW("pool", 4, KOBJ_TEXT, struct kobj_rbd_source, pool),
	KOBJ_ROW("readOnly", 8, KOBJ_BOOL, struct kobj_rbd_source, is_read_only),
};
static const struct kobj_table RBD =
	KOBJ_TABLE_OF("RBDVolumeSource", struct kobj_rbd_source, RBD_ROWS, true);

static const struct kobj_field SOURCE_ROWS[] = {
	KOBJ_SKIP("hostPath", 1),
	KOBJ_SKIP("emptyDir", 2),
	KOBJ_ROW("gcePersistentDisk", 3, KOBJ_PRESENT, struct kobj_volume_source, is_cloud),
	KOBJ_ROW("awsElasticBlockStore", 4, KOBJ_PRESENT, struct kobj_volume_source, is_cloud),
	KOBJ_SKIP("gitRepo", 5),
	KOBJ_SKIP("secret", 6),
	KOBJ_SKIP("nfs", 7),
	KOBJ_SUB("iscsi", 8, KOBJ_OBJECT, struct kobj_volume_source, iscsi, &ISCSI),
	KOBJ_SKIP("glusterfs", 9),
	KOBJ_SUB("persistentVolumeClaim", 10, KOBJ_OBJECT, struct kobj_volume_source, claim,
		 &CLAIM_SOURCE),
	KOBJ_SUB("rbd", 11, KOBJ_OBJECT, struct kobj_volume_source, rbd, &RBD),
	KOBJ_SKIP("flexVolume", 12),
	KOBJ_ROW("cinder", 13, KOBJ_PRESENT, struct kobj_volume_source, is_cloud),
	KOBJ_SKIP("cephfs", 14),
	KOBJ_SKIP("flocker", 15),
	KOBJ_SKIP("downwardAPI", 16),
	KOBJ_SKIP("fc", 17),
	KOBJ_SKIP("azureFile", 18),
	KOBJ_SKIP("configMap", 19),
	KOBJ_SKIP("vsphereVolume", 20),
	KOBJ_SKIP("quobyte", 21),
	KOBJ_ROW("azureDisk", 22, KOBJ_PRESENT, struct kobj_volume_source, is_cloud),
	KOBJ_SKIP("photonPersistentDisk", 23),
	KOBJ_ROW("portworxVolume", 24, KOBJ_PRESENT, struct kobj_volume_source, is_cloud),
	KOBJ_SKIP("scaleIO", 25),
	KOBJ_SKIP("projected", 26),
	KOBJ_SKIP("storageos", 27),
	KOBJ_SKIP("csi", 28),
	KOBJ_ROW("ephemeral", 29, KOBJ_PRESENT, struct kobj_volume_source, is_ephemeral),
	KOBJ_SKIP("image", 30),
};
static const struct kobj_table SOURCE =
	KOBJ_TABLE_OF("VolumeSource", struct kobj_volume_source, SOURCE_ROWS, false);

static const struct kobj_field VOLUME_ROWS[] = {
	KOBJ_ROW("name", 1, KOBJ_TEXT, struct kobj_volume, name),
	KOBJ_SUB("volumeSource", 2, KOBJ_INLINE, struct kobj_volume, source, &SOURCE),
};
const struct kobj_table KOBJ_VOLUME =
	KOBJ_TABLE_OF("Volume", struct kobj_volume, VOLUME_ROWS, false);
