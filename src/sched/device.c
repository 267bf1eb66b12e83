// SPDX-License-Identifier: Apache-2.0
#include "sched/device.h"

#include "sched/parts.h"

bool device_suits(const struct sched_spec *spec, const struct device *device)
{
	bool is_too_low = spec->compute_min.is_set && device->compute.is_set &&
			  sched_version_cmp(&device->compute, &spec->compute_min) < 0;
	return device->is_present && !is_too_low &&
	       device->memory_mib >= spec->gpu_memory_mib_min &&
	       filter_model(spec, str_of(device->model));
}

// As a whole GPU.
bool device_is_kind(const struct sched_spec *spec, const struct device *device)
{
	return !device->is_shared && device_suits(spec, device);
}

static size_t count_bits(uint64_t bits) { return (size_t)__builtin_popcountll(bits); }

static uint64_t bits_of(const struct sched_spec *spec, const struct node *node,
			bool (*suits)(const struct sched_spec *, const struct device *))
{
	_Static_assert(SCHED_DEVICES_MAX <= 64, "a bit each");
	uint64_t bits = 0;
	for (size_t i = 0; i < node->device_count; i++) {
		if (suits(spec, &node->devices[i]))
			bits |= UINT64_C(1) << i;
	}
	return bits;
}

static uint64_t group_of(sched_topology topology, const struct node *node, size_t first)
{
	const struct device *a = &node->devices[first];
	uint64_t bits = 0;
	for (size_t i = 0; i < node->device_count; i++) {
		const struct device *b = &node->devices[i];
		bool is_same = topology == SCHED_NUMA ? a->numa_node == b->numa_node
						      : a->link_group == b->link_group;
		bits |= is_same ? UINT64_C(1) << i : 0;
	}
	return bits;
}

static bool is_better(size_t count, size_t best, size_t wanted)
{
	if ((count >= wanted) != (best >= wanted))
		return count >= wanted;
	return count >= wanted ? count < best : count > best;
}

static uint64_t best_group(const struct sched_spec *spec, const struct node *node, uint64_t bits)
{
	if (spec->topology == SCHED_ANYWHERE)
		return bits;
	uint64_t best = 0, seen = 0;
	for (size_t i = 0; i < node->device_count; i++) {
		if ((seen >> i & 1) != 0)
			continue;
		uint64_t group = group_of(spec->topology, node, i);
		seen |= group;
		if (is_better(count_bits(group & bits), count_bits(best), (size_t)spec->gpu_count))
			best = group & bits;
	}
	return best;
}

uint64_t device_free(const struct sched_spec *spec, const struct node *node)
{
	return bits_of(spec, node, filter_device);
}

size_t device_group_count(const struct sched_spec *spec, const struct node *node, uint64_t bits)
{
	return count_bits(best_group(spec, node, bits));
}

uint64_t device_usable(const struct sched_spec *spec, const struct node *node)
{
	return best_group(spec, node, device_free(spec, node));
}

size_t device_usable_count(const struct sched_spec *spec, const struct node *node)
{
	return count_bits(device_usable(spec, node));
}

size_t device_group_max(const struct sched_spec *spec, const struct node *node)
{
	return count_bits(best_group(spec, node, bits_of(spec, node, device_is_kind)));
}

size_t device_healthy_count(const struct sched_spec *spec, const struct node *node)
{
	return count_bits(bits_of(spec, node, filter_device_kind));
}

uint64_t device_static(const struct sched_spec *spec, const struct node *node)
{
	size_t wanted = (size_t)spec->gpu_count;
	uint64_t fails = 0;
	if (wanted == 0)
		return 0;
	size_t all = count_bits(bits_of(spec, node, device_is_kind));
	bool has_enough = all >= wanted || node->present_count == 0; // else others say so
	if (spec->topology != SCHED_ANYWHERE && has_enough && device_group_max(spec, node) < wanted)
		fails |= code_bit(SCHED_CODE_GPU_GROUP);
	if (all >= wanted && device_healthy_count(spec, node) < wanted)
		fails |= code_bit(SCHED_CODE_GPU_HEALTH);
	return fails;
}

static struct device *find(const struct node *node, struct str uuid)
{
	for (size_t i = 0; i < node->device_count; i++) {
		if (str_eq_c(uuid, node->devices[i].uuid))
			return &node->devices[i];
	}
	return NULL;
}

static void join(struct node *node, const struct device *a, const struct device *b)
{
	if (a == NULL || b == NULL)
		return;
	uint32_t from = b->link_group, to = a->link_group;
	for (size_t i = 0; i < node->device_count; i++) {
		if (node->devices[i].link_group == from)
			node->devices[i].link_group = to;
	}
}

void device_link(struct node *node, const struct sched_device_in *devices, size_t count)
{
	const struct device *at_switch = NULL;
	for (uint32_t i = 0; i < node->device_count; i++)
		node->devices[i].link_group = i;
	for (size_t i = 0; i < count; i++) {
		const struct device *device = find(node, devices[i].uuid);
		for (size_t k = 0; k < devices[i].linked_count; k++)
			join(node, device, find(node, devices[i].linked[k]));
		if (!devices[i].has_switch)
			continue;
		join(node, at_switch, device);
		at_switch = at_switch == NULL ? device : at_switch;
	}
}
