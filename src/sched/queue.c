// SPDX-License-Identifier: Apache-2.0
// The tree itself, its books, and who is how far from what it should have.
#include "sched/queue.h"

#include "sched/core.h"
#include "sched/entitle.h"
#include "sched/queue_model.h"

#include <stdio.h>
#include <stdlib.h>

// Numbers of a CRD are checked by its schema; here they only must not overflow.
#define MILLI_MAX (INT64_C(1) << 40)
#define PARTS_MAX (PARTS_PER_MILLI * MILLI_MAX)
#define TARGET_MAX (INT64_C(1) << 36)

static void init(struct queue *queue)
{
	*queue = (struct queue){ .half_life_s = SCHED_HALF_LIFE_S };
	queue->in = (struct sched_queue_in){ .guaranteed_milli = SCHED_BY_CHILDREN,
					     .limit_milli = SCHED_NO_LIMIT,
					     .user_limit_milli = SCHED_NO_LIMIT,
					     .weight = 1,
					     .priority_max = INT64_MAX,
					     .half_life_s = -1 };
	queue->limit_parts = queue->user_limit_parts = INT64_MAX;
	link_head_init(&queue->children);
	link_head_init(&queue->blocked);
	link_head_init(&queue->pods);
	queue->users = map_new(0);
}

struct queues *queues_new(uint64_t seed)
{
	struct queues *queues = core_alloc(1, sizeof *queues);
	queues->by_name = map_new(seed);
	init(&queues->root);
	queues->root.in.half_life_s = SCHED_HALF_LIFE_S;
	init(&queues->common);
	link_head_init(&queues->busy);
	queues->is_stale = true;
	return queues;
}

static void done(struct queue *queue)
{
	struct str name;
	void *user;
	ASSERT(link_is_empty(&queue->pods));
	for (size_t i = 0; map_next(queue->users, &i, &name, &user);)
		free(user);
	map_free(queue->users);
	free(queue->models);
	free(queue->entries);
	free(queue->texts);
}

static void free_queue(struct queue *queue)
{
	done(queue);
	free(queue);
}

void queues_free(struct queues *queues)
{
	struct str name;
	void *queue;
	for (size_t i = 0; map_next(queues->by_name, &i, &name, &queue);)
		free_queue(queue);
	map_free(queues->by_name);
	done(&queues->root);
	done(&queues->common);
	free(queues->order);
	free(queues->model_names);
	free(queues);
}

static int64_t within(int64_t value, int64_t most) { return min_i64(max_i64(value, 0), most); }

struct queue *queues_put(struct queues *queues, const struct sched_queue_in *in)
{
	struct queue *queue = map_find(queues->by_name, in->name);
	bool is_new = queue == NULL;
	ASSERT(in->name.len > 0);
	if (is_new) {
		queue = core_alloc(1, sizeof *queue);
		init(queue);
	}
	struct str texts[3 + SCHED_QUEUE_MODELS_MAX] = { in->name, in->parent, in->fault };
	struct sched_queue_model *entries = core_alloc(in->model_count + 1, sizeof *entries);
	ASSERT(in->model_count <= SCHED_QUEUE_MODELS_MAX);
	for (size_t i = 0; i < in->model_count; i++)
		texts[3 + i] = in->models[i].model;
	struct str *copies = core_texts_copy(texts, 3 + in->model_count);
	for (size_t i = 0; i < in->model_count; i++) {
		entries[i] = in->models[i];
		entries[i].model = copies[3 + i];
	}
	int64_t used_milli_s = is_new ? in->used_milli_s : queue->in.used_milli_s;
	free(queue->texts);
	free(queue->entries);
	queue->texts = copies;
	queue->entries = entries;
	queue->in = *in;
	queue->in.models = entries;
	queue->in.name = copies[0];
	queue->in.parent = copies[1];
	queue->in.fault = copies[2];
	queue->in.used_milli_s = used_milli_s;
	queue->limit_parts = parts_of_milli(in->limit_milli);
	queue->user_limit_parts = parts_of_milli(in->user_limit_milli);
	queue->in.weight = within(in->weight, SCHED_WEIGHT_MAX);
	if (in->guaranteed_milli != SCHED_BY_CHILDREN)
		queue->in.guaranteed_milli = within(in->guaranteed_milli, MILLI_MAX);
	queue->is_listed = true;
	if (is_new)
		(void)map_set(queues->by_name, queue->in.name, queue);
	queues->is_stale = true;
	return queue;
}

