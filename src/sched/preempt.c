// SPDX-License-Identifier: Apache-2.0
// Who preempts, and when. A shape that fits nowhere asks once for its first pod that has no node
// kept yet, in queue order; if nobody can make room it asks again when something has changed, less
// and less often. A node that was chosen is kept (nominate.c) as long as the pod will fit there
// when those that leave have left.
#include "sched/queueing.h"
#include "sched/victims.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	FIRST_AGAIN_MS = 1000,
	VAIN_MAX = 6, // evictions for a pod that then gets nothing end
	LAST_AGAIN_DOUBLINGS = 5,
	TRIES_A_TURN = 16,
	PACE_MS = 1000,
	CHECK_MS = 5000,
	TOLD_MAX_MS = 60000, // how long the API server's word is believed where nothing leaves
	HEIRS_MAX = 4096,
	HEIR_MS = 3600 * 1000,
	MINUTE_MS = 60000,
	NAME_MAX_BYTES = 1024
};

struct preempt *preempt_new(uint64_t seed)
{
	struct preempt *preempt = core_alloc(1, sizeof *preempt);
	preempt->budgets = map_new(seed);
	preempt->heirs = map_new(seed);
	preempt->due_ms = INT64_MAX;
	link_head_init(&preempt->keeps);
	return preempt;
}

void preempt_free(struct preempt *preempt)
{
	struct str key;
	void *heir;
	ASSERT(link_is_empty(&preempt->keeps));
	for (size_t i = 0; map_next(preempt->heirs, &i, &key, &heir);)
		free(heir);
	map_free(preempt->heirs);
	budgets_free(preempt->budgets);
	free(preempt);
}

static bool is_on(const struct sched *sched)
{
	return sched->preempt->rules.mode != SCHED_PREEMPT_OFF;
}

bool sched_preemption_parse(struct str text, sched_preemption *ret_mode)
{
	static const char *const NAMES[] = { "off", "priority" };
	for (size_t i = 0; i < ARRAY_COUNT(NAMES); i++) {
		if (!str_eq_c(text, NAMES[i]))
			continue;
		*ret_mode = (sched_preemption)i;
		return true;
	}
	return false;
}

void sched_preempt_set(struct sched *sched, const struct sched_preempt_rules *rules)
{
	struct preempt *preempt = sched->preempt;
	preempt->rules = *rules;
	preempt->tokens_milli = 1000 * rules->evictions_per_minute;
	preempt->filled_ms = sched->now_ms;
	preempt->due_ms = is_on(sched) ? 0 : INT64_MAX;
	preempt->gen++;
}

// ---- the place in the queue of pods that were evicted

struct owner_key {
	uint64_t parts[2];
};

static struct owner_key owner_key_of(struct str namespace_, uint64_t owner)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < namespace_.len; i++)
		hash = (hash ^ (unsigned char)namespace_.data[i]) * UINT64_C(0x100000001b3);
	return (struct owner_key){ { hash, owner } };
}

static struct str key_text(const struct owner_key *key)
{
	return (struct str){ (const char *)key->parts, sizeof key->parts };
}

static void drop_old_heirs(struct sched *sched)
{
	struct preempt *preempt = sched->preempt;
	struct str key;
	void *value;
	for (size_t i = 0; map_next(preempt->heirs, &i, &key, &value);) {
		if (((struct heir *)value)->since_ms + HEIR_MS > sched->now_ms)
			continue;
		free(value);
		(void)map_remove(preempt->heirs, key);
	}
}

void preempt_bequeath(struct sched *sched, const struct pod *pod)
{
	struct preempt *preempt = sched->preempt;
	struct owner_key key = owner_key_of(pod->key.namespace_, pod->stay.owner);
	if (pod->stay.owner == 0)
		return;
	struct heir *heir = map_find(preempt->heirs, key_text(&key));
	if (heir == NULL) {
		if (map_count(preempt->heirs) >= HEIRS_MAX)
			drop_old_heirs(sched);
		if (map_count(preempt->heirs) >= HEIRS_MAX)
			return;
		heir = core_alloc(1, sizeof *heir);
		heir->created_s = pod->key.created_s;
		(void)map_set(preempt->heirs, key_text(&key), heir);
	}
	heir->created_s = min_i64(heir->created_s, pod->key.created_s);
	heir->since_ms = sched->now_ms;
	heir->count++;
}

