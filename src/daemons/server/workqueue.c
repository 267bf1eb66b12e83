// SPDX-License-Identifier: Apache-2.0
#include "daemons/server/workqueue.h"

#include "base/map.h"

#include <stdlib.h>

enum { BACKOFF_STEPS_MAX = 8 };
#define BACKOFF_FIRST_NS UINT64_C(200000000)
#define BACKOFF_MAX_NS UINT64_C(30000000000)

typedef enum item_state { ITEM_QUEUED, ITEM_RUNNING, ITEM_WAITING } item_state;

struct item {
	struct item *next; // while queued
	item_state state;
	bool is_dirty; // changed during its pass
	unsigned failures;
	uint64_t due_ns;    // while waiting
	uint64_t settle_ns; // until then its work is put off; 0: it is not
	size_t key_len;
	char key[];
};

struct workqueue {
	struct loop *loop;
	struct loop_timer *timer;
	workqueue_fn *fn;
	void *arg;
	struct map *items;
	struct item *head, **tail;
	size_t running, running_max;
	size_t waiting;  // items in that state
	uint64_t due_ns; // none of them is due before
	uint64_t passes, failures;
};

static struct str key_of(const struct item *item)
{
	return (struct str){ item->key, item->key_len };
}

static void enqueue(struct workqueue *queue, struct item *item)
{
	queue->waiting -= item->state == ITEM_WAITING ? 1 : 0;
	item->state = ITEM_QUEUED;
	item->next = NULL;
	*queue->tail = item;
	queue->tail = &item->next;
	loop_timer_set(queue->timer, 0);
}

// Waiting items that are due go into the queue; the timer is set for the next one.
static void wake_due(struct workqueue *queue)
{
	struct str key;
	void *value;
	uint64_t now_ns = loop_now_ns(queue->loop);
	uint64_t next_ns = now_ns < queue->due_ns ? queue->due_ns : UINT64_MAX;
	bool is_due = queue->waiting > 0 && queue->due_ns <= now_ns;
	for (size_t i = 0; is_due && map_next(queue->items, &i, &key, &value);) {
		struct item *item = value;
		if (item->state != ITEM_WAITING)
			continue;
		if (item->due_ns <= now_ns)
			enqueue(queue, item);
		else if (item->due_ns < next_ns)
			next_ns = item->due_ns;
	}
	queue->due_ns = next_ns;
	if (queue->head == NULL && next_ns != UINT64_MAX)
		loop_timer_set(queue->timer, next_ns - now_ns);
}

static void wait_until(struct workqueue *queue, struct item *item, uint64_t due_ns)
{
	item->state = ITEM_WAITING;
	item->due_ns = due_ns;
	queue->waiting++;
	queue->due_ns = due_ns < queue->due_ns ? due_ns : queue->due_ns;
}

static void step(void *arg)
{
	struct workqueue *queue = arg;
	wake_due(queue);
	while (queue->head != NULL && queue->running < queue->running_max) {
		struct item *item = queue->head;
		queue->head = item->next;
		if (queue->head == NULL)
			queue->tail = &queue->head;
		item->state = ITEM_RUNNING;
		item->is_dirty = false;
		queue->running++;
		queue->passes++;
		queue->fn(queue->arg, key_of(item)); // may report at once
	}
	wake_due(queue);
}

struct workqueue *workqueue_new(struct loop *loop, size_t running_max, workqueue_fn *fn, void *arg)
{
	ASSERT(running_max > 0 && fn != NULL);
	struct workqueue *queue = calloc(1, sizeof *queue);
	ASSERT(queue != NULL);
	*queue = (struct workqueue){
		.loop = loop, .fn = fn, .arg = arg, .running_max = running_max
	};
	queue->tail = &queue->head;
	queue->due_ns = UINT64_MAX;
	queue->items = map_new(world_random(loop_world(loop)));
	queue->timer = loop_timer_new(loop, step, queue);
	return queue;
}

void workqueue_free(struct workqueue *queue)
{
	if (queue == NULL)
		return;
	struct str key;
	void *value;
	for (size_t i = 0; map_next(queue->items, &i, &key, &value);)
		free(value);
	map_free(queue->items);
	loop_timer_free(queue->timer);
	free(queue);
}

void workqueue_add(struct workqueue *queue, struct str key)
{
	struct item *item = map_find(queue->items, key);
	if (item != NULL) {
		item->is_dirty = true;
		// A change may be what the failed pass was missing.
		if (item->state == ITEM_WAITING)
			enqueue(queue, item);
		return;
	}
	item = calloc(1, sizeof *item + key.len + 1);
	ASSERT(item != NULL);
	item->key_len = key.len;
	memcpy(item->key, key.data, key.len);
	(void)map_set(queue->items, key, item);
	enqueue(queue, item);
}

static uint64_t backoff_ns(unsigned failures)
{
	unsigned steps = failures > BACKOFF_STEPS_MAX ? BACKOFF_STEPS_MAX : failures;
	uint64_t wait_ns = BACKOFF_FIRST_NS << (steps - 1);
	return wait_ns > BACKOFF_MAX_NS ? BACKOFF_MAX_NS : wait_ns;
}

void workqueue_done(struct workqueue *queue, struct str key, bool is_good)
{
	struct item *item = map_find(queue->items, key);
	ASSERT(item != NULL && item->state == ITEM_RUNNING);
	ASSERT(queue->running > 0);
	queue->running--;
	item->failures = is_good ? 0 : item->failures + 1;
	queue->failures += is_good ? 0 : 1;
	uint64_t now_ns = loop_now_ns(queue->loop);
	if (!is_good) {
		wait_until(queue, item, now_ns + backoff_ns(item->failures));
	} else if (item->is_dirty) {
		enqueue(queue, item);
	} else if (item->settle_ns > now_ns) {
		wait_until(queue, item, item->settle_ns);
	} else {
		(void)map_remove(queue->items, key_of(item));
		free(item);
	}
	loop_timer_set(queue->timer, 0);
}

bool workqueue_settled(struct workqueue *queue, struct str key, uint64_t quiet_ns)
{
	struct item *item = map_find(queue->items, key);
	ASSERT(item != NULL && item->state == ITEM_RUNNING && quiet_ns > 0);
	uint64_t now_ns = loop_now_ns(queue->loop);
	if (item->settle_ns == 0) {
		item->settle_ns = now_ns + quiet_ns;
		return false;
	}
	bool is_over = item->settle_ns <= now_ns;
	item->settle_ns = is_over ? 0 : item->settle_ns;
	return is_over;
}

size_t workqueue_depth(const struct workqueue *queue) { return map_count(queue->items); }
uint64_t workqueue_passes(const struct workqueue *queue) { return queue->passes; }
uint64_t workqueue_failures(const struct workqueue *queue) { return queue->failures; }
