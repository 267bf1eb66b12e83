// SPDX-License-Identifier: Apache-2.0
// What the controllers share: the queues, and one pass over an object, which lives from the
// queue's call until pass_end. Internal to src/daemons/server.
#pragma once

#include "api/object_kinds.h"
#include "api/views.h"
#include "daemons/server/controllers.h"
#include "daemons/server/manifests.h"
#include "daemons/server/workqueue.h"
#include "k8s/event.h"

struct pass {
	struct pass *next, **back;
	struct controllers *controllers;
	struct workqueue *queue;
	char key[OBJECT_KEY_BYTES]; // "namespace/name"
	json_t *object;             // own reference: the cache moves on
	json_t *status;             // wanted
	json_t *victim;             // the pod that leaves a dead GPU
	size_t victim_i;            // its place among those of the node
	struct manifest parts[MANIFEST_TENANT_PARTS];
	size_t part_i;
	struct err later;      // after the status is written: tried again for this reason
	struct drain *drain;   // of an upgrade: the pods that are still there
	struct k8s_call *call; // under way; NULL: none
};

struct controllers {
	struct loop *loop;
	struct objects *objects;
	struct k8s_client *k8s;    // NULL: none
	struct event_sink *events; // NULL then
	struct workqueue *tenants, *admissions, *requests, *upgrades, *evictions, *taints;
	struct loop_timer *look; // at upgrades under way and at dead GPUs
	struct dead_gpu_rule dead_gpus;
	struct mig_names migs; // that tenants' quotas count
	bool is_eviction_braked;
	// Keys of requests that were let through their quota and whose Job is not to be seen yet:
	// they hold their room. Made anew after a restart from the same objects.
	struct map *admitted;
	struct pass *passes;
	uint64_t jobs_created, pods_evicted;
};

struct pod_name {
	struct str namespace_, name;
	struct str uid; // empty: any pod of that name
};

// arg is struct controllers; keys "/TENANT", "/TENANT", "NAMESPACE/NAME", "/NODE" for the rest.
workqueue_fn tenant_reconcile, admission_reconcile, request_reconcile, upgrade_reconcile,
	eviction_reconcile, taint_reconcile;
void upgrade_look(struct controllers *controllers);  // adds the nodes whose upgrade is under way
void eviction_look(struct controllers *controllers); // adds the nodes with pods on dead GPUs
void taint_look(struct controllers *controllers);    // adds the nodes to be closed or opened
// Too many GPUs are said to be dead at once.
bool eviction_is_braked(struct controllers *controllers);
// Asks the pod to leave by the Eviction API.
struct k8s_call *pod_evict(struct k8s_client *k8s, const struct pod_name *pod, k8s_done_fn *on_done,
			   void *arg);
struct str pod_controller(const json_t *pod); // kind of its controller, empty: none
void upgrade_drain_free(struct drain *drain); // NULL allowed

struct pass *pass_new(struct controllers *controllers, struct workqueue *queue, struct str key);
// err NULL: done; else logged, and the key is tried again later.
void pass_end(struct pass *pass, const struct err *err);
void pass_split(const struct pass *pass, struct str *ret_namespace, struct str *ret_name);
void passes_free(struct controllers *controllers);
struct str controllers_key(const json_t *object, char out[OBJECT_KEY_BYTES]);