struct queue *queues_find(struct queues *queues, struct str namespace_)
{
	struct queue *queue = map_find(queues->by_name, namespace_);
	return queue == NULL || !queue->is_listed ? &queues->common : queue;
}

void queues_unlist(struct queues *queues, struct queue *queue)
{
	ASSERT(queue->is_listed);
	queue->is_listed = false;
	queues->is_stale = true;
	queues_release(queues, queue);
}

void queues_release(struct queues *queues, struct queue *queue)
{
	if (queue == &queues->common || queue->is_listed || !link_is_empty(&queue->pods))
		return;
	ASSERT(queue->used_parts == 0 || queues->is_stale);
	ASSERT(!link_is_in(&queue->in_busy) && link_is_empty(&queue->blocked));
	if (link_is_in(&queue->in_eased))
		link_drop(&queue->in_eased);
	(void)map_remove(queues->by_name, queue->in.name);
	queues->is_stale = true; // it may still hang in the tree
	free_queue(queue);
}

// ---- from names to a tree

static struct queue *parent_named(struct queues *queues, const struct queue *queue)
{
	struct queue *parent = map_find(queues->by_name, queue->in.parent);
	return parent == NULL || !parent->is_listed ? NULL : parent;
}

static void set_fault(struct queue *queue, const char *what, struct str name, const char *remedy)
{
	(void)snprintf(queue->fault_text, sizeof queue->fault_text, "%s" STR_FMT "%s", what,
		       STR_ARG(name), remedy);
	queue->fault = queue->fault_text;
}

// Finds what is wrong on the way up and how deep it hangs. Names that lead in a circle are longer
// than any way that is allowed.
static void look_up(struct queues *queues, struct queue *queue)
{
	static const char FIELD[] = "spec.queue.parent: tenant ";
	struct queue *at = queue;
	queue->fault = NULL;
	queue->depth = 1;
	if (queue->in.fault.len > 0)
		set_fault(queue, "", queue->in.fault, "");
	else if (!queue_models_are_named(queues, queue))
		set_fault(queue, "spec.queue.byModel: ", STR("queues"),
			  " name more than 32 GPU models in all; name fewer");
	while (queue->fault == NULL && at->in.parent.len > 0) {
		struct queue *parent = parent_named(queues, at);
		if (parent == NULL)
			set_fault(queue, FIELD, at->in.parent,
				  " has no queue; give it spec.queue or name another parent");
		else if (parent == queue || ++queue->depth > SCHED_QUEUE_DEPTH_MAX)
			set_fault(queue, FIELD, queue->in.parent,
				  parent == queue ? " is below this one; name another parent"
						  : " is too deep or leads in a circle; name "
						    "another parent");
		else if (parent->in.fault.len > 0)
			set_fault(queue, FIELD, parent->in.name, " has settings that cannot hold");
		at = parent;
	}
	if (queue->fault != NULL)
		queue->depth = 1; // its books are kept at the top
}

static int compare_queues(const void *a, const void *b)
{
	const struct queue *x = *(struct queue *const *)a, *y = *(struct queue *const *)b;
	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	return str_cmp(x->in.name, y->in.name);
}

static void list_all(struct queues *queues)
{
	struct str name;
	void *queue;
	size_t count = 0;
	free(queues->order);
	queues->order = core_alloc(map_count(queues->by_name) + 1, sizeof(struct queue *));
	queues->order[count++] = &queues->common;
	queues->common.depth = 1;
	for (size_t i = 0; map_next(queues->by_name, &i, &name, &queue);) {
		look_up(queues, queue);
		queues->order[count++] = queue;
	}
	qsort(queues->order, count, sizeof(struct queue *), compare_queues);
	queues->order_count = count;
}

static void set_half_life(struct queues *queues, struct queue *queue)
{
	int64_t half_life_s = queue->parent->half_life_s;
	bool is_new = queue->share.last_ms == 0 && queue->share.half_life_s == 0;
	queue->half_life_s = queue->in.half_life_s < 0
				     ? half_life_s
				     : min_i64(queue->in.half_life_s, SHARE_HALF_LIFE_MAX_S);
	if (is_new) {
		usage_share_init(&queue->share, half_life_s, queues->now_ms);
		usage_share_set_milli_s(&queue->share, queue->in.used_milli_s);
	} else if (queue->share.half_life_s != half_life_s) {
		usage_share_repace(&queue->share, half_life_s);
	}
}

