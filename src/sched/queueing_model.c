// SPDX-License-Identifier: Apache-2.0
#include "sched/queueing_model.h"

enum { DEPTH_BITS = 8 }; // of a fact's detail; above them the entry of the queue's settings

// ---- nodes

static queue_models models_of(const struct queues *queues, const struct node *node)
{
	queue_models models = 0;
	if (node->present_count == 0 && node->is_known)
		return queue_models_of(
			queues, sched_labels_get(&node->labels, STR("nvidia.com/gpu.product")));
	for (size_t i = 0; i < node->device_count; i++) {
		const struct device *device = &node->devices[i];
		bool is_known = !device->is_present ||
				(i > 0 && node->devices[i - 1].is_present &&
				 strcmp(node->devices[i - 1].model, device->model) == 0);
		if (!is_known)
			models |= queue_models_of(queues, str_of(device->model));
	}
	return models;
}

static void count_pods(struct sched *sched, const struct node *node, int64_t sign)
{
	for (const struct link *at = node->pods.next; at != &node->pods; at = at->next) {
		const struct pod *pod = LINK_OF((uintptr_t)at, struct pod, on_node);
		queue_use_models(sched->queueing->queues, pod->queue, node->models,
				 sign * queueing_held_parts(pod));
	}
}

void queueing_node_changed(struct sched *sched, struct node *node)
{
	struct queues *queues = sched->queueing->queues;
	queue_models models = queues->model_count == 0 ? 0 : models_of(queues, node);
	if (models == node->models)
		return;
	count_pods(sched, node, -1);
	node->models = models;
	count_pods(sched, node, 1);
}

void queueing_models_named(struct sched *sched)
{
	struct queues *queues = sched->queueing->queues;
	if (!queue_models_rename(queues))
		return;
	for (uint32_t slot = 0; slot < sched->slot_count; slot++) {
		struct node *node = sched->nodes[slot];
		if (node == NULL)
			continue;
		node->models = models_of(queues, node);
		count_pods(sched, node, 1);
	}
}

// ---- limits

static const struct queue *full_of(const struct shape *shape, const struct node *node,
				   const struct queue_model **ret_model)
{
	if (node->models == 0 || !shape->queue->has_model_limit || shape->gpu_parts == 0)
		return NULL;
	return queue_model_full(shape->queue, node->models, shape->gpu_parts, ret_model);
}

bool queueing_allows(const struct shape *shape, const struct node *node)
{
	const struct queue_model *model;
	return full_of(shape, node, &model) == NULL;
}

static struct sched_fact *add_fact(const struct queue *full, const struct queue_model *model,
				   int64_t parts, struct sched_facts *facts)
{
	uint32_t detail = (uint32_t)full->depth | (uint32_t)model->entry << DEPTH_BITS;
	struct sched_fact *fact = facts_add(facts, SCHED_CODE_QUEUE_LIMIT, detail);
	fact->need = milli_of_parts(parts);
	fact->have = max_i64(model->limit_parts - model->used_parts, 0) / PARTS_PER_MILLI;
	return fact;
}

uint64_t queueing_collect_model(const struct shape *shape, const struct node *node,
				struct sched_facts *facts)
{
	const struct queue_model *model;
	const struct queue *full = full_of(shape, node, &model);
	if (full == NULL)
		return 0;
	add_fact(full, model, shape->gpu_parts, facts)->nodes++;
	return code_bit(SCHED_CODE_QUEUE_LIMIT);
}

void queueing_add_model_limits(const struct pod *pod, int64_t parts, struct sched_facts *facts)
{
	const struct shape *shape = pod->shape;
	const struct queue *queue = pod->queue;
	for (; queue->has_model_limit; queue = queue->parent) {
		for (size_t i = 0; i < QUEUE_MODELS_MAX; i++) {
			const struct queue_model *model = &queue->models[i];
			if (model->entry == 0 || model->used_parts + parts <= model->limit_parts ||
			    !filter_model(shape->spec, queue->in.models[model->entry - 1].model))
				continue;
			(void)add_fact(queue, model, parts, facts);
		}
	}
}

struct str queueing_gpus_text(struct arena *arena, int64_t milli)
{
	if (milli % 1000 == 0)
		return str_of(arena_printf(arena, "%lld GPUs", (long long)(milli / 1000)));
	return str_of(arena_printf(arena, "%lld.%03lld GPUs", (long long)(milli / 1000),
				   (long long)(milli % 1000)));
}

