// SPDX-License-Identifier: Apache-2.0
// Inside of the scheduling core, for the files of this folder only. Nodes lie in slots and their
// amounts in columns, one a resource, so that a decision walks plain arrays. Pods and shapes are
// in pod.h. Everything here is owned by struct sched.
#pragma once

#include "base/map.h"
#include "sched/device.h"
#include "sched/forecast.h"
#include "sched/pod.h"

enum { DIM_PODS, DIM_CPU, DIM_MEMORY, DIM_GPU, DIMS_FIXED };
#define DIM_NONE UINT32_MAX // no node names the resource
enum { FACTS_FRESH_MS = 5000, RETRY_FIRST_MS = 1000, RETRY_MAX_MS = 60000 };

struct column { // one resource over all node slots
	char *name;
	int64_t *alloc, *used;
};

struct node {
	struct str name;
	uint32_t slot;
	bool is_known; // seen itself, not only named by a pod or a GPUNode
	bool is_cordoned, is_not_ready, is_touched, has_soft_taint;
	struct sched_labels labels;
	struct sched_taint *taints;
	size_t taint_count;
	struct str *features;
	size_t feature_count;
	uint32_t models;     // that queues name, as in queue_model.h
	uint64_t static_gen; // of the last change that has nothing to do with pods
	uint64_t hash;       // of what sched_node_set was told
	uint64_t hold_stamp; // of the last change of its devices and of what is held of them
	struct device *devices;
	size_t device_count, device_cap, present_count;
	struct link pods;            // on this node, by on_node
	struct link nominated;       // waiting pods that it is kept for, by in_nominated
	struct head *reserved;       // for whom it is kept; NULL: nobody
	struct window_part *windows; // that lie on it
};

struct priority {
	int64_t value;
	size_t pod_count;
};

struct sched {
	uint64_t seed;
	struct weigh *weigh;
	struct column columns[SCHED_RESOURCES_MAX];
	uint32_t column_count;
	uint64_t columns_gen, gen, facts_gen, apart_gen; // gen: of changes to nodes
	struct node **nodes;                             // by slot, NULL: free
	uint32_t slot_count, slot_cap;
	uint32_t *ranks; // by slot, in the order of names
	bool are_ranks_valid;
	size_t soft_taint_count; // nodes with PreferNoSchedule
	struct map *node_by_name, *pod_by_uid, *pod_by_name, *shape_by_key, *namespaces;
	struct queueing *queueing;       // waiting pods and shapes to be tried, by queue
	struct link parked, telling;     // shapes
	struct link held, backoff, tell; // waiting pods
	struct link apart;               // pods on nodes that have anti-affinity
	uint32_t *touched;               // slots whose room or properties changed
	uint32_t touched_count;
	bool wakes_all, wakes_near, wakes_volumes; // near: a pod came to a node
	struct stock *stock;
	struct claim_book *claim_book;
	struct gangs *gangs;
	struct tree due; // of deadline.h
	struct forecast *forecast;
	struct learn *learned; // how long pods ran; NULL: nothing is learned
	struct preempt *preempt;
	struct slices *slices;   // reserved for tenants; NULL: none yet
	struct windows *windows; // the same for a time; NULL: none yet
	struct loads *loads;
	int64_t now_ms;
	size_t heads_per_pool, head_count;
	struct head *heads[SCHED_HEADS_MAX]; // in queue order
	bool are_heads_stale;                // others may have to be heads
	uint64_t elect_gen, settled_gen;
	uint64_t load_gen, *load_gens; // by slot: of what pods there take and when they end
	struct priority *priorities;   // of pods on nodes, with their number
	size_t priority_count, priority_cap;
	size_t state_counts[SCHED_STATE_BOUND + 1];
	struct sched_grant grants[SCHED_DEVICES_MAX];
	struct why why;          // of the last choice of a node
	struct sched_facts told; // lent with the last decision
};

void *core_alloc(size_t count, size_t size_bytes); // zeroed; ends the program without memory
// A larger copy with zeroes behind; the old one is freed.
void *core_grow(void *old, size_t old_count, size_t count, size_t size_bytes);
// Copies of texts in one block: the array first, its bytes behind it. NULL for count 0.
struct str *core_texts_copy(const struct str *texts, size_t count);
struct sched_labels core_labels_copy(const struct sched_labels *labels);
uint32_t core_dim_find(const struct sched *sched, struct str resource);
struct node *core_node_get(struct sched *sched, struct str name); // made if absent
void core_node_release(struct sched *sched, struct node *node);   // freed if nothing needs it
void core_touch(struct sched *sched, struct node *node);
void core_load_changed(struct sched *sched, const struct node *node);
struct device *core_device_get(struct node *node, struct str uuid); // made; NULL: no room
