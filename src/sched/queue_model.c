// SPDX-License-Identifier: Apache-2.0
#include "sched/queue_model.h"

#include "gpu/model.h"
#include "sched/core.h"
#include "sched/queueing.h"

#include <stdlib.h>

static queue_models bit(size_t i) { return (queue_models)1 << i; }

// ---- names

static int compare_names(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

// In order, each once, as many as there are bits.
static size_t list_names(const struct queues *queues, struct str *names, size_t max)
{
	struct str key;
	void *value;
	size_t count = 0, kept = 0;
	for (size_t i = 0; map_next(queues->by_name, &i, &key, &value);) {
		const struct queue *queue = value;
		for (size_t k = 0; queue->is_listed && k < queue->in.model_count; k++) {
			ASSERT(count < max);
			names[count++] = queue->in.models[k].model;
		}
	}
	if (count > 1)
		qsort(names, count, sizeof *names, compare_names);
	for (size_t i = 0; i < count && kept < QUEUE_MODELS_MAX; i++) {
		if (kept == 0 || !str_eq(names[kept - 1], names[i]))
			names[kept++] = names[i];
	}
	return kept;
}

static bool are_same(const struct queues *queues, const struct str *names, size_t count)
{
	bool are = queues->model_count == count;
	for (size_t i = 0; i < count && are; i++)
		are = str_eq(queues->model_names[i], names[i]);
	return are;
}

static void clear(struct queue *queue, size_t count)
{
	free(queue->models);
	queue->models = count == 0 ? NULL : core_alloc(QUEUE_MODELS_MAX, sizeof *queue->models);
}

bool queue_models_rename(struct queues *queues)
{
	size_t max = map_count(queues->by_name) * SCHED_QUEUE_MODELS_MAX + 1;
	struct str *names = core_alloc(max, sizeof *names), key;
	void *queue;
	size_t count = list_names(queues, names, max);
	bool is_new = !are_same(queues, names, count);
	if (is_new) {
		struct str *copies = core_texts_copy(names, count);
		free(queues->model_names);
		queues->model_names = copies;
		queues->model_count = count;
		queues->models_gen++;
		clear(&queues->root, count);
		clear(&queues->common, count);
		for (size_t i = 0; map_next(queues->by_name, &i, &key, &queue);)
			clear(queue, count);
		queues->is_stale = true;
	}
	free(names);
	return is_new;
}

queue_models queue_models_of(const struct queues *queues, struct str model)
{
	queue_models models = 0;
	for (size_t i = 0; i < queues->model_count && model.len > 0; i++) {
		if (gpu_model_matches(queues->model_names[i], model))
			models |= bit(i);
	}
	return models;
}

bool queue_models_are_named(const struct queues *queues, const struct queue *queue)
{
	size_t count = 0;
	for (size_t i = 0; i < queues->model_count; i++) {
		for (size_t k = 0; k < queue->in.model_count; k++)
			count += str_eq(queues->model_names[i], queue->in.models[k].model);
	}
	return count >= queue->in.model_count;
}

// ---- settings

static size_t entry_of(const struct queue *queue, struct str name)
{
	for (size_t i = 0; i < queue->in.model_count && queue->fault == NULL; i++) {
		if (str_eq(queue->in.models[i].model, name))
			return i + 1;
	}
	return 0;
}

void queue_models_reset(struct queues *queues, struct queue *queue)
{
	queue->has_model_limit = queue->parent != NULL && queue->parent->has_model_limit;
	if (queues->model_count > 0 && queue->models == NULL)
		clear(queue, queues->model_count);
	for (size_t i = 0; i < queues->model_count; i++) {
		struct queue_model *model = &queue->models[i];
		int64_t limit_milli = SCHED_NO_LIMIT;
		model->entry = entry_of(queue, queues->model_names[i]);
		model->used_parts = model->own_parts;
		model->guaranteed_parts = 0;
		if (model->entry > 0)
			limit_milli = queue->in.models[model->entry - 1].limit_milli;
		model->limit_parts = parts_of_milli(limit_milli);
		queue->has_model_limit |= limit_milli != SCHED_NO_LIMIT;
	}
}

void queue_models_sum(struct queues *queues, struct queue *queue)
{
	for (size_t i = 0; i < queues->model_count; i++) {
		struct queue_model *model = &queue->models[i], *above = &queue->parent->models[i];
		int64_t own_milli = SCHED_BY_CHILDREN;
		if (model->entry > 0)
			own_milli = queue->in.models[model->entry - 1].guaranteed_milli;
		if (own_milli != SCHED_BY_CHILDREN)
			model->guaranteed_parts = parts_of_milli(own_milli);
		above->used_parts += model->used_parts;
		above->guaranteed_parts += model->guaranteed_parts;
	}
}

int64_t queue_models_guaranteed_milli(const struct sched_queue_in *in)
{
	int64_t sum_milli = 0;
	for (size_t i = 0; i < in->model_count; i++)
		sum_milli += max_i64(in->models[i].guaranteed_milli, 0);
	return sum_milli;
}

// ---- books

void queue_use_models(struct queues *queues, struct queue *queue, queue_models models,
		      int64_t parts)
{
	if (models == 0)
		return;
	queues_settle(queues);
	for (size_t i = 0; i < queues->model_count; i++) {
		if ((models & bit(i)) == 0)
			continue;
		queue->models[i].own_parts += parts;
		ASSERT(queue->models[i].own_parts >= 0);
		for (struct queue *at = queue; at != NULL; at = at->parent)
			at->models[i].used_parts += parts;
	}
}

struct queue *queue_model_full(struct queue *queue, queue_models models, int64_t parts,
			       const struct queue_model **ret_model)
{
	for (; models != 0 && queue->has_model_limit; queue = queue->parent) {
		for (size_t i = 0; i < QUEUE_MODELS_MAX; i++) {
			const struct queue_model *model = &queue->models[i];
			if ((models & bit(i)) == 0 ||
			    model->used_parts + parts <= model->limit_parts)
				continue;
			*ret_model = model;
			return queue;
		}
	}
	return NULL;
}

static bool is_within(const struct queue *queue, size_t i, int64_t parts)
{
	for (; queue->parent != NULL; queue = queue->parent) {
		const struct queue_model *model = &queue->models[i];
		if (model->used_parts + parts > model->guaranteed_parts)
			return false;
	}
	return true;
}

bool queue_is_within_models(const struct queue *queue, queue_models models, int64_t parts)
{
	for (size_t i = 0; i < QUEUE_MODELS_MAX && models != 0; i++) {
		if ((models & bit(i)) != 0 && is_within(queue, i, parts))
			return true;
	}
	return false;
}

const char *queue_models_check(const struct queue *queue)
{
	int64_t own_parts[QUEUE_MODELS_MAX] = { 0 };
	for (const struct link *at = queue->pods.next; at != &queue->pods; at = at->next) {
		const struct pod *pod = LINK_OF((uintptr_t)at, struct pod, in_home);
		for (size_t i = 0; pod->node != NULL && i < QUEUE_MODELS_MAX; i++)
			own_parts[i] += (pod->node->models & bit(i)) != 0 ? queueing_held_parts(pod)
									  : 0;
	}
	for (size_t i = 0; queue->models != NULL && i < QUEUE_MODELS_MAX; i++) {
		int64_t used_parts = own_parts[i];
		if (own_parts[i] != queue->models[i].own_parts)
			return "a queue's amounts of a GPU model are not the sum of its pods";
		for (const struct link *at = queue->children.next; at != &queue->children;
		     at = at->next)
			used_parts += LINK_OF((uintptr_t)at, struct queue, in_parent)
					      ->models[i]
					      .used_parts;
		if (used_parts != queue->models[i].used_parts)
			return "a queue's amount of a GPU model is not its own and its children's";
	}
	return NULL;
}