static bool take_heir(struct sched *sched, struct str namespace_, uint64_t owner,
		      int64_t *ret_created_s)
{
	struct preempt *preempt = sched->preempt;
	struct owner_key key = owner_key_of(namespace_, owner);
	struct heir *heir = owner == 0 ? NULL : map_find(preempt->heirs, key_text(&key));
	if (heir == NULL)
		return false;
	*ret_created_s = heir->created_s;
	if (--heir->count == 0) {
		(void)map_remove(preempt->heirs, key_text(&key));
		free(heir);
	}
	return true;
}

int64_t preempt_inherit(struct sched *sched, const struct sched_pod_in *in)
{
	int64_t created_s = in->created_s;
	if (in->node.len == 0 && !in->is_terminating)
		(void)take_heir(sched, in->namespace_, in->stay.owner, &created_s);
	return min_i64(created_s, in->created_s);
}

// ---- nodes that are kept

static void free_keep(struct pod *pod)
{
	link_drop(&pod->keep->in_keeps);
	free(pod->keep);
	pod->keep = NULL;
}

static void new_keep(struct sched *sched, struct pod *pod, bool is_own)
{
	ASSERT(pod->keep == NULL && pod->state == SCHED_STATE_WAITING);
	pod->keep = core_alloc(1, sizeof *pod->keep);
	*pod->keep = (struct keep){ .pod = pod,
				    .is_own = is_own,
				    .since_ms = sched->now_ms,
				    .check_ms = sched->now_ms + CHECK_MS };
	link_add(&sched->preempt->keeps, &pod->keep->in_keeps);
}

bool preempt_makes_room(const struct sched *sched, const struct pod *pod, const struct node *node)
{
	bool has_made = pod->keep != NULL && pod->keep->has_victims;
	return (has_made && str_eq(pod->nominated, node->name)) || sched->preempt->trying == pod;
}

struct pod *preempt_kept(struct sched *sched, const struct shape *shape, const struct node *node,
			 const struct pod *after)
{
	const struct link *head = &sched->preempt->keeps;
	const struct link *at = after == NULL ? head->next : after->keep->in_keeps.next;
	for (; at != head; at = at->next) {
		struct pod *pod = LINK_OF((uintptr_t)at, struct keep, in_keeps)->pod;
		const struct node *kept = map_find(sched->node_by_name, pod->nominated);
		if (pod->shape == shape && kept != NULL && (node == NULL || node == kept) &&
		    shape_is_static_fit(shape, kept->slot) && filter_has_room(sched, shape, kept))
			return pod;
	}
	return NULL;
}

bool preempt_is_kept_from(const struct pod *pod, const struct node *node)
{
	const struct link *head = &node->nominated;
	for (const struct link *at = head->next; at != head; at = at->next) {
		const struct pod *kept = LINK_OF((uintptr_t)at, struct pod, in_nominated);
		if (kept != pod && kept->keep != NULL && kept->keep->has_victims &&
		    kept->key.priority >= pod->key.priority)
			return true;
	}
	return false;
}

bool preempt_keeps(const struct pod *pod) { return pod->keep != NULL && pod->keep->is_own; }

void preempt_nominated(struct sched *sched, struct pod *pod)
{
	ASSERT(!preempt_keeps(pod));
	if (pod->keep != NULL)
		free_keep(pod);
	if (is_on(sched) && pod->nominated.len > 0 && pod->state == SCHED_STATE_WAITING)
		new_keep(sched, pod, false);
}

void preempt_leave(struct sched *sched, struct pod *pod)
{
	if (pod->keep == NULL)
		return;
	bool is_own = pod->keep->is_own;
	free_keep(pod);
	if (is_own)
		nominate_set(sched, pod, STR(""));
}

static void lend(const struct pod *pod, sched_verb verb, struct sched_decision *ret)
{
	*ret = (struct sched_decision){ .verb = verb,
					.uid = pod->uid,
					.namespace_ = pod->key.namespace_,
					.name = pod->key.name };
}

static uint64_t gen_of(const struct sched *sched) { return sched->load_gen + sched->preempt->gen; }

// Whether the node is to be kept longer; else it is given up, and others may be chosen.
static bool holds(struct sched *sched, struct keep *keep)
{
	struct pod *pod = keep->pod;
	struct node *node = map_find(sched->node_by_name, pod->nominated);
	bool is_new = keep->checked_gen != gen_of(sched);
	if (!is_new && sched->now_ms < keep->check_ms)
		return true;
	keep->checked_gen = gen_of(sched);
	keep->check_ms = sched->now_ms + CHECK_MS;
	if (keep->is_own && queueing_is_blocked(pod)) // it could not use it
		return false;
	if (node != NULL && victims_will_fit(sched, pod, node))
		return true;
	return !keep->is_own && sched->now_ms < keep->since_ms + TOLD_MAX_MS;
}

