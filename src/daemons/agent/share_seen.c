// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/share_seen.h"

#include "daemons/agent/checkpoint.h"
#include "daemons/agent/dp_proto.h"

#include <stdlib.h>

enum { ROOM_FIRST = 16, SEEN_MAX = 8192 };

void share_seen_done(struct share_seen_list *list)
{
	free(list->items);
	*list = (struct share_seen_list){ 0 };
}

static struct share_seen *add(struct share_seen_list *list)
{
	if (list->count == list->room) {
		size_t room = list->room == 0 ? ROOM_FIRST : list->room * 2;
		struct share_seen *items = NULL;
		if (room <= SEEN_MAX)
			items = realloc(list->items, room * sizeof *items);
		if (items == NULL)
			return NULL;
		list->items = items;
		list->room = room;
	}
	return &list->items[list->count++];
}

static bool is_holder(const struct share_holder *a, const struct share_holder *b)
{
	return strcmp(a->uid, b->uid) == 0 && strcmp(a->container, b->container) == 0 &&
	       strcmp(a->pod, b->pod) == 0 && strcmp(a->namespace_, b->namespace_) == 0;
}

static struct share_seen *find_last(struct share_seen_list *list, const struct share_holder *holder,
				    share_kind kind)
{
	for (size_t i = list->count; i > 0; i--) {
		struct share_seen *last = &list->items[i - 1];
		if (!is_holder(&last->holder, holder))
			return NULL;
		if (last->key.kind == kind)
			return last;
	}
	return NULL;
}

// The ids of one container may be told in several parts.
static void take(struct share_seen_list *list, const struct share_holder *holder, share_kind kind,
		 struct str id)
{
	struct share_seen *seen = find_last(list, holder, kind);
	if (seen == NULL) {
		seen = add(list);
		if (seen == NULL)
			return; // its container waits until there is room
		*seen = (struct share_seen){ .key = { .kind = kind }, .holder = *holder };
	}
	share_key_add(&seen->key, id);
}

static void on_row(void *arg, const struct podres_row *row)
{
	struct share_holder holder = { .uid = "" };
	share_kind kind;
	if (share_kind_of(row->resource, &kind) &&
	    usage_text(holder.namespace_, sizeof holder.namespace_, row->namespace_) &&
	    usage_text(holder.pod, sizeof holder.pod, row->pod) &&
	    usage_text(holder.container, sizeof holder.container, row->container))
		take(arg, &holder, kind, row->id);
}

static void on_checkpoint_row(void *arg, const struct checkpoint_row *row)
{
	struct share_holder holder = { .uid = "" };
	share_kind kind;
	if (share_kind_of(row->resource, &kind) &&
	    usage_text(holder.uid, sizeof holder.uid, row->pod_uid) &&
	    usage_text(holder.container, sizeof holder.container, row->container))
		take(arg, &holder, kind, row->id);
}

err_status share_seen_answer(struct share_seen_list *list, struct str message, struct err *err)
{
	err_status status = podres_read_list(message, NULL, NULL, err);
	if (status != ERR_OK)
		return status;
	list->count = 0;
	return podres_read_list(message, on_row, list, err);
}

err_status share_seen_checkpoint(struct share_seen_list *list, struct str text, struct err *err)
{
	struct share_seen_list next = { 0 };
	err_status status = checkpoint_read(text, on_checkpoint_row, &next, err);
	if (status != ERR_OK) {
		share_seen_done(&next);
		return status;
	}
	share_seen_done(list);
	*list = next;
	return ERR_OK;
}

const struct share_seen *share_seen_next(const struct share_seen_list *list,
					 const struct share_key *key, size_t *at)
{
	while (*at < list->count) {
		const struct share_seen *seen = &list->items[(*at)++];
		if (share_key_is(&seen->key, key))
			return seen;
	}
	return NULL;
}
