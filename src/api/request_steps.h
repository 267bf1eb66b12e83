// SPDX-License-Identifier: Apache-2.0
// What the handlers around tenants and requests share. Internal to src/api.
#pragma once

#include "api/views.h"

// NULL: there is none, which is answered.
json_t *tenant_need(struct call *call, struct str tenant);
// The object of call->tenant and call->object_name, or NULL; need: then it is answered.
json_t *request_find(struct call *call);
json_t *request_need(struct call *call);
// Notes in a new object who asked and with which idempotency key, and whether an object was made
// by this very call before a crash.
void call_sign_object(const struct call *call, json_t *object);
bool call_has_made(const struct call *call, const json_t *object);
// Finds what the request leaves open.
void request_fill(struct call *call, struct request_spec *spec);
// Tenant, what exists, quota. False: answered.
MUST_USE bool request_check(struct call *call, const struct request_spec *spec);
// Answers with the page; with ?places=true where the scheduler has those that wait. Takes items.
void request_answer_page(struct call *call, json_t *items, struct str next);
// Sets "estimate" when a price book allows one.
void request_put_estimate(struct call *call, const json_t *request, json_t *body);
