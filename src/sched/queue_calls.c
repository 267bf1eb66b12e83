// SPDX-License-Identifier: Apache-2.0
// The calls of sched_queue.h: settings in, tables out.
#include "sched/claim_use.h"
#include "sched/queueing_model.h"

#include <stdlib.h>

enum { PERMILLE = 1000, FRACTION_ONE = 1000000 };

// ---- settings

static void ease_all(struct sched *sched)
{
	struct queues *queues = sched->queueing->queues;
	queues_settle(queues);
	for (size_t i = 0; i < queues->order_count; i++) {
		struct queue *queue = queues->order[i];
		if (!link_is_in(&queue->in_eased))
			link_add(&sched->queueing->eased, &queue->in_eased);
	}
	sched->are_heads_stale = true;
	sched->wakes_all = true;
	sched->load_gen++; // what was found about nodes may be otherwise now
}

// Its pods come from the common queue when it is new and go back there when it is gone.
static void rehome_all(struct sched *sched, struct queue *from, struct str namespace_)
{
	for (struct link *at = from->pods.next, *next; at != &from->pods; at = next) {
		struct pod *pod = LINK_OF(at, struct pod, in_home);
		next = at->next;
		bool is_last = next == &from->pods;
		if (str_eq(pod->key.namespace_, namespace_))
			pod_rehome(sched, pod);
		if (is_last) // it may stand behind the last one now, or the queue be gone
			return;
	}
}

static bool are_models_same(const struct sched_queue_in *a, const struct sched_queue_in *b)
{
	bool are = a->model_count == b->model_count;
	for (size_t i = 0; are && i < a->model_count; i++)
		are = str_eq(a->models[i].model, b->models[i].model) &&
		      a->models[i].guaranteed_milli == b->models[i].guaranteed_milli &&
		      a->models[i].limit_milli == b->models[i].limit_milli;
	return are;
}

// A Tenant changes more often than its queue; what it had counts only at first.
static bool is_same(const struct sched_queue_in *a, const struct sched_queue_in *b)
{
	return str_eq(a->parent, b->parent) && str_eq(a->fault, b->fault) &&
	       a->guaranteed_milli == b->guaranteed_milli && a->limit_milli == b->limit_milli &&
	       a->user_limit_milli == b->user_limit_milli && a->weight == b->weight &&
	       a->priority_max == b->priority_max && a->half_life_s == b->half_life_s &&
	       are_models_same(a, b);
}

void sched_queue_set(struct sched *sched, const struct sched_queue_in *in)
{
	struct queues *queues = sched->queueing->queues;
	struct queue *old = queues_find(queues, in->name);
	bool concerns_pods = !old->is_listed || old->in.priority_max != in->priority_max ||
			     old->in.user_limit_milli != in->user_limit_milli;
	if (old->is_listed && is_same(&old->in, in))
		return;
	queues->now_ms = sched->now_ms;
	(void)queues_put(queues, in);
	queueing_models_named(sched);
	queues_settle(queues);
	if (concerns_pods)
		rehome_all(sched, old, in->name);
	ease_all(sched);
}

// Also those of the queues below it.
static void unblock_all(struct sched *sched, struct queue *queue)
{
	while (!link_is_empty(&queue->blocked))
		shape_activate(sched, LINK_OF(queue->blocked.next, struct shape, in_blocked));
}

void sched_queue_remove(struct sched *sched, struct str name)
{
	struct queues *queues = sched->queueing->queues;
	struct queue *queue = queues_find(queues, name);
	if (!queue->is_listed)
		return;
	queues->now_ms = sched->now_ms;
	unblock_all(sched, queue);
	if (link_is_empty(&queue->pods)) {
		queues_unlist(queues, queue);
	} else {
		queue->is_listed = false;
		queues->is_stale = true;
		queues_settle(queues);
		rehome_all(sched, queue, name);
	}
	ease_all(sched);
}

void sched_half_life_set(struct sched *sched, int64_t half_life_s)
{
	struct queues *queues = sched->queueing->queues;
	queues->now_ms = sched->now_ms;
	queues->root.in.half_life_s = max_i64(half_life_s, 0);
	queues->is_stale = true;
	queues_settle(queues);
}

void sched_factors_set(struct sched *sched, const struct sched_factors *factors)
{
	struct queueing *queueing = sched->queueing;
	queueing->factors = *factors;
	queueing->uses_factors = factors_are_used(factors);
	for (int i = 0; i < SCHED_FACTORS; i++) {
		int64_t *weight = &queueing->factors.weights[i];
		*weight = min_i64(max_i64(*weight, -FACTOR_WEIGHT_MAX), FACTOR_WEIGHT_MAX);
	}
}

