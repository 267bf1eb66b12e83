// SPDX-License-Identifier: Apache-2.0
// A gang's turn: whether it may start, all at once, and what its members are told if not.
#include "sched/gang.h"
#include "sched/gang_memo.h"
#include "sched/queueing_model.h"
#include "sched/victims.h"

#include <stdlib.h>

static void put_why(const struct gang *gang, struct sched_facts *facts)
{
	struct sched_fact *fact = facts_add(facts, gang->why.code, gang->why.detail);
	fact->need = gang->why.need;
	fact->have = gang->why.have;
}

// Nothing but what pods take, and what they run for, decides about it.
static bool is_plain(const struct sched *sched, const struct pod *pod)
{
	const struct sched_spec *spec = pod->shape->spec;
	return pod->wait->head == NULL && !spec_has_volumes(spec) &&
	       !affinity_is_special(sched, pod) &&
	       spec->near_count + spec->apart_count + spec->spread_count == 0;
}

// Who may not be evicted now may be a moment later.
static bool is_current(const struct sched *sched, const struct gang_memo *memo)
{
	bool is_protected = (facts_codes(&memo->facts) & code_bit(SCHED_CODE_LOWER_PROTECTED)) != 0;
	return memo->facts_gen == sched->load_gen && memo->preempt_gen == sched->preempt->gen &&
	       (!is_protected || memo->facts_ms == sched->now_ms);
}

// Many gangs of equal members may wait; what the nodes say is found once for all of them.
static void collect(struct sched *sched, const struct gang *gang, struct pod *pod,
		    struct sched_facts *ret_facts)
{
	struct gang_memo *memo = gang_memo_of(pod->shape);
	const uint64_t kept = code_bit(SCHED_CODE_RESERVED) | code_bit(SCHED_CODE_WINDOW);
	// A shorter one fits wherever a longer one is not kept away by what is reserved.
	bool is_shorter = pod->key.duration_s > 0 && pod->key.duration_s < memo->duration_s &&
			  (facts_codes(&memo->facts) & kept) == 0;
	bool is_known = is_plain(sched, pod) && is_current(sched, memo) &&
			(is_shorter || memo->duration_s == pod->key.duration_s);
	if (!is_known) {
		(void)decide_collect_nodes(sched, pod, &memo->facts);
		memo->facts_gen = is_plain(sched, pod) ? sched->load_gen : 0;
		memo->preempt_gen = sched->preempt->gen;
		memo->facts_ms = sched->now_ms;
		memo->duration_s = pod->key.duration_s;
	}
	*ret_facts = memo->facts;
	queueing_add_facts(pod, ret_facts);
	if (gang->limited_parts > 0)
		queueing_add_limits(pod, gang->limited_parts, ret_facts);
	if ((facts_codes(ret_facts) & code_bit(SCHED_CODE_QUEUE_LIMIT)) == 0)
		queueing_add_model_limits(pod, gang_parts(gang, gang_needed(gang)), ret_facts);
}

// Of each shape of the members, what of the nodes keeps one of them away.
static void find_facts(struct sched *sched, struct gang *gang)
{
	bool was_told = gang->is_told;
	size_t count = 0;
	uint64_t old_codes = 0, codes = 0;
	gang->is_same = was_told && !gang->is_untold;
	for (size_t i = 0; i < gang->facts_count; i++)
		old_codes |= facts_codes(&gang->facts[i].facts);
	for (struct tree_node *at = tree_first(&gang->waiting); at != NULL; at = tree_next(at)) {
		struct pod *pod = POD_OF(at, in_shape);
		struct sched_facts facts = { .count = 0 };
		size_t i = 0;
		while (i < count && gang->facts[i].shape != pod->shape)
			i++;
		if (i < count || count == GANG_CLASSES_MAX)
			continue;
		if (gang->why.code == SCHED_CODE_GANG_DOES_NOT_FIT)
			collect(sched, gang, pod, &facts);
		put_why(gang, &facts);
		gang->is_same = gang->is_same && i < gang->facts_count &&
				gang->facts[i].shape == pod->shape &&
				facts_equal(&gang->facts[i].facts, &facts);
		codes |= facts_codes(&facts);
		gang->facts[count++] = (struct gang_facts){ pod->shape, facts };
	}
	gang->facts_count = count;
	gang->is_told = true;
	gang->are_codes_new = !was_told || codes != old_codes;
}

