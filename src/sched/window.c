// SPDX-License-Identifier: Apache-2.0
#include "sched/window_book.h"

#include "sched/queueing.h"

#include <stdlib.h>

enum { REPLAN_MS = 60000, MS_PER_S = 1000 };

// ---- the books

static int compare(const struct window *a, const struct window *b)
{
	if (a->in.start_s != b->in.start_s)
		return a->in.start_s < b->in.start_s ? -1 : 1;
	int order = str_cmp(a->tenant, b->tenant);
	return order != 0 ? order : str_cmp(a->in.name, b->in.name);
}

static void free_window(struct sched *sched, struct window *window)
{
	windows_unplan(sched, window);
	free(window->texts);
	free(window);
}

void windows_free(struct sched *sched)
{
	struct windows *windows = sched->windows;
	for (size_t i = 0; windows != NULL && i < windows->count; i++)
		free_window(sched, windows->items[i]);
	free(windows);
	sched->windows = NULL;
}

static bool is_same(const struct sched_window_in *a, const struct sched_window_in *b)
{
	return str_eq(a->name, b->name) && str_eq(a->model, b->model) && a->start_s == b->start_s &&
	       a->end_s == b->end_s && a->gpu_count == b->gpu_count;
}

static bool is_listed(const struct window *window, const struct sched_window_in *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (is_same(&window->in, &list[i]))
			return true;
	}
	return false;
}

static bool is_known(const struct windows *windows, struct str tenant,
		     const struct sched_window_in *in)
{
	for (size_t i = 0; i < windows->count; i++) {
		if (str_eq(windows->items[i]->tenant, tenant) &&
		    is_same(&windows->items[i]->in, in))
			return true;
	}
	return false;
}

static void add(struct windows *windows, struct str tenant, const struct sched_window_in *in)
{
	const struct str texts[3] = { tenant, in->name, in->model };
	struct window *window = core_alloc(1, sizeof *window);
	window->texts = core_texts_copy(texts, 3);
	window->tenant = window->texts[0];
	window->in = *in;
	window->in.name = window->texts[1];
	window->in.model = window->texts[2];
	window->id = ++windows->last_id;
	size_t at = windows->count++;
	for (; at > 0 && compare(windows->items[at - 1], window) > 0; at--)
		windows->items[at] = windows->items[at - 1];
	windows->items[at] = window;
}

// Its waiting pods have shared shapes with those of others, or may do so again.
static void rehome_pods(struct sched *sched, struct str tenant)
{
	struct str uid;
	void *value;
	for (size_t i = 0; map_next(sched->pod_by_uid, &i, &uid, &value);) {
		struct pod *pod = value;
		if (str_eq(pod->key.namespace_, tenant))
			pod_rehome(sched, pod);
	}
}

void sched_windows_set(struct sched *sched, struct str tenant, const struct sched_window_in *list,
		       size_t count)
{
	bool did_concern = windows_concern(sched, tenant);
	if (sched->windows == NULL && count == 0)
		return;
	if (sched->windows == NULL)
		sched->windows = core_alloc(1, sizeof *sched->windows);
	struct windows *windows = sched->windows;
	size_t kept = 0;
	for (size_t i = 0; i < windows->count; i++) {
		struct window *window = windows->items[i];
		bool stays = !str_eq(window->tenant, tenant) || is_listed(window, list, count);
		if (stays)
			windows->items[kept++] = window;
		else
			free_window(sched, window);
		windows->is_stale = windows->is_stale || !stays;
	}
	windows->count = kept;
	for (size_t i = 0; i < count && windows->count < SCHED_WINDOWS_MAX; i++) {
		bool holds_any = list[i].gpu_count > 0 && list[i].end_s > list[i].start_s;
		if (!holds_any || is_known(windows, tenant, &list[i]))
			continue;
		add(windows, tenant, &list[i]);
		windows->is_stale = true;
	}
	if (did_concern != windows_concern(sched, tenant))
		rehome_pods(sched, tenant);
}

bool windows_concern(const struct sched *sched, struct str tenant)
{
	const struct windows *windows = sched->windows;
	for (size_t i = 0; windows != NULL && i < windows->count; i++) {
		if (str_eq(windows->items[i]->tenant, tenant))
			return true;
	}
	return false;
}

// A node goes when no pod is there; what lay on it is found another place.
void windows_drop_node(struct sched *sched, struct node *node)
{
	if (node->windows != NULL)
		sched->windows->is_stale = true;
	while (node->windows != NULL)
		window_part_drop(node->windows);
}

// ---- time

static void note_instants(const struct sched *sched, struct window *window)
{
	int64_t clock_s = sched->queueing->factors.clock_s;
	window->start_ms = (window->in.start_s - clock_s) * MS_PER_S;
	window->end_ms = (window->in.end_s - clock_s) * MS_PER_S;
}

// What windows that were given their place before keep there, of other tenants.
static int64_t kept_before(const struct sched *sched, const struct window_part *part, int64_t at_ms)
{
	int64_t sum = 0;
	for (const struct window_part *at = part->next; at != NULL; at = at->next) {
		const struct window *window = at->window;
		if (window->start_ms > at_ms || window->end_ms <= at_ms ||
		    str_eq(window->tenant, part->window->tenant))
			continue;
		int64_t own = window_use_at(sched, part->node, window->tenant, at_ms).own;
		sum += max_i64(at->count - own, 0);
	}
	return sum;
}

static int64_t taken_on(const struct sched *sched, const struct window_part *part,
			int64_t *ret_until_ms)
{
	const struct window *window = part->window;
	int64_t at_ms = max_i64(window->start_ms, sched->now_ms);
	struct window_use use = window_use_at(sched, part->node, window->tenant, at_ms);
	int64_t left = sched->columns[DIM_GPU].alloc[part->node->slot] - use.others -
		       kept_before(sched, part, at_ms);
	int64_t taken = part->count - min_i64(max_i64(left, 0), part->count);
	if (taken > 0)
		*ret_until_ms = max_i64(*ret_until_ms, use.last_ms);
	return taken;
}

