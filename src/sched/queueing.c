// SPDX-License-Identifier: Apache-2.0
#include "sched/queueing_model.h"

#include "sched/claim_use.h"
#include "sched/gang.h"

#include <stdlib.h>

enum { USERS_KEPT_MAX = 1024, RESCORES_A_TURN = 128 };

struct queueing *queueing_new(uint64_t seed)
{
	struct queueing *queueing = core_alloc(1, sizeof *queueing);
	queueing->queues = queues_new(seed);
	link_head_init(&queueing->scored);
	link_head_init(&queueing->eased);
	link_head_init(&queueing->limited);
	queues_settle(queueing->queues);
	return queueing;
}

void queueing_free(struct queueing *queueing)
{
	queues_free(queueing->queues);
	free(queueing);
}

// ---- membership

static bool counts_persons(const struct queue *queue)
{
	return queue->is_listed && queue->in.user_limit_milli != SCHED_NO_LIMIT;
}

void queueing_join(struct sched *sched, struct pod *pod)
{
	ASSERT(pod->queue == NULL);
	pod->queue = queues_find(sched->queueing->queues, pod->key.namespace_);
	link_add(&pod->queue->pods, &pod->in_home);
	if (!pod->queue->is_listed)
		return;
	pod->user = queue_user_get(pod->queue, pod->user_name);
	pod->user->pod_count++;
}

// Persons without pods are remembered for what they had, as long as they are few.
void queueing_leave(struct sched *sched, struct pod *pod)
{
	struct queue *queue = pod->queue;
	struct queue_user *user = pod->user;
	ASSERT(!tree_has(&pod->wait->in_queue));
	link_drop(&pod->in_home);
	pod->queue = NULL;
	pod->user = NULL;
	if (user != NULL && --user->pod_count == 0 && map_count(queue->users) > USERS_KEPT_MAX) {
		(void)map_remove(queue->users, user->name);
		free(user);
	}
	queues_release(sched->queueing->queues, queue);
	queues_settle(sched->queueing->queues); // it may be gone, and nothing may lead to it
}

int64_t queueing_priority(const struct sched *sched, const struct sched_pod_in *in)
{
	const struct queue *queue = queues_find(sched->queueing->queues, in->namespace_);
	return min_i64(in->priority, queue->in.priority_max);
}

void queueing_put_key(const struct sched *sched, const struct sched_pod_in *in, struct buf *out)
{
	const struct queue *queue = queues_find(sched->queueing->queues, in->namespace_);
	if (!queue->is_listed)
		return;
	buf_printf(out, "|q%zu:", queue->in.name.len);
	buf_put(out, queue->in.name);
	if (!counts_persons(queue))
		return;
	buf_printf(out, "|u%zu:", in->user.len);
	buf_put(out, in->user);
}

// "nvidia.com/mig-2g.20gb" is two sevenths of a GPU.
static int64_t mig_parts(struct str resource)
{
	static const struct str PREFIX = { "nvidia.com/mig-", 15 };
	if (!str_starts(resource, PREFIX) || resource.len == PREFIX.len)
		return 0;
	int64_t slices = resource.data[PREFIX.len] - '0';
	return slices < 1 || slices > PARTS_PER_MILLI ? 0 : SHARE_WHOLE_MILLI * slices;
}

// What one of a resource is of a GPU. Memory of shares is not counted: nodes say the same GPU twice
// with it.
static int64_t unit_parts(struct str resource)
{
	if (str_eq_c(resource, "nvidia.com/gpu"))
		return SHARE_WHOLE_MILLI * PARTS_PER_MILLI;
	return str_eq_c(resource, SHARE_MILLI_RESOURCE) ? PARTS_PER_MILLI : mig_parts(resource);
}

// A sum of GPUs with so many more of a resource.
static int64_t plus_parts(int64_t sum_parts, int64_t amount, int64_t unit_parts)
{
	const int64_t most = SHARE_HELD_MAX * PARTS_PER_MILLI;
	if (unit_parts == 0 || amount <= 0)
		return sum_parts;
	return min_i64(sum_parts + min_i64(amount, most / unit_parts) * unit_parts, most);
}

