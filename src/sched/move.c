// SPDX-License-Identifier: Apache-2.0
// The search for moves. On each node that suits, sets of pods that may be moved are taken off the
// ledger, the cheapest first, until the pod fits; then every way to put those on other nodes is
// tried, the usual choice first. Of all nodes and sets the one that loses the least work, then the
// one of the fewest pods. All of it is bounded by looks.
#include "sched/move.h"

#include "sched/claim_book.h"
#include "sched/pool.h"
#include "sched/queueing.h"
#include "sched/stock.h"
#include "sched/trial.h"

#include <stdlib.h>

#define LOOKS_MAX INT64_C(200000)
enum { LOOKS_PER_NODE_SHIFT = 6 }; // a walk over so many nodes costs as much as one full look

struct search { // for one pod, over all nodes
	struct trial trial;
	struct pod *pod;
	struct node *node;
	size_t set[MOVES_MAX], count, most; // items that are off, at most so many
	int64_t lost, lost_max;             // of the set; what may be lost
	int64_t looks_left;
	struct move_choice *best;
};

bool move_is_on(const struct sched *sched)
{
	const struct sched_preempt_rules *rules = &sched->preempt->rules;
	return rules->mode != SCHED_PREEMPT_OFF && rules->move.count_max > 0;
}

static int64_t weight_of(const struct pod *pod) { return max_i64(pod->shape->spec->gpu_count, 1); }

static int64_t ripe_ms(const struct sched *sched, const struct pod *pod)
{
	return max_i64(pod->bound_ms + sched->preempt->rules.move.min_run_ms, pod->spared_ms);
}

// What it gives back for a moment others of its queue would take.
static bool is_waited_for(const struct pod *pod)
{
	for (const struct queue *at = pod->queue; at != NULL; at = at->parent) {
		if (!link_is_empty(&at->blocked))
			return true;
	}
	return false;
}

// It comes back by itself and goes on from its last checkpoint, wherever that is.
static bool is_movable(const struct pod *pod, const struct pod *claimant)
{
	const struct sched_spec *spec = pod->shape->spec;
	bool is_plain = pod->member == NULL && spec->share_count == 0 && !spec_has_volumes(spec);
	return is_plain && pod->stay.owner != 0 && pod->stay.checkpoint_ms > pod->bound_ms &&
	       victims_is_settled(pod) && pod->key.priority <= claimant->key.priority;
}

bool move_may_take(const struct sched *sched, const struct pod *pod, const struct pod *claimant)
{
	size_t budget_count = 0;
	int64_t lost_max = sched->preempt->rules.move.lost_max_ms;
	if (!is_movable(pod, claimant) || ripe_ms(sched, pod) > sched->now_ms ||
	    weight_of(pod) * victims_lost_ms(sched, pod) > lost_max || is_waited_for(pod))
		return false;
	const struct budget *budget = budget_find(sched, pod, &budget_count);
	return budget_count == 0 || (budget_count == 1 && budget->left > 0);
}

// ---- pace

static bool is_of_pool(const struct move_note *note, struct str pool)
{
	return str_eq(str_of(note->pool),
		      (struct str){ pool.data, min_size(pool.len, MOVE_POOL_MAX_BYTES - 1) });
}

static int64_t pool_due_ms(const struct sched *sched, struct str pool, int64_t *ret_left)
{
	const struct moves *moves = sched->preempt->moves;
	const struct sched_move_rules *rules = &sched->preempt->rules.move;
	int64_t first_ms = INT64_MAX;
	*ret_left = rules->count_max;
	for (size_t i = 0; i < moves->note_count; i++) {
		int64_t free_ms = moves->notes[i].at_ms + rules->period_ms;
		if (free_ms <= sched->now_ms || !is_of_pool(&moves->notes[i], pool))
			continue;
		first_ms = min_i64(first_ms, free_ms);
		--*ret_left;
	}
	*ret_left = min_i64(*ret_left, MOVE_NOTES_MAX - (int64_t)moves->note_count);
	return *ret_left > 0 ? INT64_MAX : first_ms;
}

static void drop_old_notes(struct sched *sched)
{
	struct moves *moves = sched->preempt->moves;
	size_t kept = 0;
	for (size_t i = 0; i < moves->note_count; i++) {
		if (moves->notes[i].at_ms + sched->preempt->rules.move.period_ms > sched->now_ms)
			moves->notes[kept++] = moves->notes[i];
	}
	moves->note_count = kept;
}

void move_note(struct sched *sched, const struct move_choice *choice)
{
	struct moves *moves = sched->preempt->moves;
	struct str pool = pool_of_node(choice->node);
	ASSERT(moves->note_count + choice->count <= MOVE_NOTES_MAX);
	for (size_t i = 0; i < choice->count; i++) {
		struct move_note *note = &moves->notes[moves->note_count++];
		*note = (struct move_note){ .at_ms = sched->now_ms };
		memcpy(note->pool, pool.data, min_size(pool.len, MOVE_POOL_MAX_BYTES - 1));
	}
}

