// SPDX-License-Identifier: Apache-2.0
#include "api/objects_state.h"

#include <stdlib.h>

struct write_call {
	struct write_call *next, **back;
	struct kind_cache *cache;
	struct k8s_call *call;
	object_done_fn *on_done;
	void *arg;
};

static void end_round(struct kind_cache *cache, struct str version)
{
	objects_cache_end_round(cache);
	uint64_t number = 0;
	if (str_to_u64(version, &number) && number > cache->newest_version)
		cache->newest_version = number;
	bool is_first = !cache->is_synced;
	cache->is_synced = true;
	if (is_first && objects_are_synced(cache->objects))
		objects_tell_all(cache->objects);
}

// Half of an object's bytes, and of no use here.
static void drop_bulk(json_t *object)
{
	json_t *meta = json_object_get(object, "metadata");
	if (meta != NULL)
		(void)json_object_del(meta, "managedFields");
	json_t *status = json_object_get(object, "status");
	if (status != NULL)
		(void)json_object_del(status, "images"); // of a Node: most of its bytes
}

static void on_item(void *arg, const struct watch_item *item)
{
	struct kind_cache *cache = arg;
	json_t *object = NULL;
	switch (item->event) {
	case WATCH_RESYNC: cache->round++; return;
	case WATCH_SYNCED: end_round(cache, item->resource_version); return;
	case WATCH_FAILED: cache->failures++; return;
	case WATCH_ADDED:
	case WATCH_MODIFIED:
	case WATCH_DELETED: break;
	}
	if (json_parse(item->object, &object, NULL) != ERR_OK) {
		cache->failures++; // the API server's own JSON; the next list brings it again
		return;
	}
	drop_bulk(object);
	uint64_t version = objects_version_of(object);
	cache->newest_version = version > cache->newest_version ? version : cache->newest_version;
	if (item->event != WATCH_DELETED) {
		objects_cache_put(cache, object);
		return;
	}
	objects_cache_remove(cache, json_text(object, "metadata.namespace"),
			     json_text(object, "metadata.name"));
	json_decref(object);
}

void objects_watch_kube(struct objects *objects)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 16);
	ASSERT(arena != NULL);
	struct str none = { NULL, 0 };
	for (unsigned i = 0; i < OBJECT_KIND_COUNT; i++) {
		struct kind_cache *cache = &objects->kinds[i];
		struct watch_config config = {
			.path = object_path(arena, (object_kind)i, none, none),
			.selector = object_kinds[i].selector,
			.fn = on_item,
			.arg = cache,
		};
		cache->watch = watch_start(objects->k8s, &config);
	}
}

static void unlink_write(struct write_call *write)
{
	*write->back = write->next;
	if (write->next != NULL)
		write->next->back = write->back;
}

void objects_cancel_kube(struct objects *objects)
{
	while (objects->writes != NULL) {
		struct write_call *write = objects->writes;
		unlink_write(write);
		k8s_call_cancel(write->call);
		free(write);
	}
}

// The watch has not told of this version yet, so a later deletion will still be told.
static void cache_answer(struct kind_cache *cache, json_t *object)
{
	if (objects_version_of(object) > cache->newest_version &&
	    str_eq_c(json_text(object, "kind"), object_kinds[cache->kind].kind))
		objects_cache_put(cache, json_incref(object));
}

static void on_written(void *arg, const struct k8s_result *answer)
{
	struct write_call *write = arg;
	struct err err = { 0 };
	AUTO(json_decrefp) json_t *object = NULL;
	struct object_result result = { .status = answer->status, .err = answer->err };
	if (answer->status == ERR_OK) {
		result.status = json_parse(answer->body, &object, &err);
		result.err = result.status == ERR_OK ? NULL : &err;
		result.object = object;
	}
	unlink_write(write);
	if (object != NULL) {
		drop_bulk(object);
		cache_answer(write->cache, object);
	}
	write->on_done(write->arg, &result);
	free(write);
}

struct verb_info {
	const char *method, *content_type;
};
static const struct verb_info verbs[] = {
	[WRITE_CREATE] = { "POST", NULL },
	[WRITE_PATCH] = { "PATCH", K8S_MERGE_PATCH },
	[WRITE_APPLY] = { "PATCH", K8S_APPLY_PATCH },
	[WRITE_DELETE] = { "DELETE", NULL },
};

static char *write_path(struct arena *arena, const struct object_write *write, write_verb verb)
{
	struct str none = { NULL, 0 };
	char *path = object_path(arena, write->kind, write->namespace_,
				 verb == WRITE_CREATE ? none : write->name);
	const char *query = "?fieldManager=" OBJECT_FIELD_MANAGER;
	if (verb == WRITE_APPLY)
		query = "?fieldManager=" OBJECT_FIELD_MANAGER "&force=true";
	if (verb == WRITE_DELETE)
		query = "?propagationPolicy=Background";
	return arena_printf(arena, "%s%s%s", path, write->is_status ? "/status" : "", query);
}

void objects_write_kube(struct objects *objects, const struct object_write *write, write_verb verb)
{
	AUTO(arena_freep) struct arena *arena = arena_new(16 * 1024 * 1024);
	struct write_call *call = calloc(1, sizeof *call);
	ASSERT(arena != NULL && call != NULL);
	*call = (struct write_call){ .cache = &objects->kinds[write->kind],
				     .on_done = write->on_done,
				     .arg = write->arg,
				     .next = objects->writes,
				     .back = &objects->writes };
	if (objects->writes != NULL)
		objects->writes->back = &call->next;
	objects->writes = call;
	struct k8s_request request = {
		.method = verbs[verb].method,
		.path = str_of(write_path(arena, write, verb)),
		.content_type = verbs[verb].content_type,
		.body = verb == WRITE_DELETE ? STR("") : json_dump(arena, write->body),
		.timeout_ns = UINT64_C(20000000000),
		.on_done = on_written,
		.arg = call,
	};
	call->call = k8s_call_start(objects->k8s, &request);
}
