// SPDX-License-Identifier: Apache-2.0
// Dynamic resource allocation as far as it decides where pods may run: ResourceClaims,
// DeviceClasses and the ResourceSlices of our driver, told by the caller like nodes and pods. An
// object comes in an arena of its own, which the core takes; keys are names, those of claims
// "namespace/name". A decision that binds a pod also names what is to be written about its claims
// first. Claims that ask for what is not supported carry the reason and are never allocated.
#pragma once

#include "sched/spec.h"

struct sched;

enum { SCHED_CLAIM_GIVES_MAX = 64, SCHED_CLAIM_REQUESTS_MAX = 16 };

typedef enum sched_attribute_kind {
	SCHED_ATTRIBUTE_TEXT,
	SCHED_ATTRIBUTE_INT,
	SCHED_ATTRIBUTE_BOOL,
	SCHED_ATTRIBUTE_VERSION,
} sched_attribute_kind;

struct sched_attribute {
	struct str domain, name;
	sched_attribute_kind kind;
	struct str text;
	int64_t number; // also of BOOL
	struct sched_version version;
};
struct sched_capacity { // of a device
	struct str domain, name;
	int64_t amount;
};
struct sched_pool_device {
	struct str name;
	struct sched_attribute *attributes;
	size_t attribute_count;
	struct sched_capacity *capacities;
	size_t capacity_count;
	struct sched_device_taint *taints;
	size_t taint_count;
};
struct sched_device_taint {
	struct str key, value, effect;
};
struct sched_slice_in {  // key: its name
	struct str node; // whose devices these are, all of the pool
	struct sched_pool_device *devices;
	size_t device_count;
};
struct sched_device_class_in {
	struct str *selectors; // expressions, all must hold
	size_t selector_count;
	struct str trouble; // why its claims are not allocated; empty: they are
};
struct sched_claim_request {
	struct str name, class_name;
	struct str *selectors;
	size_t selector_count;
	int64_t count; // 0: all that match
	struct sched_toleration *tolerations;
	size_t toleration_count;
};
struct sched_claim_match {    // devices of these requests have one value of the attribute
	struct str *requests; // none: all
	size_t request_count;
	struct str domain, name;
};
struct sched_claim_given {
	struct str pool, device; // of our driver
};
struct sched_device_claim_in {
	struct str uid, version, owner_uid; // of the pod it was made for; empty: none
	struct sched_claim_request *requests;
	size_t request_count;
	struct sched_claim_match *matches;
	size_t match_count;
	struct sched_claim_given *given;
	size_t given_count;
	struct str *reserved; // uids of the pods for which it is
	size_t reserved_count;
	bool is_allocated, is_deleting;
	struct str trouble;
};

typedef enum sched_claim_kind {
	SCHED_DEVICE_CLAIM,
	SCHED_DEVICE_CLASS,
	SCHED_SLICE,
	SCHED_CLAIM_KINDS
} sched_claim_kind;

struct sched_claim_object {
	sched_claim_kind kind;
	struct arena *arena; // of all that follows, and of itself
	struct str key;
	union {
		struct sched_device_claim_in claim;
		struct sched_device_class_in class_;
		struct sched_slice_in slice;
	};
};

struct sched_claim_give {
	const struct sched_claim_request *request;
	struct str device;
};
struct sched_claim_allot { // to be written before the pod is bound
	struct str key, uid, version;
	bool is_allocated; // already: the pod is added to those it is reserved for
	const struct sched_claim_give *gives; // else
	size_t give_count;
};

struct sched_claim_stray { // borrowed until the core is told more
	struct str key, uid, version;
};

// A claim that has devices though the pods it is for wait, and was tried in vain where these are: a
// leader has gone between allocation and bind. The allocation is to be taken back, on that version.
// To be asked when sched_next has no more decisions; told again after a while.
MUST_USE bool sched_claim_stray_next(struct sched *sched, struct sched_claim_stray *ret);
// Takes the object with its arena.
void sched_claim_object_set(struct sched *sched, struct sched_claim_object *object);
void sched_claim_object_remove(struct sched *sched, sched_claim_kind kind, struct str key);
