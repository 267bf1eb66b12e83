// SPDX-License-Identifier: Apache-2.0
// Reservations: the first pods in queue order that fit nowhere, a few a pool, get a node each,
// the one where they will fit first by the expected ends of the pods there. Pods behind them use
// that node only when they end before, or use what the head leaves. What is computed for a node
// is kept until something changes on it.
#include "sched/reserve.h"
#include "sched/gang.h"
#include "sched/victims.h"
#include "sched/window_book.h"

#include "sched/queueing_model.h"

#include <stdlib.h>

// ---- which node

static void drop_starts(struct head *head)
{
	free(head->starts_ms);
	head->starts_ms = NULL;
	head->cap = 0;
	head->load_gen = 0;
}

static void refresh_starts(struct sched *sched, struct head *head)
{
	if (head->cap < sched->slot_cap)
		drop_starts(head);
	if (head->starts_ms == NULL) {
		head->starts_ms = core_alloc(sched->slot_cap, sizeof *head->starts_ms);
		head->cap = sched->slot_cap;
	}
	for (uint32_t slot = 0; slot < sched->slot_count; slot++) {
		const struct node *node = sched->nodes[slot];
		bool is_late = head->starts_ms[slot] != FITS_NOW_MS &&
			       head->starts_ms[slot] <= sched->now_ms;
		// Time alone takes a node away on which a window begins.
		bool is_open = head->starts_ms[slot] == FITS_NOW_MS && node != NULL &&
			       node->windows != NULL;
		if (sched->load_gens[slot] <= head->load_gen && !is_late && !is_open)
			continue;
		head->starts_ms[slot] = node == NULL ? IMPOSSIBLE_MS
						     : reserve_start_ms(sched, head->pod, node);
	}
	head->load_gen = sched->load_gen;
}

static bool is_taken(const struct sched *sched, size_t head_no, uint32_t slot)
{
	const struct node *node = sched->nodes[slot];
	for (size_t i = 0; i < head_no && node->reserved != NULL; i++) {
		if (sched->heads[i] == node->reserved)
			return true;
	}
	return false;
}

static bool is_near(struct sched *sched, struct affinity *affinity, uint32_t slot)
{
	return affinity == NULL || affinity_check(affinity, sched->nodes[slot]) == 0;
}

// Earliest start; where none can be told, the least that has to become free; then the node that
// it has already, then the first by slot.
static struct node *choose(struct sched *sched, size_t head_no, int64_t *ret_start_ms)
{
	struct head *head = sched->heads[head_no];
	const struct shape *shape = head->pod->shape;
	struct affinity *affinity = affinity_new(sched, head->pod);
	struct node *best = NULL;
	int64_t best_start_ms = IMPOSSIBLE_MS, best_short = 0;
	for (uint32_t slot = 0; slot < sched->slot_count; slot++) {
		int64_t start_ms = head->starts_ms[slot];
		if (start_ms == IMPOSSIBLE_MS || start_ms > best_start_ms ||
		    is_taken(sched, head_no, slot) ||
		    preempt_is_kept_from(sched, head->pod, sched->nodes[slot]) ||
		    !is_near(sched, affinity, slot) || !queueing_allows(shape, sched->nodes[slot]))
			continue;
		bool is_told = start_ms != SCHED_NEVER_MS;
		int64_t missing = is_told ? 0 : reserve_shortfall(sched, shape, slot);
		bool is_better = start_ms < best_start_ms || missing < best_short ||
				 (missing == best_short && sched->nodes[slot] == head->node);
		if (!is_better)
			continue;
		best = sched->nodes[slot];
		best_start_ms = start_ms;
		best_short = missing;
	}
	affinity_free(affinity);
	*ret_start_ms = best_start_ms;
	return best;
}

// ---- who is a head

static bool is_before(const struct sched *sched, const struct pod *a, const struct pod *b)
{
	return queueing_cmp(sched, a, b) < 0;
}

// No node could ever hold it, or it waits for more than room.
static bool is_hopeless(struct sched *sched, const struct pod *pod)
{
	struct shape *shape = pod->shape;
	bool is_unfit = true, is_far = true;
	if (queueing_is_blocked(pod))
		return true;
	if (pod->member != NULL)
		return reserve_gang_is_hopeless(sched, gang_of(pod));
	if (shape->unfit_gen == sched->gen)
		return true;
	struct affinity *affinity = affinity_new(sched, pod);
	for (uint32_t slot = 0; slot < sched->slot_count && is_far; slot++) {
		if (!reserve_could_hold(sched, shape, slot))
			continue;
		is_unfit = false;
		is_far = !is_near(sched, affinity, slot) ||
			 !queueing_allows(shape, sched->nodes[slot]);
	}
	affinity_free(affinity);
	if (is_unfit)
		shape->unfit_gen = sched->gen;
	return is_far;
}