static void put_off(struct sched *sched, struct pod *pod, int64_t until_ms)
{
	struct again *again = &pod->shape->again;
	again->gen = gen_of(sched);
	again->tried_ms = sched->now_ms;
	again->due_ms = until_ms;
	again->failures++;
}

static bool give_up_one(struct sched *sched, struct sched_decision *ret)
{
	struct link *head = &sched->preempt->keeps;
	for (struct link *at = head->next; at != head; at = at->next) {
		struct keep *keep = LINK_OF(at, struct keep, in_keeps);
		struct pod *pod = keep->pod;
		if (holds(sched, keep))
			continue;
		pod->vain_count += keep->has_victims;
		pod->again_ms = sched->now_ms + (FIRST_AGAIN_MS << min_i64(pod->vain_count, 10));
		free_keep(pod);
		nominate_set(sched, pod, STR(""));
		pod->told_hash = 0; // it waits for other reasons now
		pod_tell(sched, pod);
		put_off(sched, pod, sched->now_ms + FIRST_AGAIN_MS);
		sched->preempt->due_ms = min_i64(sched->preempt->due_ms, pod->shape->again.due_ms);
		lend(pod, SCHED_NOMINATE, ret);
		return true;
	}
	return false;
}

// ---- the decision

static void fill_tokens(struct sched *sched)
{
	struct preempt *preempt = sched->preempt;
	int64_t rate = preempt->rules.evictions_per_minute; // also milli in 60 ms
	int64_t passed_ms = min_i64(sched->now_ms - preempt->filled_ms, MINUTE_MS);
	int64_t more = rate * passed_ms * 1000 / MINUTE_MS;
	if (more == 0 && passed_ms < MINUTE_MS)
		return;
	preempt->tokens_milli = min_i64(preempt->tokens_milli + more, 1000 * rate);
	preempt->filled_ms = sched->now_ms;
}

// When so many may be evicted; a set that is larger than the limit waits for all of it.
static int64_t tokens_due_ms(struct sched *sched, size_t count)
{
	const struct preempt *preempt = sched->preempt;
	int64_t rate = preempt->rules.evictions_per_minute;
	if (rate == 0 || count == 0)
		return sched->now_ms;
	fill_tokens(sched);
	int64_t missing = 1000 * min_i64((int64_t)count, rate) - preempt->tokens_milli;
	return missing <= 0 ? sched->now_ms
			    : sched->now_ms + missing * MINUTE_MS / (1000 * rate) + 1;
}

void preempt_mark(struct sched *sched, struct pod *victim, const struct pod *pod, size_t i)
{
	char text[NAME_MAX_BYTES];
	size_t budget_count;
	struct budget *budget = budget_find(sched, victim, &budget_count);
	int len = snprintf(text, sizeof text, STR_FMT "/" STR_FMT, STR_ARG(pod->key.namespace_),
			   STR_ARG(pod->key.name));
	struct str for_whom = { text, min_size((size_t)len, sizeof text - 1) };
	struct sched_spec const *spec = victim->shape->spec;
	sched->preempt->victims[i] = (struct sched_victim){
		.uid = victim->uid,
		.namespace_ = victim->key.namespace_,
		.name = victim->key.name,
		.priority = victim->key.priority,
		.gpu_count = spec->gpu_count,
		.lost_ms = victims_lost_ms(sched, victim),
		.grace_s = victim->stay.grace_s == 0 ? SCHED_GRACE_S : victim->stay.grace_s,
		.is_reclaimed = victim->queue != pod->queue &&
				queues_are_used(sched->queueing->queues),
		.is_guarded = budget != NULL,
	};
	if (budget != NULL)
		budget->left--;
	victim->fate = core_alloc(1, sizeof *victim->fate + for_whom.len);
	char *copy = (char *)(victim->fate + 1);
	memcpy(copy, text, for_whom.len);
	victim->fate->for_whom = (struct str){ copy, for_whom.len };
	victim->fate->asked_ms = victim->leaving_ms = sched->now_ms;
	preempt_bequeath(sched, victim);
	pod_expect(sched, victim, victim->bound_ms);
}

static int compare_guarded(const void *a, const void *b)
{
	const struct sched_victim *x = a, *y = b;
	return (int)y->is_guarded - (int)x->is_guarded;
}

