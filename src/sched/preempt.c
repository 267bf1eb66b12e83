// SPDX-License-Identifier: Apache-2.0
// Who preempts, and when. A shape that fits nowhere asks once for its first pod that has no node
// kept yet, in queue order; if nobody can make room it asks again when something has changed, less
// and less often. A node that was chosen is kept (nominate.c) as long as the pod will fit there
// when those that leave have left.
#include "sched/gang_preempt.h"
#include "sched/move.h"
#include "sched/queueing.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	FIRST_AGAIN_MS = 1000,
	VAIN_MAX = 6, // evictions for a pod that then gets nothing end
	LAST_AGAIN_DOUBLINGS = 5,
	TRIES_A_TURN = 16,
	PACE_MS = 1000,
	TOLD_MAX_MS = 60000, // how long the API server's word is believed where nothing leaves
	MINUTE_MS = 60000,
	NAME_MAX_BYTES = 1024
};

struct preempt *preempt_new(uint64_t seed)
{
	struct preempt *preempt = core_alloc(1, sizeof *preempt);
	preempt->budgets = map_new(seed);
	preempt->budget_spaces = map_new(seed);
	preempt->heirs = map_new(seed);
	preempt->moves = moves_new();
	preempt->due_ms = INT64_MAX;
	link_head_init(&preempt->keeps);
	link_head_init(&preempt->telling);
	return preempt;
}

void preempt_free(struct preempt *preempt)
{
	struct str key;
	void *heir;
	ASSERT(link_is_empty(&preempt->keeps) && preempt->moves == NULL);
	for (size_t i = 0; map_next(preempt->heirs, &i, &key, &heir);)
		free(heir);
	map_free(preempt->heirs);
	budgets_free(preempt);
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

// ---- nodes that are kept

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
	struct node *node = map_find(sched->node_by_name, pod->wait->nominated);
	bool is_new = keep->checked_gen != gen_of(sched);
	if (!is_new && sched->now_ms < keep->check_ms)
		return true;
	keep->checked_gen = gen_of(sched);
	keep->check_ms = sched->now_ms + KEEP_CHECK_MS;
	if (keep->is_own && queueing_is_blocked(pod)) // it could not use it
		return false;
	bool will_do = node != NULL &&
		       (pod->member != NULL ? gang_preempt_holds(sched, gang_of(pod))
					    : victims_will_fit(sched, pod, node));
	if (will_do)
		return true;
	return !keep->is_own && sched->now_ms < keep->since_ms + TOLD_MAX_MS;
}

// A gang asks for all of its members together.
static struct again *again_of(const struct pod *pod)
{
	return pod->member != NULL ? &pod->member->gang->asking.again : &pod->shape->again;
}

static void put_off(struct sched *sched, struct pod *pod, int64_t until_ms)
{
	struct again *again = again_of(pod);
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
		pod->wait->vain_count += keep->has_victims;
		pod->wait->again_ms =
			sched->now_ms + (FIRST_AGAIN_MS << min_i64(pod->wait->vain_count, 10));
		keep_free(pod);
		nominate_set(sched, pod, STR(""));
		pod->wait->told_hash = 0; // it waits for other reasons now
		pod_tell(sched, pod);
		if (pod->member == NULL || gang_of(pod)->asking.kept_count == 0) // once for all
			put_off(sched, pod, sched->now_ms + FIRST_AGAIN_MS);
		sched->preempt->due_ms = min_i64(sched->preempt->due_ms, again_of(pod)->due_ms);
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
	sched->preempt->victims[i] = (struct sched_victim){
		.uid = victim->uid,
		.namespace_ = victim->key.namespace_,
		.name = victim->key.name,
		.node = victim->node->name,
		.gpu_count = queueing_held_gpus(victim),
		.lost_ms = victims_lost_ms(sched, victim),
		.grace_s = victim->stay.grace_s == 0 ? SCHED_GRACE_S : victim->stay.grace_s,
		.is_reclaimed = victim->queue != pod->queue &&
				queues_are_used(sched->queueing->queues),
		.is_guarded = budget != NULL,
	};
	if (budget_count == 1) // of several the API server lets nobody go
		budget->left--;
	victim->fate = core_alloc(1, sizeof *victim->fate + for_whom.len);
	char *copy = (char *)(victim->fate + 1);
	memcpy(copy, text, for_whom.len);
	victim->fate->for_whom = (struct str){ copy, for_whom.len };
	victim->leaving_ms = sched->now_ms;
	preempt_bequeath(sched, victim);
	pod_expect(sched, victim, victim->bound_ms);
}

