// SPDX-License-Identifier: Apache-2.0
// The cheapest victims for a whole gang. Those that leave anyway are taken off the ledger
// everywhere, then all that may be asked to leave; if the gang can be placed, they are put back,
// the dearest first, as long as it still can: what remains is minimal, and no other set spares
// more of the dearest. Several are put back at once as long as that goes well. In a large cluster
// the nodes where room is cheapest are tried first.
#include "sched/gang_preempt.h"

#include "sched/queueing.h"
#include "sched/trial.h"

#include <stdlib.h>

enum { ITEMS_FEW = 512, HOLDS_FRESH_MS = 1000, SPARE_NODES = 4, WIDER = 4 };
#define LOOKS_MAX (INT64_C(1) << 26) // at nodes, in one search

struct kind { // equal members that wait
	struct shape *shape;
	int64_t count;
};
struct search { // for one gang
	struct trial trial;
	struct gang *gang;
	struct gang_aim aim;
	struct kind kinds[GANG_CLASSES_MAX];
	size_t kind_count;
	int64_t looks_left;
	struct gang_choice *found; // as of the last time that it fit
};

static struct pod *first_of(const struct gang *gang)
{
	return POD_OF(tree_first(&gang->waiting), in_shape);
}

// Who asks for all: victims stand below each of them. NULL: one of them may not ask.
static struct pod *lowest_of(const struct gang *gang)
{
	struct pod *lowest = first_of(gang);
	for (struct tree_node *at = tree_first(&gang->waiting); at != NULL; at = tree_next(at)) {
		struct pod *pod = POD_OF(at, in_shape);
		if (pod->stay.never_preempts)
			return NULL;
		if (pod->key.priority < lowest->key.priority)
			lowest = pod;
	}
	return lowest;
}

// As few as must start; of sub-groups it may take others than the first.
static struct gang_aim aim_of(const struct gang *gang, int64_t need)
{
	bool has_groups = false;
	for (struct tree_node *at = tree_first(&gang->waiting); at != NULL; at = tree_next(at))
		has_groups = has_groups || POD_OF(at, in_shape)->member->terms.group_min > 0;
	return (struct gang_aim){ .need = (size_t)need,
				  .most = has_groups ? tree_count(&gang->waiting) : (size_t)need,
				  .is_long = true,
				  .is_trial = true };
}

static void list_kinds(struct search *search)
{
	struct gang *gang = search->gang;
	for (struct tree_node *at = tree_first(&gang->waiting); at != NULL; at = tree_next(at)) {
		struct shape *shape = POD_OF(at, in_shape)->shape;
		size_t i = 0;
		while (i < search->kind_count && search->kinds[i].shape != shape)
			i++;
		if (i == GANG_CLASSES_MAX)
			continue;
		if (i == search->kind_count) {
			shape_ready(search->trial.sched, shape);
			search->kinds[search->kind_count++] = (struct kind){ shape, 0 };
		}
		search->kinds[i].count++;
	}
}

// ---- the question

static bool fits(struct search *search)
{
	struct sched *sched = search->trial.sched;
	struct gang_choice *found = search->found;
	struct gang_plan plan;
	if (search->looks_left < 0)
		return false;
	bool is_placed = gang_place(sched, search->gang, &search->aim, &plan);
	search->looks_left -= 1 + (int64_t)plan.looks;
	if (!is_placed)
		return false;
	ASSERT(plan.count <= search->aim.most);
	found->count = plan.count;
	for (size_t i = 0; i < plan.count; i++) {
		found->pods[i] = plan.pods[i];
		found->nodes[i] = plan.pods[i]->node;
	}
	gang_unplace(sched, &plan);
	return true;
}

// As many at once as it goes well.
static void spare(struct search *search)
{
	struct trial *trial = &search->trial;
	size_t i = 0, step = 1;
	while (i < trial->items.count) {
		size_t count = min_size(step, trial->items.count - i);
		for (size_t k = 0; k < count; k++)
			trial_lower(trial, i + k);
		if (fits(search)) {
			i += count;
			step = 2 * count;
			continue;
		}
		for (size_t k = 0; k < count; k++)
			trial_lift(trial, i + k);
		i += count == 1;
		step = max_size(count / 2, 1);
	}
}

static bool find(struct search *search)
{
	struct trial *trial = &search->trial;
	struct preempt *preempt = trial->sched->preempt;
	struct choice *victims = &search->found->victims;
	trial_lift_leaving(trial);
	bool is_free = fits(search), is_found = is_free;
	if (!is_found && trial->items.count > 0) {
		for (size_t i = 0; i < trial->items.count; i++)
			trial_lift(trial, i);
		preempt->trying = trial->claimant;
		is_found = fits(search);
		if (is_found)
			spare(search);
		preempt->trying = NULL;
		is_found = is_found && search->looks_left >= 0;
	}
	is_found = is_found && trial_take(trial, victims);
	return is_found && (is_free || victims->count > 0);
}