void sched_reclaim_set(struct sched *sched, bool reaches_deserved)
{
	sched->queueing->queues->claims_deserved = reaches_deserved;
}

// ---- who had what

// What a part is of all, against what it should be of all.
static int64_t permille_of(share_size part, share_size all, int64_t target, int64_t targets)
{
	if (all == 0 || target <= 0)
		return all == 0 || part == 0 ? 0 : INT32_MAX;
	share_size fraction = part * FRACTION_ONE / all, whole = (share_size)targets;
	share_size permille = fraction * whole;
	permille /= (share_size)target * (FRACTION_ONE / PERMILLE);
	return permille > INT32_MAX ? INT32_MAX : (int64_t)permille;
}

static int64_t queue_permille(struct queues *queues, struct queue *queue)
{
	const struct link *siblings = &queue->parent->children;
	share_size all = 0;
	int64_t targets = 0;
	for (struct link *at = siblings->next; at != siblings; at = at->next) {
		struct queue *each = LINK_OF(at, struct queue, in_parent);
		queue_advance(queues, each);
		all += usage_share_size(&each->share, milli_of_parts(each->used_parts)) /
		       (FRACTION_ONE / PERMILLE);
		targets += each->target_parts;
	}
	share_size own = usage_share_size(&queue->share, milli_of_parts(queue->used_parts));
	return permille_of(own / (FRACTION_ONE / PERMILLE), all, queue->target_parts, targets);
}

static int64_t path_permille(struct queues *queues, struct queue *queue)
{
	__int128 product = PERMILLE;
	if (queue->permille_ms == queues->now_ms + 1)
		return queue->permille;
	for (struct queue *at = queue; at->parent != NULL; at = at->parent)
		product =
			min_i64((int64_t)(product * min_i64(queue_permille(queues, at), INT32_MAX) /
					  PERMILLE),
				INT32_MAX);
	queue->permille_ms = queues->now_ms + 1;
	queue->permille = (int64_t)product;
	return queue->permille;
}

static share_size had_of(const struct queues *queues, struct queue_user *user)
{
	usage_share_advance(&user->share, milli_of_parts(user->used_parts), queues->now_ms);
	return usage_share_size(&user->share, milli_of_parts(user->used_parts)) / PERMILLE;
}

static share_size users_had(const struct queues *queues, struct queue *queue)
{
	struct str name;
	void *user;
	if (queue->users_ms == queues->now_ms + 1)
		return queue->users_had;
	queue->users_ms = queues->now_ms + 1;
	queue->users_had = 0;
	for (size_t i = 0; map_next(queue->users, &i, &name, &user);)
		queue->users_had += had_of(queues, user);
	return queue->users_had;
}

static int64_t user_permille(const struct queues *queues, const struct pod *pod)
{
	if (pod->user == NULL)
		return PERMILLE;
	share_size all = users_had(queues, pod->queue), own = had_of(queues, pod->user);
	return permille_of(own, all, 1, (int64_t)map_count(pod->queue->users));
}

bool queueing_factors(struct sched *sched, const struct pod *pod, int64_t ret_values[SCHED_FACTORS],
		      int64_t *ret_score)
{
	struct queueing *queueing = sched->queueing;
	const struct sched_factors *factors = &queueing->factors;
	int64_t now_s = factors->clock_s + sched->now_ms / 1000;
	struct factor_facts facts = { .priority = pod->key.priority,
				      .age_s = now_s - pod->key.created_s,
				      .gpu_milli = milli_of_parts(queueing_need_parts(pod)),
				      .capacity_milli =
					      milli_of_parts(queueing->queues->capacity_parts),
				      .last_start_s = FACTOR_NO_DEADLINE };
	if (!queueing->uses_factors)
		return false;
	if (factors->weights[SCHED_FACTOR_SHARE] != 0) {
		facts.queue_permille = path_permille(queueing->queues, pod->queue);
		facts.user_permille = user_permille(queueing->queues, pod);
	}
	if (pod->deadline_s > 0)
		facts.last_start_s = pod->deadline_s - pod->key.duration_s - now_s;
	*ret_score = factors_score(factors, &facts, ret_values);
	return true;
}

// ---- tables

