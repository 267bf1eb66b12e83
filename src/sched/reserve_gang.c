// SPDX-License-Identifier: Apache-2.0
// Nodes kept for a gang that does not fit: as many as its members need, from the instant at which
// all of them have room by the expected ends of the pods there. What others may use until then
// follows reserve.c. It is found anew at most once a second, for it looks at every pod.
#include "sched/gang.h"
#include "sched/reserve.h"
#include "sched/window_book.h"

#include <stdlib.h>

enum { KINDS_MAX = GANG_CLASSES_MAX, DIMS_MAX = 32, SETTLE_MS = 1000 };
#define ALL_GONE_MS INT64_MAX

struct need { // of equal members
	struct shape *shape;
	int64_t count;
};
struct aim { // what is to be found room for
	struct sched *sched;
	struct head *head;
	size_t head_no;
	struct need needs[KINDS_MAX];
	size_t need_count;
	uint32_t dims[DIMS_MAX]; // that members ask of
	size_t dim_count;
	struct str domain_key, domain_value;
	struct spot { // a node for some of them
		struct node *node;
		int64_t room, free; // members there then, and now
		bool is_held;
	} * spots;
	size_t spot_count;
};

// ---- what a node will have

static int64_t left_of(const struct sched *sched, uint32_t dim, const struct node *node)
{
	const struct column *column = &sched->columns[dim];
	return column->alloc[node->slot] - column->used[node->slot];
}

static void room_at(const struct aim *aim, const struct node *node, int64_t at_ms,
		    int64_t room[DIMS_MAX])
{
	const struct sched *sched = aim->sched;
	for (size_t i = 0; i < aim->dim_count; i++)
		room[i] = left_of(sched, aim->dims[i], node);
	const struct link *head = &node->pods;
	for (const struct link *at = head->next; at != head; at = at->next) {
		const struct pod *pod = LINK_OF((uintptr_t)at, struct pod, on_node);
		if (at_ms == INT64_MIN ||
		    (at_ms != ALL_GONE_MS && reserve_end_ms(pod, sched->now_ms) > at_ms))
			continue;
		shape_ready_dims(aim->sched, pod->shape);
		for (size_t i = 0; i < aim->dim_count; i++)
			room[i] += aim->dims[i] == DIM_PODS ? 1
							    : reserve_amount_of(pod, aim->dims[i]);
	}
}

static int64_t need_of(const struct shape *shape, uint32_t dim)
{
	if (dim == DIM_PODS)
		return 1;
	for (size_t i = 0; i < shape->spec->amount_count; i++) {
		if (shape->dims[i] == dim)
			return max_i64(shape->spec->amounts[i].amount, 0);
	}
	return 0;
}

// How many of them may be there from then on, by what windows keep for others.
static int64_t count_open(const struct aim *aim, const struct need *need, const struct node *node,
			  int64_t at_ms)
{
	int64_t count = need->count, one = need->shape->spec->gpu_count;
	if (node->windows == NULL || at_ms == ALL_GONE_MS)
		return count;
	const struct tree_node *first = tree_first(&aim->head->gang->waiting);
	const struct pod *pod = POD_OF((uintptr_t)first, in_shape);
	while (count > 0 && window_open_ms(aim->sched, pod, count * one, node, at_ms) != at_ms)
		count--;
	return count;
}

// How many equal members fit into the room, which they then have taken.
static int64_t take_room(const struct aim *aim, const struct need *need, const struct node *node,
			 int64_t at_ms, int64_t room[DIMS_MAX])
{
	if (!reserve_could_hold(aim->sched, need->shape, node->slot))
		return 0;
	int64_t count = count_open(aim, need, node, at_ms);
	for (size_t i = 0; i < aim->dim_count; i++) {
		int64_t one = need_of(need->shape, aim->dims[i]);
		if (one > 0)
			count = min_i64(count, max_i64(room[i], 0) / one);
	}
	for (size_t i = 0; i < aim->dim_count; i++)
		room[i] -= count * need_of(need->shape, aim->dims[i]);
	return count;
}

static int64_t count_room(const struct aim *aim, const struct node *node, int64_t at_ms)
{
	int64_t room[DIMS_MAX], sum = 0;
	room_at(aim, node, at_ms, room);
	for (size_t i = 0; i < aim->need_count; i++)
		sum += take_room(aim, &aim->needs[i], node, at_ms, room);
	return sum;
}