static void hang_in(struct queues *queues)
{
	link_head_init(&queues->root.children);
	queues->root.half_life_s = queues->root.in.half_life_s;
	for (size_t i = 0; i < queues->order_count; i++) {
		struct queue *queue = queues->order[i], *parent = NULL;
		if (queue->fault == NULL && queue->in.parent.len > 0)
			parent = parent_named(queues, queue);
		queue->parent = parent == NULL ? &queues->root : parent;
		queue->in_parent = (struct link){ NULL, NULL };
		link_add(&queue->parent->children, &queue->in_parent);
		link_head_init(&queue->children);
		set_half_life(queues, queue);
		queue->used_parts = queue->own_parts;
		queue->wanted_parts = queue->own_wanted_parts;
		queue->guaranteed_parts = 0;
		queue_models_reset(queues, queue);
	}
}

static bool has_own_guarantee(const struct queue *queue)
{
	return queue->in.guaranteed_milli != SCHED_BY_CHILDREN && queue->fault == NULL;
}

static void sum_up(struct queues *queues)
{
	for (size_t i = queues->order_count; i > 0; i--) { // children before parents
		struct queue *queue = queues->order[i - 1];
		if (has_own_guarantee(queue))
			queue->guaranteed_parts = parts_of_milli(queue->in.guaranteed_milli);
		else if (queue->fault == NULL)
			queue->guaranteed_parts =
				max_i64(queue->guaranteed_parts,
					parts_of_milli(queue_models_guaranteed_milli(&queue->in)));
		queue_models_sum(queues, queue);
		queue->parent->used_parts += queue->used_parts;
		queue->parent->wanted_parts += queue->wanted_parts;
		queue->parent->guaranteed_parts = min_i64(
			queue->parent->guaranteed_parts + queue->guaranteed_parts, PARTS_MAX);
	}
}

// ---- what each deserves

static int64_t own_guarantee(const struct queue *queue)
{
	int64_t left_parts = queue->guaranteed_parts;
	for (const struct link *at = queue->children.next; at != &queue->children; at = at->next)
		left_parts -= LINK_OF((uintptr_t)at, struct queue, in_parent)->guaranteed_parts;
	return max_i64(left_parts, 0);
}

static size_t child_count(const struct queue *queue)
{
	size_t count = 0;
	for (const struct link *at = queue->children.next; at != &queue->children; at = at->next)
		count++;
	return count;
}

// Divides what a queue has among its children and the pods that are its own, which stand beside
// them like a child. When all are taken to want all, the parts are what each should have.
static void divide_one(struct queue *queue, int64_t whole_parts, bool wants_all)
{
	size_t count = 1, children = child_count(queue);
	struct entitle *items = core_alloc(children + 1, sizeof *items);
	int64_t all_parts = max_i64(whole_parts, 1);
	items[0] = (struct entitle){ .guaranteed = own_guarantee(queue),
				     .wanted = wants_all
						       ? 0
						       : queue->own_parts + queue->own_wanted_parts,
				     .limit = PARTS_MAX,
				     .weight = 1 };
	if (wants_all && children == 0)
		items[0].wanted = all_parts;
	for (struct link *at = queue->children.next; at != &queue->children; at = at->next) {
		const struct queue *child = LINK_OF(at, struct queue, in_parent);
		items[count++] = (struct entitle){
			.guaranteed = child->guaranteed_parts,
			.wanted = wants_all ? all_parts : child->used_parts + child->wanted_parts,
			.limit = child->limit_parts,
			.weight = child->in.weight
		};
	}
	entitle_divide(items, count, whole_parts);
	queue->own_deserved_parts = wants_all ? 0 : items[0].deserved;
	count = 1;
	for (struct link *at = queue->children.next; at != &queue->children; at = at->next) {
		struct queue *child = LINK_OF(at, struct queue, in_parent);
		int64_t part = items[count++].deserved;
		if (wants_all)
			child->target_parts = part;
		else
			child->deserved_parts = part;
	}
	free(items);
}

static void divide_all(struct queues *queues, bool wants_all)
{
	divide_one(&queues->root, queues->capacity_parts, wants_all);
	for (size_t i = 0; i < queues->order_count; i++) {
		struct queue *queue = queues->order[i];
		divide_one(queue, wants_all ? queue->target_parts : queue->deserved_parts,
			   wants_all);
	}
}