int64_t move_ripe_ms(const struct sched *sched, const struct pod *claimant)
{
	int64_t first_ms = INT64_MAX, left = 0;
	for (uint32_t slot = 0; move_is_on(sched) && slot < sched->slot_count; slot++) {
		const struct node *node = sched->nodes[slot];
		const struct link *head = node == NULL ? NULL : &node->pods;
		if (node != NULL)
			first_ms = min_i64(first_ms, pool_due_ms(sched, pool_of_node(node), &left));
		for (const struct link *at = head == NULL ? NULL : head->next; at != head;
		     at = at->next) {
			const struct pod *pod = LINK_OF((uintptr_t)at, struct pod, on_node);
			int64_t at_ms = ripe_ms(sched, pod);
			if (at_ms > sched->now_ms && is_movable(pod, claimant))
				first_ms = min_i64(first_ms, at_ms);
		}
	}
	return first_ms;
}

// ---- the question

static bool fits_on(struct search *search, const struct pod *pod, struct node *node)
{
	struct sched *sched = search->trial.sched;
	if (!filter_amounts(sched, pod->shape, node->slot) || search->looks_left < 0)
		return false;
	struct affinity *affinity = affinity_new(sched, pod);
	struct check check = {
		.sched = sched, .pod = pod, .shape = pod->shape, .affinity = affinity
	};
	bool fits = filter_fits(&check, node) && reserve_allows(sched, pod, node);
	search->looks_left -= 1 + (affinity != NULL ? (int64_t)map_count(sched->pod_by_uid) : 0);
	affinity_free(affinity);
	return fits;
}

static struct node *best_for(struct search *search, const struct pod *pod)
{
	struct sched *sched = search->trial.sched;
	struct affinity *affinity = affinity_new(sched, pod);
	struct check check = {
		.sched = sched, .pod = pod, .shape = pod->shape, .affinity = affinity
	};
	struct node *node = place_best(&check);
	search->looks_left -= 1 + (sched->slot_count >> LOOKS_PER_NODE_SHIFT) +
			      (affinity != NULL ? (int64_t)map_count(sched->pod_by_uid) : 0);
	affinity_free(affinity);
	return node;
}

static void put(struct sched *sched, struct pod *pod, struct node *node)
{
	struct why why = pod->why; // of the node where it runs
	pod->node = NULL;
	pod_put_on(sched, pod, node);
	pod->why = why;
	(void)place_devices(sched, pod, node);
	(void)volumes_assume(sched, pod);
	(void)claim_fit_assume(sched, pod);
}

// ---- where those that are moved go on

struct mover {
	struct pod *pod;
	struct node *from;
	uint32_t tried; // 0: not even the usual choice; else the slot after the last one
};

static int compare_cheap(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	if (x->lost != y->lost)
		return x->lost < y->lost ? -1 : 1;
	return tree_key_cmp(&x->pod->key, &y->pod->key);
}

static int compare_large(const void *a, const void *b)
{
	const struct mover *x = a, *y = b;
	int64_t gpus = x->pod->shape->spec->gpu_count, others = y->pod->shape->spec->gpu_count;
	if (gpus != others)
		return gpus > others ? -1 : 1;
	return tree_key_cmp(&x->pod->key, &y->pod->key);
}

static struct node *next_home(struct search *search, struct mover *mover)
{
	struct sched *sched = search->trial.sched;
	if (queueing_is_blocked(mover->pod))
		return NULL;
	if (mover->tried == 0) {
		struct node *node = best_for(search, mover->pod);
		mover->tried = node == NULL ? sched->slot_count + 1 : 1;
		if (node != NULL && node != search->node)
			return node;
	}
	while (mover->tried <= sched->slot_count) {
		uint32_t slot = mover->tried++ - 1;
		struct node *node = sched->nodes[slot];
		if (node != NULL && node != search->node &&
		    shape_is_static_fit(mover->pod->shape, slot) &&
		    fits_on(search, mover->pod, node))
			return node;
	}
	return NULL;
}

// All of them beside the pod that gets the node; their homes are noted.
static bool find_homes(struct search *search, struct mover *movers, struct node **ret_homes)
{
	struct sched *sched = search->trial.sched;
	size_t k = 0;
	while (k < search->count) {
		struct node *node = search->looks_left < 0 ? NULL : next_home(search, &movers[k]);
		if (node != NULL) {
			put(sched, movers[k++].pod, node);
			if (k < search->count)
				movers[k].tried = 0;
		} else if (k > 0) {
			pod_take_off(sched, movers[--k].pod);
			movers[k].pod->node = movers[k].from;
		} else {
			return false;
		}
	}
	while (k > 0) {
		k--;
		ret_homes[k] = movers[k].pod->node;
		pod_take_off(sched, movers[k].pod);
		movers[k].pod->node = movers[k].from;
	}
	return true;
}

static bool is_better(const struct search *search, int64_t lost, size_t count)
{
	const struct move_choice *best = search->best;
	return best->node == NULL || lost < best->lost ||
	       (lost == best->lost && count < best->count);
}

