// SPDX-License-Identifier: Apache-2.0
#include "daemons/scheduler/allot.h"
#include "daemons/scheduler/groups.h"
#include "daemons/scheduler/lengths.h"
#include "daemons/scheduler/load.h"
#include "daemons/scheduler/policies.h"
#include "daemons/scheduler/tenants.h"
#include "feed/feed_budget.h"
#include "sched/durations.h"
#include "sched/sched_queue.h"
#include "sys/log.h"
#include "sys/mac.h"

// A connection that has died unseen is found within 4.5 s.
#define PING_EVERY_NS UINT64_C(1500000000)
#define PING_ANSWER_NS UINT64_C(3000000000)

static const struct {
	const char *path, *selector;
	bool protobuf;
} KINDS[CACHE_STORAGE] = {
	[CACHE_PODS] = { "/api/v1/pods",
			 "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed",
			 true },
	[CACHE_NODES] = { "/api/v1/nodes", NULL, true },
	[CACHE_GPU_NODES] = { "/apis/gpuaas.io/v1alpha1/gpunodes", NULL, false },
	[CACHE_NAMESPACES] = { "/api/v1/namespaces", NULL, true },
	[CACHE_TENANTS] = { "/apis/gpuaas.io/v1alpha1/tenants", NULL, false },
	[CACHE_BUDGETS] = { FEED_BUDGETS_PATH, NULL, true },
};

const char *cache_path(cache_kind kind)
{
	return kind < CACHE_STORAGE ? KINDS[kind].path : FEED_STORAGES[kind - CACHE_STORAGE].path;
}

// Decodes one object of the watch into the arena of the scheduler; false: told and counted.
static bool decode(struct cache *cache, const struct watch_item *item,
		   const struct kobj_table *table, struct kobj_unknowns *ret_unknowns,
		   json_t **ret_json, void *ret_object)
{
	struct scheduler *s = cache->scheduler;
	struct err err = { 0 };
	struct str message;
	err_status status;
	arena_reset(s->arena);
	if (item->is_protobuf) {
		if (!kobj_unwrap(item->object, &message))
			status = err_set(&err, ERR_PROTOCOL, "%s has a broken envelope",
					 cache_path(cache->kind));
		else
			status = kobj_from_protobuf(s->arena, table, message, ret_unknowns,
						    ret_object, &err);
	} else {
		status = json_parse(item->object, ret_json, &err);
		if (status == ERR_OK)
			status = kobj_from_json(s->arena, table, *ret_json, ret_unknowns,
						ret_object, &err);
	}
	if (status == ERR_OK)
		return true;
	s->counters.undecodable++;
	log_err(LOG_ERROR, "an object cannot be read and is left out", &err);
	return false;
}

// Only a plan with our MAC is believed; anything else holds unknown devices.
static void adopt_plan(struct scheduler *s, const struct kobj_pod *pod, struct sched_pod_in *in)
{
	struct str text = kobj_pairs_get(&pod->meta.annotations, STR(FEED_PLAN_ANNOTATION));
	struct str mac = kobj_pairs_get(&pod->meta.annotations, STR(FEED_MAC_ANNOTATION));
	struct mac_plan plan = { pod->meta.uid, pod->spec.node_name, text };
	struct str *uuids;
	struct sched_hold *holds;
	size_t count, hold_count;
	if (text.len == 0 || in->node.len == 0 ||
	    !mac_plan_check(buf_str(&s->plan_key), &plan, mac) ||
	    !feed_plan_read(s->arena, text, &uuids, &count) ||
	    !feed_plan_holds(s->arena, text, &holds, &hold_count))
		return;
	in->device_uuids = uuids;
	in->device_count = count;
	in->holds = holds;
	in->hold_count = hold_count;
}

