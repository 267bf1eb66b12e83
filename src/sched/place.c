// SPDX-License-Identifier: Apache-2.0
// Which of the nodes that fit, and which of its devices. Nodes are compared key by key, so that
// "why this node" is the first key that differs: no recent failure there, preferences of the
// pod, no GPUs where none are asked for, then the cost of the default policy (weigh.h). While
// nobody knows what pods will come, and of equal nodes: awake ones first, fewest GPUs left.
#include "sched/hold.h"
#include "sched/parts.h"
#include "sched/weigh.h"
#include "sched/window_book.h"

#include <stdlib.h>

enum {
	KEY_AVOIDED,
	KEY_PREFERENCE,
	KEY_WINDOW, // of a pod whose tenant has one now: not on its GPUs
	KEY_GPU_FOR_CPU,
	KEY_COST, // of a share: what it leaves of its GPU, and the GPU's load
	KEY_GPU_LEFT_FOR_CPU,
	KEY_ASLEEP,
	KEY_GPU_LEFT,
	KEY_GPU_ALL,
	KEY_CPU_LEFT,
	KEYS
};

static const char *const TERMS[KEYS] = {
	// as sched_why tells them
	[KEY_AVOIDED] = "bind_failed",
	[KEY_PREFERENCE] = "preference",
	[KEY_WINDOW] = "window",
	[KEY_GPU_FOR_CPU] = "has_gpus",
	[KEY_COST] = "cost",
	[KEY_GPU_LEFT_FOR_CPU] = "gpus_left",
	[KEY_ASLEEP] = "asleep",
	[KEY_GPU_LEFT] = "gpus_left",
	[KEY_GPU_ALL] = "gpus_of_node",
	[KEY_CPU_LEFT] = "cpu_left_milli",
};

struct rating {
	int64_t keys[KEYS]; // lower is better
};
struct rated {
	struct node *node; // NULL: none
	struct rating rating;
};

// From the columns alone; avoided and preference need the node itself.
static struct rating rate(const struct check *check, int64_t cost, uint32_t slot)
{
	const struct sched *sched = check->sched;
	int64_t gpu_count = check->shape->spec->gpu_count;
	const struct column *gpu = &sched->columns[DIM_GPU], *cpu = &sched->columns[DIM_CPU];
	const struct column *pods = &sched->columns[DIM_PODS];
	int64_t gpu_left = gpu->alloc[slot] - gpu->used[slot] - gpu_count;
	struct rating rating = { { 0 } };
	bool is_shared = check->shape->spec->share_count > 0;
	rating.keys[KEY_GPU_FOR_CPU] = gpu_count == 0 && !is_shared && gpu->alloc[slot] > 0;
	rating.keys[KEY_COST] = cost;
	// A pod without GPUs goes where the fewest GPUs are left that need its processors.
	rating.keys[KEY_GPU_LEFT_FOR_CPU] = gpu_count == 0 ? gpu_left : 0;
	rating.keys[KEY_ASLEEP] = (gpu_count > 0 ? gpu : pods)->used[slot] == 0;
	rating.keys[KEY_GPU_LEFT] = gpu_left;
	rating.keys[KEY_GPU_ALL] = gpu->alloc[slot];
	rating.keys[KEY_CPU_LEFT] = cpu->alloc[slot] - cpu->used[slot];
	return rating;
}

static void rate_wishes(const struct check *check, const struct node *node, struct rating *rating)
{
	bool is_kept = str_eq(check->pod->wait->nominated, node->name);
	rating->keys[KEY_AVOIDED] = is_kept ? -1 : check->pod->wait->avoid == node;
	rating->keys[KEY_PREFERENCE] = -filter_preference(check->shape->spec, node);
	rating->keys[KEY_WINDOW] = -(int64_t)window_covers(check->sched, check->pod, node);
}

static int compare(const struct rating *a, const struct rating *b)
{
	for (size_t i = 0; i < KEYS; i++) {
		if (a->keys[i] != b->keys[i])
			return a->keys[i] < b->keys[i] ? -1 : 1;
	}
	return 0;
}

static int compare_slots(const void *a, const void *b, void *arg)
{
	const struct sched *sched = arg;
	return str_cmp(sched->nodes[*(const uint32_t *)a]->name,
		       sched->nodes[*(const uint32_t *)b]->name);
}

