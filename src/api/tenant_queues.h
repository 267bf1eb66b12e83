// SPDX-License-Identifier: Apache-2.0
// Queue and windows in the bodies and answers about tenants. A call whose queue or windows cannot
// hold is answered with the field and the remedy.
#pragma once

#include "api/rest.h"

// spec.queue of a tenant; arg: the call. NULL: there is no such tenant, or it has none.
const json_t *tenant_queue_find(const void *arg, struct str tenant);
// From the call's body into the object to be written, "spec" of which is there; tenant is what
// there is already, NULL for a new one. False: answered with a problem.
MUST_USE bool tenant_queue_take(struct call *call, const json_t *tenant, json_t *object);
void tenant_queue_drop_nulls(json_t *object); // of an object that is new
void tenant_queue_put(json_t *out, const json_t *tenant);
// The same of spec.windows, a list that is given as a whole.
MUST_USE bool tenant_windows_take(struct call *call, json_t *object);
void tenant_windows_put(json_t *out, const json_t *tenant);
