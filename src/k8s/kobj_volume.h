// SPDX-License-Identifier: Apache-2.0
// Plain structures of a pod's volumes, filled by the tables in kobj_volume.c; otherwise as
// kobj_types.h. Only what decides whether a pod can be placed is kept.
#pragma once

#include "k8s/kobj.h"

struct kobj_claim_source {
	struct str claim_name;
};
struct kobj_iscsi_source {
	struct str iqn;
	bool is_read_only;
};
struct kobj_rbd_source {
	struct kobj_texts monitors;
	struct str image, pool;
	bool is_read_only;
};
struct kobj_volume_source {
	struct kobj_claim_source *claim;
	struct kobj_iscsi_source *iscsi;
	struct kobj_rbd_source *rbd;
	bool is_ephemeral; // a claim of its own is made for the pod
	bool is_cloud;     // a cloud's disk in the old in-tree form
};
struct kobj_volume {
	struct str name;
	struct kobj_volume_source source;
};
