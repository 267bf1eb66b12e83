// SPDX-License-Identifier: Apache-2.0
#include "sys/loop_timer.h"

#include <stdlib.h>

static bool is_before(const struct loop_timer *a, const struct loop_timer *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->number < b->number;
}

static void place(struct timer_heap *heap, size_t i, struct loop_timer *timer)
{
	heap->items[i] = timer;
	timer->heap_i = i;
}

static void sift_up(struct timer_heap *heap, size_t i)
{
	struct loop_timer *timer = heap->items[i];
	while (i > 0 && is_before(timer, heap->items[(i - 1) / 2])) {
		place(heap, i, heap->items[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	place(heap, i, timer);
}

static void sift_down(struct timer_heap *heap, size_t i)
{
	struct loop_timer *timer = heap->items[i];
	for (size_t child = 2 * i + 1; child < heap->count; child = 2 * i + 1) {
		if (child + 1 < heap->count &&
		    is_before(heap->items[child + 1], heap->items[child]))
			child++;
		if (!is_before(heap->items[child], timer))
			break;
		place(heap, i, heap->items[child]);
		i = child;
	}
	place(heap, i, timer);
}

struct loop_timer *timer_heap_first(const struct timer_heap *heap)
{
	return heap->count == 0 ? NULL : heap->items[0];
}

void timer_heap_set(struct timer_heap *heap, struct loop_timer *timer, uint64_t at_ns)
{
	timer_heap_remove(heap, timer);
	if (heap->count == heap->cap) {
		heap->cap = heap->cap == 0 ? 32 : heap->cap * 2;
		heap->items = realloc(heap->items, heap->cap * sizeof(struct loop_timer *));
		ASSERT(heap->items != NULL);
	}
	timer->at_ns = at_ns;
	timer->number = heap->next_number++;
	place(heap, heap->count++, timer);
	sift_up(heap, timer->heap_i);
	ASSERT(heap->items[timer->heap_i] == timer);
}

void timer_heap_remove(struct timer_heap *heap, struct loop_timer *timer)
{
	size_t i = timer->heap_i;
	if (i == SIZE_MAX)
		return;
	ASSERT(i < heap->count && heap->items[i] == timer);
	struct loop_timer *last = heap->items[--heap->count];
	timer->heap_i = SIZE_MAX;
	if (last == timer)
		return;
	place(heap, i, last);
	sift_up(heap, i);
	sift_down(heap, last->heap_i);
}