int64_t queueing_gpu_parts(const struct sched_spec *spec)
{
	int64_t sum = 0;
	share_kind kind;
	for (size_t i = 0; i < spec->amount_count; i++) {
		const struct sched_amount *amount = &spec->amounts[i];
		if (!share_kind_of(amount->resource, &kind)) // those follow, by container
			sum = plus_parts(sum, amount->amount, unit_parts(amount->resource));
	}
	// On which GPU a share will be is not known yet.
	for (size_t i = 0; i < spec->share_count; i++) {
		struct share ask = spec->shares[i].share;
		int64_t milli = share_dominant_milli(&ask, SHARE_REFERENCE_MIB);
		sum = plus_parts(sum, min_i64(milli, SHARE_WHOLE_MILLI), PARTS_PER_MILLI);
	}
	return sum;
}

struct queue_loss queueing_loss(const struct pod *pod)
{
	queue_models models = pod->node == NULL ? 0 : pod->node->models;
	return (struct queue_loss){ pod->queue, queueing_held_parts(pod), models, models };
}

static bool has_limit(const struct queue *queue)
{
	return queue->is_listed && (queue->in.limit_milli != SCHED_NO_LIMIT ||
				    counts_persons(queue) || queue->has_model_limit);
}

// ---- books

static void use_person(struct sched *sched, struct pod *pod, int64_t parts)
{
	struct queue_user *user = pod->user;
	int64_t now_ms = sched->queueing->queues->now_ms;
	if (user == NULL)
		return;
	usage_share_advance(&user->share, milli_of_parts(user->used_parts), now_ms);
	if (user->share.half_life_s != pod->queue->half_life_s)
		usage_share_repace(&user->share, pod->queue->half_life_s);
	user->used_parts += parts;
	ASSERT(user->used_parts >= 0);
}

void queueing_ease(struct sched *sched, struct queue *queue)
{
	for (struct queue *at = queue; at != NULL; at = at->parent) {
		bool is_waited_for = !link_is_empty(&at->blocked) ||
				     (has_limit(at) && !link_is_empty(&sched->gangs->parked));
		if (is_waited_for && !link_is_in(&at->in_eased))
			link_add(&sched->queueing->eased, &at->in_eased);
	}
}

static void use_parts(struct sched *sched, struct pod *pod, int64_t parts)
{
	struct queueing *queueing = sched->queueing;
	ASSERT(pod->queue == pod->shape->queue);
	if (parts == 0)
		return;
	queueing->queues->now_ms = sched->now_ms;
	queue_use(queueing->queues, pod->queue, parts);
	queue_use_models(queueing->queues, pod->queue, pod->node->models, parts);
	use_person(sched, pod, parts);
	if (sched->gangs->is_trying)
		return; // nobody is to notice
	if (parts > 0) {
		queueing_note_full(sched, pod);
		return;
	}
	queueing_note_eased(sched, pod);
	queueing_ease(sched, pod->queue);
}

void queueing_use_claims(struct sched *sched, struct pod *pod, int64_t parts)
{
	use_parts(sched, pod, parts);
}

void queueing_want_claims(struct sched *sched, const struct pod *pod, int64_t parts)
{
	queue_want(sched->queueing->queues, pod->queue, parts);
}

int64_t queueing_need_parts(const struct pod *pod)
{
	return pod->shape->gpu_parts + claim_use_need_parts(pod);
}

int64_t queueing_held_parts(const struct pod *pod)
{
	return pod->shape->gpu_parts + claim_use_held_parts(pod);
}

int64_t queueing_held_gpus(const struct pod *pod)
{
	return pod->shape->spec->gpu_count + claim_use_held_parts(pod) / GPU_PARTS;
}