// Place of each node in the order of names, so that ties cost no comparison of texts.
static void refresh_ranks(struct sched *sched)
{
	if (sched->are_ranks_valid)
		return;
	uint32_t *slots = core_alloc(sched->slot_cap, sizeof *slots), count = 0;
	for (uint32_t slot = 0; slot < sched->slot_count; slot++) {
		if (sched->nodes[slot] != NULL)
			slots[count++] = slot;
	}
	qsort_r(slots, count, sizeof *slots, compare_slots, sched);
	for (uint32_t i = 0; i < count; i++)
		sched->ranks[slots[i]] = i;
	free(slots);
	sched->are_ranks_valid = true;
}

static bool is_before(const struct sched *sched, const struct rated *a, const struct rated *b)
{
	int order = b->node == NULL ? -1 : compare(&a->rating, &b->rating);
	return order < 0 ||
	       (order == 0 && sched->ranks[a->node->slot] < sched->ranks[b->node->slot]);
}

// What decided against the next best, for whom it may concern (why.h).
static void note_why(const struct check *check, const struct rated *best, const struct rated *next)
{
	bool is_shared = check->shape->spec->share_count > 0;
	size_t i = 0;
	if (best->node == NULL)
		return;
	struct why why = { .pod = check->pod, .term = "only", .slot = best->node->slot };
	if (next->node != NULL) {
		while (i < KEYS && best->rating.keys[i] == next->rating.keys[i])
			i++;
		why.has_next = true;
		why.next_slot = next->node->slot;
		why.term = i == KEYS ? "name" : TERMS[i];
		why.own = i == KEYS ? 0 : best->rating.keys[i];
		why.other = i == KEYS ? 0 : next->rating.keys[i];
		why.is_cost = i == KEY_COST && !is_shared;
		if (i == KEY_COST && is_shared)
			why.term = "share_left";
	}
	check->sched->why = why;
}

// Of nodes that are next best by their cost the first is as good as any.
static bool is_no_matter(const struct rated *best, const struct rated *next, int64_t cost)
{
	return best->node != NULL && next->node != NULL && cost > best->rating.keys[KEY_COST] &&
	       cost >= next->rating.keys[KEY_COST];
}

// Reads arrays only, and looks at a node itself when it would be the best or the next best so far.
struct node *place_best(const struct check *check)
{
	struct sched *sched = check->sched;
	struct shape *shape = check->shape;
	struct rated best = { NULL, { { 0 } } }, next = { NULL, { { 0 } } };
	bool has_wishes = shape->spec->preference_count > 0 || check->pod->wait->avoid != NULL ||
			  sched->soft_taint_count > 0 || check->pod->wait->nominated.len > 0 ||
			  windows_draw(sched, check->pod);
	const struct column *gpu = &sched->columns[DIM_GPU];
	int64_t gpu_count = shape->spec->gpu_count;
	bool is_shared = shape->spec->share_count > 0;
	struct board_row *row = is_shared ? NULL : weigh_row(sched, shape->spec);
	// No key before it differs.
	bool is_by_cost = !has_wishes && (gpu_count > 0 || is_shared);
	refresh_ranks(sched);
	for (uint32_t slot = 0; slot < sched->slot_count; slot++) {
		// GPUs first: they are what nodes are mostly short of.
		bool lacks_gpus = gpu_count > 0 && gpu->alloc[slot] - gpu->used[slot] < gpu_count;
		if (lacks_gpus || !shape_is_static_fit(shape, slot))
			continue;
		int64_t cost = is_shared     ? hold_cost(sched, shape, slot)
			       : row == NULL ? 0
					     : weigh_cost(sched, row, slot);
		if ((is_by_cost && is_no_matter(&best, &next, cost)) ||
		    !filter_amounts(sched, shape, slot))
			continue;
		struct rated one = { sched->nodes[slot], rate(check, cost, slot) };
		if (has_wishes)
			rate_wishes(check, one.node, &one.rating);
		bool is_better = is_before(sched, &one, &best);
		if ((!is_better && !is_before(sched, &one, &next)) ||
		    !filter_rest(check, one.node) || !reserve_allows(sched, check->pod, one.node))
			continue;
		next = is_better ? best : one;
		best = is_better ? one : best;
	}
	note_why(check, &best, &next);
	return best.node;
}

static size_t free_between(const struct device *const *usable, size_t from, size_t to)
{
	size_t count = 0;
	for (size_t i = from; i < to; i++)
		count += usable[i] != NULL;
	return count;
}

