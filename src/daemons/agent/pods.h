// SPDX-License-Identifier: Apache-2.0
// The pods of this node that want GPUs, kept current by a watch, with their checked plans, and
// the tenant of each namespace (label gpuaas.io/tenant), asked for when first needed. Finished
// pods are forgotten after a while; deleted ones are told with their last state.
#pragma once

#include "daemons/agent/plan.h"
#include "daemons/agent/pod_facts.h"
#include "k8s/watch.h"

struct pods;

struct pods_item {
	struct pod_facts facts; // plan and plan_mac are not kept
	struct plan *plan;      // NULL: none, or its MAC does not hold
	uint64_t terminal_ns;   // when it was first seen as ended, 0: not
	bool is_listed;         // by the list that is under way
};

struct pods_config {
	const char *node;
	const char *resource;
	void *arg;
	struct str (*plan_key)(void *arg); // empty: plans are not used
	loop_fn *on_change;                // pods, plans, tenants or the list's completeness
	void (*on_deleted)(void *arg, const struct pod_facts *last);
};

struct pods_stats {
	uint64_t events, malformed, bad_plans, failures;
	bool is_synced;
};

MUST_USE err_status pods_new(struct k8s_client *client, const struct pods_config *config,
			     struct pods **ret, struct err *err);
void pods_free(struct pods *pods); // NULL allowed; before the client

size_t pods_count(const struct pods *pods);
const struct pods_item *pods_at(const struct pods *pods, size_t i);
const struct pods_item *pods_find(const struct pods *pods, const char *uid);
// The one of that name that has not ended, else the last that has.
const struct pods_item *pods_find_name(const struct pods *pods, struct str namespace_,
				       struct str name);
bool pods_is_synced(const struct pods *pods);
// NULL while it is not known; a namespace without the label is its own tenant.
const char *pods_tenant(struct pods *pods, const char *namespace_);
// Forgets pods that ended long ago.
void pods_prune(struct pods *pods);
void pods_stats(const struct pods *pods, struct pods_stats *ret);