// The more members wait, the less often their numbers are brought up to date.
static int64_t refresh_ms(const struct sched *sched, const struct gang *gang)
{
	enum { PODS_FRESH = 1024 };
	int64_t times = 1 + (int64_t)sched->gangs->held_count / PODS_FRESH;
	return max_i64(gang->told_ms + times * FACTS_FRESH_MS, gang->paced_ms);
}

static void set_stale(struct sched *sched, struct gang *gang)
{
	gang->is_stale = true;
	sched->gangs->due_ms = min_i64(sched->gangs->due_ms, refresh_ms(sched, gang));
}

// Numbers alone are told again only after a while: each is a write to the API server.
static void park(struct sched *sched, struct gang *gang, const struct sched_fact *why)
{
	tree_remove(&sched->gangs->active, &gang->active);
	link_add(&sched->gangs->parked, &gang->in_parked);
	gang->is_stale = false;
	gang->why = *why;
	find_facts(sched, gang);
	if (why->code == SCHED_CODE_GANG_DOES_NOT_FIT)
		reserve_parked(sched, POD_OF(tree_first(&gang->waiting), in_shape));
	preempt_parked(sched, &gang->asking.again);
	if (gang->is_same)
		return;
	if (!gang->are_codes_new && gang->told_ms + FACTS_FRESH_MS > sched->now_ms) {
		gang->is_untold = true;
		set_stale(sched, gang);
		return;
	}
	gang->is_untold = false;
	gang->told_ms = sched->now_ms;
	for (struct tree_node *at = tree_first(&gang->waiting); at != NULL; at = tree_next(at))
		pod_tell(sched, POD_OF(at, in_shape));
}

static void confirm(struct sched *sched, struct gang_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++) {
		struct pod *pod = plan->pods[i];
		pod_leave(sched, pod);
		pod_settle_on(sched, pod);
		queueing_note_full(sched, pod);
		pod_expect(sched, pod, sched->now_ms);
		pod_set_state(sched, pod, SCHED_STATE_ASSUMED);
		link_add(&sched->gangs->binds, &pod->wait->in_binds);
	}
	free(plan->pods);
}

int64_t gang_needed(const struct gang *gang)
{
	int64_t running = gang_running(gang), waiting = (int64_t)tree_count(&gang->waiting);
	int64_t least = gang_min(gang) - running;
	if (gang_min(gang) == 0) // nobody has said it yet
		return 0;
	if (gang->was_whole && running > 0) // members may have ended; it takes who is there
		least = min_i64(least, waiting);
	return least > waiting ? 0 : max_i64(least, 1);
}

// What they would take of their queue together.
int64_t gang_parts(const struct gang *gang, int64_t count)
{
	int64_t sum = 0;
	for (struct tree_node *at = tree_first(&gang->waiting); at != NULL && count > 0;
	     at = tree_next(at), count--)
		sum += queueing_need_parts(POD_OF(at, in_shape));
	return sum;
}

void gang_try(struct sched *sched, struct gang *gang)
{
	struct gang_plan plan;
	int64_t running = gang_running(gang), waiting = (int64_t)tree_count(&gang->waiting);
	int64_t least = gang_min(gang), room = gang_max(gang) - running;
	int64_t need = gang_needed(gang);
	struct sched_fact why = { .code = SCHED_CODE_GANG_INCOMPLETE,
				  .detail = least == 0,
				  .need = least,
				  .have = running + waiting };
	ASSERT(tree_has(&gang->active) && waiting > 0);
	if (room <= 0)
		why = (struct sched_fact){ .code = SCHED_CODE_GANG_FULL,
					   .need = running + waiting,
					   .have = gang_max(gang) };
	if (room <= 0 || need == 0) {
		park(sched, gang, &why);
		return;
	}
	const struct gang_aim aim = { .need = (size_t)need,
				      .most = (size_t)min_i64(room, waiting),
				      .is_long = sched->now_ms >= gang->paced_ms };
	if (gang_place(sched, gang, &aim, &plan)) {
		confirm(sched, &plan);
		gang->paced_ms = 0;
		return;
	}
	gang->limited_parts = plan.is_limited ? gang_parts(gang, need) : 0;
	if (plan.looks >= GANG_LOOKS_PACED)
		gang->paced_ms = sched->now_ms + GANG_PACE_MS;
	why = (struct sched_fact){ .code = SCHED_CODE_GANG_DOES_NOT_FIT,
				   .detail = gang_topology(gang).len > 0,
				   .need = need,
				   .have = (int64_t)plan.best };
	park(sched, gang, &why);
	if (!aim.is_long)
		set_stale(sched, gang);
}