static int compare_guarded(const void *a, const void *b)
{
	const struct sched_victim *x = a, *y = b;
	return (int)y->is_guarded - (int)x->is_guarded;
}

static void mark_all(struct sched *sched, const struct pod *pod, const struct choice *choice)
{
	struct preempt *preempt = sched->preempt;
	for (size_t i = 0; i < choice->count; i++)
		preempt_mark(sched, choice->pods[i], pod, i);
	// Those that may be refused are asked first, so that nobody leaves in vain.
	if (choice->count > 1)
		qsort(preempt->victims, choice->count, sizeof preempt->victims[0], compare_guarded);
	preempt->tokens_milli -= 1000 * (int64_t)choice->count;
}

static void keep_for(struct sched *sched, struct pod *pod, struct node *node, bool has_victims)
{
	if (pod->wait->keep != NULL)
		keep_free(pod);
	nominate_set(sched, pod, node->name);
	keep_new(sched, pod, true);
	pod->wait->keep->has_victims = has_victims;
	core_touch(sched, node); // equals that were nominated there go behind it
}

static void lend_kept(struct sched *sched, struct pod *pod, struct sched_decision *ret)
{
	struct sched_facts facts;
	if (pod->member == NULL || !gang_told(pod, &facts))
		(void)decide_collect(sched, pod, &facts);
	decide_lend(sched, pod, &facts, ret);
	ret->verb = SCHED_NOMINATE;
	ret->node = pod->wait->nominated;
}

static void lend_victims(struct sched *sched, size_t count, struct sched_decision *ret)
{
	ret->verb = count > 0 ? SCHED_EVICT : SCHED_NOMINATE;
	ret->victims = sched->preempt->victims;
	ret->victim_count = count;
}

static void decide(struct sched *sched, struct pod *pod, const struct choice *choice,
		   struct sched_decision *ret)
{
	mark_all(sched, pod, choice);
	keep_for(sched, pod, choice->node, choice->count > 0);
	lend_kept(sched, pod, ret);
	lend_victims(sched, choice->count, ret);
}

static void decide_moves(struct sched *sched, struct pod *pod, const struct move_choice *moves,
			 struct sched_decision *ret)
{
	struct choice choice = { .node = moves->node, .count = moves->count };
	memcpy(choice.pods, moves->pods, moves->count * sizeof(struct pod *));
	move_note(sched, moves);
	decide(sched, pod, &choice, ret);
	for (size_t i = 0; i < moves->count; i++)
		berth_keep(sched, moves->pods[i], moves->homes[i]);
	for (size_t i = 0; i < moves->count; i++) {
		struct sched_victim *victim = &sched->preempt->victims[i];
		victim->home = berth_of(sched, map_find(sched->pod_by_uid, victim->uid))->name;
		victim->is_reclaimed = false;
	}
}

// One decision has the victims; the nodes of the other members come out right after it.
static void decide_gang(struct sched *sched, const struct gang_choice *choice,
			struct sched_decision *ret)
{
	struct pod *first = choice->pods[0];
	size_t count = choice->victims.count;
	mark_all(sched, first, &choice->victims);
	for (size_t i = 0; i < choice->count; i++) {
		keep_for(sched, choice->pods[i], choice->nodes[i], count > 0);
		if (i > 0)
			link_add(&sched->preempt->telling,
				 &choice->pods[i]->wait->keep->in_telling);
	}
	lend_kept(sched, first, ret);
	lend_victims(sched, count, ret);
}