void queueing_use(struct sched *sched, struct pod *pod, int64_t sign)
{
	if (sign < 0)
		claim_use_leave(sched, pod, CLAIM_USERS);
	use_parts(sched, pod, sign * pod->shape->gpu_parts);
	if (sign > 0)
		claim_use_join(sched, pod, CLAIM_USERS);
}

static void score(struct sched *sched, struct pod *pod)
{
	struct queueing *queueing = sched->queueing;
	int64_t values[SCHED_FACTORS];
	pod->key.score = 0;
	if (!queueing_factors(sched, pod, values, &pod->key.score))
		return;
	pod->wait->scored_ms = sched->now_ms;
	if (link_is_in(&pod->wait->in_scored))
		link_drop(&pod->wait->in_scored);
	link_add(&queueing->scored, &pod->wait->in_scored);
}

void queueing_enter(struct sched *sched, struct pod *pod)
{
	struct queueing *queueing = sched->queueing;
	queueing->queues->now_ms = sched->now_ms;
	score(sched, pod);
	tree_insert(&pod->queue->waiting, &pod->wait->in_queue, &pod->key);
	queue_want(queueing->queues, pod->queue, pod->shape->gpu_parts);
	claim_use_join(sched, pod, CLAIM_WAITERS);
}

void queueing_exit(struct sched *sched, struct pod *pod)
{
	if (!tree_has(&pod->wait->in_queue))
		return;
	tree_remove(&pod->queue->waiting, &pod->wait->in_queue);
	claim_use_leave(sched, pod, CLAIM_WAITERS);
	queue_want(sched->queueing->queues, pod->queue, -pod->shape->gpu_parts);
	if (link_is_in(&pod->wait->in_scored))
		link_drop(&pod->wait->in_scored);
}

void queueing_forget_avoided(const struct sched *sched, const struct node *node)
{
	const struct queues *queues = sched->queueing->queues;
	for (size_t i = 0; i < queues->order_count; i++) {
		struct tree_node *at = tree_first(&queues->order[i]->waiting);
		for (; at != NULL; at = tree_next(at)) {
			struct pod *pod = POD_OF(at, in_queue);
			if (pod->wait->avoid == node)
				pod->wait->avoid = NULL;
		}
	}
}

// ---- limits

static bool is_person_full(const struct pod *pod, int64_t parts)
{
	return pod->user != NULL && counts_persons(pod->queue) && parts > 0 &&
	       pod->user->used_parts + parts > pod->queue->user_limit_parts;
}

static struct queue *blocker_of(const struct pod *pod)
{
	int64_t parts = queueing_need_parts(pod);
	if (pod->queue->fault != NULL || is_person_full(pod, parts))
		return pod->queue;
	return parts == 0 ? NULL : queue_full(pod->queue, parts);
}

bool queueing_is_blocked(const struct pod *pod) { return blocker_of(pod) != NULL; }

void queueing_note_full(struct sched *sched, const struct pod *pod)
{
	const struct queue_model *model;
	queue_models models = pod->node == NULL ? 0 : pod->node->models;
	if (queue_full(pod->queue, 1) != NULL || is_person_full(pod, 1) ||
	    queue_model_full(pod->queue, models, 1, &model) != NULL)
		sched->are_heads_stale = true;
}

// What is kept for others, and may be given up any time, is nothing to who may not come anyway.
static void drop_kept(struct sched_facts *facts)
{
	size_t count = 0;
	for (size_t i = 0; i < facts->count; i++) {
		sched_code code = facts->items[i].code;
		if (code != SCHED_CODE_RESERVED && code != SCHED_CODE_WINDOW &&
		    code != SCHED_CODE_NOMINATED)
			facts->items[count++] = facts->items[i];
	}
	facts->count = count;
}

static int64_t left_milli(int64_t limit_parts, int64_t used_parts)
{
	return max_i64(limit_parts - used_parts, 0) / PARTS_PER_MILLI;
}