bool queueing_model_text(const struct queue *queue, const struct sched_fact *fact,
			 struct arena *arena, struct sched_reason *ret_reason)
{
	size_t depth = fact->detail & ((1 << DEPTH_BITS) - 1), entry = fact->detail >> DEPTH_BITS;
	if (fact->code != SCHED_CODE_QUEUE_LIMIT || entry == 0)
		return false;
	while (queue->parent != NULL && queue->depth > depth)
		queue = queue->parent;
	ret_reason->next = "wait until the tenant releases GPUs of the model, allow another model, "
			   "or have its limit in spec.queue.byModel raised";
	ret_reason->need = queueing_gpus_text(arena, fact->need);
	ret_reason->have = queueing_gpus_text(arena, fact->have);
	if (entry <= queue->in.model_count) // the settings may have changed since
		ret_reason->have = str_of(arena_printf(
			arena, STR_FMT " of " STR_FMT " for " STR_FMT, STR_ARG(ret_reason->have),
			STR_ARG(queue->in.models[entry - 1].model), STR_ARG(queue->in.name)));
	return true;
}

queue_models queueing_models_asked(const struct queues *queues, struct shape *shape)
{
	if (shape->models_gen == queues->models_gen)
		return shape->models;
	shape->models_gen = queues->models_gen;
	shape->models = 0;
	for (size_t i = 0; i < shape->spec->gpu_model_count; i++) {
		queue_models models = queue_models_of(queues, shape->spec->gpu_models[i]);
		shape->models = i == 0 ? models : shape->models & models;
	}
	return shape->models;
}

// ---- who waits for them

void queueing_note_limited(struct sched *sched, struct shape *shape,
			   const struct sched_facts *facts)
{
	bool is_limited = false;
	for (size_t i = 0; i < facts->count; i++)
		is_limited = is_limited || (facts->items[i].code == SCHED_CODE_QUEUE_LIMIT &&
					    facts->items[i].nodes > 0);
	if (is_limited && !link_is_in(&shape->in_limited))
		link_add(&sched->queueing->limited, &shape->in_limited);
}

void queueing_note_eased(struct sched *sched, const struct pod *pod)
{
	if (pod->queue->has_model_limit)
		sched->queueing->eased_models |= pod->node->models;
}

void queueing_wake_limited(struct sched *sched)
{
	struct queueing *queueing = sched->queueing;
	struct link *limited = &queueing->limited;
	const struct queue_model *model;
	queue_models eased = queueing->eased_models;
	queueing->eased_models = 0;
	for (struct link *at = limited->next, *next; eased != 0 && at != limited; at = next) {
		struct shape *shape = LINK_OF(at, struct shape, in_limited);
		bool is_open = false;
		next = at->next;
		for (queue_models bits = eased; bits != 0 && !is_open; bits &= bits - 1)
			is_open = queue_model_full(shape->queue, bits & -bits, shape->gpu_parts,
						   &model) == NULL;
		if (is_open) {
			shape_activate(sched, shape);
			sched->are_heads_stale = true;
		}
	}
}

// ---- tables

static int64_t offered_milli(const struct sched *sched, size_t i)
{
	int64_t parts = 0;
	for (uint32_t slot = 0; slot < sched->slot_count; slot++) {
		const struct node *node = sched->nodes[slot];
		if (node != NULL && (node->models >> i & 1) != 0)
			parts += queueing_node_parts(sched, slot);
	}
	return milli_of_parts(parts);
}

size_t sched_queue_model_rows(struct sched *sched, struct str name,
			      struct sched_queue_model_row *ret_rows, size_t max)
{
	struct queues *queues = sched->queueing->queues;
	size_t count = 0;
	queues_settle(queues);
	const struct queue *queue = queues_find(queues, name);
	for (size_t i = 0; i < queues->model_count && count < max; i++) {
		const struct queue_model *model = &queue->models[i];
		if (model->entry == 0)
			continue;
		ret_rows[count++] = (struct sched_queue_model_row){
			.model = queues->model_names[i],
			.guaranteed_milli = milli_of_parts(model->guaranteed_parts),
			.limit_milli = queue->in.models[model->entry - 1].limit_milli,
			.allocated_milli = milli_of_parts(model->used_parts),
			.offered_milli = offered_milli(sched, i),
		};
	}
	return count;
}