static bool tell_one(struct sched *sched, struct sched_decision *ret)
{
	struct link *telling = &sched->preempt->telling;
	if (link_is_empty(telling))
		return false;
	struct keep *keep = LINK_OF(telling->next, struct keep, in_telling);
	link_drop(&keep->in_telling);
	lend_kept(sched, keep->pod, ret);
	return true;
}

// ---- whose turn it is

// When it asks again: with the first change, but not too often.
static int64_t due_ms(const struct sched *sched, const struct again *again)
{
	if (again->failures == 0 || again->gen == gen_of(sched))
		return again->due_ms;
	int64_t pause_ms = FIRST_AGAIN_MS << min_i64(again->failures - 1, LAST_AGAIN_DOUBLINGS);
	return min_i64(again->due_ms, again->tried_ms + pause_ms);
}

// Who has a node kept, or asked in vain too often, does not stand before its equals.
static bool may_take_turn(const struct pod *pod)
{
	return pod->wait->keep == NULL && pod->wait->vain_count < VAIN_MAX;
}

static struct pod *first_with_turn(const struct shape *shape)
{
	struct tree_node *at = tree_first(&shape->waiting);
	while (at != NULL && !may_take_turn(POD_OF(at, in_shape)))
		at = tree_next(at);
	return at == NULL ? NULL : POD_OF(at, in_shape);
}

bool preempt_may_ask(const struct pod *pod)
{
	return pod->is_ours && !pod->stay.never_preempts && pod->wait->vain_count < VAIN_MAX &&
	       !queueing_is_blocked(pod);
}

struct turn {
	struct pod *pod;
	int64_t next_ms; // of those whose turn comes later
};

static void stand(struct sched *sched, struct turn *turn, struct pod *pod)
{
	if (pod == NULL || pod->wait->keep != NULL || !preempt_may_ask(pod) ||
	    !(pod_has_lower(sched, pod->key.priority) || move_is_on(sched) ||
	      queues_are_used(sched->queueing->queues)))
		return;
	int64_t at_ms = max_i64(due_ms(sched, again_of(pod)),
				pod->since_ms + sched->preempt->rules.delay_ms);
	at_ms = max_i64(at_ms, pod->wait->again_ms);
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
		stand(sched, &turn, POD_OF(at, in_place));
	const struct link *gangs = &sched->gangs->parked;
	for (const struct link *at = gangs->next; at != gangs; at = at->next) {
		const struct gang *gang = LINK_OF((uintptr_t)at, struct gang, in_parked);
		if (gang->why.code == SCHED_CODE_GANG_DOES_NOT_FIT && gang->asking.kept_count == 0)
			stand(sched, &turn, POD_OF(tree_first(&gang->waiting), in_shape));
	}
	return turn;
}

static void look_again(struct sched *sched, struct pod *pod)
{
	if (pod->member != NULL) {
		gang_activate(sched, pod->member->gang);
		return;
	}
	pod_wait(sched, pod, PLACE_SHAPE);
	shape_activate(sched, pod->shape);
}

static bool was_protected(const struct pod *pod)
{
	struct sched_facts facts;
	if (pod->member != NULL)
		return gang_told(pod, &facts) &&
		       (facts_codes(&facts) & code_bit(SCHED_CODE_LOWER_PROTECTED)) != 0;
	const struct sched_facts *own = pod->facts != NULL ? pod->facts : &pod->shape->facts;
	return (facts_codes(own) & code_bit(SCHED_CODE_LOWER_PROTECTED)) != 0;
}

static void fail(struct sched *sched, struct pod *pod)
{
	bool is_again = again_of(pod)->failures > 0;
	put_off(sched, pod, min_i64(victims_ripe_ms(sched, pod), move_ripe_ms(sched, pod)));
	if (is_again && was_protected(pod)) // who was protected may be so no longer
		look_again(sched, pod);
}