struct line { // the first of a pool
	uint64_t pool;
	struct pod *pods[SCHED_HEADS_PER_POOL_MAX];
	size_t count;
};
struct lines {
	struct line items[SCHED_HEADS_MAX];
	size_t count;
};

static struct line *find_line(struct lines *lines, uint64_t pool)
{
	for (size_t i = 0; i < lines->count; i++) {
		if (lines->items[i].pool == pool)
			return &lines->items[i];
	}
	if (lines->count == SCHED_HEADS_MAX)
		return NULL;
	lines->items[lines->count] = (struct line){ .pool = pool };
	return &lines->items[lines->count++];
}

static void stand_in_line(struct sched *sched, struct lines *lines, struct pod *pod)
{
	struct shape *shape = pod->shape;
	shape_ready(sched, shape);
	struct line *line = find_line(lines, shape->pool);
	if (line == NULL)
		return;
	size_t at = line->count;
	while (at > 0 && is_before(sched, pod, line->pods[at - 1]))
		at--;
	bool is_in = at > 0 && line->pods[at - 1] == pod;
	if (is_in || at == sched->heads_per_pool || is_hopeless(sched, pod))
		return;
	line->count = min_size(line->count + 1, sched->heads_per_pool);
	memmove(&line->pods[at + 1], &line->pods[at],
		(line->count - at - 1) * sizeof line->pods[0]);
	line->pods[at] = pod;
}

// Of a gang the first that waits stands for all.
static struct pod *first_of(const struct gang *gang)
{
	return POD_OF(tree_first(&gang->waiting), in_shape);
}

static void gather_gangs(struct sched *sched, struct lines *lines)
{
	struct link *parked = &sched->gangs->parked;
	for (struct link *at = parked->next; at != parked; at = at->next) {
		struct gang *gang = LINK_OF(at, struct gang, in_parked);
		if (gang->why.code == SCHED_CODE_GANG_DOES_NOT_FIT)
			stand_in_line(sched, lines, first_of(gang));
	}
}

static void gather(struct sched *sched, struct lines *lines)
{
	for (size_t i = 0; i < sched->head_count; i++) { // one that is about to be tried stays
		struct pod *pod = sched->heads[i]->pod;
		if (pod->member == NULL || first_of(gang_of(pod)) == pod)
			stand_in_line(sched, lines, pod);
	}
	gather_gangs(sched, lines);
	for (struct link *at = sched->parked.next; at != &sched->parked; at = at->next) {
		const struct shape *shape = LINK_OF(at, struct shape, in_parked);
		struct tree_node *node = tree_first(&shape->waiting);
		for (size_t i = 0; i < sched->heads_per_pool && node != NULL; i++) {
			stand_in_line(sched, lines, POD_OF(node, in_shape));
			node = tree_next(node);
		}
	}
	for (struct link *at = sched->held.next; at != &sched->held; at = at->next)
		stand_in_line(sched, lines, POD_OF(at, in_place));
}

void reserve_release(struct sched *sched, struct head *head)
{
	struct node *node;
	for (size_t i = 0; (node = reserve_node(head, i)) != NULL; i++) {
		node->reserved = NULL;
		core_touch(sched, node);
	}
	reserve_drop_spares(head);
	head->node = NULL;
	head->settled_gen = 0; // it is to be found another one
}

static void free_head(struct sched *sched, size_t head_no)
{
	struct head *head = sched->heads[head_no];
	reserve_release(sched, head);
	head->pod->wait->head = NULL;
	drop_starts(head);
	free(head);
	sched->head_count--;
	memmove(&sched->heads[head_no], &sched->heads[head_no + 1],
		(sched->head_count - head_no) * sizeof(struct head *));
}

static void add_head(struct sched *sched, struct pod *pod)
{
	size_t at = sched->head_count;
	while (at > 0 && is_before(sched, pod, sched->heads[at - 1]->pod))
		at--;
	if (at == SCHED_HEADS_MAX)
		return;
	if (sched->head_count == SCHED_HEADS_MAX)
		free_head(sched, SCHED_HEADS_MAX - 1);
	memmove(&sched->heads[at + 1], &sched->heads[at],
		(sched->head_count - at) * sizeof(struct head *));
	pod->wait->head = core_alloc(1, sizeof *pod->wait->head);
	*pod->wait->head =
		(struct head){ .pod = pod, .gang = gang_of(pod), .start_ms = SCHED_NEVER_MS };
	sched->heads[at] = pod->wait->head;
	sched->head_count++;
}

