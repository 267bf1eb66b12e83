// SPDX-License-Identifier: Apache-2.0
// From what changed to the next decision. Shapes are tried in the order of their first pods; one
// that fits nowhere is parked until a node that changed has room for it.
#include "sched/claim_book.h"
#include "sched/deadline.h"
#include "sched/gang.h"
#include "sched/load.h"
#include "sched/queueing_model.h"
#include "sched/stock.h"
#include "sched/victims.h"
#include "sched/window_book.h"

static void wake_due(struct sched *sched)
{
	for (struct link *at = sched->backoff.next, *next; at != &sched->backoff; at = next) {
		struct pod *pod = POD_OF(at, in_place);
		next = at->next;
		if (pod->wait->retry_ms > sched->now_ms)
			continue;
		pod_set_facts(pod, NULL);
		pod_wait(sched, pod, PLACE_SHAPE);
	}
	gang_wake_due(sched);
	// A look at what is stale keeps the numbers true, and is the safety net under the wake-ups.
	for (struct link *at = sched->parked.next, *next; at != &sched->parked; at = next) {
		struct shape *shape = LINK_OF(at, struct shape, in_parked);
		next = at->next;
		if (shape->is_stale && shape->fresh_ms <= sched->now_ms)
			shape_activate(sched, shape);
	}
}

static bool has_terms(const struct sched_spec *spec)
{
	return spec->near_count + spec->apart_count + spec->spread_count > 0;
}

static struct pod *first_pod(const struct shape *shape)
{
	return POD_OF(tree_first(&shape->waiting), in_shape);
}

static bool may_fit(struct sched *sched, struct shape *shape)
{
	if (sched->wakes_all || has_terms(shape->spec))
		return true;
	shape_ready(sched, shape);
	for (uint32_t i = 0; i < sched->touched_count; i++) {
		const struct node *node = sched->nodes[sched->touched[i]];
		if (shape_is_static_fit(shape, node->slot) && filter_has_room(sched, shape, node) &&
		    (preempt_kept(sched, shape, node, NULL) != NULL ||
		     reserve_allows(sched, first_pod(shape), node) ||
		     tree_find_short(&shape->waiting,
				     reserve_window_s(sched, first_pod(shape), node)) != NULL))
			return true;
	}
	return false;
}

static void wake_held(struct sched *sched)
{
	for (struct link *at = sched->held.next, *next; at != &sched->held; at = next) {
		struct pod *pod = POD_OF(at, in_place);
		next = at->next;
		pod_wait(sched, pod, PLACE_SHAPE);
		shape_activate(sched, pod->shape);
	}
}

// False: nothing has changed.
static bool wake_changed(struct sched *sched)
{
	bool is_touched = sched->touched_count > 0 || sched->wakes_all;
	if (!is_touched && !sched->wakes_near && !sched->wakes_volumes)
		return false;
	for (struct link *at = sched->parked.next, *next; at != &sched->parked; at = next) {
		struct shape *shape = LINK_OF(at, struct shape, in_parked);
		next = at->next;
		shape->is_stale = true;
		if (link_is_in(&shape->in_blocked)) // what it waits for is not on nodes
			continue;
		bool wakes = is_touched ? may_fit(sched, shape) : has_terms(shape->spec);
		wakes = wakes || (sched->wakes_volumes && spec_has_volumes(shape->spec));
		if (wakes)
			shape_activate(sched, shape);
	}
	wake_held(sched);
	gang_wake_changed(sched);
	for (uint32_t i = 0; i < sched->touched_count; i++)
		sched->nodes[sched->touched[i]]->is_touched = false;
	sched->touched_count = 0;
	sched->wakes_all = sched->wakes_near = sched->wakes_volumes = false;
	return true;
}

static void lend_pod(const struct pod *pod, struct sched_decision *ret)
{
	*ret = (struct sched_decision){ .uid = pod->uid,
					.namespace_ = pod->key.namespace_,
					.name = pod->key.name };
}

static void lend_bind(struct sched *sched, struct pod *pod, size_t grant_count,
		      struct sched_decision *ret)
{
	lend_pod(pod, ret);
	ret->verb = SCHED_BIND;
	ret->node = pod->node->name;
	ret->grant_count = grant_count;
	ret->grants = sched->grants;
	ret->facts = loads_note(sched, pod);
	ret->claim_bind_count = volumes_assume(sched, pod);
	ret->claim_binds = sched->stock->binds;
	ret->claim_allot_count = claim_fit_assume(sched, pod);
	ret->claim_allots = sched->claim_book->allots;
}

