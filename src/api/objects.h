// SPDX-License-Identifier: Apache-2.0
// The objects that the server works with (Tenant, GPURequest, GPUNode, Job, Pod and what a
// tenant's namespace is made of), read from a cache and written to where they are true: the
// Kubernetes API, or, where there is none, a table in SQL. The cache follows watches; what the
// API server answered to our own write is in it at once. JSON is borrowed until the next turn.
#pragma once

#include "base/json.h"
#include "k8s/client.h"
#include "sql/sql.h"

typedef enum object_kind {
	OBJECT_TENANT,
	OBJECT_REQUEST,
	OBJECT_NODE, // GPUNode
	OBJECT_JOB,
	OBJECT_POD,
	OBJECT_NAMESPACE,
	OBJECT_QUOTA,   // ResourceQuota
	OBJECT_LIMITS,  // LimitRange
	OBJECT_POLICY,  // NetworkPolicy
	OBJECT_BINDING, // RoleBinding
	OBJECT_EVENT,   // of Jobs whose pods are refused
	OBJECT_HOST,    // Node with GPUs
	OBJECT_KIND_COUNT,
} object_kind;

struct objects;

struct object_result {
	err_status status;     // ERR_OK, ERR_NOT_FOUND, ERR_CONFLICT, ...
	const struct err *err; // NULL for ERR_OK
	json_t *object;        // borrowed, NULL unless ERR_OK
};
typedef void object_done_fn(void *arg, const struct object_result *result);
// Something changed in the cache; with is_gone, object is what it was last.
typedef void object_change_fn(void *arg, object_kind kind, json_t *object, bool is_gone);

// k8s NULL: objects live in sql.
MUST_USE err_status objects_new(struct loop *loop, struct k8s_client *k8s, struct sql *sql,
				struct objects **ret, struct err *err);
void objects_free(struct objects *objects); // NULL allowed
void objects_on_change(struct objects *objects, object_change_fn *fn, void *arg);
bool objects_are_synced(const struct objects *objects);
bool objects_are_local(const struct objects *objects);
// Reads local objects again after a write of which the database did not say whether it was done;
// until then no other is taken. Nothing to do else. What is borrowed from the cache ends.
MUST_USE err_status objects_settle(struct objects *objects, struct err *err);
// Seconds since the last sign of life of the quietest watch.
uint64_t objects_age_s(const struct objects *objects);

// What is read often is read once: read fills a structure of so many bytes for each object of the
// kind when it comes or changes. Text in it may borrow from the object.
typedef void object_facts_fn(const json_t *object, void *ret_facts);
void objects_keep_facts(struct objects *objects, object_kind kind, object_facts_fn *read,
			size_t facts_bytes);

json_t *objects_find(const struct objects *objects, object_kind kind, struct str namespace_,
		     struct str name);
// Iteration in no particular order: for (size_t i = 0; objects_next(o, kind, &i, &object);).
bool objects_next(const struct objects *objects, object_kind kind, size_t *i, json_t **ret_object);
// The same within one namespace.
bool objects_next_in(const struct objects *objects, object_kind kind, struct str namespace_,
		     size_t *i, json_t **ret_object);
// The facts of the same objects.
bool objects_next_facts(const struct objects *objects, object_kind kind, struct str namespace_,
			size_t *i, const void **ret_facts);
size_t objects_count(const struct objects *objects, object_kind kind);

struct object_write {
	object_kind kind;
	struct str namespace_; // empty for cluster-wide kinds
	struct str name;
	json_t *body;            // borrowed during the call
	bool is_status;          // of a patch: the status subresource
	object_done_fn *on_done; // exactly once, not from inside the call
	void *arg;
};
void objects_create(struct objects *objects, const struct object_write *write);
// JSON merge patch (RFC 7386).
void objects_patch(struct objects *objects, const struct object_write *write);
// Server-side apply with our field manager; only with Kubernetes.
void objects_apply(struct objects *objects, const struct object_write *write);
// Background propagation; body is not used.
void objects_delete(struct objects *objects, const struct object_write *write);