static void decide(struct sched *sched, struct pod *pod, const struct choice *choice,
		   struct sched_decision *ret)
{
	struct preempt *preempt = sched->preempt;
	struct sched_facts facts;
	if (pod->keep != NULL)
		free_keep(pod);
	for (size_t i = 0; i < choice->count; i++)
		preempt_mark(sched, choice->pods[i], pod, i);
	// Those that may be refused are asked first, so that nobody leaves in vain.
	if (choice->count > 1)
		qsort(preempt->victims, choice->count, sizeof preempt->victims[0], compare_guarded);
	preempt->tokens_milli -= 1000 * (int64_t)choice->count;
	nominate_set(sched, pod, choice->node->name);
	new_keep(sched, pod, true);
	pod->keep->has_victims = choice->count > 0;
	core_touch(sched, choice->node); // equals that were nominated there go behind it
	(void)decide_collect(sched, pod, &facts);
	decide_lend(sched, pod, &facts, ret);
	ret->verb = choice->count > 0 ? SCHED_EVICT : SCHED_NOMINATE;
	ret->node = choice->node->name;
	ret->victims = preempt->victims;
	ret->victim_count = choice->count;
}

// ---- whose turn it is

// When the shape asks again: with the first change, but not too often.
static int64_t due_ms(const struct sched *sched, const struct shape *shape)
{
	const struct again *again = &shape->again;
	if (again->failures == 0 || again->gen == gen_of(sched))
		return again->due_ms;
	int64_t pause_ms = FIRST_AGAIN_MS << min_i64(again->failures - 1, LAST_AGAIN_DOUBLINGS);
	return min_i64(again->due_ms, again->tried_ms + pause_ms);
}

// Who has a node kept, or asked in vain too often, does not stand before its equals.
static bool may_take_turn(const struct pod *pod)
{
	return pod->keep == NULL && pod->vain_count < VAIN_MAX;
}

static struct pod *first_with_turn(const struct shape *shape)
{
	struct tree_node *at = tree_first(&shape->waiting);
	while (at != NULL && !may_take_turn(LINK_OF(at, struct pod, in_shape)))
		at = tree_next(at);
	return at == NULL ? NULL : LINK_OF(at, struct pod, in_shape);
}

bool preempt_may_ask(const struct pod *pod)
{
	return pod->is_ours && pod->member == NULL && !pod->stay.never_preempts &&
	       pod->vain_count < VAIN_MAX && !queueing_is_blocked(pod);
}

struct turn {
	struct pod *pod;
	int64_t next_ms; // of those whose turn comes later
};

static void stand(struct sched *sched, struct turn *turn, struct pod *pod)
{
	if (pod == NULL || pod->keep != NULL || !preempt_may_ask(pod) ||
	    !(pod_has_lower(sched, pod->key.priority) || queues_are_used(sched->queueing->queues)))
		return;
	int64_t at_ms =
		max_i64(due_ms(sched, pod->shape), pod->since_ms + sched->preempt->rules.delay_ms);
	at_ms = max_i64(at_ms, pod->again_ms);
	if (at_ms > sched->now_ms)
		turn->next_ms = min_i64(turn->next_ms, at_ms);
	else if (turn->pod == NULL || queueing_cmp(sched, pod, turn->pod) < 0)
		turn->pod = pod;
}

static struct turn find_turn(struct sched *sched)
{
	struct turn turn = { NULL, INT64_MAX };
	for (struct link *at = sched->parked.next; at != &sched->parked; at = at->next)
		stand(sched, &turn, first_with_turn(LINK_OF(at, struct shape, in_parked)));
	for (struct link *at = sched->held.next; at != &sched->held; at = at->next)
		stand(sched, &turn, LINK_OF(at, struct pod, in_place));
	return turn;
}

static void look_again(struct sched *sched, struct pod *pod)
{
	pod_wait(sched, pod, PLACE_SHAPE);
	shape_activate(sched, pod->shape);
}

static bool try_pod(struct sched *sched, struct pod *pod, struct sched_decision *ret)
{
	struct choice choice;
	victims_choose(sched, pod, &choice);
	const struct sched_facts *facts = pod->facts != NULL ? pod->facts : &pod->shape->facts;
	bool is_again = pod->shape->again.failures > 0;
	bool was_protected = (facts_codes(facts) & code_bit(SCHED_CODE_LOWER_PROTECTED)) != 0;
	if (choice.node == NULL) {
		put_off(sched, pod, victims_ripe_ms(sched, pod));
		if (is_again && was_protected) // who was protected may be so no longer
			look_again(sched, pod);
		return false;
	}
	int64_t at_ms = tokens_due_ms(sched, choice.count);
	if (at_ms > sched->now_ms) {
		put_off(sched, pod, at_ms);
		return false;
	}
	pod->shape->again = (struct again){ .due_ms = 0 };
	decide(sched, pod, &choice, ret);
	return true;
}

