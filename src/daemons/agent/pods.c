// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/pods.h"

#include "daemons/agent/tenants.h"
#include "sys/log.h"
#include "sys/mac.h"

#include <stdio.h>
#include <stdlib.h>

enum { ITEMS_MAX = 16384, EVENT_ARENA_BYTES = 8 * 1024 * 1024, SELECTOR_BYTES = 400 };
static const uint64_t KEEP_ENDED_NS = 120 * UINT64_C(1000000000);

struct pods {
	struct loop *loop;
	struct pods_config config;
	char node[256], selector[SELECTOR_BYTES];
	struct watch *watch;
	struct tenants *tenants;
	struct arena *arena;
	struct pods_item **items;
	size_t count, room;
	struct pods_stats stats;
};

static void item_free(struct pods_item *item)
{
	free(item->plan);
	free(item);
}

static size_t index_of(const struct pods *pods, const char *uid)
{
	for (size_t i = pods->count; i > 0; i--) {
		if (strcmp(pods->items[i - 1]->facts.uid, uid) == 0)
			return i - 1;
	}
	return SIZE_MAX;
}

static void remove_at(struct pods *pods, size_t i)
{
	ASSERT(i < pods->count);
	item_free(pods->items[i]);
	pods->count--;
	memmove(&pods->items[i], &pods->items[i + 1], (pods->count - i) * sizeof pods->items[0]);
}

static struct pods_item *add(struct pods *pods)
{
	if (pods->count == pods->room) {
		size_t room = pods->room == 0 ? 64 : pods->room * 2;
		struct pods_item **items =
			room > ITEMS_MAX ? NULL
					 : realloc(pods->items, room * sizeof pods->items[0]);
		if (items == NULL)
			return NULL;
		pods->items = items;
		pods->room = room;
	}
	struct pods_item *item = calloc(1, sizeof *item);
	if (item == NULL)
		return NULL;
	pods->items[pods->count++] = item;
	return item;
}

// The plan counts only if nobody but the scheduler can have written it for this pod and node.
static void take_plan(struct pods *pods, struct pods_item *item, const struct pod_facts *facts)
{
	struct err err = { 0 };
	const struct mac_plan signed_plan = { .pod_uid = str_of(facts->uid),
					      .node = str_of(pods->node),
					      .devices = facts->plan };
	if (item->plan != NULL || facts->plan.len == 0 || facts->is_terminal)
		return;
	struct str key = pods->config.plan_key(pods->config.arg);
	if (key.len == 0)
		return;
	if (!mac_plan_check(key, &signed_plan, facts->plan_mac)) {
		pods->stats.bad_plans++;
		log_kv(LOG_WARN, "plan is not used: its MAC does not hold", "namespace",
		       facts->namespace_, "pod", facts->name, NULL);
		return;
	}
	struct plan *plan = calloc(1, sizeof *plan);
	if (plan == NULL)
		return;
	if (plan_parse(facts->plan, plan, &err) != ERR_OK) {
		pods->stats.bad_plans++;
		log_err(LOG_WARN, "plan is not used", &err);
		free(plan);
		return;
	}
	item->plan = plan;
}

static void take(struct pods *pods, const struct pod_facts *facts)
{
	size_t i = index_of(pods, facts->uid);
	struct pods_item *item = i == SIZE_MAX ? add(pods) : pods->items[i];
	if (item == NULL) {
		pods->stats.failures++;
		return;
	}
	item->facts = *facts;
	item->facts.plan = item->facts.plan_mac = STR("");
	item->is_listed = true;
	take_plan(pods, item, facts);
	if (facts->is_terminal && item->terminal_ns == 0) {
		item->terminal_ns = loop_now_ns(pods->loop);
		free(item->plan);
		item->plan = NULL;
	}
	(void)pods_tenant(pods, facts->namespace_); // asked for in time
}

static void on_object(struct pods *pods, const struct watch_item *item)
{
	struct pod_facts facts;
	struct err err = { 0 };
	arena_reset(pods->arena);
	if (pod_facts_read(pods->arena, item->object, item->is_protobuf, pods->config.resource,
			   &facts, &err) != ERR_OK) {
		pods->stats.malformed++;
		log_err(LOG_WARN, "pod is not understood", &err);
		return;
	}
	if (facts.container_count == 0 && !facts.has_claims)
		return;
	pods->stats.events++;
	if (item->event != WATCH_DELETED) {
		take(pods, &facts);
	} else {
		pods->config.on_deleted(pods->config.arg, &facts);
		size_t i = index_of(pods, facts.uid);
		if (i != SIZE_MAX)
			remove_at(pods, i);
	}
	pods->config.on_change(pods->config.arg);
}

