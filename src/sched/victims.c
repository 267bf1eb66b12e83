// SPDX-License-Identifier: Apache-2.0
// The cheapest victims for one pod. On each node those that leave anyway are taken off the ledger,
// then all that may be asked to leave; if the pod fits, they are put back one by one, the dearest
// first, as long as it still fits. What remains is minimal: none of it can stay. Nodes are compared
// by the highest priority among the victims, the work that is lost, their number, and what they
// have had in all.
#include "sched/claim_book.h"
#include "sched/gang.h"
#include "sched/queueing.h"
#include "sched/trial.h"

enum { CANDIDATES_MAX = 256 };
#define LOOKS_MAX INT64_C(4000000) // at pods, in one search

struct search { // of one pod, over all nodes
	struct trial trial;
	struct pod *pod;
	struct node *node;
	int64_t looks_left;
};

bool victims_is_leaving(const struct sched *sched, const struct pod *pod)
{
	bool is_asked = pod->is_terminating || pod->fate != NULL;
	int64_t grace_ms = 1000 * (pod->stay.grace_s == 0 ? SCHED_GRACE_S : pod->stay.grace_s);
	return is_asked && sched->now_ms <= pod->leaving_ms + grace_ms + LEAVE_LATE_MS;
}

bool victims_is_settled(const struct pod *pod)
{
	return pod->state == SCHED_STATE_BOUND && pod->is_ours && !pod->is_terminating &&
	       pod->fate == NULL;
}

int64_t victims_lost_ms(const struct sched *sched, const struct pod *pod)
{
	int64_t safe_ms = min_i64(pod->stay.checkpoint_ms, sched->now_ms);
	return max_i64(sched->now_ms - max_i64(pod->bound_ms, safe_ms), 0);
}

// Of another queue, which may have to give back what is not its own, whatever the priorities.
static bool is_foreign(const struct sched *sched, const struct pod *pod, const struct pod *claimant)
{
	return pod->queue != claimant->queue && queues_are_used(sched->queueing->queues);
}

static bool is_within_reach(const struct sched *sched, const struct pod *pod,
			    const struct pod *claimant)
{
	bool is_lower = pod->key.priority < claimant->key.priority;
	return victims_is_settled(pod) && (is_lower || is_foreign(sched, pod, claimant));
}

static int64_t ripe_ms(const struct sched *sched, const struct pod *pod)
{
	return max_i64(pod->bound_ms + sched->preempt->rules.min_run_ms, pod->spared_ms);
}

bool victims_may_take(const struct sched *sched, const struct pod *pod, const struct pod *claimant)
{
	size_t budget_count = 0;
	const struct queue_loss loss = queueing_loss(pod);
	if (!is_within_reach(sched, pod, claimant) || ripe_ms(sched, pod) > sched->now_ms)
		return false;
	if (is_foreign(sched, pod, claimant) &&
	    !queue_may_reclaim(sched->queueing->queues, claimant->queue,
			       queueing_need_parts(claimant), &loss))
		return false;
	const struct budget *budget = budget_find(sched, pod, &budget_count);
	return budget_count == 0 || (budget_count == 1 && budget->left > 0);
}

int64_t victims_ripe_ms(const struct sched *sched, const struct pod *claimant)
{
	int64_t first_ms = INT64_MAX;
	for (uint32_t slot = 0; slot < sched->slot_count; slot++) {
		const struct node *node = sched->nodes[slot];
		const struct link *head = node == NULL ? NULL : &node->pods;
		for (const struct link *at = head == NULL ? NULL : head->next; at != head;
		     at = at->next) {
			const struct pod *pod = LINK_OF((uintptr_t)at, struct pod, on_node);
			int64_t at_ms = ripe_ms(sched, pod);
			if (is_within_reach(sched, pod, claimant) && at_ms > sched->now_ms)
				first_ms = min_i64(first_ms, at_ms);
		}
	}
	return first_ms;
}

// ---- the question

static bool fits(struct search *search)
{
	struct sched *sched = search->trial.sched;
	struct shape *shape = search->pod->shape;
	if (!filter_amounts(sched, shape, search->node->slot) || search->looks_left < 0)
		return false;
	struct affinity *affinity = affinity_new(sched, search->pod);
	struct check check = {
		.sched = sched, .pod = search->pod, .shape = shape, .affinity = affinity
	};
	bool fits = filter_fits(&check, search->node);
	bool is_dear = affinity_is_dear(affinity);
	affinity_free(affinity);
	search->looks_left -= 1 + (is_dear ? (int64_t)map_count(sched->pod_by_uid) : 0);
	return fits;
}

