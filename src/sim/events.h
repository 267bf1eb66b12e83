// SPDX-License-Identifier: Apache-2.0
// What happens when in a scenario: a heap in order of time and, at one time, of arrival. An event
// borrows what it names; memory is the heap's and grows without a failure that a caller sees.
#pragma once

#include "base/str.h"

struct sim_object;
struct sim_pod;
struct events;

typedef enum event_kind {
	EVENT_OBJECT,
	EVENT_BOUND,
	EVENT_BIND_FAILED,
	EVENT_FINISH,
	EVENT_EVICT,
	EVENT_NOMINATED,
	EVENT_SAVED, // a checkpoint
	EVENT_RECREATE
} event_kind;
struct event {
	int64_t at_ms;
	uint64_t order;
	event_kind kind;
	const struct sim_object *object;
	struct str uid;
	const struct sim_pod *pod; // of RECREATE
	uint32_t bind_no;
};

// events.c: a heap
struct events *events_new(void);
void events_free(struct events *events);
void events_add(struct events *events, struct event event);
bool events_first(const struct events *events, int64_t *ret_ms);
struct event events_take(struct events *events);
