// SPDX-License-Identifier: Apache-2.0
#include "api/objects_state.h"

#include "base/timefmt.h"
#include "store/history.h"
#include "sys/random.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct local_answer {
	object_done_fn *on_done;
	void *arg;
	struct err err; // ERR_OK: fine
	json_t *object; // owned, may be NULL
};

static void give_answer(void *arg)
{
	struct local_answer *answer = arg;
	struct object_result result = { .status = answer->err.status, .object = answer->object };
	if (result.status != ERR_OK)
		result.err = &answer->err;
	answer->on_done(answer->arg, &result);
	json_decref(answer->object);
	free(answer);
}

static void stamp(struct objects *objects, json_t *object, bool is_new)
{
	char text[TIME_TEXT_BYTES], uid[37], version[24];
	json_t *meta = json_object_get(object, "metadata");
	(void)snprintf(version, sizeof version, "%" PRId64, ++objects->local_version);
	(void)json_object_set_new(meta, "resourceVersion", json_string(version));
	if (!is_new)
		return;
	random_uuid(uid);
	(void)time_format(world_wall_s(loop_world(objects->loop)), text);
	(void)json_object_set_new(meta, "uid", json_string(uid));
	(void)json_object_set_new(meta, "creationTimestamp", json_string(text));
	(void)json_object_set_new(meta, "generation", json_integer(1));
}

static err_status keep(struct objects *objects, const struct object_write *write,
		       const json_t *object, bool must_be_new, struct err *err)
{
	char *text = json_dumps(object, JSON_COMPACT);
	if (text == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the object");
	struct object_row row = { str_of(object_kinds[write->kind].kind), write->namespace_,
				  write->name, str_of(text) };
	err_status status = object_put(objects->sql, &row, must_be_new, err);
	free(text);
	return status;
}

static err_status create(struct objects *objects, const struct object_write *write,
			 json_t **ret_object, struct err *err)
{
	if (objects_find(objects, write->kind, write->namespace_, write->name) != NULL)
		return err_set(err, ERR_CONFLICT, "%s \"" STR_FMT "\" already exists",
			       object_kinds[write->kind].plural, STR_ARG(write->name));
	json_t *object = json_deep_copy(write->body);
	stamp(objects, object, true);
	err_status status = keep(objects, write, object, true, err);
	if (status != ERR_OK) {
		json_decref(object);
		return status;
	}
	*ret_object = object;
	return ERR_OK;
}

static err_status patch(struct objects *objects, const struct object_write *write,
			json_t **ret_object, struct err *err)
{
	json_t *old = objects_find(objects, write->kind, write->namespace_, write->name);
	if (old == NULL)
		return err_set(err, ERR_NOT_FOUND, "no such object");
	struct str version = json_text(write->body, "metadata.resourceVersion");
	if (version.len > 0 && !str_eq(version, json_text(old, "metadata.resourceVersion")))
		return err_set(err, ERR_CONFLICT, "the object was changed meanwhile");
	json_t *object = json_deep_copy(old);
	object_merge(object, write->body);
	if (!write->is_status)
		(void)json_object_set_new(
			json_object_get(object, "metadata"), "generation",
			json_integer(json_int(old, "metadata.generation", 1) + 1));
	stamp(objects, object, false);
	err_status status = keep(objects, write, object, false, err);
	if (status != ERR_OK) {
		json_decref(object);
		return status;
	}
	*ret_object = object;
	return ERR_OK;
}

static err_status remove_object(struct objects *objects, const struct object_write *write,
				struct err *err)
{
	if (objects_find(objects, write->kind, write->namespace_, write->name) == NULL)
		return err_set(err, ERR_NOT_FOUND, "no such object");
	return object_remove(objects->sql, str_of(object_kinds[write->kind].kind),
			     write->namespace_, write->name, err);
}

static err_status write_one(struct objects *objects, const struct object_write *write,
			    write_verb verb, struct local_answer *answer)
{
	switch (verb) {
	case WRITE_CREATE: return create(objects, write, &answer->object, &answer->err);
	case WRITE_PATCH: return patch(objects, write, &answer->object, &answer->err);
	case WRITE_DELETE: return remove_object(objects, write, &answer->err);
	case WRITE_APPLY: break;
	}
	return err_set(&answer->err, ERR_UNSUPPORTED, "there is no Kubernetes");
}

void objects_write_local(struct objects *objects, const struct object_write *write, write_verb verb)
{
	struct local_answer *answer = calloc(1, sizeof *answer);
	ASSERT(answer != NULL);
	*answer = (struct local_answer){ .on_done = write->on_done, .arg = write->arg };
	// Not read again here: who writes may have borrowed from what is in the cache.
	err_status status =
		objects->is_unsure ? err_set(&answer->err, ERR_UNAVAILABLE,
					     "whether the write before was done is being looked up")
				   : write_one(objects, write, verb, answer);
	answer->err.status = status;
	objects->is_unsure = objects->is_unsure || status == ERR_UNAVAILABLE ||
			     status == ERR_TIMEOUT;
	struct kind_cache *cache = &objects->kinds[write->kind];
	if (status == ERR_OK && answer->object != NULL)
		objects_cache_put(cache, json_incref(answer->object));
	if (status == ERR_OK && verb == WRITE_DELETE)
		objects_cache_remove(cache, write->namespace_, write->name);
	loop_defer(objects->loop, give_answer, answer);
}

static void load_one(void *arg, const struct object_row *row)
{
	struct objects *objects = arg;
	json_t *object = NULL;
	for (unsigned i = 0; i < OBJECT_KIND_COUNT; i++) {
		if (!str_eq_c(row->kind, object_kinds[i].kind))
			continue;
		if (json_parse(row->json, &object, NULL) != ERR_OK)
			return;
		int64_t version = (int64_t)objects_version_of(object);
		objects->local_version = max_i64(objects->local_version, version);
		objects_cache_put(&objects->kinds[i], object);
	}
}

err_status objects_load_local(struct objects *objects, struct err *err)
{
	for (unsigned i = 0; i < OBJECT_KIND_COUNT; i++) {
		objects->kinds[i].is_synced = true;
		objects->kinds[i].round++;
	}
	err_status status = object_each(objects->sql, load_one, objects, err);
	for (unsigned i = 0; status == ERR_OK && i < OBJECT_KIND_COUNT; i++)
		objects_cache_end_round(&objects->kinds[i]);
	return status;
}

err_status objects_settle(struct objects *objects, struct err *err)
{
	if (!objects->is_unsure)
		return ERR_OK;
	err_status status = objects_load_local(objects, err);
	objects->is_unsure = status != ERR_OK;
	return status;
}