// ---- which nodes

static bool is_open(const struct aim *aim, uint32_t slot)
{
	const struct node *node = aim->sched->nodes[slot];
	const struct check check = { .domain_key = aim->domain_key,
				     .domain_value = aim->domain_value };
	if (node == NULL || !node->is_known || !gang_in_domain(&check, node))
		return false;
	for (size_t i = 0; i < aim->head_no; i++) {
		if (node->reserved == aim->sched->heads[i])
			return false;
	}
	return true;
}

// Those it has already, then few large ones, then those that stand idle for it the shortest.
static int compare_spots(const void *a, const void *b)
{
	const struct spot *x = a, *y = b;
	if (x->is_held != y->is_held)
		return x->is_held ? -1 : 1;
	if (x->room != y->room)
		return x->room > y->room ? -1 : 1;
	if (x->free != y->free)
		return x->free < y->free ? -1 : 1;
	return x->node->slot < y->node->slot ? -1 : 1;
}

static void list_spots(struct aim *aim, int64_t at_ms)
{
	aim->spot_count = 0;
	for (uint32_t slot = 0; slot < aim->sched->slot_count; slot++) {
		struct node *node = aim->sched->nodes[slot];
		int64_t room = is_open(aim, slot) ? count_room(aim, node, at_ms) : 0;
		if (room > 0)
			aim->spots[aim->spot_count++] =
				(struct spot){ .node = node,
					       .room = room,
					       .free = count_room(aim, node, INT64_MIN),
					       .is_held = node->reserved == aim->head };
	}
	if (aim->spot_count > 1)
		qsort(aim->spots, aim->spot_count, sizeof aim->spots[0], compare_spots);
}

static void add_claims(const struct aim *aim, const int64_t before[DIMS_MAX],
		       const int64_t after[DIMS_MAX], struct spare *spare)
{
	spare->claims = core_alloc(aim->dim_count, sizeof *spare->claims);
	for (size_t i = 0; i < aim->dim_count; i++)
		spare->claims[spare->claim_count++] =
			(struct spare_claim){ aim->dims[i], before[i] - after[i] };
}

// Puts all members on the spots in order; false: some are left over. With out the nodes are noted.
static bool fill_spots(const struct aim *aim, int64_t at_ms, struct head *out)
{
	struct aim rest = *aim; // needs are counted down
	int64_t left = 0;
	for (size_t i = 0; i < rest.need_count; i++)
		left += rest.needs[i].count;
	for (size_t i = 0; i < aim->spot_count && left > 0; i++) {
		int64_t room[DIMS_MAX], before[DIMS_MAX], here = 0;
		room_at(aim, aim->spots[i].node, at_ms, room);
		memcpy(before, room, sizeof before);
		for (size_t k = 0; k < rest.need_count; k++) {
			int64_t taken =
				take_room(aim, &rest.needs[k], aim->spots[i].node, at_ms, room);
			rest.needs[k].count -= taken;
			here += taken;
		}
		left -= here;
		if (here == 0 || out == NULL)
			continue;
		struct spare *spare = &out->spares[out->spare_count++];
		*spare = (struct spare){ .node = aim->spots[i].node, .pod_count = (size_t)here };
		add_claims(aim, before, room, spare);
	}
	return left == 0;
}

static bool fits_in(struct aim *aim, int64_t at_ms, struct head *out)
{
	list_spots(aim, at_ms);
	return fill_spots(aim, at_ms, out);
}

// In some domain, if it wants one; that one is then set.
static bool fits_at(struct aim *aim, int64_t at_ms, struct head *out)
{
	struct sched *sched = aim->sched;
	struct str key = gang_topology(aim->head->gang), value = { NULL, 0 };
	if (key.len == 0)
		return fits_in(aim, at_ms, out);
	aim->domain_key = key;
	value = gang_domain(aim->head->gang, key);
	struct map *seen = map_new(sched->seed);
	bool fits = false;
	for (uint32_t slot = 0; slot < sched->slot_count && !fits; slot++) {
		const struct node *node = sched->nodes[slot];
		struct str own = { NULL, 0 };
		if (node != NULL && node->is_known)
			own = sched_labels_get(&node->labels, key);
		bool is_other = value.data != NULL && !str_eq(own, value);
		if (own.data == NULL || is_other || map_find(seen, own) != NULL)
			continue;
		(void)map_set(seen, own, aim);
		aim->domain_value = own;
		fits = fits_in(aim, at_ms, NULL) && (out == NULL || fits_in(aim, at_ms, out));
	}
	map_free(seen);
	return fits;
}