// Whether so many may be evicted now.
static bool is_paid(struct sched *sched, struct pod *pod, size_t count)
{
	int64_t at_ms = tokens_due_ms(sched, count);
	if (at_ms > sched->now_ms)
		put_off(sched, pod, at_ms);
	else
		*again_of(pod) = (struct again){ .due_ms = 0 };
	return at_ms <= sched->now_ms;
}

static bool try_gang(struct sched *sched, struct pod *pod, struct sched_decision *ret)
{
	struct gang_choice choice;
	if (!gang_preempt_choose(sched, gang_of(pod), &choice)) {
		fail(sched, pod);
		return false;
	}
	bool is_done = is_paid(sched, pod, choice.victims.count);
	if (is_done)
		decide_gang(sched, &choice, ret);
	gang_preempt_free(&choice);
	return is_done;
}

static bool try_pod(struct sched *sched, struct pod *pod, struct sched_decision *ret)
{
	struct choice choice;
	struct move_choice moves = { .node = NULL };
	victims_choose(sched, pod, &choice);
	if (choice.node == NULL || choice.count > 0) // else enough leaves already
		move_choose(sched, pod, &moves);
	if (moves.node != NULL) {
		if (!is_paid(sched, pod, moves.count))
			return false;
		decide_moves(sched, pod, &moves, ret);
		return true;
	}
	if (choice.node == NULL) {
		fail(sched, pod);
		return false;
	}
	if (!is_paid(sched, pod, choice.count))
		return false;
	decide(sched, pod, &choice, ret);
	return true;
}

bool preempt_next(struct sched *sched, struct sched_decision *ret)
{
	struct preempt *preempt = sched->preempt;
	if (!is_on(sched))
		return false;
	if (tell_one(sched, ret) || give_up_one(sched, ret))
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
		if (turn.pod->member != NULL ? try_gang(sched, turn.pod, ret)
					     : try_pod(sched, turn.pod, ret))
			return true;
	}
	preempt->pace_ms = preempt->due_ms = sched->now_ms + PACE_MS;
	return false;
}

void preempt_changed(struct sched *sched) { sched->preempt->gen++; }

void preempt_parked(struct sched *sched, const struct again *again)
{
	int64_t at_ms = max_i64(again->due_ms, sched->preempt->pace_ms);
	if (is_on(sched))
		sched->preempt->due_ms = min_i64(sched->preempt->due_ms, at_ms);
}

int64_t preempt_wake_ms(const struct sched *sched)
{
	const struct preempt *preempt = sched->preempt;
	int64_t wake_ms = min_i64(is_on(sched) ? preempt->due_ms : INT64_MAX, berth_wake_ms(sched));
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
	berth_refused(sched, pod);
	free(pod->fate);
	pod->fate = NULL;
	pod->spared_ms = sched->now_ms + SPARE_MS;
	(void)heir_take(sched, pod->key.namespace_, pod->stay.owner, &created_s);
	pod_expect(sched, pod, pod->bound_ms);
	sched->preempt->gen++;
}

// ---- what is told

static size_t count_leaving(const struct sched *sched, const struct pod *pod)
{
	const struct node *node = map_find(sched->node_by_name, pod->wait->nominated);
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
	else if (pod->wait->vain_count >= VAIN_MAX)
		(void)facts_add(facts, SCHED_CODE_PREEMPTION_VAIN, 0);
}

bool sched_preempt_explain(const struct sched *sched, struct str namespace_, struct str name,
			   struct sched_preempt_view *ret)
{
	const struct pod *pod = pod_find(sched, namespace_, name);
	if (pod == NULL)
		return false;
	*ret = (struct sched_preempt_view){ .leaving_count = 0 };
	if (pod->wait->keep != NULL) {
		ret->kept_node = pod->wait->nominated;
		ret->leaving_count = count_leaving(sched, pod);
	}
	if (pod->fate != NULL)
		ret->evicted_by = pod->fate->for_whom;
	const struct node *home = berth_of(sched, pod);
	if (home != NULL)
		ret->home = home->name;
	if (pod->key.created_s != pod->made_s)
		ret->queued_s = pod->key.created_s;
	return true;
}