// ---- which nodes

static bool suits(const struct search *search, uint32_t slot)
{
	const struct node *node = search->trial.sched->nodes[slot];
	for (size_t i = 0; node != NULL && i < search->kind_count; i++) {
		if (shape_is_static_fit(search->kinds[i].shape, slot))
			return !link_is_empty(&node->pods);
	}
	return false;
}

struct rank { // of a node, by what room there costs
	uint32_t slot;
	int64_t priority, lost; // of the cheapest that make as much room as can be made
	int64_t gain;           // members more
};

static int compare_ranks(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;
	if (x->priority != y->priority)
		return x->priority < y->priority ? -1 : 1;
	__int128 left = (__int128)x->lost * y->gain, right = (__int128)y->lost * x->gain;
	if (left != right)
		return left < right ? -1 : 1;
	return x->slot < y->slot ? -1 : 1;
}

static int compare_cheap(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	if (x->priority != y->priority)
		return x->priority < y->priority ? -1 : 1;
	if (x->lost != y->lost)
		return x->lost < y->lost ? -1 : 1;
	return tree_key_cmp(&x->pod->key, &y->pod->key);
}

static void add_room(int64_t *room, const struct pod *pod)
{
	const struct sched_spec *spec = pod->shape->spec;
	room[DIM_PODS]++;
	for (size_t i = 0; i < spec->amount_count; i++) {
		if (pod->shape->dims[i] != DIM_NONE)
			room[pod->shape->dims[i]] += spec->amounts[i].amount;
	}
}

// Members that a node has room for by amounts, each kind by itself.
static int64_t members_in(const struct search *search, uint32_t slot, const int64_t *room)
{
	int64_t sum = 0;
	for (size_t i = 0; i < search->kind_count; i++) {
		const struct shape *shape = search->kinds[i].shape;
		int64_t count = min_i64(search->kinds[i].count, max_i64(room[DIM_PODS], 0));
		if (!shape_is_static_fit(shape, slot))
			continue;
		for (size_t k = 0; k < shape->spec->amount_count; k++) {
			int64_t need = shape->spec->amounts[k].amount;
			int64_t have = shape->dims[k] == DIM_NONE ? 0 : room[shape->dims[k]];
			if (need > 0)
				count = min_i64(count, max_i64(have, 0) / need);
		}
		sum += count;
	}
	return sum;
}

static struct rank rank_of(struct search *search, const struct trial_node *at)
{
	struct trial *trial = &search->trial;
	const struct sched *sched = trial->sched;
	struct candidate *items = trial->items.items + at->items_from;
	uint32_t slot = at->node->slot;
	int64_t room[SCHED_RESOURCES_MAX];
	for (uint32_t dim = 0; dim < sched->column_count; dim++)
		room[dim] = sched->columns[dim].alloc[slot] - sched->columns[dim].used[slot];
	for (size_t i = 0; i < at->all_count; i++) {
		if (victims_is_leaving(sched, trial->all[at->all_from + i]))
			add_room(room, trial->all[at->all_from + i]);
	}
	int64_t before = members_in(search, slot, room), most = before;
	struct rank rank = { .slot = slot, .priority = INT64_MIN }, best = rank;
	if (at->items_count > 1)
		qsort(items, at->items_count, sizeof *items, compare_cheap);
	for (size_t i = 0; i < at->items_count; i++) {
		add_room(room, items[i].pod);
		rank.priority = max_i64(rank.priority, items[i].priority);
		rank.lost += items[i].lost;
		rank.gain = members_in(search, slot, room) - before;
		if (rank.gain > most - before) {
			most = rank.gain + before;
			best = rank;
		}
	}
	return best;
}

// Nodes on which somebody may be asked to leave, by the cost; returns how many.
static size_t list_ranks(struct search *search, struct rank *ranks)
{
	struct trial *trial = &search->trial;
	size_t count = 0;
	for (size_t i = 0; i < trial->node_count; i++) {
		struct rank rank = rank_of(search, &trial->nodes[i]);
		if (rank.gain > 0)
			ranks[count++] = rank;
	}
	if (count > 1)
		qsort(ranks, count, sizeof *ranks, compare_ranks);
	return count;
}

// All that leave anyway, and of the others those on nodes whose bit is set; NULL: on all.
static void gather(struct search *search, const bool *is_chosen)
{
	struct trial *trial = &search->trial;
	trial_clear(trial);
	for (uint32_t slot = 0; slot < trial->sched->slot_count; slot++) {
		if (suits(search, slot))
			trial_add(trial, trial->sched->nodes[slot],
				  is_chosen == NULL || is_chosen[slot]);
	}
}

