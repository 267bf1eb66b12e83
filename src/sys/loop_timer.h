// SPDX-License-Identifier: Apache-2.0
// Timers of the loop as a binary heap by (due time, order of arming); inside sys only. Timers
// belong to their owners, the heap holds pointers; each knows its place, so removal is O(log n).
#pragma once

#include "sys/loop.h"

struct loop_timer {
	struct loop *loop;
	loop_fn *fn;
	void *arg;
	uint64_t at_ns;
	uint64_t number; // breaks ties: first armed, first fired
	size_t heap_i;   // SIZE_MAX when not armed
};

struct timer_heap {
	struct loop_timer **items;
	size_t count, cap;
	uint64_t next_number;
};

struct loop_timer *timer_heap_first(const struct timer_heap *heap); // NULL when empty
void timer_heap_set(struct timer_heap *heap, struct loop_timer *timer, uint64_t at_ns);
void timer_heap_remove(struct timer_heap *heap, struct loop_timer *timer); // not armed: nothing
