// SPDX-License-Identifier: Apache-2.0
// What the handlers around requests share. Internal to src/api.
#pragma once

#include "api/views.h"

// The object of call->tenant and call->object_name, or NULL.
json_t *request_find(struct call *call);
// Tenant, what exists, quota. False: answered.
MUST_USE bool request_check(struct call *call, const struct request_spec *spec);
// Sets "estimate" when a price book allows one.
void request_put_estimate(struct call *call, const json_t *request, json_t *body);
