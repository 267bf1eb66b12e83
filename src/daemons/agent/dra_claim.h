// SPDX-License-Identifier: Apache-2.0
// A ResourceClaim (resource.k8s.io/v1) as the API server tells it: which of this node's GPUs are
// allocated to it, for which of its requests, and for which pod it is reserved first. Refuses what
// the driver does not offer: access as an administrator, parts of a device, configuration. Pure.
#pragma once

#include "daemons/agent/dra_table.h"

// ref: the claim that was asked for; ERR_CONFLICT when the object is another of that name, or not
// allocated. pool: of this node.
MUST_USE err_status dra_claim_read(struct str text, const struct dra_ref *ref, const char *pool,
				   struct dra_claim *ret, struct err *err);