// A pod that is too big to be decided about is refused like one with an unknown field.
static void refuse_object(struct scheduler *s, const struct kobj_pod *pod)
{
	static struct sched_refusal refusal = { SCHED_CODE_INVALID_OBJECT, { "too large", 9 } };
	static const struct sched_spec SPEC = { .refusals = &refusal, .refusal_count = 1 };
	struct sched_pod_in in = { .uid = pod->meta.uid,
				   .namespace_ = pod->meta.namespace_,
				   .name = pod->meta.name,
				   .created_s = pod->meta.created_s,
				   .is_ours = str_eq_c(pod->spec.scheduler_name,
						       s->options->scheduler_name),
				   .spec = &SPEC };
	if (pod->spec.node_name.len == 0)
		sched_pod_set(s->core, &in);
}

// By our own clock, which may be younger than the pod; 0: not known.
static int64_t core_ms_of(const struct scheduler *s, int64_t wall_s)
{
	int64_t age_s = scheduler_wall_s(s) - wall_s;
	return wall_s == 0 || age_s < 0 ? 0 : scheduler_now_ms(s) - 1000 * age_s;
}

static void end_pod(struct scheduler *s, struct str uid)
{
	sched_pod_ended(s->core, uid, scheduler_now_ms(s));
	load_agents_gone(s, uid);
	lengths_gone(s, uid);
	record_drop(s, uid);
}

static void set_pod(struct scheduler *s, const struct kobj_pod *pod,
		    const struct kobj_unknowns *unknowns)
{
	struct sched_pod_in in;
	if (feed_pod_is_finished(pod)) {
		end_pod(s, pod->meta.uid);
		return;
	}
	if (!feed_pod(s->arena, pod, unknowns, str_of(s->options->scheduler_name), &in)) {
		refuse_object(s, pod);
		return;
	}
	adopt_plan(s, pod, &in);
	in.bound_ms = core_ms_of(s, feed_bound_s(pod));
	in.stay.checkpoint_ms = core_ms_of(s, feed_checkpoint_s(pod));
	if (in.is_ours && in.node.len == 0)
		(void)record_get(s, pod);
	sched_pod_set(s->core, &in);
	if (in.node.len == 0)
		return;
	if (in.is_ours)
		lengths_check(s, pod);
	struct record *record = record_find(s, pod->meta.uid);
	if (record != NULL)
		serve_observe_wait(s, record);
	record_drop(s, pod->meta.uid);
}

static struct str on_pod(struct cache *cache, const struct watch_item *item)
{
	struct kobj_pod pod;
	struct kobj_unknowns unknowns;
	AUTO(json_decrefp) json_t *json = NULL;
	if (!decode(cache, item, &KOBJ_POD, &unknowns, &json, &pod))
		return STR("");
	struct scheduler *s = cache->scheduler;
	struct str key = arena_dup(s->arena, pod.meta.uid);
	if (item->event != WATCH_DELETED) {
		set_pod(s, &pod, &unknowns);
		load_agents_pod(s, &pod);
	} else {
		end_pod(s, key);
	}
	return key;
}

static struct str on_node(struct cache *cache, const struct watch_item *item)
{
	struct kobj_node node;
	struct sched_node_in in;
	AUTO(json_decrefp) json_t *json = NULL;
	if (!decode(cache, item, &KOBJ_NODE, NULL, &json, &node))
		return STR("");
	struct scheduler *s = cache->scheduler;
	struct str key = arena_dup(s->arena, node.meta.name);
	if (item->event == WATCH_DELETED)
		sched_node_remove(s->core, key);
	else if (feed_node(s->arena, &node, &in))
		sched_node_set(s->core, &in);
	return key;
}

static struct str on_gpu_node(struct cache *cache, const struct watch_item *item)
{
	struct kobj_gpu_node node;
	struct sched_device_in *devices;
	size_t count;
	AUTO(json_decrefp) json_t *json = NULL;
	if (!decode(cache, item, &KOBJ_GPU_NODE, NULL, &json, &node))
		return STR("");
	struct scheduler *s = cache->scheduler;
	struct str key = arena_dup(s->arena, node.meta.name);
	if (item->event == WATCH_DELETED)
		sched_devices_set(s->core, key, NULL, 0);
	else if (feed_devices(s->arena, &node, &devices, &count))
		sched_devices_set(s->core, key, devices, count);
	return key;
}

