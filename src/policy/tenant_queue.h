// SPDX-License-Identifier: Apache-2.0
// A tenant's queue as people give it: the shape of its settings, their names in the custom
// resource, and whether they can hold beside those of the other tenants. Pure; JSON in, JSON out.
#pragma once

#include "policy/schema.h"

enum { TENANT_QUEUE_DEPTH_MAX = 8, TENANT_QUEUE_MODELS_MAX = 16, TENANT_QUEUE_MODEL_MAX = 63 };

extern const struct schema tenant_queue_schema; // null takes a setting away

// Settings in the words of spec.queue; what is null stays null. A new reference.
json_t *tenant_queue_to_spec(const json_t *queue);
json_t *tenant_queue_from_spec(const json_t *spec_queue); // back

// spec.queue of a tenant; NULL when there is no such tenant or it has none.
typedef const json_t *tenant_queue_find_fn(const void *arg, struct str tenant);
// Whether the tenant may have this spec.queue: its guarantee is below its limit, its parent is
// there and has a queue, and no way up leads back. ERR_INVALID with the field and the remedy.
MUST_USE err_status tenant_queue_check(struct str tenant, const json_t *spec_queue,
				       tenant_queue_find_fn *find, const void *arg,
				       struct schema_fault *ret_fault, struct err *err);