bool preempt_next(struct sched *sched, struct sched_decision *ret)
{
	struct preempt *preempt = sched->preempt;
	if (!is_on(sched))
		return false;
	if (give_up_one(sched, ret))
		return true;
	if (sched->now_ms < preempt->due_ms && preempt->seen_gen == gen_of(sched))
		return false;
	if (sched->now_ms < preempt->pace_ms)
		return false;
	for (int tries = 0; tries < TRIES_A_TURN; tries++) {
		struct turn turn = find_turn(sched);
		preempt->due_ms = turn.next_ms;
		preempt->seen_gen = gen_of(sched);
		if (turn.pod == NULL)
			return false;
		preempt->due_ms = sched->now_ms;
		if (try_pod(sched, turn.pod, ret))
			return true;
	}
	preempt->pace_ms = preempt->due_ms = sched->now_ms + PACE_MS;
	return false;
}

void preempt_changed(struct sched *sched) { sched->preempt->gen++; }

void preempt_parked(struct sched *sched, struct shape *shape)
{
	int64_t at_ms = max_i64(shape->again.due_ms, sched->preempt->pace_ms);
	if (is_on(sched))
		sched->preempt->due_ms = min_i64(sched->preempt->due_ms, at_ms);
}

int64_t preempt_wake_ms(const struct sched *sched)
{
	const struct preempt *preempt = sched->preempt;
	int64_t wake_ms = is_on(sched) ? preempt->due_ms : INT64_MAX;
	const struct link *head = &preempt->keeps;
	for (const struct link *at = head->next; at != head; at = at->next)
		wake_ms = min_i64(wake_ms, LINK_OF((uintptr_t)at, struct keep, in_keeps)->check_ms);
	return wake_ms;
}

void sched_evict_failed(struct sched *sched, struct str uid, int64_t now_ms)
{
	struct pod *pod = map_find(sched->pod_by_uid, uid);
	int64_t created_s;
	sched->now_ms = max_i64(sched->now_ms, now_ms);
	if (pod == NULL || pod->fate == NULL || pod->is_terminating)
		return;
	size_t budget_count = 0;
	struct budget *budget = budget_find(sched, pod, &budget_count);
	if (budget_count == 1) // nothing of it was used up; the API server tells of changes alone
		budget->left = min_i64(budget->left + 1, max_i64(budget->in.allowed, 0));
	free(pod->fate);
	pod->fate = NULL;
	pod->spared_ms = sched->now_ms + SPARE_MS;
	(void)take_heir(sched, pod->key.namespace_, pod->stay.owner, &created_s);
	pod_expect(sched, pod, pod->bound_ms);
	sched->preempt->gen++;
}

// ---- what is told

static size_t count_leaving(const struct sched *sched, const struct pod *pod)
{
	const struct node *node = map_find(sched->node_by_name, pod->nominated);
	const struct link *head = node == NULL ? NULL : &node->pods;
	size_t count = 0;
	for (const struct link *at = head == NULL ? NULL : head->next; at != head; at = at->next)
		count += victims_is_leaving(sched, LINK_OF((uintptr_t)at, struct pod, on_node));
	return count;
}

void preempt_note(const struct sched *sched, const struct pod *pod, struct sched_facts *facts)
{
	bool is_held = (facts_codes(facts) & code_bit(SCHED_CODE_HELD_BY_LOWER)) != 0;
	if (preempt_keeps(pod))
		facts_add(facts, SCHED_CODE_PREEMPTING, 0)->need =
			(int64_t)count_leaving(sched, pod);
	else if (is_held && is_on(sched) && pod->stay.never_preempts)
		(void)facts_add(facts, SCHED_CODE_PREEMPTION_NEVER, 0);
	else if (pod->vain_count >= VAIN_MAX)
		(void)facts_add(facts, SCHED_CODE_PREEMPTION_VAIN, 0);
}

bool sched_preempt_explain(const struct sched *sched, struct str namespace_, struct str name,
			   struct sched_preempt_view *ret)
{
	const struct pod *pod = pod_find(sched, namespace_, name);
	if (pod == NULL)
		return false;
	*ret = (struct sched_preempt_view){ .leaving_count = 0 };
	if (pod->keep != NULL) {
		ret->kept_node = pod->nominated;
		ret->leaving_count = count_leaving(sched, pod);
	}
	if (pod->fate != NULL)
		ret->evicted_by = pod->fate->for_whom;
	if (pod->key.created_s != pod->made_s)
		ret->queued_s = pod->key.created_s;
	return true;
}
