// SPDX-License-Identifier: Apache-2.0
// The inside of struct objects, shared by the cache (objects.c) and its two writers
// (objects_local.c, objects_kube.c).
#pragma once

#include "api/object_kinds.h"
#include "base/map.h"
#include "k8s/watch.h"

struct cached {
	json_t *json;
	void *facts;    // of the kind's reader; owned
	uint64_t round; // list in which it was named last
};

struct kind_cache {
	struct objects *objects;
	object_kind kind;
	struct map *by_key;          // "namespace/name" -> struct cached
	struct map *by_namespace;    // namespace -> struct map of name -> struct cached
	object_facts_fn *read_facts; // NULL: none are kept
	size_t facts_bytes;
	struct watch *watch;
	bool is_synced;
	uint64_t round;
	uint64_t newest_version; // resourceVersion up to which the watch has told
	uint64_t failures;
};

struct objects {
	struct loop *loop;
	struct k8s_client *k8s; // NULL: local
	struct sql *sql;
	struct kind_cache kinds[OBJECT_KIND_COUNT];
	object_change_fn *on_change;
	void *change_arg;
	int64_t local_version;
	bool is_unsure; // whether a local write was done is not known: the database may differ
	// Writes under way, so that freeing can wait for none of them: their callbacks check it.
	struct write_call *writes;
};

// Puts a new reference into the cache and tells the listener.
void objects_cache_put(struct kind_cache *cache, json_t *owned_object);
void objects_cache_remove(struct kind_cache *cache, struct str namespace_, struct str name);
// What was not put since cache->round was counted up is gone.
void objects_cache_end_round(struct kind_cache *cache);
// Tells the listener of every object once more: now all kinds are complete.
void objects_tell_all(struct objects *objects);
uint64_t objects_version_of(const json_t *object);

typedef enum write_verb { WRITE_CREATE, WRITE_PATCH, WRITE_APPLY, WRITE_DELETE } write_verb;
void objects_write_local(struct objects *objects, const struct object_write *write,
			 write_verb verb);
void objects_write_kube(struct objects *objects, const struct object_write *write, write_verb verb);
MUST_USE err_status objects_load_local(struct objects *objects, struct err *err);
void objects_watch_kube(struct objects *objects);
void objects_cancel_kube(struct objects *objects);