struct gang *gang_first(struct sched *sched)
{
	struct tree_node *first = tree_first(&sched->gangs->active);
	bool is_sorted = !queueing_order_moves(sched);
	for (struct tree_node *at = first; at != NULL && !is_sorted; at = tree_next(at)) {
		if (queueing_key_cmp(sched, at->key, first->key) < 0)
			first = at;
	}
	return first == NULL ? NULL : LINK_OF(first, struct gang, active);
}

struct pod *gang_take_bind(struct sched *sched)
{
	struct link *binds = &sched->gangs->binds;
	while (!link_is_empty(binds)) {
		struct pod *pod = POD_OF(binds->next, in_binds);
		link_drop(&pod->wait->in_binds);
		if (pod->state == SCHED_STATE_ASSUMED)
			return pod;
	}
	return NULL;
}

// ---- waking

static bool has_touched_room(struct sched *sched, struct shape *shape)
{
	for (uint32_t k = 0; k < sched->touched_count; k++) {
		const struct node *node = sched->nodes[sched->touched[k]];
		if (shape_is_static_fit(shape, node->slot) && filter_has_room(sched, shape, node))
			return true;
	}
	return false;
}

// By amounts there is room for those that must start together, and some of it is new.
static bool may_fit(struct sched *sched, const struct gang *gang)
{
	int64_t sum = 0;
	bool is_new = sched->wakes_all;
	for (size_t i = 0; i < gang->facts_count; i++) {
		struct shape *shape = (struct shape *)(uintptr_t)gang->facts[i].shape;
		const struct sched_spec *spec = shape->spec;
		sum += gang_room(sched, shape);
		is_new = is_new || (sched->wakes_volumes && spec_has_volumes(spec)) ||
			 spec->near_count + spec->spread_count > 0;
	}
	if (sum < gang_needed(gang) && gang->facts_count < GANG_CLASSES_MAX)
		return false;
	for (size_t i = 0; i < gang->facts_count && !is_new; i++)
		is_new = has_touched_room(sched, (struct shape *)(uintptr_t)gang->facts[i].shape);
	return is_new;
}

void gang_wake_changed(struct sched *sched)
{
	struct link *parked = &sched->gangs->parked;
	for (struct link *at = parked->next, *next; at != parked; at = next) {
		struct gang *gang = LINK_OF(at, struct gang, in_parked);
		next = at->next;
		if (gang->why.code != SCHED_CODE_GANG_DOES_NOT_FIT)
			continue; // nodes do not matter
		set_stale(sched, gang);
		bool is_open = sched->now_ms >= gang->paced_ms && may_fit(sched, gang);
		if (is_open || refresh_ms(sched, gang) <= sched->now_ms)
			gang_activate(sched, gang);
	}
}

void gang_wake_due(struct sched *sched)
{
	struct link *parked = &sched->gangs->parked;
	if (sched->now_ms < sched->gangs->due_ms)
		return;
	sched->gangs->due_ms = INT64_MAX;
	for (struct link *at = parked->next, *next; at != parked; at = next) {
		struct gang *gang = LINK_OF(at, struct gang, in_parked);
		next = at->next;
		if (!gang->is_stale)
			continue;
		if (refresh_ms(sched, gang) <= sched->now_ms)
			gang_activate(sched, gang);
		else
			set_stale(sched, gang);
	}
}

int64_t gang_wake_ms(const struct sched *sched) { return sched->gangs->due_ms; }

// ---- what is told

static const struct gang_facts *facts_of(const struct gang *gang, const struct shape *shape)
{
	for (size_t i = 0; i < gang->facts_count; i++) {
		if (gang->facts[i].shape == shape)
			return &gang->facts[i];
	}
	return NULL;
}