// The set suffices; whether it will do.
static void consider(struct search *search)
{
	struct sched *sched = search->trial.sched;
	struct mover movers[MOVES_MAX];
	struct node *homes[MOVES_MAX];
	for (size_t i = 0; i < search->count; i++) {
		struct pod *pod = search->trial.items.items[search->set[i]].pod;
		shape_ready(sched, pod->shape);
		movers[i] = (struct mover){ .pod = pod, .from = pod->node };
	}
	if (search->count > 1)
		qsort(movers, search->count, sizeof movers[0], compare_large);
	put(sched, search->pod, search->node);
	bool is_found = find_homes(search, movers, homes);
	pod_take_off(sched, search->pod);
	if (!is_found)
		return;
	*search->best = (struct move_choice){ .node = search->node,
					      .count = search->count,
					      .lost = search->lost };
	for (size_t i = 0; i < search->count; i++) {
		search->best->pods[i] = movers[i].pod;
		search->best->homes[i] = homes[i];
	}
}

// ---- which of them

static bool may_add(const struct search *search, size_t i)
{
	int64_t lost = search->lost + search->trial.items.items[i].lost;
	return search->count < search->most && lost <= search->lost_max &&
	       is_better(search, lost, search->count + 1);
}

static void add(struct search *search, size_t i)
{
	trial_lift(&search->trial, i);
	search->set[search->count++] = i;
	search->lost += search->trial.items.items[i].lost;
}

static size_t take_back(struct search *search)
{
	size_t i = search->set[--search->count];
	search->lost -= search->trial.items.items[i].lost;
	trial_lower(&search->trial, i);
	return i;
}

// Every set of which nobody could stay.
static void try_sets(struct search *search)
{
	const size_t item_count = search->trial.items.count;
	size_t next = 0;
	ASSERT(search->count == 0 && search->lost == 0);
	while (search->looks_left >= 0) {
		while (next < item_count && !may_add(search, next))
			next++;
		if (next < item_count) {
			add(search, next++);
			if (!fits_on(search, search->pod, search->node))
				continue;
			consider(search);
		} else if (search->count == 0) {
			break;
		}
		next = take_back(search) + 1;
	}
	while (search->count > 0)
		(void)take_back(search);
}

static void try_node(struct search *search, struct node *node)
{
	struct trial *trial = &search->trial;
	int64_t left = 0;
	(void)pool_due_ms(trial->sched, pool_of_node(node), &left);
	search->node = node;
	search->most = (size_t)min_i64(max_i64(left, 0), MOVES_MAX);
	if (search->most == 0)
		return;
	trial_clear(trial);
	trial_add(trial, node, true);
	trial_settle(trial);
	if (trial->items.count == 0)
		return;
	if (trial->items.count > 1)
		qsort(trial->items.items, trial->items.count, sizeof trial->items.items[0],
		      compare_cheap);
	trial_lift_leaving(trial);
	if (fits_on(search, search->pod, node)) // nobody has to move
		return;
	trial->sched->preempt->trying = search->pod;
	for (size_t i = 0; i < trial->items.count; i++)
		trial_lift(trial, i);
	bool could_fit = fits_on(search, search->pod, node);
	for (size_t i = 0; i < trial->items.count; i++)
		trial_lower(trial, i);
	if (could_fit)
		try_sets(search);
	trial->sched->preempt->trying = NULL;
}

// What it is worth: so much GPU-time is used that else would not be, as far as that is known.
static int64_t gain_of(const struct sched *sched, const struct pod *pod)
{
	const struct head *head = pod->wait->head;
	int64_t grace_ms = INT64_C(1000) * SCHED_GRACE_S;
	bool is_known = head != NULL && head->node != NULL && head->start_ms != SCHED_NEVER_MS;
	return is_known ? weight_of(pod) * (head->start_ms - sched->now_ms - grace_ms) : INT64_MAX;
}

void move_choose(struct sched *sched, struct pod *pod, struct move_choice *ret)
{
	int64_t lost_max = sched->preempt->rules.move.lost_max_ms;
	struct search search = { .pod = pod, .looks_left = LOOKS_MAX, .best = ret };
	ret->node = NULL;
	if (!move_is_on(sched) || pod->member != NULL || pod->shape->gpu_milli == 0)
		return;
	search.lost_max = min_i64(lost_max, gain_of(sched, pod) - 1);
	drop_old_notes(sched);
	shape_ready(sched, pod->shape);
	trial_begin(&search.trial, sched, pod, 0);
	search.trial.is_move = true;
	for (uint32_t slot = 0; slot < sched->slot_count && search.lost_max >= 0; slot++) {
		struct node *node = sched->nodes[slot];
		if (node != NULL && !link_is_empty(&node->pods) &&
		    shape_is_static_fit(pod->shape, slot) && search.looks_left >= 0)
			try_node(&search, node);
	}
	trial_end(&search.trial);
}