static void assume(struct sched *sched, struct pod *pod, struct node *node,
		   struct sched_decision *ret)
{
	pod_leave(sched, pod);
	pod_account(sched, pod, node);
	pod_expect(sched, pod, sched->now_ms);
	pod_set_state(sched, pod, SCHED_STATE_ASSUMED);
	lend_bind(sched, pod, place_devices(sched, pod, node), ret);
}

// Facts over all nodes; true when a node has no reason against it.
static bool collect(const struct check *check, struct sched_facts *ret_facts)
{
	struct sched *sched = check->sched;
	*ret_facts = (struct sched_facts){ .count = 0 };
	bool preempts = sched->preempt->rules.mode != SCHED_PREEMPT_OFF;
	const uint64_t preemptible = code_bit(SCHED_CODE_RESOURCE_SHORT) |
				     code_bit(SCHED_CODE_TOO_MANY_PODS) |
				     code_bit(SCHED_CODE_DEVICE_CLAIM_SHORT);
	bool has_lower = pod_has_lower(sched, check->pod->key.priority);
	size_t known = 0;
	bool fits = false;
	for (uint32_t slot = 0; slot < sched->slot_count; slot++) {
		const struct node *node = sched->nodes[slot];
		if (node == NULL || !node->is_known)
			continue;
		known++;
		uint64_t fails = filter_collect(check, node, ret_facts);
		fits = fits || fails == 0;
		if (!has_lower || fails == 0 || (fails & ~preemptible) != 0)
			continue;
		bool is_held = filter_room_without_lower(check, node);
		if (is_held)
			facts_add(ret_facts, SCHED_CODE_HELD_BY_LOWER, 0)->nodes++;
		if (is_held && preempts && preempt_may_ask(check->pod) &&
		    !filter_room_without_victims(check, node))
			facts_add(ret_facts, SCHED_CODE_LOWER_PROTECTED, 0)->nodes++;
		if (!is_held && preempts)
			filter_note_short(check, node, ret_facts);
	}
	if (known == 0)
		(void)facts_add(ret_facts, SCHED_CODE_NO_NODES, 0);
	return fits;
}

bool decide_collect_nodes(struct sched *sched, struct pod *pod, struct sched_facts *ret_facts)
{
	shape_ready(sched, pod->shape);
	struct affinity *affinity = affinity_new(sched, pod);
	struct check check = {
		.sched = sched, .pod = pod, .shape = pod->shape, .affinity = affinity
	};
	bool fits = collect(&check, ret_facts);
	affinity_free(affinity);
	return fits;
}

bool decide_collect(struct sched *sched, struct pod *pod, struct sched_facts *ret_facts)
{
	bool fits = decide_collect_nodes(sched, pod, ret_facts);
	queueing_add_facts(pod, ret_facts);
	return fits && !queueing_is_blocked(pod);
}

// Numbers alone are told again only after a while: each is a write to the API server.
static void park(struct sched *sched, struct shape *shape, const struct sched_facts *facts)
{
	bool is_first = shape->facts_gen == 0;
	bool is_same = !is_first && facts_equal(&shape->facts, facts);
	bool is_new_code = facts_codes(&shape->facts) != facts_codes(facts);
	bool is_due = shape->told_ms + FACTS_FRESH_MS <= sched->now_ms;
	shape_park(sched, shape);
	queueing_note_limited(sched, shape, facts);
	reserve_parked(sched, first_pod(shape));
	preempt_parked(sched, &shape->again);
	shape->fresh_ms = sched->now_ms + FACTS_FRESH_MS;
	if (!is_same && !is_first && !is_new_code && !is_due) {
		shape->is_stale = true;
		shape->fresh_ms = shape->told_ms + FACTS_FRESH_MS;
	} else if (!is_same) {
		shape->facts = *facts;
		shape->facts_gen = ++sched->facts_gen;
		shape->told_ms = sched->now_ms;
		shape_tell(sched, shape);
	}
	if (shape->apart_gen != sched->apart_gen) // others of the shape may have become special
		shape_tell(sched, shape);
	shape->apart_gen = sched->apart_gen;
}

// A special pod waits by itself, with facts of its own.
static void hold(struct sched *sched, struct pod *pod, const struct sched_facts *facts)
{
	pod_set_facts(pod, facts);
	pod_wait(sched, pod, PLACE_HELD);
	reserve_parked(sched, pod);
	preempt_parked(sched, &pod->shape->again);
}