static void on_synced(struct pods *pods)
{
	for (size_t i = pods->count; i > 0; i--) {
		if (!pods->items[i - 1]->is_listed)
			remove_at(pods, i - 1);
	}
	pods->stats.is_synced = true;
	pods->config.on_change(pods->config.arg);
}

static void on_item(void *arg, const struct watch_item *item)
{
	struct pods *pods = arg;
	switch (item->event) {
	case WATCH_ADDED:
	case WATCH_MODIFIED:
	case WATCH_DELETED: on_object(pods, item); return;
	case WATCH_RESYNC:
		for (size_t i = 0; i < pods->count; i++)
			pods->items[i]->is_listed = false;
		pods->stats.is_synced = false;
		return;
	case WATCH_SYNCED: on_synced(pods); return;
	case WATCH_FAILED:
		pods->stats.failures++;
		log_err(LOG_WARN, "watch of the node's pods", item->err);
		return;
	}
}

err_status pods_new(struct k8s_client *client, const struct pods_config *config, struct pods **ret,
		    struct err *err)
{
	struct pods *pods = calloc(1, sizeof *pods);
	if (pods == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the node's pods");
	pods->loop = k8s_client_loop(client);
	pods->config = *config;
	pods->arena = arena_new(EVENT_ARENA_BYTES);
	pods->tenants = tenants_new(client, config->on_change, config->arg);
	(void)snprintf(pods->node, sizeof pods->node, "%s", config->node);
	(void)snprintf(pods->selector, sizeof pods->selector,
		       "fieldSelector=spec.nodeName%%3D%.253s", config->node);
	const struct watch_config watch = { .path = "/api/v1/pods",
					    .selector = pods->selector,
					    .protobuf = true,
					    .fn = on_item,
					    .arg = pods };
	if (pods->arena != NULL && pods->tenants != NULL)
		pods->watch = watch_start(client, &watch);
	if (pods->watch == NULL) {
		pods_free(pods);
		return err_set(err, ERR_LIMIT, "no memory for the watch of pods");
	}
	*ret = pods;
	return ERR_OK;
}

void pods_free(struct pods *pods)
{
	if (pods == NULL)
		return;
	watch_stop(pods->watch);
	tenants_free(pods->tenants);
	while (pods->count > 0)
		remove_at(pods, pods->count - 1);
	free(pods->items);
	arena_free(pods->arena);
	free(pods);
}

size_t pods_count(const struct pods *pods) { return pods->count; }

const struct pods_item *pods_at(const struct pods *pods, size_t i)
{
	ASSERT(i < pods->count);
	return pods->items[i];
}

const struct pods_item *pods_find(const struct pods *pods, const char *uid)
{
	size_t i = index_of(pods, uid);
	return i == SIZE_MAX ? NULL : pods->items[i];
}

const struct pods_item *pods_find_name(const struct pods *pods, struct str namespace_,
				       struct str name)
{
	const struct pods_item *ended = NULL;
	for (size_t i = pods->count; i > 0; i--) {
		const struct pods_item *item = pods->items[i - 1];
		if (!str_eq_c(name, item->facts.name) ||
		    !str_eq_c(namespace_, item->facts.namespace_))
			continue;
		if (!item->facts.is_terminal)
			return item;
		ended = ended == NULL ? item : ended;
	}
	return ended;
}

bool pods_is_synced(const struct pods *pods) { return pods->stats.is_synced; }

const char *pods_tenant(struct pods *pods, const char *namespace_)
{
	return tenants_get(pods->tenants, namespace_);
}

void pods_prune(struct pods *pods)
{
	uint64_t now_ns = loop_now_ns(pods->loop);
	for (size_t i = pods->count; i > 0; i--) {
		const struct pods_item *item = pods->items[i - 1];
		if (item->terminal_ns != 0 && now_ns - item->terminal_ns > KEEP_ENDED_NS)
			remove_at(pods, i - 1);
	}
}

void pods_stats(const struct pods *pods, struct pods_stats *ret) { *ret = pods->stats; }
