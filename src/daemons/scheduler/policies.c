// SPDX-License-Identifier: Apache-2.0
#include "daemons/scheduler/policies.h"

#include "feed/feed_slices.h"
#include "sys/log.h"

#include <stdlib.h>

enum { POLICIES_MAX = 64 }; // as agents read

struct policy {
	json_t *object; // owned; NULL: free
	bool is_seen;   // by the list that is under way
};

struct policies {
	struct scheduler *scheduler;
	struct watch *watch;
	struct policy items[POLICIES_MAX];
	bool is_synced;
};

static struct policy *find(struct policies *policies, struct str name)
{
	struct policy *free_one = NULL;
	for (size_t i = 0; i < POLICIES_MAX; i++) {
		struct policy *policy = &policies->items[i];
		if (policy->object == NULL)
			free_one = free_one == NULL ? policy : free_one;
		else if (str_eq(json_text(policy->object, "metadata.name"), name))
			return policy;
	}
	return free_one;
}

static void clear(struct policy *policy)
{
	json_decref(policy->object);
	*policy = (struct policy){ 0 };
}

static void take(struct policies *policies, const struct watch_item *item)
{
	struct err err = { 0 };
	AUTO(json_decrefp) json_t *object = NULL;
	if (json_parse(item->object, &object, &err) != ERR_OK) {
		policies->scheduler->counters.undecodable++;
		log_err(LOG_ERROR, "a GPUPolicy cannot be read and is left out", &err);
		return;
	}
	struct str name = json_text(object, "metadata.name");
	struct policy *policy = find(policies, name);
	if (policy == NULL) {
		log_kv(LOG_WARN, "one GPUPolicy too many", "name",
		       json_cstr(object, "metadata.name"), NULL);
		return;
	}
	clear(policy);
	if (item->event != WATCH_DELETED)
		*policy = (struct policy){ json_incref(object), true };
}

// In the order of the places, which does not matter: sums are counted.
static void tell(struct policies *policies)
{
	struct scheduler *s = policies->scheduler;
	static struct sched_slice all[SCHED_SLICES_MAX];
	size_t count = 0;
	arena_reset(s->arena);
	for (size_t i = 0; i < POLICIES_MAX; i++) {
		struct sched_slice *own;
		size_t own_count;
		if (policies->items[i].object == NULL ||
		    !feed_slices(s->arena, policies->items[i].object, &own, &own_count))
			continue;
		for (size_t k = 0; k < own_count && count < SCHED_SLICES_MAX; k++)
			all[count++] = own[k];
	}
	sched_slices_set(s->core, all, count);
}

static void sweep(struct policies *policies)
{
	for (size_t i = 0; i < POLICIES_MAX; i++) {
		if (policies->items[i].object != NULL && !policies->items[i].is_seen)
			clear(&policies->items[i]);
	}
	policies->is_synced = true;
}

static void mark_unseen(struct policies *policies)
{
	for (size_t i = 0; i < POLICIES_MAX; i++)
		policies->items[i].is_seen = false;
}

static void on_item(void *arg, const struct watch_item *item)
{
	struct policies *policies = arg;
	switch (item->event) {
	case WATCH_ADDED:
	case WATCH_MODIFIED:
	case WATCH_DELETED: take(policies, item); break;
	case WATCH_RESYNC: mark_unseen(policies); return;
	case WATCH_SYNCED: sweep(policies); break;
	case WATCH_FAILED:
		if (item->err->status != ERR_NOT_FOUND && item->err->status != ERR_DENIED) {
			log_err(LOG_WARN, FEED_POLICIES_PATH, item->err);
			return;
		}
		mark_unseen(policies); // they are not served, or not to us
		sweep(policies);
		break;
	}
	if (policies->is_synced)
		tell(policies);
	scheduler_drive(policies->scheduler);
}

void policies_start(struct scheduler *s)
{
	ASSERT(s->core != NULL && s->policies == NULL);
	s->policies = calloc(1, sizeof *s->policies);
	ASSERT(s->policies != NULL);
	s->policies->scheduler = s;
	const struct watch_config config = { .path = FEED_POLICIES_PATH,
					     .fn = on_item,
					     .arg = s->policies };
	s->policies->watch = watch_start(s->client, &config);
}

void policies_stop(struct scheduler *s)
{
	if (s->policies == NULL)
		return;
	watch_stop(s->policies->watch);
	for (size_t i = 0; i < POLICIES_MAX; i++)
		clear(&s->policies->items[i]);
	free(s->policies);
	s->policies = NULL;
}

bool policies_are_synced(const struct scheduler *s)
{
	return s->policies != NULL && s->policies->is_synced;
}
