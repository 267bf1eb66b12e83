// SPDX-License-Identifier: Apache-2.0
#include "daemons/scheduler/allot.h"
#include "feed/feed_claim.h"
#include "sys/log.h"

#include <stdlib.h>

struct allot_watch {
	struct scheduler *scheduler;
	sched_claim_kind kind;
	struct watch *watch;
	struct map *seen; // key -> list generation, as a number
	uintptr_t generation;
	bool is_synced, is_absent;
};

struct allot_watches {
	struct allot_watch kinds[SCHED_CLAIM_KINDS];
};

static void set_object(struct allot_watch *watch, const struct watch_item *item)
{
	struct scheduler *s = watch->scheduler;
	struct err err = { 0 };
	AUTO(json_decrefp) json_t *json = NULL;
	arena_reset(s->arena);
	if (json_parse(item->object, &json, &err) != ERR_OK) {
		s->counters.undecodable++;
		log_err(LOG_ERROR, "an object cannot be read and is left out", &err);
		return;
	}
	struct str key = feed_claim_key(s->arena, json);
	struct sched_claim_object *object =
		item->event == WATCH_DELETED ? NULL : feed_claim_object(watch->kind, json);
	if (object == NULL) {
		sched_claim_object_remove(s->core, watch->kind, key);
		(void)map_remove(watch->seen, key);
		return;
	}
	(void)map_set(watch->seen, key, (void *)watch->generation);
	sched_claim_object_set(s->core, object);
}

static void sweep(struct allot_watch *watch)
{
	struct str key;
	void *generation;
	for (size_t i = 0; map_next(watch->seen, &i, &key, &generation);) {
		if ((uintptr_t)generation == watch->generation)
			continue;
		sched_claim_object_remove(watch->scheduler->core, watch->kind, key);
		(void)map_remove(watch->seen, key);
	}
}

static void note_failure(struct allot_watch *watch, const struct err *err)
{
	bool is_absent = err->status == ERR_NOT_FOUND || err->status == ERR_DENIED;
	const char *path = FEED_CLAIM_KINDS[watch->kind].path;
	if (is_absent && !watch->is_absent)
		log_kv(LOG_INFO, "resource claims are not served, or not to us", "path", path,
		       NULL);
	else if (!is_absent)
		log_err(LOG_WARN, path, err);
	watch->is_absent = is_absent;
	if (!is_absent)
		return;
	watch->generation++;
	sweep(watch);
	watch->is_synced = true;
}

static void on_item(void *arg, const struct watch_item *item)
{
	struct allot_watch *watch = arg;
	switch (item->event) {
	case WATCH_ADDED:
	case WATCH_MODIFIED:
	case WATCH_DELETED: set_object(watch, item); break;
	case WATCH_RESYNC: watch->generation++; break;
	case WATCH_SYNCED:
		sweep(watch);
		watch->is_synced = true;
		watch->is_absent = false;
		break;
	case WATCH_FAILED: note_failure(watch, item->err); break;
	}
	scheduler_drive(watch->scheduler);
}

void allot_watch_start(struct scheduler *s)
{
	ASSERT(s->core != NULL && s->allot_watches == NULL);
	s->allot_watches = calloc(1, sizeof *s->allot_watches);
	ASSERT(s->allot_watches != NULL);
	for (size_t i = 0; i < SCHED_CLAIM_KINDS; i++) {
		struct allot_watch *watch = &s->allot_watches->kinds[i];
		const struct watch_config config = { .path = FEED_CLAIM_KINDS[i].path,
						     .fn = on_item,
						     .arg = watch };
		*watch = (struct allot_watch){ .scheduler = s,
					       .kind = (sched_claim_kind)i,
					       .seen = map_new(0),
					       .generation = 1 };
		watch->watch = watch_start(s->client, &config);
	}
}

void allot_watch_stop(struct scheduler *s)
{
	if (s->allot_watches == NULL)
		return;
	for (size_t i = 0; i < SCHED_CLAIM_KINDS; i++) {
		watch_stop(s->allot_watches->kinds[i].watch);
		map_free(s->allot_watches->kinds[i].seen);
	}
	free(s->allot_watches);
	s->allot_watches = NULL;
}

bool allot_is_synced(const struct scheduler *s)
{
	for (size_t i = 0; i < SCHED_CLAIM_KINDS; i++) {
		if (!s->allot_watches->kinds[i].is_synced)
			return false;
	}
	return true;
}