// Of two blocks the one with fewer free devices, then the one in the emptier double block, and
// so on; else the first.
static bool is_tighter(const struct device *const *usable, size_t device_count, size_t a, size_t b,
		       size_t width)
{
	for (; width < device_count * 2; width *= 2) {
		size_t a_from = a / width * width, b_from = b / width * width;
		size_t a_free =
			free_between(usable, a_from, min_size(a_from + width, device_count));
		size_t b_free =
			free_between(usable, b_from, min_size(b_from + width, device_count));
		if (a_free != b_free)
			return a_free < b_free;
	}
	return false;
}

// Aligned blocks of a power of two are what NVLink pairs and quads are on real boards: the
// tightest block that suffices is taken, so that whole blocks stay whole.
static size_t find_block(const struct device *const *usable, size_t device_count, size_t count)
{
	size_t width = 1, best = SIZE_MAX;
	while (width < count)
		width *= 2;
	for (size_t from = 0; from < device_count; from += width) {
		size_t to = min_size(from + width, device_count);
		if (free_between(usable, from, to) < count)
			continue;
		if (best == SIZE_MAX || is_tighter(usable, device_count, from, best, width))
			best = from;
	}
	return best;
}

static size_t choose(struct node *node, const struct sched_spec *spec, struct device **ret_chosen,
		     size_t count)
{
	const struct device *usable[SCHED_DEVICES_MAX];
	uint64_t bits = device_usable(spec, node);
	for (size_t i = 0; i < node->device_count; i++)
		usable[i] = (bits >> i & 1) != 0 ? &node->devices[i] : NULL;
	size_t block = find_block(usable, node->device_count, count);
	size_t from = block == SIZE_MAX ? 0 : block, chosen = 0;
	for (size_t i = from; i < node->device_count && chosen < count; i++) {
		if (usable[i] != NULL)
			ret_chosen[chosen++] = &node->devices[i];
	}
	return chosen;
}

static void grant(struct sched *sched, size_t i, const struct sched_gpu_ask *ask,
		  const struct device *device)
{
	sched->grants[i] = (struct sched_grant){ .container = ask->container,
						 .uuid = str_of(device->uuid),
						 .index = device->index,
						 .memory_mib = device->memory_mib };
}

// Containers of the pod take devices in order. An init container is over before the others
// start, so it uses the ones that come after the sidecars started before it.
static size_t share_out(struct sched *sched, const struct sched_spec *spec,
			struct device *const *chosen, size_t chosen_count)
{
	size_t granted = 0, sidecars = 0;
	for (size_t i = 0; i < spec->gpu_ask_count; i++) {
		if (spec->gpu_asks[i].stage == SCHED_SIDECAR)
			sidecars += (size_t)spec->gpu_asks[i].count;
	}
	size_t next_sidecar = 0, next_app = sidecars;
	for (size_t i = 0; i < spec->gpu_ask_count; i++) {
		const struct sched_gpu_ask *ask = &spec->gpu_asks[i];
		size_t count = (size_t)ask->count;
		size_t from = next_sidecar; // an init container
		if (ask->stage == SCHED_SIDECAR)
			next_sidecar += count;
		if (ask->stage == SCHED_APP) {
			from = next_app;
			next_app += count;
		}
		for (size_t k = from; k < from + count && k < chosen_count; k++) {
			if (granted == SCHED_DEVICES_MAX)
				return granted;
			grant(sched, granted++, ask, chosen[k]);
		}
	}
	return granted;
}

size_t place_devices(struct sched *sched, struct pod *pod, struct node *node)
{
	const struct sched_spec *spec = pod->shape->spec;
	struct device *chosen[SCHED_DEVICES_MAX];
	if (spec->share_count > 0)
		return hold_place(sched, pod);
	if (spec->gpu_count == 0 || node->present_count == 0)
		return 0;
	ASSERT(spec->gpu_count <= SCHED_DEVICES_MAX);
	size_t count = choose(node, spec, chosen, (size_t)spec->gpu_count);
	ASSERT(count == (size_t)spec->gpu_count);
	for (size_t i = 0; i < count; i++)
		chosen[i]->holder = pod;
	return share_out(sched, spec, chosen, count);
}

size_t place_granted(struct sched *sched, const struct pod *pod)
{
	struct device *held[SCHED_DEVICES_MAX];
	size_t count = 0;
	if (pod->hold_count > 0)
		return hold_granted(sched, pod);
	for (size_t i = 0; i < pod->node->device_count; i++) {
		if (pod->node->devices[i].holder == pod)
			held[count++] = &pod->node->devices[i];
	}
	return share_out(sched, pod->shape->spec, held, count);
}
