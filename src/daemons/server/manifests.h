// SPDX-License-Identifier: Apache-2.0
// What the controllers make in Kubernetes, as JSON: the parts of a tenant's namespace and the Job
// of a request. Pure: the same object gives the same manifest. New references, never NULL.
#pragma once

#include "api/objects.h"
#include "daemons/server/mig_names.h"

#define LABEL_TENANT "gpuaas.io/tenant"
#define LABEL_REQUEST "gpuaas.io/request"
#define LABEL_MANAGED_BY "app.kubernetes.io/managed-by"

// The parts of a tenant beside its namespace, in the order in which they are made.
enum { MANIFEST_TENANT_PARTS = 5 };
struct manifest {
	object_kind kind;
	const char *name;
	json_t *body; // owned by the caller
};

json_t *manifest_namespace(const json_t *tenant);
// migs: profiles of MIG devices that GPUs here could have; the quota counts each.
void manifest_tenant_parts(const json_t *tenant, const struct mig_names *migs,
			   struct manifest ret_parts[MANIFEST_TENANT_PARTS]);
json_t *manifest_job(const json_t *request);
json_t *manifest_pod(const json_t *request); // as its Job makes it

// Whether everything that wanted names stands in actual with the same value; more is allowed in
// objects, not in arrays.
bool manifest_is_covered(const json_t *wanted, const json_t *actual);