void queueing_add_limits(const struct pod *pod, int64_t parts, struct sched_facts *facts)
{
	if (pod->queue->fault != NULL) {
		(void)facts_add(facts, SCHED_CODE_QUEUE_INVALID, 0);
		return;
	}
	const struct queue *full = parts == 0 ? NULL : queue_full(pod->queue, parts);
	if (full != NULL) {
		struct sched_fact *fact =
			facts_add(facts, SCHED_CODE_QUEUE_LIMIT, (uint32_t)full->depth);
		fact->need = milli_of_parts(parts);
		fact->have = left_milli(full->limit_parts, full->used_parts);
	}
	if (is_person_full(pod, parts)) {
		struct sched_fact *fact = facts_add(facts, SCHED_CODE_USER_LIMIT, 0);
		fact->need = milli_of_parts(parts);
		fact->have = left_milli(pod->queue->user_limit_parts, pod->user->used_parts);
	}
}

void queueing_add_facts(const struct pod *pod, struct sched_facts *facts)
{
	if (queueing_is_blocked(pod))
		drop_kept(facts);
	queueing_add_limits(pod, queueing_need_parts(pod), facts);
}

bool queueing_fact_text(const struct pod *pod, const struct sched_fact *fact, struct arena *arena,
			struct sched_reason *ret_reason)
{
	const struct queue *queue = pod->queue;
	if (queueing_model_text(queue, fact, arena, ret_reason))
		return true;
	if (fact->code == SCHED_CODE_QUEUE_INVALID) {
		ret_reason->need =
			arena_dup(arena, str_of(queue->fault == NULL ? "" : queue->fault));
		return true;
	}
	if (fact->code != SCHED_CODE_QUEUE_LIMIT && fact->code != SCHED_CODE_USER_LIMIT)
		return false;
	struct str of_whom = pod->user == NULL ? STR("") : pod->user->name;
	while (fact->code == SCHED_CODE_QUEUE_LIMIT && queue->parent != NULL &&
	       queue->depth > fact->detail)
		queue = queue->parent;
	if (fact->code == SCHED_CODE_QUEUE_LIMIT)
		of_whom = queue->in.name;
	ret_reason->need = queueing_gpus_text(arena, fact->need);
	ret_reason->have = str_of(arena_printf(arena, STR_FMT " for " STR_FMT,
					       STR_ARG(queueing_gpus_text(arena, fact->have)),
					       STR_ARG(of_whom)));
	return true;
}

// ---- turns

static const struct pod *pod_of(const struct tree_key *key)
{
	return LINK_OF((uintptr_t)key, struct pod, key);
}

bool queueing_order_moves(const struct sched *sched)
{
	return queues_are_used(sched->queueing->queues) || sched->queueing->uses_factors;
}

// Of what it asks for by name what is guaranteed of that model counts, too.
bool queueing_is_within(const struct sched *sched, const struct pod *pod)
{
	const struct queues *queues = sched->queueing->queues;
	if (queue_is_within(pod->queue, 1))
		return true;
	return queues->model_count > 0 &&
	       queue_is_within_models(pod->queue, queueing_models_asked(queues, pod->shape), 1);
}

// Between two queues only what is equal for all pods of a queue, and of a model they name, counts
// before and after the pods' own places, so that no three of one model stand in a circle.
int queueing_cmp(const struct sched *sched, const struct pod *a, const struct pod *b)
{
	if (a->queue == b->queue)
		return tree_key_cmp(&a->key, &b->key);
	bool is_a_within = queueing_is_within(sched, a), is_b_within = queueing_is_within(sched, b);
	if (is_a_within != is_b_within)
		return is_a_within ? -1 : 1;
	if (a->key.score != b->key.score)
		return a->key.score > b->key.score ? -1 : 1;
	if (a->key.priority != b->key.priority)
		return a->key.priority > b->key.priority ? -1 : 1;
	return queue_share_cmp(sched->queueing->queues, a->queue, b->queue);
}

