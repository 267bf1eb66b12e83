// SPDX-License-Identifier: Apache-2.0
// On which nodes windows lie. Those that name a model choose first, else by their start. A window
// stays where it is as far as that is clear; then it takes the nodes on which most will be clear at
// its start, the last one the smallest that suffices; then those that others will still hold.
#include "sched/window_book.h"

#include <stdlib.h>

struct site { // a node for a window
	struct node *node;
	int64_t room;  // that no other window has meanwhile
	int64_t clear; // of that, what nobody else is expected to hold at the start
	int64_t got;
};
struct plan {
	struct sched *sched;
	struct window *window;
	struct site *sites;
	size_t site_count;
	int64_t missing;
};

// ---- what a node has

static bool is_of_model(const struct window *window, struct str model)
{
	const struct sched_spec spec = { .gpu_models = (struct str[]){ window->in.model },
					 .gpu_model_count = window->in.model.len > 0 };
	return filter_model(&spec, model);
}

// Whole GPUs; of nodes with several models, none for a window that names one.
static int64_t capacity_for(const struct sched *sched, const struct window *window,
			    const struct node *node)
{
	int64_t whole = sched->columns[DIM_GPU].alloc[node->slot], healthy = 0;
	struct str product = sched_labels_get(&node->labels, STR("nvidia.com/gpu.product"));
	if (!node->is_known || node->is_cordoned || node->is_not_ready)
		return 0;
	if (node->present_count == 0)
		return is_of_model(window, product) ? whole : 0;
	for (size_t i = 0; i < node->device_count; i++) {
		const struct device *device = &node->devices[i];
		if (!device->is_present || device->is_shared)
			continue;
		if (!is_of_model(window, str_of(device->model)))
			return 0;
		healthy += device->is_healthy;
	}
	return min_i64(whole, healthy);
}

static bool overlaps(const struct window *a, const struct window *b)
{
	return a->start_ms < b->end_ms && b->start_ms < a->end_ms;
}

static int64_t reserved_at(const struct node *node, int64_t at_ms)
{
	int64_t sum = 0;
	for (const struct window_part *part = node->windows; part != NULL; part = part->next) {
		if (part->window->start_ms <= at_ms && at_ms < part->window->end_ms)
			sum += part->count;
	}
	return sum;
}

// The most that windows planned before it have there while it lasts.
static int64_t reserved_most(const struct node *node, const struct window *window)
{
	int64_t most = reserved_at(node, window->start_ms);
	for (const struct window_part *part = node->windows; part != NULL; part = part->next) {
		int64_t at_ms = part->window->start_ms;
		if (window->start_ms <= at_ms && at_ms < window->end_ms)
			most = max_i64(most, reserved_at(node, at_ms));
	}
	return most;
}

// What others hold at the start, without what they hold of windows of their own.
static int64_t taken_at_start(const struct sched *sched, const struct window *window,
			      const struct node *node)
{
	int64_t at_ms = max_i64(window->start_ms, sched->now_ms);
	int64_t taken = window_use_at(sched, node, window->tenant, at_ms).others;
	for (const struct window_part *part = node->windows; part != NULL; part = part->next) {
		struct str tenant = part->window->tenant;
		if (overlaps(part->window, window) && !str_eq(tenant, window->tenant))
			taken -=
				min_i64(window_use_at(sched, node, tenant, at_ms).own, part->count);
	}
	return max_i64(taken, 0);
}

static void list_sites(struct plan *plan)
{
	struct sched *sched = plan->sched;
	plan->site_count = 0;
	for (uint32_t slot = 0; slot < sched->slot_count; slot++) {
		struct node *node = sched->nodes[slot];
		int64_t capacity = node == NULL ? 0 : capacity_for(sched, plan->window, node);
		int64_t room = capacity == 0 ? 0 : capacity - reserved_most(node, plan->window);
		if (room <= 0)
			continue;
		int64_t clear = room - taken_at_start(sched, plan->window, node);
		plan->sites[plan->site_count++] = (struct site){ node, room, max_i64(clear, 0), 0 };
	}
}

// ---- which of them

static void take(struct plan *plan, struct site *site, int64_t count)
{
	count = min_i64(min_i64(count, site->room - site->got), plan->missing);
	site->got += count;
	plan->missing -= count;
}

static void stay(struct plan *plan, const struct window *before)
{
	for (size_t i = 0; i < before->part_count; i++) {
		for (size_t k = 0; k < plan->site_count; k++) {
			struct site *site = &plan->sites[k];
			if (site->node == before->parts[i].node)
				take(plan, site, min_i64(before->parts[i].count, site->clear));
		}
	}
}

static int64_t left_clear(const struct site *site) { return max_i64(site->clear - site->got, 0); }
static int64_t left_room(const struct site *site) { return site->room - site->got; }

static int compare(int64_t a, int64_t b, const struct site *x, const struct site *y)
{
	if (a != b)
		return a > b ? -1 : 1;
	return str_cmp(x->node->name, y->node->name);
}

static int by_clear(const void *a, const void *b)
{
	return compare(left_clear(a), left_clear(b), a, b);
}

