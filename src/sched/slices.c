// SPDX-License-Identifier: Apache-2.0
#include "sched/slices.h"
#include "sched/parts.h"

#include <stdlib.h>

struct slices {
	struct sched_slice items[SCHED_SLICES_MAX]; // texts are owned
	size_t count;
};

static void drop_all(struct slices *slices)
{
	for (size_t i = 0; i < slices->count; i++)
		free((void *)(uintptr_t)slices->items[i].tenant.data); // one block of all three
	slices->count = 0;
}

void slices_free(struct sched *sched)
{
	if (sched->slices != NULL)
		drop_all(sched->slices);
	free(sched->slices);
	sched->slices = NULL;
}

static struct sched_slice copy_of(const struct sched_slice *slice)
{
	const struct str parts[] = { slice->tenant, slice->resource, slice->node };
	char *block = core_alloc(slice->tenant.len + slice->resource.len + slice->node.len + 1, 1);
	char *at = block;
	struct str copies[3];
	for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
		if (parts[i].len > 0)
			memcpy(at, parts[i].data, parts[i].len);
		copies[i] = (struct str){ at, parts[i].len };
		at += parts[i].len;
	}
	return (struct sched_slice){ copies[0], copies[1], copies[2], slice->count };
}

void sched_slices_set(struct sched *sched, const struct sched_slice *slices, size_t count)
{
	if (sched->slices == NULL)
		sched->slices = core_alloc(1, sizeof *sched->slices);
	drop_all(sched->slices);
	for (size_t i = 0; i < count && i < SCHED_SLICES_MAX; i++) {
		if (slices[i].count > 0)
			sched->slices->items[sched->slices->count++] = copy_of(&slices[i]);
	}
	for (uint32_t slot = 0; slot < sched->slot_count; slot++) {
		if (sched->nodes[slot] == NULL)
			continue;
		core_load_changed(sched, sched->nodes[slot]);
		core_touch(sched, sched->nodes[slot]);
	}
	sched->wakes_all = true;
}

bool slices_are_asked(const struct sched_spec *spec)
{
	for (size_t i = 0; i < spec->amount_count; i++) {
		if (str_starts(spec->amounts[i].resource, STR(SCHED_SLICE_PREFIX)))
			return true;
	}
	return false;
}

static int64_t taken_by(const struct node *node, struct str tenant, uint32_t dim)
{
	int64_t sum = 0;
	for (const struct link *at = node->pods.next; at != &node->pods; at = at->next) {
		const struct pod *pod = LINK_OF((uintptr_t)at, struct pod, on_node);
		if (!str_eq(pod->key.namespace_, tenant))
			continue;
		for (size_t i = 0; i < pod->shape->spec->amount_count; i++) {
			if (pod->shape->dims[i] == dim)
				sum += pod->shape->spec->amounts[i].amount;
		}
	}
	return sum;
}

static bool is_of(const struct sched_slice *slice, struct str resource, const struct node *node)
{
	return str_eq(slice->resource, resource) &&
	       (slice->node.len == 0 || str_eq(slice->node, node->name));
}

// What of the resource is kept on the node for the tenant of items[first]; 0 when one before it
// was of that tenant, which has counted all.
static int64_t kept_for(const struct slices *slices, size_t first, uint32_t dim,
			const struct node *node)
{
	const struct sched_slice *own = &slices->items[first];
	int64_t sum = 0;
	for (size_t i = 0; i < slices->count; i++) {
		const struct sched_slice *slice = &slices->items[i];
		if (!is_of(slice, own->resource, node) || !str_eq(slice->tenant, own->tenant))
			continue;
		if (i < first)
			return 0;
		sum += slice->count;
	}
	return max_i64(sum - taken_by(node, own->tenant, dim), 0);
}

int64_t slices_kept(const struct sched *sched, const struct shape *shape, size_t amount_i,
		    const struct node *node)
{
	const struct slices *slices = sched->slices;
	int64_t sum = 0;
	if (slices == NULL || slices->count == 0 || shape->slice_tenant.data == NULL)
		return 0;
	struct str resource = shape->spec->amounts[amount_i].resource;
	for (size_t i = 0; i < slices->count; i++) {
		const struct sched_slice *slice = &slices->items[i];
		if (is_of(slice, resource, node) && !str_eq(slice->tenant, shape->slice_tenant))
			sum += kept_for(slices, i, shape->dims[amount_i], node);
	}
	return sum;
}
