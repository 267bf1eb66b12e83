// SPDX-License-Identifier: Apache-2.0
#include "sched/trial.h"

#include "sched/claim_book.h"
#include "sched/gang.h"
#include "sched/hold.h"
#include "sched/move.h"
#include "sched/queueing.h"
#include "sched/stock.h"

#include <stdlib.h>

enum { MATES_MAX = 512 }; // of one gang

// ---- off the ledger and back

static void take_off(struct trial *trial, struct candidate *item)
{
	struct sched *sched = trial->sched;
	struct node *node = item->pod->node;
	ASSERT(!item->is_off && node != NULL);
	pod_add_amounts(sched, item->pod, -1);
	claim_idle_lift_of(sched, item->pod);
	stock_use(sched, item->pod, -1);
	hold_lift(item->pod);
	link_drop(&item->pod->on_node);
	item->was_apart = link_is_in(&item->pod->in_apart);
	if (item->was_apart)
		link_drop(&item->pod->in_apart);
	item->devices = 0;
	for (size_t i = 0; i < node->device_count; i++) {
		if (node->devices[i].holder != item->pod)
			continue;
		item->devices |= UINT64_C(1) << i;
		node->devices[i].holder = NULL;
	}
	item->is_off = true;
	trial->is_moved = true;
}

static void put_back(struct trial *trial, struct candidate *item)
{
	struct sched *sched = trial->sched;
	struct node *node = item->pod->node;
	ASSERT(item->is_off);
	claim_idle_lower_of(sched, item->pod);
	pod_add_amounts(sched, item->pod, 1);
	stock_use(sched, item->pod, 1);
	hold_lower(item->pod);
	link_add(&node->pods, &item->pod->on_node);
	if (item->was_apart)
		link_add(&sched->apart, &item->pod->in_apart);
	for (size_t i = 0; i < node->device_count; i++) {
		if ((item->devices >> i & 1) != 0)
			node->devices[i].holder = item->pod;
	}
	item->is_off = false;
}

void trial_lift(struct trial *trial, size_t i)
{
	struct candidate *item = &trial->items.items[i];
	take_off(trial, item);
	for (size_t k = 0; k < item->mate_count; k++)
		take_off(trial, &trial->mates.items[item->mates_from + k]);
}

void trial_lower(struct trial *trial, size_t i)
{
	struct candidate *item = &trial->items.items[i];
	put_back(trial, item);
	for (size_t k = 0; k < item->mate_count; k++)
		put_back(trial, &trial->mates.items[item->mates_from + k]);
}

void trial_lift_leaving(struct trial *trial)
{
	for (size_t i = 0; i < trial->leaving.count; i++)
		take_off(trial, &trial->leaving.items[i]);
	for (size_t i = 0; i < trial->node_count; i++)
		claim_idle_lift(trial->sched, trial->nodes[i].node);
}

// ---- its life

void trial_begin(struct trial *trial, struct sched *sched, const struct pod *claimant,
		 int64_t claim_parts)
{
	*trial = (struct trial){ .sched = sched,
				 .claimant = claimant,
				 .claim_parts = claim_parts,
				 .was_trying = sched->gangs->is_trying,
				 .wakes_all = sched->wakes_all,
				 .wakes_volumes = sched->wakes_volumes,
				 .are_heads_stale = sched->are_heads_stale,
				 .apart_gen = sched->apart_gen };
	trial->no = ++sched->preempt->trial_no;
	sched->gangs->is_trying = true;
}

static void restore_order(struct trial *trial, const struct trial_node *at)
{
	link_head_init(&at->node->pods); // as they came
	for (size_t i = at->all_from; i < at->all_from + at->all_count; i++) {
		trial->all[i]->on_node = (struct link){ NULL, NULL };
		link_add(&at->node->pods, &trial->all[i]->on_node);
	}
}