// ---- when

static int compare_times(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return x < y ? -1 : x > y;
}

static int64_t *list_ends(struct sched *sched, size_t *ret_count)
{
	size_t count = 0, windows = sched->windows == NULL ? 0 : sched->windows->count;
	int64_t *ends_ms = core_alloc(map_count(sched->pod_by_uid) + windows, sizeof *ends_ms);
	for (size_t i = 0; i < windows; i++)
		ends_ms[count++] = max_i64(sched->windows->items[i]->end_ms, sched->now_ms);
	for (uint32_t slot = 0; slot < sched->slot_count; slot++) {
		const struct node *node = sched->nodes[slot];
		const struct link *head = node == NULL ? NULL : &node->pods;
		for (const struct link *at = head == NULL ? NULL : head->next; at != head;
		     at = at->next) {
			struct pod *pod = LINK_OF((uintptr_t)at, struct pod, on_node);
			int64_t end_ms = reserve_end_ms(pod, sched->now_ms);
			shape_ready_dims(sched, pod->shape);
			if (end_ms < SCHED_NEVER_MS)
				ends_ms[count++] = end_ms;
		}
	}
	if (count > 1)
		qsort(ends_ms, count, sizeof *ends_ms, compare_times);
	*ret_count = count;
	return ends_ms;
}

// The instant from which all fit: IMPOSSIBLE_MS, SCHED_NEVER_MS where only untold ends would help.
static int64_t find_start_ms(struct aim *aim)
{
	size_t count, low = 0, high;
	if (fits_at(aim, INT64_MIN, NULL))
		return FITS_NOW_MS;
	int64_t *ends_ms = list_ends(aim->sched, &count), start_ms = SCHED_NEVER_MS;
	high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (fits_at(aim, ends_ms[middle], NULL))
			high = middle;
		else
			low = middle + 1;
	}
	if (low < count)
		start_ms = ends_ms[low];
	else if (!fits_at(aim, ALL_GONE_MS, NULL))
		start_ms = IMPOSSIBLE_MS;
	free(ends_ms);
	return start_ms;
}

// ---- what the gang needs

static void add_dim(struct aim *aim, uint32_t dim)
{
	size_t i = 0;
	while (i < aim->dim_count && aim->dims[i] != dim)
		i++;
	if (i == aim->dim_count && dim != DIM_NONE && i < DIMS_MAX)
		aim->dims[aim->dim_count++] = dim;
}

static void add_need(struct aim *aim, struct shape *shape)
{
	size_t i = 0;
	while (i < aim->need_count && aim->needs[i].shape != shape)
		i++;
	if (i == KINDS_MAX)
		return;
	if (i == aim->need_count) {
		shape_ready(aim->sched, shape);
		for (size_t k = 0; k < shape->spec->amount_count; k++)
			add_dim(aim, shape->dims[k]);
		aim->needs[aim->need_count++] = (struct need){ .shape = shape };
	}
	aim->needs[i].count++;
}

static void aim_at(struct sched *sched, struct head *head, size_t head_no, struct aim *ret)
{
	const struct gang *gang = head->gang;
	int64_t need = gang_needed(gang);
	*ret = (struct aim){ .sched = sched, .head = head, .head_no = head_no };
	add_dim(ret, DIM_PODS);
	for (struct tree_node *at = tree_first(&gang->waiting); at != NULL && need > 0;
	     at = tree_next(at), need--)
		add_need(ret, POD_OF(at, in_shape)->shape);
	ret->spots = core_alloc(sched->slot_count, sizeof *ret->spots);
}

bool reserve_gang_is_hopeless(struct sched *sched, struct gang *gang)
{
	struct head head = { .gang = gang };
	struct aim aim;
	if (gang->unfit_gen == sched->gen)
		return true;
	aim_at(sched, &head, 0, &aim);
	bool is_hopeless = !fits_at(&aim, ALL_GONE_MS, NULL);
	free(aim.spots);
	if (is_hopeless)
		gang->unfit_gen = sched->gen;
	return is_hopeless;
}

