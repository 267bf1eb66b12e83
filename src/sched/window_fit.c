// SPDX-License-Identifier: Apache-2.0
// What windows mean for a pod on a node. At each instant at which a window there begins or ends the
// GPUs of all pods that will be there, and what windows still keep, have to be at most what the
// node has; a pod that takes only what is kept for its own tenant makes nothing worse.
#include "sched/window_book.h"

struct stay { // of a pod that is not there yet
	const struct sched *sched;
	const struct node *node;
	struct str tenant;
	int64_t gpu_count;
	int64_t from_ms, to_ms;
};

static int64_t capacity_of(const struct sched *sched, const struct node *node)
{
	return sched->columns[DIM_GPU].alloc[node->slot];
}

static struct stay stay_of(const struct sched *sched, const struct pod *pod,
			   const struct node *node, int64_t from_ms)
{
	const struct sched_spec *spec = pod->shape->spec;
	int64_t duration_ms = 1000 * pod->key.duration_s;
	struct stay stay = { .sched = sched,
			     .node = node,
			     .tenant = pod->key.namespace_,
			     .gpu_count = spec->gpu_count,
			     .from_ms = from_ms };
	if (spec->device_claim_count > 0) // whatever they will take
		stay.gpu_count = max_i64(capacity_of(sched, node), 1);
	stay.to_ms = duration_ms == 0 ? SCHED_NEVER_MS : from_ms + duration_ms;
	return stay;
}

// Members of a gang that is tried are on the node and have no end yet.
static int64_t end_of(const struct sched *sched, const struct pod *pod)
{
	if (pod->state != SCHED_STATE_WAITING)
		return reserve_end_ms(pod, sched->now_ms);
	return pod->key.duration_s == 0 ? SCHED_NEVER_MS
					: sched->now_ms + 1000 * pod->key.duration_s;
}

struct window_use window_use_at(const struct sched *sched, const struct node *node,
				struct str tenant, int64_t at_ms)
{
	struct window_use use = { 0, 0, INT64_MIN };
	for (const struct link *at = node->pods.next; at != &node->pods; at = at->next) {
		const struct pod *pod = LINK_OF((uintptr_t)at, struct pod, on_node);
		int64_t count = pod->shape->spec->gpu_count, end_ms = end_of(sched, pod);
		if (count == 0 || end_ms <= at_ms)
			continue;
		if (str_eq(pod->key.namespace_, tenant)) {
			use.own += count;
			continue;
		}
		use.others += count;
		use.last_ms = max_i64(use.last_ms, end_ms);
	}
	for (size_t i = 0; i < node->device_count; i++)
		use.others += node->devices[i].is_claimed && node->devices[i].holder == NULL;
	return use;
}

static bool is_active(const struct window_part *part, int64_t at_ms)
{
	return part->window->start_ms <= at_ms && at_ms < part->window->end_ms;
}

// What is reserved on the node for the tenant of the part; 0 when a part before it is of the same.
static int64_t reserved_with(const struct node *node, const struct window_part *first,
			     int64_t at_ms)
{
	int64_t sum = 0;
	bool is_past = false;
	for (const struct window_part *part = node->windows; part != NULL; part = part->next) {
		is_past = is_past || part == first;
		if (!is_active(part, at_ms) || !str_eq(part->window->tenant, first->window->tenant))
			continue;
		if (!is_past)
			return 0;
		sum += part->count;
	}
	return sum;
}

// The window that keeps what the stay would need at that instant; NULL: none.
static const struct window *obstacle_at(const struct stay *stay, int64_t at_ms)
{
	const struct window *first = NULL;
	int64_t kept = 0;
	for (const struct window_part *part = stay->node->windows; part != NULL;
	     part = part->next) {
		int64_t reserved = is_active(part, at_ms) ? reserved_with(stay->node, part, at_ms)
							  : 0;
		if (reserved == 0)
			continue;
		struct str tenant = part->window->tenant;
		int64_t own = window_use_at(stay->sched, stay->node, tenant, at_ms).own;
		int64_t left = max_i64(reserved - own, 0);
		if (str_eq(tenant, stay->tenant)) {
			if (left >= stay->gpu_count)
				return NULL;
			continue;
		}
		kept += left;
		first = first == NULL && left > 0 ? part->window : first;
	}
	if (first == NULL)
		return NULL;
	struct window_use use = window_use_at(stay->sched, stay->node, stay->tenant, at_ms);
	int64_t all = use.own + use.others + stay->gpu_count + kept;
	return all > capacity_of(stay->sched, stay->node) ? first : NULL;
}

// The first instant of the stay with an obstacle; INT64_MAX: none.
static int64_t first_obstacle_ms(const struct stay *stay, const struct window **ret_window)
{
	int64_t first_ms = INT64_MAX;
	const struct window *window = stay->gpu_count == 0 ? NULL
							   : obstacle_at(stay, stay->from_ms);
	*ret_window = window;
	if (window != NULL || stay->gpu_count == 0)
		return window == NULL ? INT64_MAX : stay->from_ms;
	for (const struct window_part *part = stay->node->windows; part != NULL;
	     part = part->next) {
		const int64_t instants_ms[2] = { part->window->start_ms, part->window->end_ms };
		for (size_t i = 0; i < ARRAY_COUNT(instants_ms); i++) {
			int64_t at_ms = instants_ms[i];
			if (at_ms <= stay->from_ms || at_ms >= stay->to_ms || at_ms >= first_ms)
				continue;
			window = obstacle_at(stay, at_ms);
			if (window == NULL)
				continue;
			first_ms = at_ms;
			*ret_window = window;
		}
	}
	return first_ms;
}