void trial_clear(struct trial *trial)
{
	claim_idle_lower_all(trial->sched);
	for (size_t i = 0; i < trial->leaving.count; i++) {
		if (trial->leaving.items[i].is_off)
			put_back(trial, &trial->leaving.items[i]);
	}
	for (size_t i = 0; i < trial->items.count; i++) {
		if (trial->items.items[i].is_off)
			trial_lower(trial, i);
	}
	for (size_t i = 0; trial->is_moved && i < trial->node_count; i++)
		restore_order(trial, &trial->nodes[i]);
	trial->leaving.count = trial->items.count = trial->mates.count = 0;
	trial->all_count = trial->node_count = 0;
	trial->is_moved = false;
	trial->no = ++trial->sched->preempt->trial_no;
}

void trial_end(struct trial *trial)
{
	struct sched *sched = trial->sched;
	trial_clear(trial);
	sched->gangs->is_trying = trial->was_trying;
	sched->wakes_all = trial->wakes_all;
	sched->wakes_volumes = trial->wakes_volumes;
	sched->are_heads_stale = trial->are_heads_stale;
	sched->apart_gen = trial->apart_gen;
	free(trial->leaving.items);
	free(trial->items.items);
	free(trial->mates.items);
	free(trial->all);
	free(trial->nodes);
}

// ---- who is there

static struct candidate *add(struct trial *trial, struct candidates *list, struct pod *pod)
{
	if (list->count == list->cap) {
		size_t cap = max_size(32, 2 * list->cap);
		list->items = core_grow(list->items, list->cap, cap, sizeof *list->items);
		list->cap = cap;
	}
	int64_t weight = max_i64(queueing_held_gpus(pod), 1);
	struct candidate *item = &list->items[list->count++];
	shape_ready_dims(trial->sched, pod->shape);
	*item = (struct candidate){
		.pod = pod,
		.priority = pod->key.priority,
		.lost = weight * victims_lost_ms(trial->sched, pod),
		.held = weight * max_i64(trial->sched->now_ms - pod->bound_ms, 0),
	};
	return item;
}

// Below its minimum a gang goes as a whole. False: some of it must stay, or it stands in the list
// already by another of it. The item is the last one.
static bool add_mates(struct trial *trial)
{
	struct candidate *item = &trial->items.items[trial->items.count - 1];
	struct gang *gang = gang_of(item->pod);
	struct link *head = gang == NULL ? NULL : &gang->members;
	size_t before = trial->mates.count;
	if (gang == NULL || gang_spare(gang) > 0)
		return true;
	bool may_go = gang->asking.trial_no != trial->no;
	for (struct link *at = head->next; may_go && at != head; at = at->next) {
		struct pod *pod = LINK_OF(at, struct member, in_gang)->pod;
		if (pod == item->pod || pod->node == NULL || victims_is_leaving(trial->sched, pod))
			continue;
		may_go = trial->mates.count < before + MATES_MAX &&
			 victims_may_take(trial->sched, pod, trial->claimant);
		if (!may_go)
			break;
		const struct candidate *mate = add(trial, &trial->mates, pod);
		item->lost += mate->lost;
		item->held += mate->held;
		item->priority = max_i64(item->priority, mate->priority);
	}
	item->mates_from = before;
	item->mate_count = trial->mates.count - before;
	if (may_go)
		gang->asking.trial_no = trial->no;
	else
		trial->mates.count = before;
	return may_go;
}

static struct trial_node *add_node(struct trial *trial, struct node *node)
{
	if (trial->node_count == trial->node_cap) {
		size_t cap = max_size(8, 2 * trial->node_cap);
		trial->nodes = core_grow(trial->nodes, trial->node_cap, cap, sizeof *trial->nodes);
		trial->node_cap = cap;
	}
	struct trial_node *at = &trial->nodes[trial->node_count++];
	*at = (struct trial_node){ .node = node,
				   .all_from = trial->all_count,
				   .items_from = trial->items.count };
	return at;
}

static void note_order(struct trial *trial, struct trial_node *at)
{
	const struct link *head = &at->node->pods;
	for (const struct link *k = head->next; k != head; k = k->next) {
		if (trial->all_count == trial->all_cap) {
			size_t cap = max_size(64, 2 * trial->all_cap);
			trial->all =
				core_grow(trial->all, trial->all_cap, cap, sizeof(struct pod *));
			trial->all_cap = cap;
		}
		trial->all[trial->all_count++] = LINK_OF((uintptr_t)k, struct pod, on_node);
	}
	at->all_count = trial->all_count - at->all_from;
}