int queueing_key_cmp(const struct sched *sched, const struct tree_key *a, const struct tree_key *b)
{
	return queueing_cmp(sched, pod_of(a), pod_of(b));
}

void queueing_activate(struct sched *sched, struct shape *shape)
{
	struct queue *queue = shape->queue;
	if (link_is_in(&shape->in_blocked))
		link_drop(&shape->in_blocked);
	if (link_is_in(&shape->in_limited))
		link_drop(&shape->in_limited);
	tree_insert(&queue->active, &shape->active, tree_first(&shape->waiting)->key);
	if (!link_is_in(&queue->in_busy))
		link_add(&sched->queueing->queues->busy, &queue->in_busy);
}

void queueing_deactivate(struct sched *sched, struct shape *shape)
{
	struct queue *queue = shape->queue;
	(void)sched;
	tree_remove(&queue->active, &shape->active);
	if (tree_first(&queue->active) == NULL)
		link_drop(&queue->in_busy);
}

void queueing_park(struct sched *sched, struct shape *shape)
{
	struct queue *blocker = blocker_of(POD_OF(tree_first(&shape->waiting), in_shape));
	(void)sched;
	if (blocker != NULL && !link_is_in(&shape->in_blocked))
		link_add(&blocker->blocked, &shape->in_blocked);
}

struct shape *queueing_first(const struct sched *sched)
{
	const struct link *busy = &sched->queueing->queues->busy;
	const struct tree_node *best = NULL;
	for (const struct link *at = busy->next; at != busy; at = at->next) {
		const struct queue *queue = LINK_OF((uintptr_t)at, struct queue, in_busy);
		const struct tree_node *node = tree_first(&queue->active);
		if (best == NULL || queueing_cmp(sched, pod_of(node->key), pod_of(best->key)) < 0)
			best = node;
	}
	return best == NULL ? NULL : LINK_OF((uintptr_t)best, struct shape, active);
}

bool queueing_is_next_before(const struct sched *sched, const struct shape *shape,
			     const struct pod *pod)
{
	const struct link *busy = &sched->queueing->queues->busy;
	const struct tree_node *next = tree_next(&shape->active);
	if (next != NULL && tree_key_cmp(next->key, &pod->key) < 0)
		return true;
	for (const struct link *at = busy->next; at != busy; at = at->next) {
		const struct queue *queue = LINK_OF((uintptr_t)at, struct queue, in_busy);
		if (queue != shape->queue &&
		    queueing_cmp(sched, pod_of(tree_first(&queue->active)->key), pod) < 0)
			return true;
	}
	return false;
}

// ---- what changes with time and with what was given back

static bool waits_for_queue(const struct gang *gang)
{
	const uint64_t codes = code_bit(SCHED_CODE_QUEUE_INVALID) |
			       code_bit(SCHED_CODE_QUEUE_LIMIT) | code_bit(SCHED_CODE_USER_LIMIT);
	for (size_t i = 0; i < gang->facts_count; i++) {
		if ((facts_codes(&gang->facts[i].facts) & codes) != 0)
			return true;
	}
	return false;
}

static void wake_gangs(struct sched *sched)
{
	struct link *parked = &sched->gangs->parked;
	for (struct link *at = parked->next, *next; at != parked; at = next) {
		struct gang *gang = LINK_OF(at, struct gang, in_parked);
		next = at->next;
		if (waits_for_queue(gang) &&
		    !queueing_is_blocked(pod_of(tree_first(&gang->waiting)->key)))
			gang_activate(sched, gang);
	}
}

// Who may start now is tried; who has come to wait for another limit does so in its list.
static void look_again(struct sched *sched, struct queue *queue)
{
	for (struct link *at = queue->blocked.next, *next; at != &queue->blocked; at = next) {
		struct shape *shape = LINK_OF(at, struct shape, in_blocked);
		struct queue *blocker = blocker_of(pod_of(tree_first(&shape->waiting)->key));
		next = at->next;
		if (blocker == NULL) {
			shape_activate(sched, shape);
			sched->are_heads_stale = true;
		} else if (blocker != queue) {
			link_drop(at);
			link_add(&blocker->blocked, at);
		}
	}
}