static struct node *find_node(struct sched *sched, struct pod *pod)
{
	if (queueing_is_blocked(pod))
		return NULL;
	struct affinity *affinity = affinity_new(sched, pod);
	struct check check = {
		.sched = sched, .pod = pod, .shape = pod->shape, .affinity = affinity
	};
	struct node *node = place_best(&check);
	affinity_free(affinity);
	return node;
}

// On the node that is kept for it.
static struct node *fit_kept(struct sched *sched, struct pod *pod)
{
	struct node *node = map_find(sched->node_by_name, pod->wait->nominated);
	if (node == NULL || queueing_is_blocked(pod)) // its queue has filled up meanwhile
		return NULL;
	struct affinity *affinity = affinity_new(sched, pod);
	struct check check = {
		.sched = sched, .pod = pod, .shape = pod->shape, .affinity = affinity
	};
	bool fits = filter_fits(&check, node);
	affinity_free(affinity);
	return fits ? node : NULL;
}

// The first of the shape, one that has a node kept, or the first that is short enough for a node
// which is reserved for one before it.
static struct pod *pick(struct sched *sched, struct shape *shape, struct node **ret_node)
{
	struct pod *pod = first_pod(shape);
	int64_t most_s = 0;
	*ret_node = find_node(sched, pod);
	struct pod *kept = NULL;
	while (*ret_node == NULL && (kept = preempt_kept(sched, shape, NULL, kept)) != NULL) {
		*ret_node = fit_kept(sched, kept);
		if (*ret_node != NULL)
			return kept;
	}
	for (size_t i = 0; *ret_node == NULL && i < sched->head_count; i++) {
		const struct node *node;
		for (size_t k = 0; (node = reserve_node(sched->heads[i], k)) != NULL; k++) {
			if (shape_is_static_fit(shape, node->slot) &&
			    filter_has_room(sched, shape, node))
				most_s = max_i64(most_s, reserve_window_s(sched, pod, node));
		}
	}
	if (*ret_node == NULL)
		most_s = max_i64(most_s, windows_most_s(sched, pod));
	struct tree_node *found = tree_find_short(&shape->waiting, most_s);
	if (*ret_node != NULL || found == NULL || found == &pod->wait->in_shape)
		return pod;
	struct pod *short_pod = POD_OF(found, in_shape);
	*ret_node = find_node(sched, short_pod);
	return *ret_node != NULL ? short_pod : pod;
}

static bool try_shape(struct sched *sched, struct shape *shape, struct sched_decision *ret)
{
	struct node *node;
	shape_ready(sched, shape);
	struct pod *pod = pick(sched, shape, &node);
	if (node != NULL && pod != first_pod(shape) && queueing_is_next_before(sched, shape, pod)) {
		tree_remove(&shape->queue->active, &shape->active);
		tree_insert(&shape->queue->active, &shape->active, &pod->key);
		return false; // its turn comes later
	}
	if (node != NULL) {
		assume(sched, pod, node, ret);
		return true;
	}
	struct sched_facts facts;
	bool fits = decide_collect(sched, pod, &facts);
	ASSERT(!fits); // both ways of asking must agree
	if (affinity_is_special(sched, pod))
		hold(sched, pod, &facts);
	else
		park(sched, shape, &facts);
	return false;
}

// A reservation is told as what the pod needs by its own word and what is left until its start.
static void put_seconds(const struct sched *sched, const struct pod *pod, struct sched_facts *facts)
{
	for (size_t i = 0; i < facts->count; i++) {
		struct sched_fact *fact = &facts->items[i];
		if (fact->code != SCHED_CODE_RESERVED && fact->code != SCHED_CODE_WINDOW)
			continue;
		fact->need = pod->key.duration_s > 0 ? pod->key.duration_s : -1;
		if (fact->have >= 0)
			fact->have = (max_i64(fact->have - sched->now_ms, 0) + 999) / 1000;
	}
}

void decide_lend(struct sched *sched, struct pod *pod, const struct sched_facts *facts,
		 struct sched_decision *ret)
{
	lend_pod(pod, ret);
	sched->told = *facts;
	preempt_note(sched, pod, &sched->told);
	deadline_note(sched, pod, &sched->told);
	uint64_t codes = facts_codes(&sched->told);
	put_seconds(sched, pod, &sched->told);
	ret->verb = pod->state == SCHED_STATE_REFUSED ? SCHED_REFUSE : SCHED_WAIT;
	ret->facts = &sched->told;
	ret->is_same_codes = pod->told_codes == codes;
	pod->told_codes = codes;
	if (ret->verb == SCHED_WAIT)
		forecast_begin(sched, pod);
}

