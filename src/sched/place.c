// SPDX-License-Identifier: Apache-2.0
// Which of the nodes that fit, and which of its devices. Nodes are compared key by key, so that
// "why this node" is the first key that differs: no recent failure there, preferences of the
// pod, then pack: awake nodes first, fewest GPUs left, so that whole nodes stay free.
#include "sched/parts.h"

enum {
	KEY_AVOIDED,
	KEY_PREFERENCE,
	KEY_GPU_LEFT_FOR_CPU,
	KEY_ASLEEP,
	KEY_GPU_LEFT,
	KEY_GPU_ALL,
	KEY_CPU_LEFT,
	KEYS
};

struct rating {
	int64_t keys[KEYS]; // lower is better
};

static struct rating rate(const struct check *check, const struct node *node)
{
	const struct sched *sched = check->sched;
	const struct sched_spec *spec = check->shape->spec;
	const struct column *gpu = &sched->columns[DIM_GPU], *cpu = &sched->columns[DIM_CPU];
	int64_t gpu_left = gpu->alloc[node->slot] - gpu->used[node->slot] - spec->gpu_count;
	struct rating rating = { { 0 } };
	rating.keys[KEY_AVOIDED] = check->pod->avoid == node;
	rating.keys[KEY_PREFERENCE] = -filter_preference(spec, node);
	// A pod without GPUs goes where the fewest GPUs are left that need its processors.
	rating.keys[KEY_GPU_LEFT_FOR_CPU] = spec->gpu_count == 0 ? gpu_left : 0;
	rating.keys[KEY_ASLEEP] = spec->gpu_count > 0 ? gpu->used[node->slot] == 0
						      : link_is_empty(&node->pods);
	rating.keys[KEY_GPU_LEFT] = gpu_left;
	rating.keys[KEY_GPU_ALL] = gpu->alloc[node->slot];
	rating.keys[KEY_CPU_LEFT] = cpu->alloc[node->slot] - cpu->used[node->slot];
	return rating;
}

static int compare(const struct rating *a, const struct rating *b)
{
	for (size_t i = 0; i < KEYS; i++) {
		if (a->keys[i] != b->keys[i])
			return a->keys[i] < b->keys[i] ? -1 : 1;
	}
	return 0;
}

struct node *place_best(const struct check *check)
{
	struct node *best = NULL;
	struct rating best_rating = { { 0 } };
	for (uint32_t slot = 0; slot < check->sched->slot_count; slot++) {
		struct node *node = check->sched->nodes[slot];
		if (node == NULL || !filter_fits(check, node))
			continue;
		struct rating rating = rate(check, node);
		int order = best == NULL ? -1 : compare(&rating, &best_rating);
		if (order < 0 || (order == 0 && str_cmp(node->name, best->name) < 0)) {
			best = node;
			best_rating = rating;
		}
	}
	return best;
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
	for (size_t i = 0; i < node->device_count; i++) {
		struct device *device = &node->devices[i];
		usable[i] = filter_device(spec, device) ? device : NULL;
	}
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
	sched->grants[i] = (struct sched_grant){ ask->container, str_of(device->uuid),
						 device->index, device->memory_mib };
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
	if (spec->gpu_count == 0 || node->present_count == 0)
		return 0;
	ASSERT(spec->gpu_count <= SCHED_DEVICES_MAX);
	size_t count = choose(node, spec, chosen, (size_t)spec->gpu_count);
	ASSERT(count == (size_t)spec->gpu_count);
	for (size_t i = 0; i < count; i++)
		chosen[i]->holder = pod;
	return share_out(sched, spec, chosen, count);
}
