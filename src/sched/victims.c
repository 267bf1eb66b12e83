// SPDX-License-Identifier: Apache-2.0
// The cheapest victims for one pod. On each node those that leave anyway are taken off the ledger,
// then all that may be asked to leave; if the pod fits, they are put back one by one, the dearest
// first, as long as it still fits. What remains is minimal: none of it can stay. Nodes are compared
// by the highest priority among the victims, the work that is lost, their number, and what they
// have had in all.
#include "sched/victims.h"

#include "sched/gang.h"
#include "sched/hold.h"
#include "sched/queueing.h"
#include "sched/stock.h"

#include <stdlib.h>

enum { CANDIDATES_MAX = 256, MATES_MAX = 512 };
#define LOOKS_MAX INT64_C(4000000) // at pods, in one search

struct candidate {
	struct pod *pod;
	struct budget *budget;
	int64_t lost, held;
	uint64_t devices; // that it held
	bool is_off, was_apart;
	size_t mates_from, mate_count; // the rest of its gang, which must go with it
};

struct trial { // of one pod on one node
	struct sched *sched;
	struct pod *pod;
	struct node *node;
	struct candidate leaving[CANDIDATES_MAX], items[CANDIDATES_MAX];
	struct candidate mates[MATES_MAX];
	size_t leaving_count, count, mate_count;
	struct pod **all; // of the node, in order
	size_t all_count, all_cap;
	int64_t looks_left;
};

bool victims_is_leaving(const struct sched *sched, const struct pod *pod)
{
	bool is_asked = pod->is_terminating || pod->fate != NULL;
	int64_t grace_ms = 1000 * (pod->stay.grace_s == 0 ? SCHED_GRACE_S : pod->stay.grace_s);
	return is_asked && sched->now_ms <= pod->leaving_ms + grace_ms + LEAVE_LATE_MS;
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
	return pod->state == SCHED_STATE_BOUND && pod->is_ours && !pod->is_terminating &&
	       pod->fate == NULL && (is_lower || is_foreign(sched, pod, claimant));
}

static int64_t ripe_ms(const struct sched *sched, const struct pod *pod)
{
	return max_i64(pod->bound_ms + sched->preempt->rules.min_run_ms, pod->spared_ms);
}