void queues_divide(struct queues *queues)
{
	queues_settle(queues);
	if (!queues->is_undivided)
		return;
	divide_all(queues, false);
	queues->is_undivided = false;
}

// What they held up to now counts by the tree as it was.
static void advance_all(struct queues *queues)
{
	struct str name;
	void *queue;
	if (queues->common.parent != NULL)
		queue_advance(queues, &queues->common);
	for (size_t i = 0; map_next(queues->by_name, &i, &name, &queue);) {
		if (((struct queue *)queue)->parent != NULL)
			queue_advance(queues, queue);
	}
}

void queues_settle(struct queues *queues)
{
	if (!queues->is_stale)
		return;
	advance_all(queues);
	queues->root.used_parts = queues->root.wanted_parts = queues->root.guaranteed_parts = 0;
	list_all(queues);
	queue_models_reset(queues, &queues->root);
	hang_in(queues);
	sum_up(queues);
	divide_all(queues, true);
	queues->is_stale = false;
	queues->is_undivided = true;
}

// ---- books

void queue_advance(struct queues *queues, struct queue *queue)
{
	usage_share_advance(&queue->share, milli_of_parts(queue->used_parts), queues->now_ms);
}

void queue_use(struct queues *queues, struct queue *queue, int64_t parts)
{
	queues_settle(queues);
	queues->is_undivided = true;
	queue->own_parts += parts;
	ASSERT(queue->own_parts >= 0);
	for (struct queue *at = queue; at != NULL; at = at->parent) {
		if (at->parent != NULL)
			queue_advance(queues, at);
		at->used_parts += parts;
		ASSERT(at->used_parts >= 0);
	}
}

void queue_want(struct queues *queues, struct queue *queue, int64_t parts)
{
	queues_settle(queues);
	queues->is_undivided = true;
	queue->own_wanted_parts += parts;
	for (struct queue *at = queue; at != NULL; at = at->parent)
		at->wanted_parts += parts;
	ASSERT(queue->own_wanted_parts >= 0);
}

struct queue_user *queue_user_get(struct queue *queue, struct str name)
{
	struct queue_user *user = map_find(queue->users, name);
	if (user != NULL)
		return user;
	user = core_alloc(1, sizeof *user + name.len);
	char *copy = (char *)(user + 1);
	if (name.len > 0)
		memcpy(copy, name.data, name.len);
	user->name = (struct str){ copy, name.len };
	(void)map_set(queue->users, user->name, user);
	return user;
}

bool queue_is_within(const struct queue *queue, int64_t parts)
{
	for (; queue->parent != NULL; queue = queue->parent) {
		if (queue->used_parts + parts > queue->guaranteed_parts)
			return false;
	}
	return true;
}

struct queue *queue_full(struct queue *queue, int64_t parts)
{
	for (; queue->parent != NULL; queue = queue->parent) {
		if (queue->fault == NULL && queue->used_parts + parts > queue->limit_parts)
			return queue;
	}
	return NULL;
}

// ---- whose turn it is

static struct queue *up_to(struct queue *queue, size_t depth)
{
	while (queue->depth > depth)
		queue = queue->parent;
	return queue;
}

int queue_share_cmp(struct queues *queues, struct queue *a, struct queue *b)
{
	size_t depth_a = a->depth, depth_b = b->depth;
	if (a == b)
		return 0;
	a = up_to(a, depth_b);
	b = up_to(b, depth_a);
	if (a == b) // pods of a queue with children come after those of its children
		return depth_a > depth_b ? -1 : 1;
	while (a->parent != b->parent) {
		a = a->parent;
		b = b->parent;
	}
	queue_advance(queues, a);
	queue_advance(queues, b);
	share_size had_a = usage_share_size(&a->share, milli_of_parts(a->used_parts));
	share_size had_b = usage_share_size(&b->share, milli_of_parts(b->used_parts));
	share_size part_a = (share_size)min_i64(a->target_parts, TARGET_MAX);
	share_size part_b = (share_size)min_i64(b->target_parts, TARGET_MAX);
	if (had_a * part_b != had_b * part_a)
		return had_a * part_b < had_b * part_a ? -1 : 1;
	if ((a->target_parts == 0) != (b->target_parts == 0))
		return a->target_parts == 0 ? 1 : -1;
	return str_cmp(a->in.name, b->in.name);
}
