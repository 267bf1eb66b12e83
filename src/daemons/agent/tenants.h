// SPDX-License-Identifier: Apache-2.0
// The tenant of a namespace: its label gpuaas.io/tenant, else its own name. Asked of the API
// server when first needed and again when old; the old answer stays until the new one is there.
#pragma once

#include "k8s/client.h"

struct tenants;
enum { TENANT_BYTES = 64 };

struct tenants *tenants_new(struct k8s_client *client, loop_fn *on_change, void *arg);
void tenants_free(struct tenants *tenants);                               // NULL allowed
const char *tenants_get(struct tenants *tenants, const char *namespace_); // NULL: not known yet
// The tenant of a namespace by its object as JSON; false: not to be had from it. Pure, for tests.
MUST_USE bool tenants_read(struct str body, const char *namespace_, char ret_tenant[TENANT_BYTES]);