// Facts that hold for a pod whose turn it is to be told; NULL: it is to be tried again.
static const struct sched_facts *facts_of(struct sched *sched, struct pod *pod)
{
	struct sched_facts facts;
	if (pod->place == PLACE_GANG)
		return gang_told(pod, &sched->told) ? &sched->told : NULL;
	if (pod->place != PLACE_SHAPE)
		return pod->facts;
	if (!affinity_is_special(sched, pod)) {
		pod_set_facts(pod, NULL);
		return pod->shape->facts_gen == 0 ? NULL : &pod->shape->facts;
	}
	if (decide_collect(sched, pod, &facts)) {
		shape_activate(sched, pod->shape);
		return NULL;
	}
	hold(sched, pod, &facts);
	link_drop(&pod->wait->in_tell);
	return pod->facts;
}

static uint64_t hash_facts(const struct sched_facts *facts)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < facts->count; i++) {
		const struct sched_fact *fact = &facts->items[i];
		const uint64_t parts[5] = { fact->code, fact->detail, fact->nodes,
					    (uint64_t)fact->need, (uint64_t)fact->have };
		for (size_t k = 0; k < ARRAY_COUNT(parts); k++)
			hash = (hash ^ parts[k]) * UINT64_C(0x100000001b3);
	}
	return hash | 1;
}

static bool tell(struct sched *sched, struct pod *pod, struct sched_decision *ret)
{
	const struct sched_facts *facts = facts_of(sched, pod);
	uint64_t hash = facts == NULL ? 0 : hash_facts(facts);
	if (facts == NULL || pod->wait->told_hash == hash)
		return false;
	pod->wait->told_hash = hash;
	decide_lend(sched, pod, facts, ret);
	return true;
}

static bool tell_pod(struct sched *sched, struct sched_decision *ret)
{
	while (!link_is_empty(&sched->tell)) {
		struct pod *pod = POD_OF(sched->tell.next, in_tell);
		link_drop(&pod->wait->in_tell);
		if (tell(sched, pod, ret))
			return true;
	}
	return false;
}

static bool tell_shape(struct sched *sched, struct sched_decision *ret)
{
	while (!link_is_empty(&sched->telling)) {
		struct shape *shape = LINK_OF(sched->telling.next, struct shape, in_telling);
		while (shape->cursor != NULL) {
			struct pod *pod = POD_OF(shape->cursor, in_shape);
			shape->cursor = tree_next(shape->cursor);
			if (tell(sched, pod, ret))
				return true;
		}
		link_drop(&shape->in_telling);
	}
	return false;
}

// Reservations are brought up to date before anybody behind them is woken or tried.
static struct shape *first_active(struct sched *sched)
{
	queueing_tick(sched);
	do
		reserve_refresh(sched);
	while (wake_changed(sched));
	return queueing_first(sched);
}

// Shapes and gangs take turns in queue order; a gang's binds come out before anybody else's turn.
static bool try_all(struct sched *sched, struct sched_decision *ret)
{
	for (;;) {
		struct pod *member = gang_take_bind(sched);
		if (member != NULL) {
			lend_bind(sched, member, place_granted(sched, member), ret);
			return true;
		}
		struct shape *first = first_active(sched);
		struct gang *gang = gang_first(sched);
		if (first == NULL && gang == NULL)
			return false;
		if (first == NULL || (gang != NULL && queueing_key_cmp(sched, gang->active.key,
								       first->active.key) < 0))
			gang_try(sched, gang);
		else if (try_shape(sched, first, ret))
			return true;
	}
}

bool sched_next(struct sched *sched, int64_t now_ms, struct sched_decision *ret)
{
	sched->now_ms = max_i64(sched->now_ms, now_ms);
	loads_expire(sched);
	berth_tick(sched);
	wake_due(sched);
	deadline_tick(sched);
	windows_tick(sched);
	do {
		if (try_all(sched, ret) || tell_pod(sched, ret) || tell_shape(sched, ret) ||
		    gang_expire_next(sched, ret) || preempt_next(sched, ret))
			return true;
	} while (queueing_first(sched) != NULL || gang_first(sched) != NULL);
	return false;
}

