// SPDX-License-Identifier: Apache-2.0
// ResourceClaims, DeviceClasses and ResourceSlices (resource.k8s.io/v1) as the core takes them:
// each in an arena of its own. What of a claim or a class is not honoured (other drivers' devices,
// access as an administrator, alternatives, capacities, configuration, expressions beyond
// sched/claim_cel.h) is its trouble, with which no pod is placed. Pure.
#pragma once

#include "base/json.h"
#include "sched/claim_in.h"

#define FEED_CLAIMS_VERSION "resource.k8s.io/v1"

struct feed_claim_kind {
	const char *path, *kind;
};
extern const struct feed_claim_kind FEED_CLAIM_KINDS[SCHED_CLAIM_KINDS];

// NULL: it is of no use (another driver's slice) or there is no memory; the caller gives it to the
// core, or frees its arena.
struct sched_claim_object *feed_claim_object(sched_claim_kind kind, const json_t *json);
// "namespace/name", or the name where there is no namespace.
struct str feed_claim_key(struct arena *arena, const json_t *json);
