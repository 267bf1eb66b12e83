// SPDX-License-Identifier: Apache-2.0
// The storage objects that the scheduling core wants to know, as one table, so that the daemon,
// its dump and the simulator read the same kinds alike.
#pragma once

#include "feed/feed.h"
#include "k8s/kobj_storage.h"

#define FEED_SELECTED_NODE "volume.kubernetes.io/selected-node"
#define FEED_BIND_COMPLETED "pv.kubernetes.io/bind-completed"
#define FEED_BOUND_BY_CONTROLLER "pv.kubernetes.io/bound-by-controller"

union feed_storage_object { // room for any of them
	struct kobj_claim claim;
	struct kobj_persistent volume;
	struct kobj_storage_class class_;
	struct kobj_csi_node csi_node;
	struct kobj_csi_driver csi_driver;
	struct kobj_csi_capacity capacity;
	struct kobj_attachment attachment;
};
struct feed_storage {
	const char *kind, *api_version, *path;
	bool is_protobuf; // the watch may ask for it
	const struct kobj_table *table;
	// Borrows from the object; false only at the arena's limit.
	bool (*read)(struct arena *arena, const void *object, struct sched_storage_in *ret_in);
};

extern const struct feed_storage FEED_STORAGES[SCHED_STORAGES];