int64_t sched_wake_ms(const struct sched *sched)
{
	int64_t wake_ms = min_i64(reserve_wake_ms(sched), gang_wake_ms(sched));
	wake_ms = min_i64(wake_ms, gang_expire_wake_ms(sched));
	wake_ms = min_i64(wake_ms, preempt_wake_ms(sched));
	wake_ms = min_i64(wake_ms, deadline_wake_ms(sched));
	wake_ms = min_i64(wake_ms, windows_wake_ms(sched));
	wake_ms = min_i64(wake_ms, claim_idle_wake_ms(sched));
	for (const struct link *at = sched->backoff.next; at != &sched->backoff; at = at->next)
		wake_ms = min_i64(wake_ms, POD_OF((uintptr_t)at, in_place)->wait->retry_ms);
	for (const struct link *at = sched->parked.next; at != &sched->parked; at = at->next) {
		const struct shape *shape = LINK_OF((uintptr_t)at, struct shape, in_parked);
		if (shape->is_stale)
			wake_ms = min_i64(wake_ms, shape->fresh_ms);
	}
	return wake_ms;
}

void sched_bind_failed(struct sched *sched, struct str uid, int64_t now_ms)
{
	struct pod *pod = map_find(sched->pod_by_uid, uid);
	if (pod == NULL || pod->state != SCHED_STATE_ASSUMED)
		return;
	struct node *node = pod->node;
	struct sched_facts facts = { .count = 0 };
	sched->now_ms = max_i64(sched->now_ms, now_ms);
	pod->wait->failures++;
	facts_add(&facts, SCHED_CODE_BIND_FAILED, 0)->need = pod->wait->failures;
	bool is_node_kept = node->is_known;
	pod_unaccount(sched, pod);
	pod_set_state(sched, pod, SCHED_STATE_WAITING);
	pod->wait->avoid = is_node_kept ? node : NULL;
	int64_t delay_ms = (int64_t)RETRY_FIRST_MS << min_i64(pod->wait->failures - 1, 6);
	pod->wait->retry_ms = sched->now_ms + min_i64(delay_ms, RETRY_MAX_MS);
	pod_set_facts(pod, &facts);
	pod_wait(sched, pod, PLACE_BACKOFF);
}

bool sched_explain(struct sched *sched, struct str namespace_, struct str name,
		   struct sched_explanation *ret)
{
	struct pod *pod = pod_find(sched, namespace_, name);
	if (pod == NULL)
		return false;
	*ret = (struct sched_explanation){ .state = pod->state };
	if (pod->node != NULL)
		ret->node = pod->node->name;
	if (tree_has(&pod->wait->in_queue))
		ret->position = tree_rank(&pod->wait->in_queue) + 1;
	if (pod->wait->head != NULL && pod->wait->head->node != NULL) {
		ret->reserved_node = pod->wait->head->node->name;
		ret->reserved_ms = max_i64(pod->wait->head->start_ms, sched->now_ms);
	}
	if (pod->state != SCHED_STATE_WAITING || pod->place == PLACE_BACKOFF) {
		if (pod->facts != NULL)
			ret->facts = *pod->facts;
		return true;
	}
	if (pod->place == PLACE_GANG)
		gang_explain(sched, pod, &ret->facts);
	else if (decide_collect(sched, pod, &ret->facts)) // it is about to be decided
		ret->facts.count = 0;
	if (ret->facts.count > 0)
		preempt_note(sched, pod, &ret->facts);
	deadline_note(sched, pod, &ret->facts);
	put_seconds(sched, pod, &ret->facts);
	return true;
}

static size_t insert_name(struct str *names, size_t count, struct str name)
{
	size_t i = count;
	for (; i > 0 && str_cmp(names[i - 1], name) > 0; i--)
		names[i] = names[i - 1];
	names[i] = name;
	return count + 1;
}

size_t sched_feasible(struct sched *sched, struct str namespace_, struct str name,
		      struct str *ret_nodes, size_t max)
{
	struct pod *pod = pod_find(sched, namespace_, name);
	size_t count = 0;
	if (pod == NULL || pod->state != SCHED_STATE_WAITING || queueing_is_blocked(pod))
		return 0;
	shape_ready(sched, pod->shape);
	struct affinity *affinity = affinity_new(sched, pod);
	struct check check = {
		.sched = sched, .pod = pod, .shape = pod->shape, .affinity = affinity
	};
	for (uint32_t slot = 0; slot < sched->slot_count && count < max; slot++) {
		const struct node *node = sched->nodes[slot];
		if (node != NULL && filter_fits(&check, node))
			count = insert_name(ret_nodes, count, node->name);
	}
	affinity_free(affinity);
	return count;
}