// Whether even the cheapest of its pods alone costs more than what was found elsewhere.
static bool is_dearer(const struct trial *trial, const struct choice *best)
{
	int64_t priority = INT64_MAX, lost = INT64_MAX;
	if (best->node == NULL)
		return false;
	for (size_t i = 0; i < trial->items.count; i++) {
		priority = min_i64(priority, trial->items.items[i].priority);
		lost = min_i64(lost, trial->items.items[i].lost);
	}
	return best->count == 0 || priority > best->priority ||
	       (priority == best->priority && lost > best->lost);
}

// best: of other nodes.
static void collect(struct search *search, struct node *node, const struct choice *best)
{
	struct trial *trial = &search->trial;
	search->node = node;
	trial_clear(trial);
	trial_add(trial, node, true);
	if (is_dearer(trial, best)) {
		trial->items.count = 0;
		return;
	}
	trial_settle(trial);
	size_t beyond = trial->items.count - min_size(trial->items.count, CANDIDATES_MAX);
	trial->items.count -= beyond;
	if (beyond > 0)
		memmove(trial->items.items, trial->items.items + beyond,
			trial->items.count * sizeof trial->items.items[0]);
}

// By amounts alone, so that most nodes cost no trial.
static bool could_fit(const struct search *search)
{
	const struct shape *shape = search->pod->shape;
	uint32_t slot = search->node->slot;
	for (size_t i = 0; i < shape->spec->amount_count; i++) {
		uint32_t dim = shape->dims[i];
		int64_t need = shape->spec->amounts[i].amount;
		if (need <= 0)
			continue;
		if (dim == DIM_NONE)
			return false;
		const struct column *column = &search->trial.sched->columns[dim];
		int64_t have = column->alloc[slot] - column->used[slot];
		if (have < need)
			have += trial_held(&search->trial, dim);
		if (have < need)
			return false;
	}
	return true;
}

static bool find(struct search *search, struct choice *ret)
{
	struct trial *trial = &search->trial;
	trial_lift_leaving(trial);
	bool is_free = fits(search), is_found = is_free;
	if (!is_found && trial->items.count > 0) {
		for (size_t i = 0; i < trial->items.count; i++)
			trial_lift(trial, i);
		trial->sched->preempt->trying = search->pod;
		is_found = fits(search);
		for (size_t i = 0; is_found && i < trial->items.count; i++) {
			trial_lower(trial, i);
			if (!fits(search))
				trial_lift(trial, i);
		}
		// Who was not tried any more may be one too many.
		is_found = is_found && search->looks_left >= 0;
	}
	trial->sched->preempt->trying = NULL;
	ret->node = search->node;
	is_found = is_found && trial_take(trial, ret);
	// Who makes no room has no right to what is kept for another.
	return is_found && (is_free || ret->count > 0);
}

static bool is_better(const struct choice *a, const struct choice *b)
{
	if (b->node == NULL || (a->count == 0) != (b->count == 0))
		return b->node == NULL || a->count == 0;
	if (a->priority != b->priority)
		return a->priority < b->priority;
	if (a->lost != b->lost)
		return a->lost < b->lost;
	if (a->count != b->count)
		return a->count < b->count;
	if (a->held != b->held)
		return a->held < b->held;
	return str_cmp(a->node->name, b->node->name) < 0;
}

void victims_choose(struct sched *sched, struct pod *pod, struct choice *ret)
{
	struct search search = { .pod = pod, .looks_left = LOOKS_MAX };
	struct choice choice;
	ASSERT(pod->state == SCHED_STATE_WAITING);
	ret->node = NULL;
	shape_ready(sched, pod->shape);
	trial_begin(&search.trial, sched, pod, queueing_need_parts(pod));
	for (uint32_t slot = 0; slot < sched->slot_count; slot++) {
		struct node *node = sched->nodes[slot];
		bool is_empty = node == NULL ||
				(link_is_empty(&node->pods) && claim_idle_count(sched, node) == 0);
		if (is_empty || !shape_is_static_fit(pod->shape, slot))
			continue;
		collect(&search, node, ret);
		if (trial_frees(&search.trial) && could_fit(&search) && find(&search, &choice) &&
		    is_better(&choice, ret))
			*ret = choice;
	}
	trial_end(&search.trial);
}

bool victims_will_fit(struct sched *sched, struct pod *pod, struct node *node)
{
	struct search search = { .pod = pod, .node = node, .looks_left = LOOKS_MAX };
	shape_ready(sched, pod->shape);
	if (!shape_is_static_fit(pod->shape, node->slot))
		return false;
	trial_begin(&search.trial, sched, pod, 0);
	trial_add(&search.trial, node, false);
	trial_lift_leaving(&search.trial);
	bool will_fit = fits(&search);
	trial_end(&search.trial);
	return will_fit;
}