// Whether others could be better: some of it has no node or is taken.
static bool is_unclear(const struct sched *sched, const struct window *window)
{
	int64_t until_ms = INT64_MIN;
	if (window->held_count < window->in.gpu_count)
		return true;
	for (size_t i = 0; i < window->part_count; i++) {
		if (taken_on(sched, &window->parts[i], &until_ms) > 0)
			return true;
	}
	return false;
}

static int64_t next_due_ms(const struct sched *sched)
{
	int64_t due_ms = INT64_MAX;
	for (size_t i = 0; i < sched->windows->count; i++) {
		const struct window *window = sched->windows->items[i];
		if (window->end_ms <= sched->now_ms)
			continue;
		due_ms = min_i64(due_ms, window->start_ms > sched->now_ms ? window->start_ms
									  : window->end_ms);
		if (window->start_ms <= sched->now_ms && is_unclear(sched, window))
			due_ms = min_i64(due_ms, sched->now_ms + REPLAN_MS);
	}
	return due_ms;
}

void windows_tick(struct sched *sched)
{
	struct windows *windows = sched->windows;
	if (windows == NULL ||
	    (!windows->is_stale && windows->gen == sched->gen && sched->now_ms < windows->due_ms))
		return;
	for (size_t i = 0; i < windows->count; i++)
		note_instants(sched, windows->items[i]);
	windows_plan(sched);
	windows->is_stale = false;
	windows->gen = sched->gen;
	windows->due_ms = next_due_ms(sched);
}

int64_t windows_wake_ms(const struct sched *sched)
{
	const struct windows *windows = sched->windows;
	return windows == NULL ? INT64_MAX : windows->due_ms;
}

// ---- out

static void count_on(const struct sched *sched, const struct window_part *part,
		     struct sched_window_row *row)
{
	const struct window *window = part->window;
	int64_t at_ms = max_i64(window->start_ms, sched->now_ms);
	int64_t own = window_use_at(sched, part->node, window->tenant, at_ms).own;
	row->taken_count += taken_on(sched, part, &row->taken_until_ms);
	if (row->has_begun)
		row->used_count += min_i64(own, part->count);
}

size_t sched_window_rows(const struct sched *sched, struct sched_window_row *ret_rows, size_t max)
{
	const struct windows *windows = sched->windows;
	size_t count = windows == NULL ? 0 : min_size(windows->count, max);
	for (size_t i = 0; i < count; i++) {
		const struct window *window = windows->items[i];
		ret_rows[i] = (struct sched_window_row){
			.tenant = window->tenant,
			.in = window->in,
			.has_begun = window->start_ms <= sched->now_ms,
			.is_over = window->end_ms <= sched->now_ms,
			.held_count = window->held_count,
			.taken_until_ms = INT64_MIN,
			.part_count = window->part_count,
		};
		for (size_t k = 0; k < window->part_count; k++)
			count_on(sched, &window->parts[k], &ret_rows[i]);
	}
	return count;
}

size_t sched_window_parts(const struct sched *sched, size_t row, struct sched_window_part *ret,
			  size_t max)
{
	const struct windows *windows = sched->windows;
	ASSERT(windows != NULL && row < windows->count);
	const struct window *window = windows->items[row];
	size_t count = min_size(window->part_count, max);
	for (size_t i = 0; i < count; i++)
		ret[i] = (struct sched_window_part){ .tenant = window->tenant,
						     .node = window->parts[i].node->name,
						     .start_ms = window->start_ms,
						     .end_ms = window->end_ms,
						     .gpu_count = window->parts[i].count };
	return count;
}

bool windows_fact_text(const struct sched *sched, const struct sched_fact *fact,
		       struct arena *arena, struct sched_reason *ret_reason)
{
	const struct windows *windows = sched->windows;
	if (fact->code != SCHED_CODE_WINDOW)
		return false;
	if (fact->need >= 0)
		ret_reason->need = str_of(arena_printf(arena, "%lld s", (long long)fact->need));
	else
		ret_reason->need = STR("an unknown time");
	for (size_t i = 0; windows != NULL && i < windows->count; i++) {
		const struct window *window = windows->items[i];
		if (window->id != fact->detail)
			continue;
		int64_t lasts_s = window->in.end_s - window->in.start_s;
		ret_reason->have = str_of(arena_printf(
			arena,
			"%lld s until window " STR_FMT " of " STR_FMT ", which is %lld s long",
			(long long)fact->have, STR_ARG(window->in.name), STR_ARG(window->tenant),
			(long long)lasts_s));
	}
	return true;
}

const char *windows_check(const struct sched *sched)
{
	size_t linked = 0, listed = 0;
	for (uint32_t slot = 0; slot < sched->slot_count; slot++) {
		const struct node *node = sched->nodes[slot];
		const struct window_part *part = node == NULL ? NULL : node->windows;
		for (; part != NULL; part = part->next, linked++) {
			if (part->node != node || part->count <= 0)
				return "a window lies on a node that does not know it";
		}
	}
	for (size_t i = 0; sched->windows != NULL && i < sched->windows->count; i++) {
		const struct window *window = sched->windows->items[i];
		int64_t sum = 0;
		for (size_t k = 0; k < window->part_count; k++)
			sum += window->parts[k].count;
		if (sum != window->held_count || sum > window->in.gpu_count)
			return "a window lies on more or fewer GPUs than it holds";
		listed += window->part_count;
	}
	return linked == listed ? NULL : "a node knows a window that does not lie there";
}