// Where room is cheapest first, then on more nodes.
static bool find_among(struct search *search, int64_t need)
{
	struct sched *sched = search->trial.sched;
	struct rank *ranks = core_alloc(search->trial.node_count, sizeof *ranks);
	bool *is_chosen = core_alloc(sched->slot_count, sizeof *is_chosen), is_found = false;
	size_t count = list_ranks(search, ranks), chosen = 0;
	int64_t gain = 0, wanted = need + need / 2 + SPARE_NODES;
	while (!is_found && chosen < count && search->looks_left >= 0) {
		for (; chosen < count && gain < wanted; chosen++) {
			is_chosen[ranks[chosen].slot] = true;
			gain += ranks[chosen].gain;
		}
		gather(search, is_chosen);
		trial_settle(&search->trial);
		is_found = find(search);
		wanted *= WIDER;
	}
	free(ranks);
	free(is_chosen);
	return is_found;
}

bool gang_preempt_choose(struct sched *sched, struct gang *gang, struct gang_choice *ret_choice)
{
	int64_t need = gang_needed(gang);
	const struct pod *lowest = lowest_of(gang);
	*ret_choice = (struct gang_choice){ .count = 0 };
	if (need == 0 || lowest == NULL || gang_running(gang) >= gang_min(gang))
		return false; // what is beyond the minimum takes from nobody
	struct search search = { .gang = gang,
				 .aim = aim_of(gang, need),
				 .looks_left = LOOKS_MAX,
				 .found = ret_choice };
	ret_choice->pods = core_alloc(search.aim.most, sizeof(struct pod *));
	ret_choice->nodes = core_alloc(search.aim.most, sizeof(struct node *));
	trial_begin(&search.trial, sched, lowest, gang_parts(gang, need));
	list_kinds(&search);
	gather(&search, NULL);
	bool is_found = false;
	if (search.trial.items.count > ITEMS_FEW) {
		is_found = find_among(&search, need);
	} else {
		trial_settle(&search.trial);
		is_found = find(&search);
	}
	trial_end(&search.trial);
	if (!is_found)
		gang_preempt_free(ret_choice);
	return is_found;
}

void gang_preempt_free(struct gang_choice *choice)
{
	free(choice->pods);
	free(choice->nodes);
	choice->pods = NULL;
	choice->nodes = NULL;
	choice->count = 0;
}

// ---- whether it comes true

static struct node *kept_node(const struct sched *sched, const struct pod *pod)
{
	return pod->wait->keep == NULL ? NULL : map_find(sched->node_by_name, pod->wait->nominated);
}

static bool is_changed(const struct sched *sched, const struct gang *gang)
{
	const struct gang_asking *asking = &gang->asking;
	if (asking->checked_gen != sched->preempt->gen ||
	    sched->now_ms >= asking->checked_ms + HOLDS_FRESH_MS)
		return true;
	for (struct tree_node *at = tree_first(&gang->waiting); at != NULL; at = tree_next(at)) {
		const struct node *node = kept_node(sched, POD_OF(at, in_shape));
		if (node != NULL && sched->load_gens[node->slot] > asking->seen_gen)
			return true;
	}
	return false;
}

static bool has_node(const struct trial *trial, const struct node *node)
{
	for (size_t i = 0; i < trial->node_count; i++) {
		if (trial->nodes[i].node == node)
			return true;
	}
	return false;
}

static bool will_do(struct sched *sched, struct gang *gang, int64_t need)
{
	const struct gang_aim aim = aim_of(gang, need);
	struct trial trial;
	struct gang_plan plan;
	trial_begin(&trial, sched, first_of(gang), 0);
	for (struct tree_node *at = tree_first(&gang->waiting); at != NULL; at = tree_next(at)) {
		struct node *node = kept_node(sched, POD_OF(at, in_shape));
		if (node != NULL && !has_node(&trial, node))
			trial_add(&trial, node, false);
	}
	trial_lift_leaving(&trial);
	bool fits = gang_place(sched, gang, &aim, &plan);
	if (fits)
		gang_unplace(sched, &plan);
	trial_end(&trial);
	return fits;
}

bool gang_preempt_holds(struct sched *sched, struct gang *gang)
{
	struct gang_asking *asking = &gang->asking;
	int64_t need = gang_needed(gang);
	if (need == 0 || (int64_t)asking->kept_count < need)
		return false;
	if (is_changed(sched, gang)) {
		asking->will_do = will_do(sched, gang, need);
		asking->checked_gen = sched->preempt->gen;
		asking->seen_gen = sched->load_gen;
		asking->checked_ms = sched->now_ms;
	}
	return asking->will_do;
}