static struct str on_namespace(struct cache *cache, const struct watch_item *item)
{
	struct kobj_namespace space;
	AUTO(json_decrefp) json_t *json = NULL;
	if (!decode(cache, item, &KOBJ_NAMESPACE, NULL, &json, &space))
		return STR("");
	struct scheduler *s = cache->scheduler;
	struct str key = arena_dup(s->arena, space.meta.name);
	struct sched_labels labels = feed_labels(&space.meta.labels);
	if (item->event == WATCH_DELETED)
		sched_namespace_remove(s->core, key);
	else
		sched_namespace_set(s->core, key, &labels);
	return key;
}

static struct str on_budget(struct cache *cache, const struct watch_item *item)
{
	struct kobj_budget object;
	struct sched_budget budget;
	AUTO(json_decrefp) json_t *json = NULL;
	struct scheduler *s = cache->scheduler;
	if (!decode(cache, item, &KOBJ_BUDGET, NULL, &json, &object) ||
	    !feed_budget(s->arena, &object, &budget))
		return STR("");
	if (item->event == WATCH_DELETED)
		sched_budget_remove(s->core, budget.key);
	else
		sched_budget_set(s->core, &budget);
	return budget.key;
}

static struct str on_tenant(struct cache *cache, const struct watch_item *item)
{
	struct scheduler *s = cache->scheduler;
	AUTO(json_decrefp) json_t *json = NULL;
	struct err err = { 0 };
	arena_reset(s->arena);
	if (json_parse(item->object, &json, &err) != ERR_OK) {
		s->counters.undecodable++;
		log_err(LOG_ERROR, "a Tenant cannot be read and is left out", &err);
		return STR("");
	}
	struct str key = arena_dup(s->arena, json_text(json, "metadata.name"));
	tenants_take(s, json, item->event == WATCH_DELETED);
	return key;
}

static struct str on_storage(struct cache *cache, const struct watch_item *item)
{
	const struct feed_storage *feed = &FEED_STORAGES[cache->kind - CACHE_STORAGE];
	struct scheduler *s = cache->scheduler;
	struct sched_storage_in in;
	AUTO(json_decrefp) json_t *json = NULL;
	union feed_storage_object object;
	if (!decode(cache, item, feed->table, NULL, &json, &object) ||
	    !feed->read(s->arena, &object, &in))
		return STR("");
	struct str key = arena_dup(s->arena, in.key);
	if (item->event == WATCH_DELETED)
		sched_storage_remove(s->core, in.kind, key);
	else
		sched_storage_set(s->core, &in);
	return key;
}

static void forget(struct cache *cache, struct str key)
{
	struct scheduler *s = cache->scheduler;
	if (cache->kind >= CACHE_STORAGE) {
		sched_storage_remove(s->core, (sched_storage)(cache->kind - CACHE_STORAGE), key);
		return;
	}
	switch (cache->kind) {
	case CACHE_PODS:
		sched_pod_remove(s->core, key);
		lengths_gone(s, key);
		load_agents_gone(s, key);
		record_drop(s, key);
		break;
	case CACHE_NODES: sched_node_remove(s->core, key); break;
	case CACHE_GPU_NODES: sched_devices_set(s->core, key, NULL, 0); break;
	case CACHE_NAMESPACES: sched_namespace_remove(s->core, key); break;
	case CACHE_TENANTS: sched_queue_remove(s->core, key); break;
	case CACHE_BUDGETS: sched_budget_remove(s->core, key); break;
	case CACHE_STORAGE:
	case CACHE_KINDS: ASSERT(false);
	}
}

// What the new list did not name has gone while the watch was cut.
static void sweep(struct cache *cache)
{
	struct str key;
	void *generation;
	for (size_t i = 0; map_next(cache->seen, &i, &key, &generation);) {
		if ((uintptr_t)generation == cache->generation)
			continue;
		forget(cache, key);
		(void)map_remove(cache->seen, key);
	}
}

