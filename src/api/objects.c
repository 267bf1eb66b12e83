// SPDX-License-Identifier: Apache-2.0
#include "api/objects_state.h"

#include <stdlib.h>

uint64_t objects_version_of(const json_t *object)
{
	uint64_t version = 0;
	return str_to_u64(json_text(object, "metadata.resourceVersion"), &version) ? version : 0;
}

static void tell(struct kind_cache *cache, json_t *object, bool is_gone)
{
	struct objects *objects = cache->objects;
	if (objects->on_change != NULL)
		objects->on_change(objects->change_arg, cache->kind, object, is_gone);
}

static void index_add(struct kind_cache *cache, struct str namespace_, struct str name,
		      struct cached *cached)
{
	struct map *names = map_find(cache->by_namespace, namespace_);
	if (names == NULL) {
		names = map_new(world_random(loop_world(cache->objects->loop)));
		(void)map_set(cache->by_namespace, namespace_, names);
	}
	(void)map_set(names, name, cached);
}

static void index_remove(struct kind_cache *cache, struct str namespace_, struct str name)
{
	struct map *names = map_find(cache->by_namespace, namespace_);
	ASSERT(names != NULL);
	(void)map_remove(names, name);
	if (map_count(names) > 0)
		return;
	(void)map_remove(cache->by_namespace, namespace_);
	map_free(names);
}

void objects_tell_all(struct objects *objects)
{
	struct str key;
	void *value;
	for (unsigned i = 0; i < OBJECT_KIND_COUNT; i++) {
		struct kind_cache *cache = &objects->kinds[i];
		for (size_t j = 0; map_next(cache->by_key, &j, &key, &value);)
			tell(cache, ((struct cached *)value)->json, false);
	}
}

static void read_facts(const struct kind_cache *cache, struct cached *cached)
{
	if (cache->read_facts == NULL)
		return;
	if (cached->facts == NULL)
		cached->facts = calloc(1, cache->facts_bytes);
	ASSERT(cached->facts != NULL);
	memset(cached->facts, 0, cache->facts_bytes);
	cache->read_facts(cached->json, cached->facts);
}

void objects_cache_put(struct kind_cache *cache, json_t *owned_object)
{
	char text[OBJECT_KEY_BYTES];
	struct str namespace_ = json_text(owned_object, "metadata.namespace");
	struct str name = json_text(owned_object, "metadata.name");
	struct str key = object_key(namespace_, name, text);
	struct cached *cached = key.len == 0 ? NULL : map_find(cache->by_key, key);
	if (key.len == 0 || name.len == 0 ||
	    (cached != NULL &&
	     objects_version_of(cached->json) > objects_version_of(owned_object))) {
		json_decref(owned_object); // unnamed, or older than what we have
		return;
	}
	bool is_new = cached == NULL;
	bool is_same = cached != NULL &&
		       objects_version_of(cached->json) == objects_version_of(owned_object);
	if (cached == NULL) {
		cached = calloc(1, sizeof *cached);
		ASSERT(cached != NULL);
		(void)map_set(cache->by_key, key, cached);
	}
	if (is_new)
		index_add(cache, namespace_, name, cached);
	json_t *old = cached->json;
	cached->json = owned_object;
	read_facts(cache, cached);
	cached->round = cache->round;
	if (!is_same)
		tell(cache, owned_object, false);
	json_decref(old);
}

void objects_cache_remove(struct kind_cache *cache, struct str namespace_, struct str name)
{
	char text[OBJECT_KEY_BYTES];
	struct str key = object_key(namespace_, name, text);
	struct cached *cached = key.len == 0 ? NULL : map_remove(cache->by_key, key);
	if (cached == NULL)
		return;
	index_remove(cache, namespace_, name);
	tell(cache, cached->json, true);
	json_decref(cached->json);
	free(cached->facts);
	free(cached);
}

void objects_cache_end_round(struct kind_cache *cache)
{
	struct str key;
	void *value;
	for (size_t i = 0; map_next(cache->by_key, &i, &key, &value);) {
		struct cached *cached = value;
		if (cached->round == cache->round)
			continue;
		json_t *object = json_incref(cached->json);
		objects_cache_remove(cache, json_text(object, "metadata.namespace"),
				     json_text(object, "metadata.name"));
		json_decref(object);
	}
}

void objects_keep_facts(struct objects *objects, object_kind kind, object_facts_fn *read,
			size_t facts_bytes)
{
	struct str key;
	void *value;
	ASSERT(kind < OBJECT_KIND_COUNT && facts_bytes > 0);
	struct kind_cache *cache = &objects->kinds[kind];
	ASSERT(cache->read_facts == NULL);
	cache->read_facts = read;
	cache->facts_bytes = facts_bytes;
	for (size_t i = 0; map_next(cache->by_key, &i, &key, &value);)
		read_facts(cache, value);
}