const struct window *window_against(const struct sched *sched, const struct pod *pod,
				    const struct node *node)
{
	const struct window *window = NULL;
	if (node->windows == NULL)
		return NULL;
	struct stay stay = stay_of(sched, pod, node, sched->now_ms);
	(void)first_obstacle_ms(&stay, &window);
	return window;
}

int64_t window_most_s(const struct sched *sched, const struct pod *pod, const struct node *node)
{
	const struct window *window;
	if (node->windows == NULL)
		return INT64_MAX;
	struct stay stay = stay_of(sched, pod, node, sched->now_ms);
	stay.to_ms = SCHED_NEVER_MS;
	int64_t first_ms = first_obstacle_ms(&stay, &window);
	return first_ms == INT64_MAX ? INT64_MAX : (first_ms - sched->now_ms) / 1000;
}

// The next instant at which something ends on the node; INT64_MAX: nothing does.
static int64_t next_end_ms(const struct sched *sched, const struct node *node, int64_t after_ms)
{
	int64_t next_ms = INT64_MAX;
	for (const struct window_part *part = node->windows; part != NULL; part = part->next) {
		if (part->window->end_ms > after_ms)
			next_ms = min_i64(next_ms, part->window->end_ms);
	}
	for (const struct link *at = node->pods.next; at != &node->pods; at = at->next) {
		int64_t end_ms = end_of(sched, LINK_OF((uintptr_t)at, struct pod, on_node));
		if (end_ms > after_ms && end_ms < SCHED_NEVER_MS)
			next_ms = min_i64(next_ms, end_ms);
	}
	return next_ms;
}

int64_t window_open_ms(const struct sched *sched, const struct pod *pod, int64_t gpu_count,
		       const struct node *node, int64_t from_ms)
{
	if (node->windows == NULL || from_ms >= SCHED_NEVER_MS)
		return from_ms;
	const struct window *window;
	int64_t at_ms = max_i64(from_ms, sched->now_ms);
	bool is_first = true;
	while (at_ms < INT64_MAX) {
		struct stay stay = stay_of(sched, pod, node, at_ms);
		if (pod->shape->spec->device_claim_count == 0)
			stay.gpu_count = gpu_count;
		if (first_obstacle_ms(&stay, &window) == INT64_MAX)
			return is_first ? from_ms : at_ms;
		at_ms = next_end_ms(sched, node, at_ms);
		is_first = false;
	}
	return SCHED_NEVER_MS; // the node has too little without windows, too
}

static bool has_room(struct sched *sched, struct shape *shape, const struct node *node)
{
	shape_ready(sched, shape);
	return shape_is_static_fit(shape, node->slot) && filter_has_room(sched, shape, node);
}

int64_t windows_most_s(struct sched *sched, const struct pod *pod)
{
	const struct windows *windows = sched->windows;
	int64_t most_s = 0;
	for (size_t i = 0; windows != NULL && i < windows->count; i++) {
		const struct window *window = windows->items[i];
		for (size_t k = 0; k < window->part_count; k++) {
			const struct node *node = window->parts[k].node;
			if (has_room(sched, pod->shape, node))
				most_s = max_i64(most_s, reserve_window_s(sched, pod, node));
		}
	}
	return most_s;
}

bool windows_pass(struct sched *sched, const struct pod *pod)
{
	const struct windows *windows = sched->windows;
	for (size_t i = 0; windows != NULL && i < windows->count; i++) {
		const struct window *window = windows->items[i];
		for (size_t k = 0; k < window->part_count; k++) {
			const struct node *node = window->parts[k].node;
			if (has_room(sched, pod->shape, node) && reserve_allows(sched, pod, node))
				return true;
		}
	}
	return false;
}

bool windows_draw(const struct sched *sched, const struct pod *pod)
{
	const struct windows *windows = sched->windows;
	if (windows == NULL || pod->shape->spec->gpu_count == 0)
		return false;
	for (size_t i = 0; i < windows->count; i++) {
		const struct window *window = windows->items[i];
		if (window->start_ms <= sched->now_ms && sched->now_ms < window->end_ms &&
		    str_eq(window->tenant, pod->key.namespace_))
			return true;
	}
	return false;
}

bool window_covers(const struct sched *sched, const struct pod *pod, const struct node *node)
{
	struct str tenant = pod->key.namespace_;
	int64_t count = pod->shape->spec->gpu_count, reserved = 0;
	for (const struct window_part *part = node->windows; part != NULL; part = part->next) {
		if (is_active(part, sched->now_ms) && str_eq(part->window->tenant, tenant))
			reserved += part->count;
	}
	return count > 0 && reserved > 0 &&
	       reserved - window_use_at(sched, node, tenant, sched->now_ms).own >= count;
}