static bool stands_in(const struct lines *lines, const struct pod *pod)
{
	for (size_t i = 0; i < lines->count; i++) {
		for (size_t k = 0; k < lines->items[i].count; k++) {
			if (lines->items[i].pods[k] == pod)
				return true;
		}
	}
	return false;
}

static void elect(struct sched *sched)
{
	struct lines lines = { .count = 0 };
	sched->are_heads_stale = false;
	sched->elect_gen = sched->gen;
	gather(sched, &lines);
	for (size_t i = sched->head_count; i > 0; i--) {
		if (!stands_in(&lines, sched->heads[i - 1]->pod))
			free_head(sched, i - 1);
	}
	for (size_t i = 0; i < lines.count; i++) {
		for (size_t k = 0; k < lines.items[i].count; k++) {
			if (lines.items[i].pods[k]->wait->head == NULL)
				add_head(sched, lines.items[i].pods[k]);
		}
	}
}

// ---- keeping it up to date

static void settle(struct sched *sched, size_t head_no)
{
	struct head *head = sched->heads[head_no];
	int64_t start_ms;
	if (head->gang != NULL) {
		if (reserve_gang_is_due(sched, head))
			reserve_gang_settle(sched, head_no);
		return;
	}
	shape_ready(sched, head->pod->shape);
	refresh_starts(sched, head);
	struct node *node = choose(sched, head_no, &start_ms);
	if (node != head->node) {
		reserve_release(sched, head);
		if (node != NULL && node->reserved != NULL)
			reserve_release(sched, node->reserved); // of one behind it
	} else if (node != NULL && start_ms != head->start_ms &&
		   (start_ms > head->start_ms || head->start_ms == SCHED_NEVER_MS)) {
		core_touch(sched, node); // more pods end before
	}
	head->node = node;
	head->start_ms = node == NULL ? SCHED_NEVER_MS : start_ms;
	if (node != NULL)
		node->reserved = head;
}

// What queues have had changes their order.
static void sort_heads(struct sched *sched)
{
	for (size_t i = 1; i < sched->head_count; i++) {
		struct head *head = sched->heads[i];
		size_t at = i;
		for (; at > 0 && is_before(sched, head->pod, sched->heads[at - 1]->pod); at--)
			sched->heads[at] = sched->heads[at - 1];
		sched->heads[at] = head;
		if (at != i)
			sched->settled_gen = 0;
	}
}

void reserve_refresh(struct sched *sched)
{
	if (queueing_order_moves(sched))
		sort_heads(sched);
	bool is_new = sched->are_heads_stale || sched->elect_gen != sched->gen;
	if (sched->heads_per_pool == 0)
		return;
	if (is_new)
		elect(sched);
	if (!is_new && sched->settled_gen == sched->load_gen &&
	    sched->now_ms < reserve_wake_ms(sched))
		return;
	for (size_t i = 0; i < sched->head_count; i++)
		settle(sched, i);
	sched->settled_gen = sched->load_gen;
}

int64_t reserve_wake_ms(const struct sched *sched)
{
	int64_t wake_ms = INT64_MAX;
	for (size_t i = 0; i < sched->head_count; i++) {
		const struct head *head = sched->heads[i];
		bool is_told = head->start_ms != FITS_NOW_MS && head->start_ms != SCHED_NEVER_MS;
		if (head->node != NULL && is_told)
			wake_ms = min_i64(wake_ms, head->start_ms);
		if (head->gang != NULL)
			wake_ms = min_i64(wake_ms, reserve_gang_wake_ms(sched, head));
	}
	return wake_ms;
}

void reserve_parked(struct sched *sched, const struct pod *pod)
{
	size_t count = 0;
	bool is_unfit = pod->member != NULL ? gang_of(pod)->unfit_gen == sched->gen
					    : pod->shape->unfit_gen == sched->gen;
	if (pod->wait->head != NULL || is_unfit || queueing_is_blocked(pod))
		return;
	for (size_t i = 0; i < sched->head_count; i++) {
		const struct pod *head = sched->heads[i]->pod;
		if (head->shape->pool != pod->shape->pool)
			continue;
		count++;
		if (is_before(sched, pod, head))
			sched->are_heads_stale = true;
	}
	if (count < sched->heads_per_pool)
		sched->are_heads_stale = true;
}

void reserve_leave(struct sched *sched, struct pod *pod)
{
	if (pod->wait->head == NULL)
		return;
	size_t head_no = 0;
	while (sched->heads[head_no] != pod->wait->head)
		head_no++;
	free_head(sched, head_no);
	sched->are_heads_stale = true;
}

