// SPDX-License-Identifier: Apache-2.0
// Doubly linked list whose links lie inside the objects; a head is a link of its own. An object
// that is in no list has a zeroed link. Owns nothing, cannot fail.
#pragma once

#include "base/defs.h"

struct link {
	struct link *next, *prev;
};

// The object around a link that is its member.
#define LINK_OF(link_ptr, type, member)                                                            \
	((type *)(void *)((char *)(link_ptr)-offsetof(type, member)))

static inline void link_head_init(struct link *head) { *head = (struct link){ head, head }; }
static inline bool link_is_in(const struct link *link) { return link->next != NULL; }
static inline bool link_is_empty(const struct link *head) { return head->next == head; }

static inline void link_add(struct link *head, struct link *link) // at the end
{
	ASSERT(!link_is_in(link));
	*link = (struct link){ head, head->prev };
	head->prev->next = link;
	head->prev = link;
}

static inline void link_drop(struct link *link)
{
	ASSERT(link_is_in(link));
	link->prev->next = link->next;
	link->next->prev = link->prev;
	*link = (struct link){ NULL, NULL };
}
