// SPDX-License-Identifier: Apache-2.0
#include "sim/sim.h"

#include <stdlib.h>

struct events {
	struct event *items; // a binary heap
	size_t count, cap;
	uint64_t order;
};

struct events *events_new(void)
{
	struct events *events = calloc(1, sizeof *events);
	ASSERT(events != NULL);
	return events;
}

void events_free(struct events *events)
{
	free(events->items);
	free(events);
}

static bool is_before(const struct event *a, const struct event *b)
{
	return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->order < b->order;
}

static void swap(struct event *a, struct event *b)
{
	struct event other = *a;
	*a = *b;
	*b = other;
}

void events_add(struct events *events, struct event event)
{
	if (events->count == events->cap) {
		events->cap = events->cap == 0 ? 256 : 2 * events->cap;
		events->items = realloc(events->items, events->cap * sizeof event);
		ASSERT(events->items != NULL);
	}
	event.order = events->order++;
	size_t i = events->count++;
	events->items[i] = event;
	for (; i > 0 && is_before(&events->items[i], &events->items[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&events->items[i], &events->items[(i - 1) / 2]);
}

bool events_first(const struct events *events, int64_t *ret_ms)
{
	if (events->count == 0)
		return false;
	*ret_ms = events->items[0].at_ms;
	return true;
}

struct event events_take(struct events *events)
{
	ASSERT(events->count > 0);
	struct event first = events->items[0];
	events->items[0] = events->items[--events->count];
	for (size_t i = 0;;) {
		size_t least = i, left = 2 * i + 1;
		for (size_t child = left; child <= left + 1 && child < events->count; child++) {
			if (is_before(&events->items[child], &events->items[least]))
				least = child;
		}
		if (least == i)
			return first;
		swap(&events->items[i], &events->items[least]);
		i = least;
	}
}