err_status objects_new(struct loop *loop, struct k8s_client *k8s, struct sql *sql,
		       struct objects **ret, struct err *err)
{
	ASSERT(loop != NULL && (k8s != NULL || sql != NULL));
	struct objects *objects = calloc(1, sizeof *objects);
	if (objects == NULL)
		return err_set(err, ERR_LIMIT, "no memory");
	*objects = (struct objects){ .loop = loop, .k8s = k8s, .sql = sql, .local_version = 1 };
	for (unsigned i = 0; i < OBJECT_KIND_COUNT; i++) {
		struct kind_cache *cache = &objects->kinds[i];
		*cache = (struct kind_cache){ .objects = objects, .kind = (object_kind)i };
		cache->by_key = map_new(world_random(loop_world(loop)));
		cache->by_namespace = map_new(world_random(loop_world(loop)));
	}
	err_status status = ERR_OK;
	if (k8s == NULL)
		status = objects_load_local(objects, err);
	else
		objects_watch_kube(objects);
	if (status != ERR_OK) {
		objects_free(objects);
		return status;
	}
	*ret = objects;
	return ERR_OK;
}

static void cache_free(struct kind_cache *cache)
{
	struct str key;
	void *value;
	watch_stop(cache->watch);
	for (size_t i = 0; map_next(cache->by_key, &i, &key, &value);) {
		struct cached *cached = value;
		json_decref(cached->json);
		free(cached->facts);
		free(cached);
	}
	for (size_t i = 0; map_next(cache->by_namespace, &i, &key, &value);)
		map_free(value);
	map_free(cache->by_key);
	map_free(cache->by_namespace);
}

void objects_free(struct objects *objects)
{
	if (objects == NULL)
		return;
	objects->on_change = NULL;
	objects_cancel_kube(objects);
	for (unsigned i = 0; i < OBJECT_KIND_COUNT; i++)
		cache_free(&objects->kinds[i]);
	free(objects);
}

void objects_on_change(struct objects *objects, object_change_fn *fn, void *arg)
{
	objects->on_change = fn;
	objects->change_arg = arg;
}

bool objects_are_synced(const struct objects *objects)
{
	for (unsigned i = 0; i < OBJECT_KIND_COUNT; i++) {
		if (!objects->kinds[i].is_synced)
			return false;
	}
	return true;
}

bool objects_are_local(const struct objects *objects) { return objects->k8s == NULL; }

uint64_t objects_age_s(const struct objects *objects)
{
	uint64_t now_ns = loop_now_ns(objects->loop), age_ns = 0;
	for (unsigned i = 0; i < OBJECT_KIND_COUNT; i++) {
		const struct watch *watch = objects->kinds[i].watch;
		uint64_t last_ns = watch == NULL ? now_ns : watch_last_event_ns(watch);
		age_ns = last_ns < now_ns && now_ns - last_ns > age_ns ? now_ns - last_ns : age_ns;
	}
	return age_ns / UINT64_C(1000000000);
}

json_t *objects_find(const struct objects *objects, object_kind kind, struct str namespace_,
		     struct str name)
{
	char text[OBJECT_KEY_BYTES];
	ASSERT(kind < OBJECT_KIND_COUNT);
	struct str key = object_key(namespace_, name, text);
	struct cached *cached = key.len == 0 ? NULL : map_find(objects->kinds[kind].by_key, key);
	return cached == NULL ? NULL : cached->json;
}

bool objects_next(const struct objects *objects, object_kind kind, size_t *i, json_t **ret_object)
{
	struct str key;
	void *value = NULL;
	ASSERT(kind < OBJECT_KIND_COUNT);
	if (!map_next(objects->kinds[kind].by_key, i, &key, &value))
		return false;
	*ret_object = ((struct cached *)value)->json;
	return true;
}

static const struct cached *next_in(const struct objects *objects, object_kind kind,
				    struct str namespace_, size_t *i)
{
	struct str key;
	void *value = NULL;
	ASSERT(kind < OBJECT_KIND_COUNT);
	const struct map *names = map_find(objects->kinds[kind].by_namespace, namespace_);
	return names != NULL && map_next(names, i, &key, &value) ? value : NULL;
}

bool objects_next_in(const struct objects *objects, object_kind kind, struct str namespace_,
		     size_t *i, json_t **ret_object)
{
	const struct cached *cached = next_in(objects, kind, namespace_, i);
	if (cached != NULL)
		*ret_object = cached->json;
	return cached != NULL;
}

bool objects_next_facts(const struct objects *objects, object_kind kind, struct str namespace_,
			size_t *i, const void **ret_facts)
{
	const struct cached *cached = next_in(objects, kind, namespace_, i);
	ASSERT(objects->kinds[kind].read_facts != NULL);
	if (cached != NULL)
		*ret_facts = cached->facts;
	return cached != NULL;
}

size_t objects_count(const struct objects *objects, object_kind kind)
{
	ASSERT(kind < OBJECT_KIND_COUNT);
	return map_count(objects->kinds[kind].by_key);
}

static void write_object(struct objects *objects, const struct object_write *write, write_verb verb)
{
	ASSERT(write->kind < OBJECT_KIND_COUNT && write->on_done != NULL);
	if (objects->k8s == NULL)
		objects_write_local(objects, write, verb);
	else
		objects_write_kube(objects, write, verb);
}

void objects_create(struct objects *objects, const struct object_write *write)
{
	write_object(objects, write, WRITE_CREATE);
}

void objects_patch(struct objects *objects, const struct object_write *write)
{
	write_object(objects, write, WRITE_PATCH);
}

void objects_apply(struct objects *objects, const struct object_write *write)
{
	write_object(objects, write, WRITE_APPLY);
}

void objects_delete(struct objects *objects, const struct object_write *write)
{
	write_object(objects, write, WRITE_DELETE);
}
