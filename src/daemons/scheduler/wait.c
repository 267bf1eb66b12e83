// SPDX-License-Identifier: Apache-2.0
#include "daemons/scheduler/wait.h"

#include <stdlib.h>

enum { TEXTS_MAX_BYTES = 4 * 1024 * 1024 };

void *wait_new(struct scheduler *s, struct wait **list, size_t size_bytes, loop_fn *on_timer)
{
	ASSERT(size_bytes >= sizeof(struct wait));
	struct wait *wait = calloc(1, size_bytes);
	ASSERT(wait != NULL);
	*wait = (struct wait){ .scheduler = s,
			       .list = list,
			       .next = *list,
			       .arena = arena_new(TEXTS_MAX_BYTES),
			       .timer = loop_timer_new(s->loop, on_timer, wait) };
	ASSERT(wait->arena != NULL);
	*list = wait;
	return wait;
}

void wait_free(struct wait *wait)
{
	struct wait **at = wait->list;
	while (*at != wait)
		at = &(*at)->next;
	*at = wait->next;
	k8s_call_cancel(wait->call);
	loop_timer_free(wait->timer);
	arena_free(wait->arena);
	free(wait);
}

void wait_free_all(struct wait **list)
{
	while (*list != NULL)
		wait_free(*list);
}

const char *wait_keep(struct wait *wait, struct str text)
{
	const char *copy = arena_cstr(wait->arena, text);
	ASSERT(copy != NULL);
	return copy;
}

void wait_keep_order(struct wait *wait, const struct bind_order *order)
{
	wait->order = (struct bind_order){ .uid = str_of(wait_keep(wait, order->uid)),
					   .namespace_ = str_of(wait_keep(wait, order->namespace_)),
					   .name = str_of(wait_keep(wait, order->name)),
					   .node = str_of(wait_keep(wait, order->node)),
					   .body = str_of(wait_keep(wait, order->body)) };
}
