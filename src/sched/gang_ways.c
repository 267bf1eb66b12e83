// SPDX-License-Identifier: Apache-2.0
// Which devices of a node a member gets, when which one matters to the others: devices are alike
// if the same members could use them and, where a member wants a group, they are of one group.
#include "sched/gang_search.h"

struct kinds { // of what members of the gang ask
	const struct sched_spec *specs[GANG_CLASSES_MAX];
	size_t count;
	bool wants_link, wants_numa;
};

static void list_kinds(const struct search *s, struct kinds *ret)
{
	*ret = (struct kinds){ .count = 0 };
	for (size_t i = 0; i < s->count && ret->count < ARRAY_COUNT(ret->specs); i++) {
		const struct sched_spec *spec = s->pods[i]->shape->spec;
		if (i > 0 && s->pods[i - 1]->shape->spec == spec)
			continue;
		ret->specs[ret->count++] = spec;
		ret->wants_link = ret->wants_link || spec->topology == SCHED_NVLINK;
		ret->wants_numa = ret->wants_numa || spec->topology == SCHED_NUMA;
	}
}

static bool are_alike(const struct kinds *kinds, const struct device *a, const struct device *b)
{
	if ((kinds->wants_link && a->link_group != b->link_group) ||
	    (kinds->wants_numa && a->numa_node != b->numa_node))
		return false;
	for (size_t i = 0; i < kinds->count; i++) {
		if (filter_device_kind(kinds->specs[i], a) !=
		    filter_device_kind(kinds->specs[i], b))
			return false;
	}
	return true;
}

static void classify(const struct kinds *kinds, const struct pod *pod, struct ways *ways)
{
	const struct node *node = pod->node;
	for (size_t i = 0; i < node->device_count; i++) {
		const struct device *device = &node->devices[i];
		bool is_free = device->holder == NULL || device->holder == pod;
		if (!is_free || !filter_device_kind(pod->shape->spec, device))
			continue;
		size_t k = 0;
		for (; k < ways->class_count; k++) {
			int first = __builtin_ctzll(ways->classes[k]);
			if (are_alike(kinds, device, &node->devices[first]))
				break;
		}
		if (k == WAYS_CLASSES_MAX)
			continue;
		ways->class_count = max_size(ways->class_count, k + 1);
		ways->classes[k] |= UINT64_C(1) << i;
	}
}

static int64_t size_of(uint64_t bits) { return __builtin_popcountll(bits); }

// Takes from the classes in order until the sum is reached; false: it is not.
static bool fill(struct ways *ways, size_t from, int64_t sum)
{
	for (size_t i = from; i < ways->class_count; i++) {
		ways->takes[i] = min_i64(sum, size_of(ways->classes[i]));
		sum -= ways->takes[i];
	}
	return sum == 0;
}

void ways_begin(const struct search *s, struct pod *pod, struct ways *ret)
{
	struct kinds kinds;
	int64_t wanted = pod->shape->spec->gpu_count;
	*ret = (struct ways){ .is_over = wanted == 0 || pod->node->present_count == 0 };
	if (ret->is_over)
		return;
	list_kinds(s, &kinds);
	classify(&kinds, pod, ret);
	ret->is_over = ret->class_count < 2 || !fill(ret, 0, wanted);
}

// The next of all ways to take the same sum: the last that can give one away does.
static bool step(struct ways *ways)
{
	int64_t behind = 0;
	for (size_t i = ways->class_count; i > 0; i--) {
		struct ways next = *ways;
		if (ways->takes[i - 1] > 0) {
			next.takes[i - 1]--;
			if (fill(&next, i, behind + 1)) {
				*ways = next;
				return true;
			}
		}
		behind += ways->takes[i - 1];
	}
	return false;
}

static bool is_one_group(const struct ways *ways, const struct pod *pod)
{
	sched_topology topology = pod->shape->spec->topology;
	const struct device *first = NULL;
	for (size_t i = 0; i < ways->class_count; i++) {
		if (ways->takes[i] == 0)
			continue;
		const struct device *device =
			&pod->node->devices[__builtin_ctzll(ways->classes[i])];
		bool is_other =
			first != NULL &&
			((topology == SCHED_NVLINK && device->link_group != first->link_group) ||
			 (topology == SCHED_NUMA && device->numa_node != first->numa_node));
		if (is_other)
			return false;
		first = device;
	}
	return true;
}

static void hold(const struct ways *ways, struct pod *pod)
{
	struct node *node = pod->node;
	for (size_t i = 0; i < node->device_count; i++) {
		if (node->devices[i].holder == pod)
			node->devices[i].holder = NULL;
	}
	for (size_t i = 0; i < ways->class_count; i++) {
		uint64_t bits = ways->classes[i];
		for (int64_t k = 0; k < ways->takes[i]; k++, bits &= bits - 1)
			node->devices[__builtin_ctzll(bits)].holder = pod;
	}
}

bool ways_next(struct ways *ways, struct pod *pod)
{
	while (!ways->is_over && ways->tried < WAYS_MAX) {
		struct ways now = *ways;
		ways->tried++;
		ways->is_over = !step(ways);
		if (is_one_group(&now, pod)) {
			hold(&now, pod);
			return true;
		}
	}
	return false;
}
