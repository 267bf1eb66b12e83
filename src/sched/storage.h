// SPDX-License-Identifier: Apache-2.0
// Storage as far as it decides where pods may run: claims, volumes, classes, what CSI drivers
// allow on a node, where they have space, what is attached. Told by the caller like nodes and
// pods; inputs are copied. Keys are names, those of claims and capacities "namespace/name".
// A decision that binds a pod also names what has to be written about its claims first.
#pragma once

#include "sched/spec.h"

struct sched;

enum { SCHED_MODE_RWO = 1, SCHED_MODE_ROX = 2, SCHED_MODE_RWX = 4, SCHED_MODE_RWOP = 8 };
enum { SCHED_CLAIMS_MAX = 128, SCHED_NO_VOLUME_LIMIT = -1 };

struct sched_claim_in {
	struct str uid, version, class_name, volume_name, attributes_class;
	struct str owner_uid;           // of the pod that it was made for; empty: none
	struct str selected_node;       // data NULL: none
	struct sched_selector selector; // of volumes; none: any
	int64_t size_bytes;             // 0: any
	uint32_t modes;                 // SCHED_MODE_*, wanted
	bool is_block, is_complete, is_lost, is_deleting;
};
struct sched_volume_in {
	struct str version, class_name, attributes_class;
	struct sched_labels labels;
	bool has_claim; // and its reference, uid may be empty
	struct str claim_key, claim_uid;
	bool has_terms; // node affinity
	struct sched_node_term *terms;
	size_t term_count;
	struct str driver, handle; // of CSI; empty: none
	int64_t size_bytes;
	uint32_t modes; // that it can do
	bool is_block, is_available, is_deleting;
	bool is_cloud; // of a kind that is not supported
};
struct sched_class_in {
	struct str provisioner;
	bool is_delayed; // bound when the first pod is placed
	struct sched_selector *topologies;
	size_t topology_count;
};
struct sched_driver_limit {
	struct str driver;
	int64_t volumes_max; // or SCHED_NO_VOLUME_LIMIT
};
struct sched_csi_node_in { // key: the node
	struct sched_driver_limit *limits;
	size_t limit_count;
};
struct sched_capacity_in {
	struct str class_name;
	struct sched_selector nodes; // is_nothing: none
	int64_t size_bytes;          // of the largest new volume
};
struct sched_csi_driver_in {
	bool tracks_capacity;
};
struct sched_attachment_in {
	struct str driver, node, volume;
};

typedef enum sched_storage {
	SCHED_CLAIM,
	SCHED_VOLUME,
	SCHED_CLASS,
	SCHED_CSI_NODE,
	SCHED_CSI_DRIVER,
	SCHED_CAPACITY,
	SCHED_ATTACHMENT,
	SCHED_STORAGES
} sched_storage;

struct sched_storage_in {
	sched_storage kind;
	struct str key;
	union {
		struct sched_claim_in claim;
		struct sched_volume_in volume;
		struct sched_class_in class_;
		struct sched_csi_node_in csi_node;
		struct sched_csi_driver_in csi_driver;
		struct sched_capacity_in capacity;
		struct sched_attachment_in attachment;
	};
};

struct sched_claim_bind { // to be written before the pod is bound
	struct str claim_key, claim_uid;
	struct str volume;  // to be bound to the claim; empty: one is to be made for the node
	struct str version; // of the volume, or else of the claim, on which this was decided
};

void sched_storage_set(struct sched *sched, const struct sched_storage_in *in);
void sched_storage_remove(struct sched *sched, sched_storage kind, struct str key);