static bool may_take(const struct trial *trial, const struct pod *pod)
{
	return trial->is_move ? move_may_take(trial->sched, pod, trial->claimant)
			      : victims_may_take(trial->sched, pod, trial->claimant);
}

void trial_add(struct trial *trial, struct node *node, bool with_items)
{
	struct trial_node *at = add_node(trial, node);
	note_order(trial, at);
	for (size_t i = at->all_from; i < at->all_from + at->all_count; i++) {
		struct pod *pod = trial->all[i];
		if (victims_is_leaving(trial->sched, pod)) {
			(void)add(trial, &trial->leaving, pod);
		} else if (with_items && may_take(trial, pod)) {
			(void)add(trial, &trial->items, pod);
			if (!add_mates(trial))
				trial->items.count--;
		}
	}
	at->items_count = trial->items.count - at->items_from;
}

// ---- who may go beside cheaper ones

static int compare_dear(const void *a, const void *b) // the dearest first
{
	const struct candidate *x = a, *y = b;
	if (x->priority != y->priority)
		return x->priority > y->priority ? -1 : 1;
	if (x->lost != y->lost)
		return x->lost > y->lost ? -1 : 1;
	if (x->held != y->held)
		return x->held > y->held ? -1 : 1;
	return tree_key_cmp(&x->pod->key, &y->pod->key);
}

static struct pod *pod_of(const struct trial *trial, const struct candidate *item, size_t k)
{
	return k == 0 ? item->pod : trial->mates.items[item->mates_from + k - 1].pod;
}

static bool is_foreign(const struct trial *trial, const struct pod *pod)
{
	return pod->queue != trial->claimant->queue &&
	       queues_are_used(trial->sched->queueing->queues);
}

// What is decided already and has not come true: rooms kept for its own queue, and who leaves them.
static void note_kept(const struct trial *trial, struct queue_claim *claim)
{
	const struct link *keeps = &trial->sched->preempt->keeps;
	for (const struct link *at = keeps->next; at != keeps; at = at->next) {
		const struct pod *kept = LINK_OF((uintptr_t)at, struct keep, in_keeps)->pod;
		if (kept->queue == claim->claimant)
			claim->parts += queueing_need_parts(kept);
	}
	for (const struct link *at = keeps->next; at != keeps; at = at->next) {
		const struct pod *kept = LINK_OF((uintptr_t)at, struct keep, in_keeps)->pod;
		const struct node *node =
			map_find(trial->sched->node_by_name, kept->wait->nominated);
		const struct link *head = node == NULL ? NULL : &node->pods;
		for (const struct link *k = head == NULL ? NULL : head->next; k != head;
		     k = k->next) {
			const struct pod *pod = LINK_OF((uintptr_t)k, struct pod, on_node);
			// What was right when it was decided may be so no longer.
			const struct queue_loss loss = queueing_loss(pod);
			bool is_noted = pod->fate != NULL && queue_claim_take(claim, &loss);
			(void)is_noted;
		}
	}
}

// Of an elastic gang as many as it can spare; one that has none goes as a whole.
static bool has_spare(const struct trial *trial, const struct candidate *item)
{
	struct gang *gang = gang_of(item->pod);
	int64_t spare = gang == NULL ? 0 : gang_spare(gang);
	if (spare == 0)
		return true;
	if (gang->asking.trial_no != trial->no)
		gang->asking.trial_taken = 0;
	gang->asking.trial_no = trial->no;
	return gang->asking.trial_taken < spare;
}

static struct budget *budget_of(const struct trial *trial, const struct candidate *item, size_t k)
{
	size_t count;
	return budget_find(trial->sched, pod_of(trial, item, k), &count);
}

static void give_budgets(const struct trial *trial, const struct candidate *item, size_t count)
{
	for (size_t k = 0; k < count; k++) {
		struct budget *budget = budget_of(trial, item, k);
		if (budget != NULL)
			budget->trial_taken--;
	}
}