bool victims_may_take(const struct sched *sched, const struct pod *pod, const struct pod *claimant)
{
	size_t budget_count = 0;
	if (!is_within_reach(sched, pod, claimant) || ripe_ms(sched, pod) > sched->now_ms)
		return false;
	if (is_foreign(sched, pod, claimant) &&
	    !queue_may_reclaim(sched->queueing->queues, claimant->queue, claimant->shape->gpu_milli,
			       pod->queue, pod->shape->gpu_milli))
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

// ---- off the ledger and back

static void take_one_off(struct trial *trial, struct candidate *item)
{
	struct sched *sched = trial->sched;
	struct node *node = item->pod->node;
	ASSERT(!item->is_off && node != NULL);
	pod_add_amounts(sched, item->pod, -1);
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
}

static void put_one_back(struct trial *trial, struct candidate *item)
{
	struct sched *sched = trial->sched;
	struct node *node = item->pod->node;
	ASSERT(item->is_off);
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

static void take_off(struct trial *trial, struct candidate *item)
{
	take_one_off(trial, item);
	for (size_t i = 0; i < item->mate_count; i++)
		take_one_off(trial, &trial->mates[item->mates_from + i]);
}

static void put_back(struct trial *trial, struct candidate *item)
{
	put_one_back(trial, item);
	for (size_t i = 0; i < item->mate_count; i++)
		put_one_back(trial, &trial->mates[item->mates_from + i]);
}

static void put_all_back(struct trial *trial)
{
	for (size_t i = 0; i < trial->leaving_count; i++) {
		if (trial->leaving[i].is_off)
			put_back(trial, &trial->leaving[i]);
	}
	for (size_t i = 0; i < trial->count; i++) {
		if (trial->items[i].is_off)
			put_back(trial, &trial->items[i]);
	}
	link_head_init(&trial->node->pods); // in the order in which they came
	for (size_t i = 0; i < trial->all_count; i++) {
		trial->all[i]->on_node = (struct link){ NULL, NULL };
		link_add(&trial->node->pods, &trial->all[i]->on_node);
	}
}

// ---- the question

static bool fits(struct trial *trial)
{
	struct sched *sched = trial->sched;
	struct shape *shape = trial->pod->shape;
	if (!filter_amounts(sched, shape, trial->node->slot) || trial->looks_left < 0)
		return false;
	struct affinity *affinity = affinity_new(sched, trial->pod);
	struct check check = {
		.sched = sched, .pod = trial->pod, .shape = shape, .affinity = affinity
	};
	bool fits = filter_fits(&check, trial->node);
	bool is_dear = affinity != NULL;
	affinity_free(affinity);
	trial->looks_left -= 1 + (is_dear ? (int64_t)map_count(sched->pod_by_uid) : 0);
	return fits;
}

static struct candidate candidate_of(const struct trial *trial, struct pod *pod)
{
	int64_t weight = max_i64(pod->shape->spec->gpu_count, 1);
	return (struct candidate){
		.pod = pod,
		.lost = weight * victims_lost_ms(trial->sched, pod),
		.held = weight * max_i64(trial->sched->now_ms - pod->bound_ms, 0),
	};
}

static int compare_dear(const void *a, const void *b) // the dearest first
{
	const struct candidate *x = a, *y = b;
	if (x->pod->key.priority != y->pod->key.priority)
		return x->pod->key.priority > y->pod->key.priority ? -1 : 1;
	if (x->lost != y->lost)
		return x->lost > y->lost ? -1 : 1;
	if (x->held != y->held)
		return x->held > y->held ? -1 : 1;
	return tree_key_cmp(&x->pod->key, &y->pod->key);
}

// ---- gangs: below their minimum they go as a whole

static bool has_gang(const struct trial *trial, const struct gang *gang)
{
	for (size_t i = 0; i < trial->count; i++) {
		if (gang_of(trial->items[i].pod) == gang)
			return true;
	}
	return false;
}

// False: some of its gang must stay, or it stands in the list already by another of it.
static bool add_mates(struct trial *trial, struct candidate *item)
{
	struct gang *gang = gang_of(item->pod);
	struct link *head = gang == NULL ? NULL : &gang->members;
	size_t guarded = item->budget != NULL, count = trial->mate_count, budget_count;
	if (gang == NULL || gang_spare(gang) > 0)
		return true;
	if (has_gang(trial, gang))
		return false;
	for (struct link *at = head->next; at != head; at = at->next) {
		struct pod *pod = LINK_OF(at, struct member, in_gang)->pod;
		if (pod == item->pod || pod->node == NULL || victims_is_leaving(trial->sched, pod))
			continue;
		if (count == MATES_MAX || !victims_may_take(trial->sched, pod, trial->pod))
			return false;
		shape_ready_dims(trial->sched, pod->shape);
		struct candidate *mate = &trial->mates[count++];
		*mate = candidate_of(trial, pod);
		item->lost += mate->lost;
		item->held += mate->held;
		guarded += budget_find(trial->sched, pod, &budget_count) != NULL;
	}
	if (item->budget != NULL && item->budget->left < (int64_t)guarded)
		return false;
	item->mates_from = trial->mate_count;
	item->mate_count = count - trial->mate_count;
	trial->mate_count = count;
	return true;
}

// Of an elastic gang, the cheapest as far as it can spare them.
static void keep_spare(struct trial *trial)
{
	size_t kept = 0;
	for (size_t i = 0; i < trial->count; i++) {
		const struct gang *gang = gang_of(trial->items[i].pod);
		int64_t cheaper = 0;
		for (size_t k = i + 1; gang != NULL && k < trial->count; k++)
			cheaper += gang_of(trial->items[k].pod) == gang;
		if (gang == NULL || gang_spare(gang) == 0 || cheaper < gang_spare(gang))
			trial->items[kept++] = trial->items[i];
	}
	trial->count = kept;
}

// What is decided already and has not come true: rooms kept for its own queue, and who leaves them.
static void note_kept(const struct trial *trial, struct queue_claim *claim)
{
	const struct link *keeps = &trial->sched->preempt->keeps;
	for (const struct link *at = keeps->next; at != keeps; at = at->next) {
		const struct pod *kept = LINK_OF((uintptr_t)at, struct keep, in_keeps)->pod;
		if (kept->queue == claim->claimant)
			claim->milli += kept->shape->gpu_milli;
	}
	for (const struct link *at = keeps->next; at != keeps; at = at->next) {
		const struct pod *kept = LINK_OF((uintptr_t)at, struct keep, in_keeps)->pod;
		const struct node *node = map_find(trial->sched->node_by_name, kept->nominated);
		const struct link *head = node == NULL ? NULL : &node->pods;
		for (const struct link *k = head == NULL ? NULL : head->next; k != head;
		     k = k->next) {
			const struct pod *pod = LINK_OF((uintptr_t)k, struct pod, on_node);
			// What was right when it was decided may be so no longer.
			bool is_noted = pod->fate != NULL &&
					queue_claim_take(claim, pod->queue, pod->shape->gpu_milli);
			(void)is_noted;
		}
	}
}

// Of other queues, the cheapest as far as these have to give back.
static void keep_claimed(struct trial *trial)
{
	struct sched *sched = trial->sched;
	size_t kept = trial->count;
	if (!queues_are_used(sched->queueing->queues))
		return;
	struct queue_claim claim = queue_claim_begin(sched->queueing->queues, trial->pod->queue,
						     trial->pod->shape->gpu_milli);
	note_kept(trial, &claim);
	for (size_t i = trial->count; i > 0; i--) {
		const struct candidate *item = &trial->items[i - 1];
		int64_t milli = item->pod->shape->gpu_milli;
		for (size_t k = 0; k < item->mate_count; k++)
			milli += trial->mates[item->mates_from + k].pod->shape->gpu_milli;
		if (!is_foreign(sched, item->pod, trial->pod) ||
		    queue_claim_take(&claim, item->pod->queue, milli))
			trial->items[--kept] = *item;
	}
	trial->count -= kept;
	memmove(trial->items, trial->items + kept, trial->count * sizeof trial->items[0]);
}

// Of those that one budget counts, the cheapest as far as it allows.
static void keep_budgets(struct trial *trial)
{
	size_t kept = 0;
	for (size_t i = 0; i < trial->count; i++) {
		int64_t cheaper = 0;
		for (size_t k = i + 1; k < trial->count; k++)
			cheaper += trial->items[k].budget == trial->items[i].budget;
		const struct budget *budget = trial->items[i].budget;
		if (budget == NULL || cheaper < budget->left)
			trial->items[kept++] = trial->items[i];
	}
	trial->count = kept;
}

// Whether even the cheapest of its pods alone costs more than what was found elsewhere.
static bool is_dearer(const struct trial *trial, const struct choice *best)
{
	int64_t priority = INT64_MAX, lost = INT64_MAX;
	for (size_t i = 0; i < trial->count; i++) {
		priority = min_i64(priority, trial->items[i].pod->key.priority);
		lost = min_i64(lost, trial->items[i].lost);
	}
	if (best == NULL || best->node == NULL)
		return false;
	return best->count == 0 || priority > best->priority ||
	       (priority == best->priority && lost > best->lost);
}

// best: of other nodes; NULL: none is compared with.
static void collect(struct trial *trial, struct node *node, const struct choice *best)
{
	trial->node = node;
	trial->leaving_count = trial->count = trial->all_count = trial->mate_count = 0;
	for (struct link *at = node->pods.next; at != &node->pods; at = at->next) {
		struct pod *pod = LINK_OF(at, struct pod, on_node);
		if (trial->all_count == trial->all_cap) {
			size_t cap = max_size(64, 2 * trial->all_cap);
			trial->all = core_grow(trial->all, trial->all_cap, cap, sizeof(pod));
			trial->all_cap = cap;
		}
		trial->all[trial->all_count++] = pod;
		shape_ready_dims(trial->sched, pod->shape);
		if (victims_is_leaving(trial->sched, pod)) {
			if (trial->leaving_count < CANDIDATES_MAX)
				trial->leaving[trial->leaving_count++] = candidate_of(trial, pod);
		} else if (trial->count < CANDIDATES_MAX &&
			   victims_may_take(trial->sched, pod, trial->pod)) {
			size_t budget_count;
			struct candidate *item = &trial->items[trial->count];
			*item = candidate_of(trial, pod);
			item->budget = budget_find(trial->sched, pod, &budget_count);
			trial->count += add_mates(trial, item);
		}
	}
	if (is_dearer(trial, best)) {
		trial->count = 0;
		return;
	}
	if (trial->count > 1)
		qsort(trial->items, trial->count, sizeof trial->items[0], compare_dear);
	keep_budgets(trial);
	keep_spare(trial);
	keep_claimed(trial);
	size_t beyond = trial->count - min_size(trial->count, SCHED_VICTIMS_MAX);
	trial->count -= beyond;
	memmove(trial->items, trial->items + beyond, trial->count * sizeof trial->items[0]);
}

static int64_t held_by(const struct candidate *items, size_t count, uint32_t dim)
{
	int64_t sum = 0;
	for (size_t i = 0; i < count; i++) {
		const struct shape *shape = items[i].pod->shape;
		for (size_t k = 0; k < shape->spec->amount_count; k++) {
			if (shape->dims[k] == dim)
				sum += shape->spec->amounts[k].amount;
		}
	}
	return sum;
}

// By amounts alone, so that most nodes cost no trial.
static bool could_fit(struct trial *trial)
{
	const struct shape *shape = trial->pod->shape;
	uint32_t slot = trial->node->slot;
	for (size_t i = 0; i < shape->spec->amount_count; i++) {
		uint32_t dim = shape->dims[i];
		int64_t need = shape->spec->amounts[i].amount;
		if (need <= 0)
			continue;
		if (dim == DIM_NONE)
			return false;
		const struct column *column = &trial->sched->columns[dim];
		int64_t have = column->alloc[slot] - column->used[slot];
		if (have < need)
			have += held_by(trial->leaving, trial->leaving_count, dim) +
				held_by(trial->items, trial->count, dim);
		if (have < need)
			return false;
	}
	return true;
}

static bool take(struct trial *trial, struct choice *ret) // false: they are too many
{
	*ret = (struct choice){ .node = trial->node, .priority = INT64_MIN };
	for (size_t i = 0; i < trial->count; i++) {
		const struct candidate *item = &trial->items[i];
		if (!item->is_off)
			continue;
		ret->lost += item->lost;
		ret->held += item->held;
		for (size_t k = 0; k <= item->mate_count; k++) {
			struct pod *pod = k == 0 ? item->pod
						 : trial->mates[item->mates_from + k - 1].pod;
			ret->priority = max_i64(ret->priority, pod->key.priority);
			if (ret->count == SCHED_VICTIMS_MAX)
				return false;
			ret->pods[ret->count++] = pod;
		}
	}
	for (size_t i = 0; ret->count == 0 && i < trial->leaving_count; i++)
		ret->lost = max_i64(ret->lost, trial->leaving[i].pod->end_ms);
	return true;
}

static bool search(struct trial *trial, struct choice *ret)
{
	bool is_found = false;
	for (size_t i = 0; i < trial->leaving_count; i++)
		take_off(trial, &trial->leaving[i]);
	bool is_free = fits(trial);
	is_found = is_free;
	if (!is_found && trial->count > 0) {
		for (size_t i = 0; i < trial->count; i++)
			take_off(trial, &trial->items[i]);
		trial->sched->preempt->trying = trial->pod;
		is_found = fits(trial);
		for (size_t i = 0; is_found && i < trial->count; i++) {
			put_back(trial, &trial->items[i]);
			if (!fits(trial))
				take_off(trial, &trial->items[i]);
		}
		// Who was not tried any more may be one too many.
		is_found = is_found && trial->looks_left >= 0;
	}
	trial->sched->preempt->trying = NULL;
	is_found = is_found && take(trial, ret);
	put_all_back(trial);
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

static struct trial *trial_new(struct sched *sched, struct pod *pod)
{
	struct trial *trial = core_alloc(1, sizeof *trial);
	trial->sched = sched;
	trial->pod = pod;
	trial->looks_left = LOOKS_MAX;
	shape_ready(sched, pod->shape);
	return trial;
}

static void trial_free(struct trial *trial)
{
	free(trial->all);
	free(trial);
}

// What is put back is as it was: a question wakes nobody.
void victims_choose(struct sched *sched, struct pod *pod, struct choice *ret)
{
	struct trial *trial = trial_new(sched, pod);
	struct choice choice;
	bool wakes_volumes = sched->wakes_volumes;
	ASSERT(pod->state == SCHED_STATE_WAITING);
	ret->node = NULL;
	for (uint32_t slot = 0; slot < sched->slot_count; slot++) {
		struct node *node = sched->nodes[slot];
		if (node == NULL || link_is_empty(&node->pods) ||
		    !shape_is_static_fit(pod->shape, slot))
			continue;
		collect(trial, node, ret);
		if (trial->leaving_count + trial->count > 0 && could_fit(trial) &&
		    search(trial, &choice) && is_better(&choice, ret))
			*ret = choice;
	}
	sched->wakes_volumes = wakes_volumes;
	trial_free(trial);
}

bool victims_will_fit(struct sched *sched, struct pod *pod, struct node *node)
{
	struct trial *trial = trial_new(sched, pod);
	bool wakes_volumes = sched->wakes_volumes, will_fit = false;
	if (shape_is_static_fit(pod->shape, node->slot)) {
		collect(trial, node, NULL);
		trial->count = 0;
		struct choice choice;
		will_fit = search(trial, &choice);
	}
	sched->wakes_volumes = wakes_volumes;
	trial_free(trial);
	return will_fit;
}