bool gang_told(const struct pod *pod, struct sched_facts *ret_facts)
{
	const struct gang *gang = gang_of(pod);
	const struct gang_facts *facts = facts_of(gang, pod->shape);
	if (!gang->is_told)
		return false;
	*ret_facts = (struct sched_facts){ .count = 0 };
	if (facts != NULL)
		*ret_facts = facts->facts;
	else
		put_why(gang, ret_facts);
	return true;
}

void gang_explain(struct sched *sched, struct pod *pod, struct sched_facts *ret_facts)
{
	const struct gang *gang = gang_of(pod);
	*ret_facts = (struct sched_facts){ .count = 0 };
	if (!gang->is_told || tree_has(&gang->active))
		return; // it is about to be decided
	if (gang->why.code == SCHED_CODE_GANG_DOES_NOT_FIT)
		collect(sched, gang, pod, ret_facts);
	put_why(gang, ret_facts);
}

static struct str pods_text(struct arena *arena, int64_t count)
{
	return str_of(arena_printf(arena, "%lld pod%s", (long long)count, count == 1 ? "" : "s"));
}

static void contradiction_text(const struct pod *pod, const struct sched_fact *fact,
			       struct arena *arena, struct sched_reason *reason)
{
	static const char *const NAMES[GANG_TERMS] = {
		[GANG_TERM_MIN] = "gpuaas.io/gang-min",
		[GANG_TERM_MAX] = "gpuaas.io/gang-max",
		[GANG_TERM_EXPIRY] = "gpuaas.io/gang-expiry",
		[GANG_TERM_TOPOLOGY] = "gpuaas.io/topology",
		[GANG_TERM_GROUP_MIN] = "gpuaas.io/gang-group-min",
		[GANG_TERM_MEMBERS] = "members",
	};
	const struct member *member = pod->member;
	const char *name = NAMES[min_size(fact->detail, GANG_TERM_MEMBERS)];
	if (fact->detail == GANG_TERM_TOPOLOGY && member != NULL) {
		reason->need = str_of(arena_printf(arena, "%s " STR_FMT, name,
						   STR_ARG(member->gang->speaker->terms.topology)));
		reason->have = str_of(
			arena_printf(arena, "%s " STR_FMT, name, STR_ARG(member->terms.topology)));
		return;
	}
	reason->need = str_of(arena_printf(arena, "%s %lld", name, (long long)fact->need));
	reason->have = str_of(arena_printf(arena, "%s %lld", name, (long long)fact->have));
}

bool gang_fact_text(const struct pod *pod, const struct sched_fact *fact, struct arena *arena,
		    struct sched_reason *reason)
{
	const struct gang *gang = gang_of(pod);
	bool is_ours = fact->code >= SCHED_CODE_GANG_CONTRADICTION &&
		       fact->code <= SCHED_CODE_GANG_EXPIRED;
	if (!is_ours)
		return false;
	if (fact->code == SCHED_CODE_GANG_CONTRADICTION) {
		contradiction_text(pod, fact, arena, reason);
		return true;
	}
	reason->need = pods_text(arena, fact->need);
	reason->have = pods_text(arena, fact->have);
	if (fact->code == SCHED_CODE_GANG_INCOMPLETE && fact->detail != 0)
		reason->need = STR("gpuaas.io/gang-min, or a Job or PodGroup that says how many");
	if (fact->code == SCHED_CODE_GANG_DOES_NOT_FIT && fact->detail != 0 && gang != NULL)
		reason->need =
			str_of(arena_printf(arena, STR_FMT " with one " STR_FMT,
					    STR_ARG(reason->need), STR_ARG(gang_topology(gang))));
	return true;
}

// By what their members of one shape are told.
void gang_count_codes(const struct sched *sched, size_t counts[SCHED_CODES])
{
	const struct link *parked = &sched->gangs->parked;
	for (const struct link *at = parked->next; at != parked; at = at->next) {
		const struct gang *gang = LINK_OF((uintptr_t)at, struct gang, in_parked);
		for (struct tree_node *k = tree_first(&gang->waiting); k != NULL;
		     k = tree_next(k)) {
			struct sched_facts facts;
			if (!gang_told(POD_OF(k, in_shape), &facts))
				continue;
			for (size_t i = 0; i < facts.count; i++)
				counts[facts.items[i].code]++;
		}
	}
}
