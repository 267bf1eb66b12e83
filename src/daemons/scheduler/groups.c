// SPDX-License-Identifier: Apache-2.0
// Watches of the objects that say how large gangs are. None of them needs to be there: a kind that
// the API server does not serve, or does not show to us, is asked for again now and then.
#include "daemons/scheduler/groups.h"

#include "feed/feed_group.h"
#include "sys/log.h"

#include <stdlib.h>

struct group_watch {
	struct scheduler *scheduler;
	const struct feed_group *feed;
	struct watch *watch;
	struct map *seen; // key of the part -> list generation, as a number
	uintptr_t generation;
	bool is_synced, is_absent;
};

struct groups {
	struct group_watch watches[FEED_GROUPS_COUNT];
};

static void set_object(struct group_watch *group, const struct watch_item *item)
{
	struct scheduler *s = group->scheduler;
	struct err err = { 0 };
	struct sched_gang_part part;
	union feed_group_object object;
	AUTO(json_decrefp) json_t *json = NULL;
	arena_reset(s->arena);
	bool good = json_parse(item->object, &json, &err) == ERR_OK &&
		    kobj_from_json(s->arena, group->feed->table, json, NULL, &object, &err) ==
			    ERR_OK;
	if (!good || !group->feed->read(s->arena, &object, &part)) {
		s->counters.undecodable++;
		log_err(LOG_ERROR, "an object cannot be read and is left out", &err);
		return;
	}
	if (item->event == WATCH_DELETED || part.name.len == 0) {
		sched_gang_part_remove(s->core, part.key);
		(void)map_remove(group->seen, part.key);
		return;
	}
	sched_gang_part_set(s->core, &part);
	(void)map_set(group->seen, part.key, (void *)group->generation);
}

static void sweep(struct group_watch *group)
{
	struct str key;
	void *generation;
	for (size_t i = 0; map_next(group->seen, &i, &key, &generation);) {
		if ((uintptr_t)generation == group->generation)
			continue;
		sched_gang_part_remove(group->scheduler->core, key);
		(void)map_remove(group->seen, key);
	}
}

static void note_failure(struct group_watch *group, const struct err *err)
{
	bool is_absent = err->status == ERR_NOT_FOUND || err->status == ERR_DENIED;
	if (is_absent && !group->is_absent)
		log_kv(LOG_INFO, "objects about gangs are not served, or not to us", "path",
		       group->feed->path, NULL);
	else if (!is_absent)
		log_err(LOG_WARN, group->feed->path, err);
	group->is_absent = is_absent;
	if (!is_absent)
		return;
	group->generation++;
	sweep(group); // it may have been served before
	group->is_synced = true;
}

static void on_item(void *arg, const struct watch_item *item)
{
	struct group_watch *group = arg;
	switch (item->event) {
	case WATCH_ADDED:
	case WATCH_MODIFIED:
	case WATCH_DELETED: set_object(group, item); break;
	case WATCH_RESYNC: group->generation++; break;
	case WATCH_SYNCED:
		sweep(group);
		group->is_synced = true;
		group->is_absent = false;
		break;
	case WATCH_FAILED: note_failure(group, item->err); break;
	}
	scheduler_drive(group->scheduler);
}

void groups_start(struct scheduler *s)
{
	ASSERT(s->core != NULL && s->groups == NULL);
	s->groups = calloc(1, sizeof *s->groups);
	ASSERT(s->groups != NULL);
	for (size_t i = 0; i < FEED_GROUPS_COUNT; i++) {
		struct group_watch *group = &s->groups->watches[i];
		*group = (struct group_watch){
			.scheduler = s, .feed = &FEED_GROUPS[i], .seen = map_new(0), .generation = 1
		};
		group->watch =
			watch_start(s->client, &(struct watch_config){ .path = FEED_GROUPS[i].path,
								       .fn = on_item,
								       .arg = group });
	}
}

void groups_stop(struct scheduler *s)
{
	if (s->groups == NULL)
		return;
	for (size_t i = 0; i < FEED_GROUPS_COUNT; i++) {
		watch_stop(s->groups->watches[i].watch);
		map_free(s->groups->watches[i].seen);
	}
	free(s->groups);
	s->groups = NULL;
}

bool groups_are_synced(const struct scheduler *s)
{
	for (size_t i = 0; i < FEED_GROUPS_COUNT; i++) {
		if (!s->groups->watches[i].is_synced)
			return false;
	}
	return true;
}