// ---- keeping it up to date

bool reserve_gang_is_due(const struct sched *sched, const struct head *head)
{
	bool is_told = head->start_ms != FITS_NOW_MS && head->start_ms != SCHED_NEVER_MS;
	return head->settled_gen == 0 || (is_told && sched->now_ms >= head->start_ms) ||
	       (head->settled_gen != sched->load_gen &&
		sched->now_ms >= head->settled_ms + SETTLE_MS);
}

int64_t reserve_gang_wake_ms(const struct sched *sched, const struct head *head)
{
	return head->settled_gen == sched->load_gen || head->settled_gen == 0
		       ? INT64_MAX
		       : head->settled_ms + SETTLE_MS;
}

static bool holds(const struct head *head, const struct node *node)
{
	for (size_t i = 0; i < head->spare_count; i++) {
		if (head->spares[i].node == node)
			return true;
	}
	return false;
}

static void hold_all(struct sched *sched, struct head *head, struct head *found)
{
	for (size_t i = 0; i < head->spare_count; i++) {
		struct node *node = head->spares[i].node;
		if (holds(found, node) && found->start_ms == head->start_ms)
			continue;
		node->reserved = NULL;
		core_touch(sched, node); // others may use it, or other ones
	}
	reserve_drop_spares(head);
	head->spares = found->spares;
	head->spare_count = found->spare_count;
	for (size_t i = 0; i < head->spare_count; i++) {
		struct node *node = head->spares[i].node;
		if (node->reserved != NULL && node->reserved != head)
			reserve_release(sched, node->reserved); // of one behind it
		node->reserved = head;
	}
}

void reserve_gang_settle(struct sched *sched, size_t head_no)
{
	struct head *head = sched->heads[head_no];
	struct head found = { .start_ms = SCHED_NEVER_MS };
	struct aim aim;
	aim_at(sched, head, head_no, &aim);
	found.start_ms = find_start_ms(&aim);
	found.spares = core_alloc(sched->slot_count, sizeof *found.spares);
	if (found.start_ms != IMPOSSIBLE_MS) {
		int64_t at_ms = found.start_ms == SCHED_NEVER_MS ? ALL_GONE_MS : found.start_ms;
		bool fits = fits_at(&aim, at_ms, &found);
		ASSERT(fits);
	} else {
		found.start_ms = SCHED_NEVER_MS;
	}
	free(aim.spots);
	hold_all(sched, head, &found);
	head->start_ms = found.start_ms;
	head->node = head->spare_count == 0 ? NULL : head->spares[0].node;
	head->settled_ms = sched->now_ms;
	head->settled_gen = sched->load_gen;
}

void reserve_drop_spares(struct head *head)
{
	for (size_t i = 0; i < head->spare_count; i++)
		free(head->spares[i].claims);
	free(head->spares);
	head->spares = NULL;
	head->spare_count = 0;
}

void reserve_forget(struct head *head, const struct node *node)
{
	size_t kept = 0;
	if (head->node == node)
		head->node = NULL;
	for (size_t i = 0; i < head->spare_count; i++) {
		if (head->spares[i].node == node)
			free(head->spares[i].claims);
		else
			head->spares[kept++] = head->spares[i];
	}
	head->spare_count = kept;
}

// ---- what it means for others

// Whether a pod that stays beyond the start takes only what the members do not need.
bool reserve_gang_has_beside(struct sched *sched, const struct head *head, const struct pod *pod,
			     const struct node *node)
{
	struct aim aim = { .sched = sched };
	int64_t room[DIMS_MAX];
	const struct spare *spare = NULL;
	for (size_t i = 0; i < head->spare_count && spare == NULL; i++)
		spare = head->spares[i].node == node ? &head->spares[i] : NULL;
	ASSERT(spare != NULL);
	for (size_t i = 0; i < spare->claim_count; i++)
		aim.dims[aim.dim_count++] = spare->claims[i].dim;
	bool is_told = head->start_ms != SCHED_NEVER_MS;
	room_at(&aim, node, is_told ? head->start_ms : INT64_MIN, room);
	for (size_t i = 0; i < aim.dim_count; i++) {
		int64_t taken = need_of(pod->shape, aim.dims[i]), kept = spare->claims[i].amount;
		if (taken > 0 && kept > 0 && room[i] - taken < kept)
			return false;
	}
	return true;
}