static int by_room(const void *a, const void *b)
{
	return compare(left_room(a), left_room(b), a, b);
}

static int by_name(const void *a, const void *b)
{
	const struct site *x = a, *y = b;
	return str_cmp(x->node->name, y->node->name);
}

// Sites lie with the largest first: whole nodes, and of those that suffice for the rest the first
// of the smallest.
static void fill(struct plan *plan, int64_t (*left)(const struct site *))
{
	for (size_t i = 0; i < plan->site_count && plan->missing > 0; i++) {
		size_t best = i;
		for (size_t k = i + 1; k < plan->site_count; k++) {
			if (left(&plan->sites[k]) < plan->missing)
				break;
			if (left(&plan->sites[k]) < left(&plan->sites[best]))
				best = k;
		}
		take(plan, &plan->sites[best], left(&plan->sites[best]));
	}
}

static void note(struct plan *plan)
{
	struct window *window = plan->window;
	qsort(plan->sites, plan->site_count, sizeof plan->sites[0], by_name);
	window->parts = core_alloc(plan->site_count, sizeof *window->parts);
	for (size_t i = 0; i < plan->site_count; i++) {
		struct site *site = &plan->sites[i];
		if (site->got == 0)
			continue;
		struct window_part *part = &window->parts[window->part_count++];
		*part = (struct window_part){ site->node, window, site->node->windows, site->got };
		site->node->windows = part;
		window->held_count += site->got;
	}
}

static void plan_one(struct plan *plan, struct window *window, const struct window *before)
{
	plan->window = window;
	plan->missing = window->in.gpu_count;
	if (window->end_ms <= plan->sched->now_ms)
		return;
	list_sites(plan);
	stay(plan, before);
	qsort(plan->sites, plan->site_count, sizeof plan->sites[0], by_clear);
	fill(plan, left_clear);
	qsort(plan->sites, plan->site_count, sizeof plan->sites[0], by_room);
	fill(plan, left_room);
	note(plan);
}

// ---- all of them

static void touch(struct sched *sched, struct node *node)
{
	core_load_changed(sched, node);
	core_touch(sched, node);
}

static void unlink_part(struct window_part *part)
{
	struct window_part **at = &part->node->windows;
	while (*at != part)
		at = &(*at)->next;
	*at = part->next;
}

// The last one takes its place.
void window_part_drop(struct window_part *part)
{
	struct window *window = part->window;
	struct window_part *last = &window->parts[window->part_count - 1];
	ASSERT(window->part_count > 0 && part <= last);
	window->held_count -= part->count;
	unlink_part(part);
	if (last != part) {
		unlink_part(last);
		*part = *last;
		part->next = part->node->windows;
		part->node->windows = part;
	}
	window->part_count--;
}

static void take_parts(struct window *window, struct window *ret_before)
{
	for (size_t i = 0; i < window->part_count; i++)
		unlink_part(&window->parts[i]);
	*ret_before = *window;
	window->parts = NULL;
	window->part_count = 0;
	window->held_count = 0;
}

void windows_unplan(struct sched *sched, struct window *window)
{
	struct window before;
	take_parts(window, &before);
	for (size_t i = 0; i < before.part_count; i++)
		touch(sched, before.parts[i].node);
	free(before.parts);
}

static bool has_part(const struct window *window, const struct window_part *part)
{
	for (size_t i = 0; i < window->part_count; i++) {
		if (window->parts[i].node == part->node && window->parts[i].count == part->count)
			return true;
	}
	return false;
}

static void touch_others(struct sched *sched, const struct window *parts,
			 const struct window *others)
{
	for (size_t i = 0; i < parts->part_count; i++) {
		if (!has_part(others, &parts->parts[i]))
			touch(sched, parts->parts[i].node);
	}
}

// Who could not start before the head of the queue may do so now.
static void touch_begun(struct sched *sched, struct window *window)
{
	if (window->has_begun || window->start_ms > sched->now_ms)
		return;
	window->has_begun = true;
	for (size_t i = 0; i < window->part_count; i++)
		touch(sched, window->parts[i].node);
}

void windows_plan(struct sched *sched)
{
	struct windows *windows = sched->windows;
	struct plan plan = { .sched = sched };
	struct window *before = core_alloc(windows->count, sizeof *before);
	plan.sites = core_alloc(sched->slot_count, sizeof *plan.sites);
	for (size_t i = 0; i < windows->count; i++)
		take_parts(windows->items[i], &before[i]);
	for (int with_model = 1; with_model >= 0; with_model--) {
		for (size_t i = 0; i < windows->count; i++) {
			if ((windows->items[i]->in.model.len > 0) == with_model)
				plan_one(&plan, windows->items[i], &before[i]);
		}
	}
	for (size_t i = 0; i < windows->count; i++) {
		touch_others(sched, &before[i], windows->items[i]);
		touch_others(sched, windows->items[i], &before[i]);
		touch_begun(sched, windows->items[i]);
		free(before[i].parts);
	}
	free(before);
	free(plan.sites);
}