static void wake_eased(struct sched *sched)
{
	struct link *eased = &sched->queueing->eased;
	if (!link_is_empty(eased) || sched->queueing->eased_models != 0)
		wake_gangs(sched);
	queueing_wake_limited(sched);
	while (!link_is_empty(eased)) {
		struct queue *queue = LINK_OF(eased->next, struct queue, in_eased);
		link_drop(&queue->in_eased);
		look_again(sched, queue);
	}
}

int64_t queueing_node_parts(const struct sched *sched, uint32_t slot)
{
	int64_t parts = 0;
	for (uint32_t dim = 0; dim < sched->column_count; dim++) {
		const struct column *column = &sched->columns[dim];
		parts = plus_parts(parts, column->alloc[slot], unit_parts(str_of(column->name)));
	}
	return parts;
}

void queueing_refresh_capacity(struct sched *sched)
{
	struct queues *queues = sched->queueing->queues;
	uint64_t gen = sched->gen + sched->claim_book->pools_gen; // both only grow
	if (queues->capacity_gen == gen)
		return;
	int64_t parts = claim_book_capacity_parts(sched);
	for (uint32_t dim = 0; dim < sched->column_count; dim++) {
		const struct column *column = &sched->columns[dim];
		int64_t unit = unit_parts(str_of(column->name));
		for (uint32_t slot = 0; slot < sched->slot_count && unit > 0; slot++)
			parts = plus_parts(parts, column->alloc[slot], unit);
	}
	queues->capacity_gen = gen;
	queues->is_stale = queues->is_stale || queues->capacity_parts != parts;
	queues->capacity_parts = parts;
}

// A new score is a new place, in the queue and in the shape.
static void rescore(struct sched *sched, struct pod *pod)
{
	int64_t old_score = pod->key.score;
	bool is_in_shape = pod->place == PLACE_SHAPE, is_in_gang = pod->place == PLACE_GANG;
	struct tree_key old_key = pod->key;
	score(sched, pod);
	if (pod->key.score == old_score)
		return;
	int64_t new_score = pod->key.score;
	pod->key = old_key;
	tree_remove(&pod->queue->waiting, &pod->wait->in_queue);
	bool was_active = tree_has(&pod->shape->active);
	if (is_in_shape && was_active)
		queueing_deactivate(sched, pod->shape);
	if (is_in_shape)
		shape_move_pod(pod, new_score);
	if (is_in_gang)
		gang_drop_waiting(sched, pod);
	pod->key.score = new_score;
	if (is_in_gang)
		gang_add_waiting(sched, pod);
	tree_insert(&pod->queue->waiting, &pod->wait->in_queue, &pod->key);
	if (is_in_shape && was_active)
		queueing_activate(sched, pod->shape);
	if (pod->wait->head != NULL)
		reserve_leave(sched, pod);
	sched->are_heads_stale = true;
}

void queueing_tick(struct sched *sched)
{
	struct queueing *queueing = sched->queueing;
	struct link *scored = &queueing->scored;
	queueing->queues->now_ms = sched->now_ms;
	if (!queueing_order_moves(sched))
		return;
	queueing_refresh_capacity(sched);
	queues_settle(queueing->queues);
	wake_eased(sched);
	for (int i = 0; i < RESCORES_A_TURN && !link_is_empty(scored); i++) {
		struct pod *pod = POD_OF(scored->next, in_scored);
		if (sched->now_ms - pod->wait->scored_ms < SCORE_FRESH_MS)
			break;
		rescore(sched, pod);
	}
	if (sched->now_ms - queueing->ordered_ms >= ORDER_FRESH_MS) {
		queueing->ordered_ms = sched->now_ms;
		sched->are_heads_stale = true;
	}
}
