// SPDX-License-Identifier: Apache-2.0
// Between the custom resources and the API's objects: specs from bodies, answers from objects,
// and what a tenant holds and waits for, counted from the cached objects alone.
#pragma once

#include "api/rest.h"
#include "base/map.h"
#include "policy/quota.h"

#define ANNOTATION_IDEMPOTENCY "gpuaas.io/idempotency"
#define ANNOTATION_USER "gpuaas.io/user"

// Custom resources from checked bodies; new references.
json_t *view_tenant_object(const struct tenant_spec *spec, const json_t *body);
// {"spec": {...}} with what the body names.
json_t *view_tenant_patch(const json_t *body);
// body is where spec was read from.
json_t *view_request_object(const struct request_spec *spec, const json_t *body, struct str tenant,
			    struct str name);

// Empty when there is no such tenant. Borrowed.
struct str view_tenant_uid(const struct objects *objects, struct str tenant);
// Specs back from objects.
void view_tenant_quota(const json_t *tenant, struct tenant_quota *ret_quota);
bool view_request_spec(const json_t *request, struct request_spec *ret_spec);

typedef enum request_phase {
	PHASE_PENDING,
	PHASE_RUNNING,
	PHASE_SUCCEEDED,
	PHASE_FAILED,
	PHASE_CANCELLED,
} request_phase;
request_phase view_request_phase(const json_t *request);
const char *view_phase_name(request_phase phase);
bool view_phase_is_name(struct str text); // of a phase
static inline bool view_phase_is_end(request_phase phase) { return phase >= PHASE_SUCCEEDED; }
// The Job that was made for this very request, and the newest pod of that Job; NULL: none. A name
// or a label proves nothing: the tenant may give both to objects of their own.
json_t *view_request_job(const struct objects *objects, const json_t *request);
json_t *view_request_pod(const struct objects *objects, const json_t *request);
// Whether it was let through the quota: its Job was made.
bool view_request_holds(const struct objects *objects, const json_t *request);

// Makes counting cheap; once, before view_tenant_load.
void view_keep_facts(struct objects *objects);

// What all requests of a tenant that have not ended hold and want, in the order in which they
// are let through. extra_holds: names "NAMESPACE/NAME" that hold although nobody sees it yet, or
// NULL. entries live in the arena; false without memory.
struct tenant_load {
	struct quota_entry *entries;
	size_t count;
	struct quota_amount used;
	int64_t waiting_gpus;
};
MUST_USE bool view_tenant_load(const struct objects *objects, struct arena *arena,
			       struct str tenant, const struct map *extra_holds,
			       struct tenant_load *ret_load);

// Adds the "position" of a request that waits for quota to its view.
void view_put_position(const struct tenant_load *load, struct str name, json_t *out);

// Answers; new references.
json_t *view_tenant(struct call *call, const json_t *tenant);
json_t *view_request(struct call *call, const json_t *request);
json_t *view_node(const json_t *node, int64_t held_gpus);
// Adds what only platform admins see; host, the Node itself, may be NULL.
void view_node_details(json_t *out, const json_t *node, const json_t *host);
// What requests hold on each of these nodes, which are in the order of their names; one look at
// the requests for all of them.
void view_held_gpus(const struct objects *objects, json_t *const *nodes, size_t count,
		    int64_t *ret_held);
// The same without what only a call can know (position, estimate); for the history.
json_t *view_request_plain(const json_t *request);
// What nodes have, from GPUNodes. False: more kinds of nodes than INVENTORY_MAX.
MUST_USE bool view_inventory(const struct objects *objects, struct inventory *ret_inventory);