static void on_object(struct cache *cache, const struct watch_item *item)
{
	static struct str (*const HANDLERS[CACHE_STORAGE])(struct cache *,
							   const struct watch_item *) = {
		[CACHE_PODS] = on_pod,           [CACHE_NODES] = on_node,
		[CACHE_GPU_NODES] = on_gpu_node, [CACHE_NAMESPACES] = on_namespace,
		[CACHE_TENANTS] = on_tenant,     [CACHE_BUDGETS] = on_budget,
	};
	bool is_storage = cache->kind >= CACHE_STORAGE;
	struct str key = is_storage ? on_storage(cache, item) : HANDLERS[cache->kind](cache, item);
	if (key.len == 0) {
		watch_doubt(cache->watch);
		return;
	}
	if (item->event == WATCH_DELETED)
		(void)map_remove(cache->seen, key);
	else
		(void)map_set(cache->seen, key, (void *)cache->generation);
}

static void on_item(void *arg, const struct watch_item *item)
{
	struct cache *cache = arg;
	switch (item->event) {
	case WATCH_ADDED:
	case WATCH_MODIFIED:
	case WATCH_DELETED: on_object(cache, item); break;
	case WATCH_RESYNC: cache->generation++; break;
	case WATCH_SYNCED:
		sweep(cache);
		cache->is_synced = true;
		break;
	case WATCH_FAILED:
		cache->failures++;
		if (cache->kind == CACHE_TENANTS && item->err->status == ERR_NOT_FOUND) {
			cache->generation++; // they are not installed here: there are no queues
			sweep(cache);
			cache->is_synced = true;
			break;
		}
		log_err(LOG_WARN, cache_path(cache->kind), item->err);
		return;
	}
	scheduler_drive(cache->scheduler);
}

void cache_start_all(struct scheduler *s)
{
	ASSERT(s->core != NULL);
	k8s_client_set_ping(s->client, PING_EVERY_NS, PING_ANSWER_NS);
	groups_start(s);
	allot_watch_start(s);
	policies_start(s);
	for (int kind = 0; kind < CACHE_KINDS; kind++) {
		struct cache *cache = &s->caches[kind];
		*cache = (struct cache){ .scheduler = s,
					 .kind = (cache_kind)kind,
					 .seen = map_new(0),
					 .generation = 1 };
		struct watch_config config = { .path = cache_path(cache->kind),
					       .fn = on_item,
					       .arg = cache };
		if (kind >= CACHE_STORAGE) {
			config.protobuf = FEED_STORAGES[kind - CACHE_STORAGE].is_protobuf;
		} else {
			config.protobuf = KINDS[kind].protobuf;
			config.selector = KINDS[kind].selector;
		}
		cache->watch = watch_start(s->client, &config);
	}
}

void cache_stop_all(struct scheduler *s)
{
	groups_stop(s);
	allot_watch_stop(s);
	policies_stop(s);
	for (int kind = 0; kind < CACHE_KINDS; kind++) {
		struct cache *cache = &s->caches[kind];
		watch_stop(cache->watch);
		map_free(cache->seen);
		*cache = (struct cache){ .scheduler = s };
	}
}

bool cache_is_synced(const struct scheduler *s)
{
	for (int kind = 0; kind < CACHE_KINDS; kind++) {
		if (!s->caches[kind].is_synced)
			return false;
	}
	return groups_are_synced(s) && policies_are_synced(s) && allot_is_synced(s);
}

uint64_t cache_age_ns(const struct scheduler *s, cache_kind kind)
{
	const struct watch *watch = s->caches[kind].watch;
	if (watch == NULL)
		return 0;
	uint64_t now_ns = world_mono_ns(loop_world(s->loop)), last_ns = watch_last_event_ns(watch);
	return now_ns > last_ns ? now_ns - last_ns : 0;
}