static void put_row(struct queues *queues, struct queue *queue, struct sched_queue_row *ret)
{
	queue_advance(queues, queue);
	*ret = (struct sched_queue_row){
		.name = queue->in.name,
		.parent = queue->in.parent,
		.fault = str_of(queue->fault == NULL ? "" : queue->fault),
		.guaranteed_milli = milli_of_parts(queue->guaranteed_parts),
		.limit_milli = queue->in.limit_milli,
		.weight = queue->in.weight,
		.allocated_milli = milli_of_parts(queue->used_parts),
		.waiting_milli = milli_of_parts(queue->wanted_parts),
		.deserved_milli = (queue->deserved_parts + PARTS_PER_MILLI / 2) / PARTS_PER_MILLI,
		.borrowed_milli =
			milli_of_parts(max_i64(queue->used_parts - queue->guaranteed_parts, 0)),
		.used_milli_s = usage_share_milli_s(&queue->share),
		.half_life_s = queue->share.half_life_s,
		.share_permille = queue_permille(queues, queue),
		.waiting_pods = tree_count(&queue->waiting),
		.depth = queue->depth,
	};
}

// As deep as queues may hang.
static size_t put_below(struct queues *queues, struct queue *queue, struct sched_queue_row *rows,
			size_t count, size_t max)
{
	for (struct link *at = queue->children.next; at != &queue->children; at = at->next) {
		struct queue *child = LINK_OF(at, struct queue, in_parent);
		bool is_shown = child->is_listed || !link_is_empty(&child->pods);
		if (is_shown && count < max)
			put_row(queues, child, &rows[count++]);
		count = put_below(queues, child, rows, count, max);
	}
	return count;
}

size_t sched_queue_rows(struct sched *sched, struct sched_queue_row *ret_rows, size_t max)
{
	struct queues *queues = sched->queueing->queues;
	queues->now_ms = sched->now_ms;
	queueing_refresh_capacity(sched);
	queues_divide(queues);
	return put_below(queues, &queues->root, ret_rows, 0, max);
}

size_t sched_queue_count(const struct sched *sched)
{
	return map_count(sched->queueing->queues->by_name) + 1;
}

bool sched_queue_explain(struct sched *sched, struct str namespace_, struct str name,
			 struct sched_queue_view *ret)
{
	const struct pod *pod = pod_find(sched, namespace_, name);
	if (pod == NULL || (!pod->queue->is_listed && !sched->queueing->uses_factors))
		return false;
	sched->queueing->queues->now_ms = sched->now_ms;
	*ret = (struct sched_queue_view){ .queue = pod->queue->in.name,
					  .user = pod->user_name,
					  .priority = pod->key.priority,
					  .score = pod->key.score };
	ret->is_within = queueing_is_within(sched, pod);
	int64_t score_now;
	ret->has_factors = queueing_factors(sched, pod, ret->values, &score_now);
	for (int i = 0; i < SCHED_FACTORS; i++)
		ret->weights[i] = sched->queueing->factors.weights[i];
	return true;
}

// ---- its own check

static const char *check_queue(const struct queue *queue)
{
	int64_t used_parts = 0, wanted_parts = 0;
	for (const struct link *at = queue->pods.next; at != &queue->pods; at = at->next) {
		const struct pod *pod = LINK_OF((uintptr_t)at, struct pod, in_home);
		used_parts += pod->node != NULL ? queueing_held_parts(pod) : 0;
		wanted_parts += tree_has(&pod->wait->in_queue) ? pod->shape->gpu_parts : 0;
		wanted_parts += claim_use_wanted_parts(pod);
		if (pod->queue != queue || pod->shape->queue != queue)
			return "a pod is in another queue than its shape";
	}
	if (used_parts != queue->own_parts || wanted_parts != queue->own_wanted_parts)
		return "a queue's amounts are not the sum of its pods";
	for (const struct link *at = queue->children.next; at != &queue->children; at = at->next)
		used_parts += LINK_OF((uintptr_t)at, struct queue, in_parent)->used_parts;
	if (used_parts != queue->used_parts)
		return "a queue's amount is not its own and its children's";
	return queue_models_check(queue);
}

const char *queueing_check(const struct sched *sched)
{
	const struct queues *queues = sched->queueing->queues;
	const char *broken = NULL;
	for (size_t i = 0; broken == NULL && !queues->is_stale && i < queues->order_count; i++)
		broken = check_queue(queues->order[i]);
	return broken == NULL ? claim_use_check(sched) : broken;
}