// Of those that one budget counts, as many as it allows; all that go with the item, or none.
static bool take_budgets(const struct trial *trial, const struct candidate *item)
{
	for (size_t k = 0; k <= item->mate_count; k++) {
		struct budget *budget = budget_of(trial, item, k);
		if (budget == NULL)
			continue;
		if (budget->trial_no != trial->no)
			budget->trial_taken = 0;
		budget->trial_no = trial->no;
		if (budget->trial_taken >= budget->left) {
			give_budgets(trial, item, k);
			return false;
		}
		budget->trial_taken++;
	}
	return true;
}

// Of other queues as far as these have to give back.
static bool take_claim(const struct trial *trial, const struct candidate *item,
		       struct queue_claim *claim)
{
	struct queue_loss loss = queueing_loss(item->pod);
	if (!is_foreign(trial, item->pod))
		return true;
	for (size_t k = 1; k <= item->mate_count; k++) {
		struct queue_loss more = queueing_loss(pod_of(trial, item, k));
		loss.parts += more.parts;
		loss.any |= more.any;
		loss.all &= more.all;
	}
	return queue_claim_take(claim, &loss);
}

void trial_settle(struct trial *trial)
{
	struct candidates *items = &trial->items;
	struct queues *queues = trial->sched->queueing->queues;
	struct queue_claim claim = { .queues = queues };
	if (items->count == 0)
		return;
	if (items->count > 1)
		qsort(items->items, items->count, sizeof items->items[0], compare_dear);
	if (queues_are_used(queues)) {
		claim = queue_claim_begin(queues, trial->claimant->queue, trial->claim_parts);
		note_kept(trial, &claim);
	}
	size_t kept = items->count;
	for (size_t i = items->count; i > 0; i--) { // the cheapest first
		const struct candidate *item = &items->items[i - 1];
		if (!has_spare(trial, item) || !take_budgets(trial, item))
			continue;
		// Who goes on elsewhere gives nothing back.
		if (!trial->is_move && !take_claim(trial, item, &claim)) {
			give_budgets(trial, item, item->mate_count + 1);
			continue;
		}
		if (gang_of(item->pod) != NULL)
			gang_of(item->pod)->asking.trial_taken++;
		items->items[--kept] = *item;
	}
	items->count -= kept;
	if (kept > 0)
		memmove(items->items, items->items + kept, items->count * sizeof items->items[0]);
}

// ---- what it comes to

static int64_t held_by(const struct candidates *list, uint32_t dim)
{
	int64_t sum = 0;
	for (size_t i = 0; i < list->count; i++) {
		const struct shape *shape = list->items[i].pod->shape;
		for (size_t k = 0; k < shape->spec->amount_count; k++) {
			if (shape->dims[k] == dim)
				sum += shape->spec->amounts[k].amount;
		}
	}
	return sum;
}

bool trial_frees(const struct trial *trial)
{
	size_t idle = 0;
	for (size_t i = 0; i < trial->node_count; i++)
		idle += claim_idle_count(trial->sched, trial->nodes[i].node);
	return trial->leaving.count + trial->items.count + idle > 0;
}

int64_t trial_held(const struct trial *trial, uint32_t dim)
{
	return held_by(&trial->leaving, dim) + held_by(&trial->items, dim);
}

bool trial_take(const struct trial *trial, struct choice *ret)
{
	ret->count = 0;
	ret->priority = INT64_MIN;
	ret->lost = ret->held = 0;
	for (size_t i = 0; i < trial->items.count; i++) {
		const struct candidate *item = &trial->items.items[i];
		if (!item->is_off)
			continue;
		ret->lost += item->lost;
		ret->held += item->held;
		ret->priority = max_i64(ret->priority, item->priority);
		if (ret->count + item->mate_count >= SCHED_VICTIMS_MAX)
			return false;
		for (size_t k = 0; k <= item->mate_count; k++)
			ret->pods[ret->count++] = pod_of(trial, item, k);
	}
	for (size_t i = 0; ret->count == 0 && i < trial->leaving.count; i++)
		ret->lost = max_i64(ret->lost, trial->leaving.items[i].pod->end_ms);
	return true;
}