void reserve_drop_node(struct sched *sched, struct node *node)
{
	struct head *head = node->reserved;
	if (head != NULL) {
		node->reserved = NULL;
		reserve_forget(head, node);
		reserve_release(sched, head);
		sched->are_heads_stale = true;
	}
	core_load_changed(sched, node);
}

void sched_heads_set(struct sched *sched, size_t per_pool)
{
	sched->heads_per_pool = min_size(per_pool, SCHED_HEADS_PER_POOL_MAX);
	while (sched->head_count > 0)
		free_head(sched, sched->head_count - 1);
	sched->are_heads_stale = true;
}

// ---- what it means for others

bool reserve_allows(struct sched *sched, const struct pod *pod, const struct node *node)
{
	const struct head *head = node->reserved;
	if (window_against(sched, pod, node) != NULL)
		return false;
	if (window_covers(sched, pod, node)) // heads of others have no right to that
		return true;
	if (head == NULL || !is_before(sched, head->pod, pod) ||
	    (head->pod->stay.never_preempts && preempt_makes_room(sched, pod, node)))
		return true;
	if (pod->member != NULL && gang_of(head->pod) == gang_of(pod))
		return true;
	int64_t duration_ms = 1000 * pod->key.duration_s;
	if (head->start_ms != SCHED_NEVER_MS && duration_ms > 0 &&
	    sched->now_ms + duration_ms <= head->start_ms)
		return true;
	if (head->gang != NULL)
		return reserve_gang_has_beside(sched, head, pod, node);
	struct room room;
	room_now(sched, head->pod, node, &room);
	for (const struct link *at = node->pods.next; at != &node->pods; at = at->next) {
		const struct pod *other = LINK_OF((uintptr_t)at, struct pod, on_node);
		if (head->start_ms != SCHED_NEVER_MS &&
		    reserve_end_ms(other, sched->now_ms) <= head->start_ms)
			room_add(&room, other);
	}
	return room_has_beside(&room, pod);
}

// How long a pod like this one, behind the head, may run on the node until the head starts or what
// is reserved for others is needed; 0: not at all.
int64_t reserve_window_s(const struct sched *sched, const struct pod *pod, const struct node *node)
{
	const struct head *head = node->reserved;
	int64_t most_s = window_most_s(sched, pod, node);
	if (head == NULL)
		return most_s;
	if (head->start_ms == SCHED_NEVER_MS || head->start_ms <= sched->now_ms)
		return 0;
	return min_i64(most_s, (head->start_ms - sched->now_ms) / 1000);
}

// Others of its shape have found no room; this one may be before the head or short enough.
bool reserve_passes(struct sched *sched, const struct pod *pod)
{
	struct shape *shape = pod->shape;
	shape_ready(sched, shape);
	for (size_t i = 0; i < sched->head_count; i++) {
		const struct node *node;
		for (size_t k = 0; (node = reserve_node(sched->heads[i], k)) != NULL; k++) {
			if (shape_is_static_fit(shape, node->slot) &&
			    filter_has_room(sched, shape, node) && reserve_allows(sched, pod, node))
				return true;
		}
	}
	return windows_pass(sched, pod);
}

size_t sched_reservations(const struct sched *sched, struct sched_reservation *ret, size_t max)
{
	size_t count = 0;
	for (size_t i = 0; i < sched->head_count; i++) {
		const struct head *head = sched->heads[i];
		const struct node *node;
		for (size_t k = 0; (node = reserve_node(head, k)) != NULL && count < max; k++)
			ret[count++] = (struct sched_reservation){
				.uid = head->pod->uid,
				.node = node->name,
				.pod_count = head->gang == NULL ? 1 : head->spares[k].pod_count,
				.start_ms = max_i64(head->start_ms, sched->now_ms),
			};
	}
	return count;
}

const char *reserve_check(const struct sched *sched)
{
	for (size_t i = 0; i < sched->head_count; i++) {
		const struct head *head = sched->heads[i];
		const struct node *node;
		if (head->pod->wait->head != head || head->pod->state != SCHED_STATE_WAITING)
			return "a reservation is for a pod that does not wait";
		if (i > 0 && !queueing_order_moves(sched) &&
		    !is_before(sched, sched->heads[i - 1]->pod, head->pod))
			return "reservations are not in queue order";
		for (size_t k = 0; (node = reserve_node(head, k)) != NULL; k++) {
			if (node->reserved != head)
				return "two reservations are for one node";
		}
	}
	return NULL;
}
