// SPDX-License-Identifier: Apache-2.0
#include "sched/core.h"

#include "sched/claim_book.h"
#include "sched/gang.h"
#include "sched/load.h"
#include "sched/queueing_model.h"
#include "sched/stock.h"
#include "sched/victims.h"
#include "sched/weigh.h"
#include "sched/window_book.h"

#include <stdio.h>
#include <stdlib.h>

void *core_alloc(size_t count, size_t size_bytes)
{
	void *memory = calloc(max_size(count, 1), size_bytes);
	if (memory == NULL) {
		(void)fputs("out of memory\n", stderr);
		abort();
	}
	return memory;
}

struct str *core_texts_copy(const struct str *texts, size_t count)
{
	if (count == 0)
		return NULL;
	size_t bytes = 0;
	for (size_t i = 0; i < count; i++)
		bytes += texts[i].len;
	struct str *copies = core_alloc(1, count * sizeof *copies + bytes);
	char *at = (char *)(copies + count);
	for (size_t i = 0; i < count; i++) {
		copies[i] = (struct str){ at, texts[i].len };
		if (texts[i].len > 0)
			memcpy(at, texts[i].data, texts[i].len);
		at += texts[i].len;
	}
	return copies;
}

struct sched_labels core_labels_copy(const struct sched_labels *labels)
{
	_Static_assert(sizeof(struct sched_label) == 2 * sizeof(struct str), "two texts");
	const struct str *texts = (const void *)labels->items;
	void *copy = core_texts_copy(texts, 2 * labels->count);
	return (struct sched_labels){ copy, labels->count };
}

static char *text_copy(struct str text)
{
	char *copy = core_alloc(1, text.len + 1);
	if (text.len > 0)
		memcpy(copy, text.data, text.len);
	return copy;
}

uint32_t core_dim_find(const struct sched *sched, struct str resource)
{
	for (uint32_t dim = 0; dim < sched->column_count; dim++) {
		if (str_eq_c(resource, sched->columns[dim].name))
			return dim;
	}
	return DIM_NONE;
}

// Pods may have come to nodes before any node named the resource.
static void count_used(const struct sched *sched, struct column *column, struct str resource)
{
	for (uint32_t slot = 0; slot < sched->slot_count; slot++) {
		const struct node *node = sched->nodes[slot];
		const struct link *head = node == NULL ? NULL : &node->pods;
		for (const struct link *at = head == NULL ? NULL : head->next; at != head;
		     at = at->next) {
			const struct sched_spec *spec =
				LINK_OF((uintptr_t)at, struct pod, on_node)->shape->spec;
			for (size_t i = 0; i < spec->amount_count; i++) {
				if (str_eq(spec->amounts[i].resource, resource))
					column->used[slot] += spec->amounts[i].amount;
			}
		}
	}
}

static uint32_t dim_get(struct sched *sched, struct str resource)
{
	uint32_t dim = core_dim_find(sched, resource);
	// Only administrators name resources on nodes; one beyond the limit counts as absent.
	if (dim != DIM_NONE || sched->column_count == SCHED_RESOURCES_MAX)
		return dim;
	struct column *column = &sched->columns[sched->column_count];
	column->name = text_copy(resource);
	column->alloc = core_alloc(sched->slot_cap, sizeof *column->alloc);
	column->used = core_alloc(sched->slot_cap, sizeof *column->used);
	sched->columns_gen++;
	count_used(sched, column, resource);
	return sched->column_count++;
}

struct sched *sched_new(uint64_t seed, int64_t now_ms)
{
	static const char *const FIXED[DIMS_FIXED] = { "pods", "cpu", "memory", "nvidia.com/gpu" };
	struct sched *sched = core_alloc(1, sizeof *sched);
	sched->seed = seed;
	sched->now_ms = now_ms;
	sched->gen = 1;
	sched->columns_gen = 1;
	sched->heads_per_pool = 1;
	for (uint32_t dim = 0; dim < DIMS_FIXED; dim++) {
		uint32_t got = dim_get(sched, str_of(FIXED[dim]));
		ASSERT(got == dim);
	}
	sched->node_by_name = map_new_borrowing(seed);
	sched->pod_by_uid = map_new_borrowing(seed);
	sched->pod_by_name = map_new_borrowing(seed);
	sched->shape_by_key = map_new_borrowing(seed);
	sched->namespaces = map_new(seed);
	sched->weigh = weigh_new();
	sched->stock = stock_new(seed);
	sched->claim_book = claim_book_new(seed);
	sched->gangs = gangs_new(seed);
	sched->preempt = preempt_new(seed);
	sched->queueing = queueing_new(seed);
	sched->loads = loads_new();
	link_head_init(&sched->parked);
	link_head_init(&sched->telling);
	link_head_init(&sched->held);
	link_head_init(&sched->backoff);
	link_head_init(&sched->tell);
	link_head_init(&sched->apart);
	return sched;
}

static void free_namespaces(struct sched *sched)
{
	struct str key;
	void *value;
	for (size_t i = 0; map_next(sched->namespaces, &i, &key, &value);) {
		struct sched_labels *labels = value;
		free(labels->items);
		free(labels);
	}
	map_free(sched->namespaces);
}

void sched_free(struct sched *sched)
{
	if (sched == NULL)
		return;
	struct str key;
	void *value;
	for (size_t i = 0; map_next(sched->pod_by_uid, &i, &key, &value);)
		sched_pod_remove(sched, key);
	windows_free(sched);
	for (uint32_t slot = 0; slot < sched->slot_count; slot++) {
		struct node *node = sched->nodes[slot];
		if (node == NULL)
			continue;
		sched_devices_set(sched, node->name, NULL, 0);
		if (sched->nodes[slot] != NULL)
			sched_node_remove(sched, node->name);
	}
	moves_free(sched);
	ASSERT(map_count(sched->shape_by_key) == 0 && map_count(sched->node_by_name) == 0);
	free_namespaces(sched);
	queueing_free(sched->queueing);
	stock_free(sched->stock);
	claim_book_free(sched->claim_book);
	gangs_free(sched->gangs);
	preempt_free(sched->preempt);
	slices_free(sched);
	loads_free(sched->loads);
	learn_free(sched->learned);
	forecast_free(sched->forecast);
	map_free(sched->node_by_name);
	map_free(sched->pod_by_uid);
	map_free(sched->pod_by_name);
	map_free(sched->shape_by_key);
	weigh_free(sched->weigh);
	for (uint32_t dim = 0; dim < sched->column_count; dim++) {
		free(sched->columns[dim].name);
		free(sched->columns[dim].alloc);
		free(sched->columns[dim].used);
	}
	free(sched->nodes);
	free(sched->touched);
	free(sched->ranks);
	free(sched->load_gens);
	free(sched->priorities);
	free(sched);
}

void *core_grow(void *old, size_t old_count, size_t count, size_t size_bytes)
{
	void *memory = core_alloc(count, size_bytes);
	if (old_count > 0)
		memcpy(memory, old, old_count * size_bytes);
	free(old);
	return memory;
}

static void grow_slots(struct sched *sched)
{
	uint32_t old = sched->slot_cap, cap = old == 0 ? 64 : 2 * old;
	sched->nodes = core_grow(sched->nodes, old, cap, sizeof(struct node *));
	sched->touched = core_grow(sched->touched, old, cap, sizeof *sched->touched);
	sched->ranks = core_grow(sched->ranks, old, cap, sizeof *sched->ranks);
	sched->load_gens = core_grow(sched->load_gens, old, cap, sizeof *sched->load_gens);
	for (uint32_t dim = 0; dim < sched->column_count; dim++) {
		struct column *column = &sched->columns[dim];
		column->alloc = core_grow(column->alloc, old, cap, sizeof *column->alloc);
		column->used = core_grow(column->used, old, cap, sizeof *column->used);
	}
	sched->slot_cap = cap;
}

static uint32_t free_slot(struct sched *sched)
{
	for (uint32_t slot = 0; slot < sched->slot_count; slot++) {
		if (sched->nodes[slot] == NULL)
			return slot;
	}
	if (sched->slot_count == sched->slot_cap)
		grow_slots(sched);
	return sched->slot_count++;
}

struct node *core_node_get(struct sched *sched, struct str name)
{
	struct node *node = map_find(sched->node_by_name, name);
	if (node != NULL)
		return node;
	node = core_alloc(1, sizeof *node);
	node->name = (struct str){ text_copy(name), name.len };
	node->slot = free_slot(sched);
	node->static_gen = ++sched->gen;
	node->hold_stamp = node->static_gen << 32; // no other node has its stamps
	link_head_init(&node->pods);
	link_head_init(&node->nominated);
	sched->nodes[node->slot] = node;
	sched->are_ranks_valid = false;
	core_load_changed(sched, node);
	for (uint32_t dim = 0; dim < sched->column_count; dim++) {
		sched->columns[dim].alloc[node->slot] = 0;
		sched->columns[dim].used[node->slot] = 0;
	}
	(void)map_set(sched->node_by_name, node->name, node);
	return node;
}

static void free_properties(struct sched *sched, struct node *node)
{
	sched->soft_taint_count -= node->has_soft_taint;
	node->has_soft_taint = false;
	free(node->labels.items);
	free(node->taints);
	free(node->features);
	node->labels = (struct sched_labels){ NULL, 0 };
	node->taints = NULL;
	node->features = NULL;
	node->taint_count = node->feature_count = 0;
}

static void free_device(struct device *device)
{
	free(device->uuid);
	free(device->model);
}

void core_node_release(struct sched *sched, struct node *node)
{
	bool is_needed = !link_is_empty(&node->pods) || !link_is_empty(&node->nominated);
	if (node->is_known || node->present_count > 0 || is_needed)
		return;
	for (size_t i = 0; i < node->device_count; i++)
		free_device(&node->devices[i]);
	if (node->is_touched) {
		for (uint32_t i = 0; i < sched->touched_count; i++) {
			if (sched->touched[i] == node->slot)
				sched->touched[i] = sched->touched[--sched->touched_count];
		}
	}
	windows_drop_node(sched, node);
	queueing_forget_avoided(sched, node);
	reserve_drop_node(sched, node);
	(void)map_remove(sched->node_by_name, node->name);
	sched->nodes[node->slot] = NULL;
	free_properties(sched, node);
	free(node->devices);
	free((void *)(uintptr_t)node->name.data);
	free(node);
}

void core_touch(struct sched *sched, struct node *node)
{
	weigh_touch(sched->weigh, node->slot);
	if (node->is_touched)
		return;
	node->is_touched = true;
	ASSERT(sched->touched_count < sched->slot_cap);
	sched->touched[sched->touched_count++] = node->slot;
}

void core_load_changed(struct sched *sched, const struct node *node)
{
	sched->load_gens[node->slot] = ++sched->load_gen;
}

static void set_allocatable(struct sched *sched, struct node *node, const struct sched_node_in *in)
{
	for (uint32_t dim = 0; dim < sched->column_count; dim++)
		sched->columns[dim].alloc[node->slot] = 0;
	for (size_t i = 0; in != NULL && i < in->allocatable_count; i++) {
		uint32_t dim = dim_get(sched, in->allocatable[i].resource);
		if (dim != DIM_NONE)
			sched->columns[dim].alloc[node->slot] = in->allocatable[i].amount;
	}
}

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size_bytes)
{
	const unsigned char *bytes = data;
	for (size_t i = 0; i < size_bytes; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t hash_texts(uint64_t hash, const struct str *texts, size_t count)
{
	hash = hash_bytes(hash, &count, sizeof count);
	for (size_t i = 0; i < count; i++) {
		hash = hash_bytes(hash, &texts[i].len, sizeof texts[i].len);
		hash = hash_bytes(hash, texts[i].data, texts[i].len);
	}
	return hash;
}

// Kubelets report each few seconds; nearly always nothing that matters here has changed.
static uint64_t hash_node(const struct sched *sched, const struct sched_node_in *in)
{
	uint64_t hash = sched->seed ^ UINT64_C(0xcbf29ce484222325);
	hash = hash_texts(hash, (const void *)in->labels.items, 2 * in->labels.count);
	hash = hash_texts(hash, (const void *)in->taints, 3 * in->taint_count);
	hash = hash_texts(hash, in->features, in->feature_count);
	unsigned char flags = (unsigned char)(in->is_cordoned | in->is_not_ready << 1);
	hash = hash_bytes(hash, &flags, 1);
	for (size_t i = 0; i < in->allocatable_count; i++) {
		hash = hash_texts(hash, &in->allocatable[i].resource, 1);
		hash = hash_bytes(hash, &in->allocatable[i].amount, sizeof(int64_t));
	}
	return hash;
}

void sched_node_set(struct sched *sched, const struct sched_node_in *in)
{
	_Static_assert(sizeof(struct sched_taint) == 3 * sizeof(struct str), "three texts");
	struct node *node = core_node_get(sched, in->name);
	uint64_t hash = hash_node(sched, in);
	if (node->is_known && node->hash == hash)
		return;
	node->hash = hash;
	free_properties(sched, node);
	node->labels = core_labels_copy(&in->labels);
	node->taints = (void *)core_texts_copy((const void *)in->taints, 3 * in->taint_count);
	node->taint_count = in->taint_count;
	for (size_t i = 0; i < in->taint_count; i++)
		node->has_soft_taint = node->has_soft_taint ||
				       str_eq_c(in->taints[i].effect, "PreferNoSchedule");
	sched->soft_taint_count += node->has_soft_taint;
	node->features = core_texts_copy(in->features, in->feature_count);
	node->feature_count = in->feature_count;
	node->is_known = true;
	node->is_cordoned = in->is_cordoned;
	node->is_not_ready = in->is_not_ready;
	set_allocatable(sched, node, in);
	queueing_node_changed(sched, node);
	node->static_gen = ++sched->gen;
	core_load_changed(sched, node);
	core_touch(sched, node);
}

void sched_node_remove(struct sched *sched, struct str name)
{
	struct node *node = map_find(sched->node_by_name, name);
	if (node == NULL || !node->is_known)
		return;
	node->is_known = false;
	free_properties(sched, node);
	set_allocatable(sched, node, NULL);
	queueing_node_changed(sched, node);
	node->static_gen = ++sched->gen;
	core_load_changed(sched, node);
	sched->wakes_all = true; // domains of affinity and spread may have changed
	core_node_release(sched, node);
}

struct device *core_device_get(struct node *node, struct str uuid)
{
	for (size_t i = 0; i < node->device_count; i++) {
		if (str_eq_c(uuid, node->devices[i].uuid))
			return &node->devices[i];
	}
	if (node->device_count == SCHED_DEVICES_MAX)
		return NULL;
	if (node->device_count == node->device_cap) {
		size_t cap = max_size(8, 2 * node->device_cap);
		node->devices =
			core_grow(node->devices, node->device_count, cap, sizeof *node->devices);
		node->device_cap = cap;
	}
	struct device *device = &node->devices[node->device_count++];
	*device = (struct device){ .uuid = text_copy(uuid), .model = text_copy(STR("")) };
	device->index = INT64_MAX;
	return device;
}

static int compare_devices(const void *a, const void *b)
{
	const struct device *x = a, *y = b;
	if (x->index != y->index)
		return x->index < y->index ? -1 : 1;
	return strcmp(x->uuid, y->uuid);
}

void sched_devices_set(struct sched *sched, struct str name, const struct sched_device_in *devices,
		       size_t count)
{
	struct node *node = core_node_get(sched, name);
	for (size_t i = 0; i < node->device_count; i++)
		node->devices[i].is_present = false;
	node->present_count = 0;
	for (size_t i = 0; i < count; i++) {
		struct device *device = core_device_get(node, devices[i].uuid);
		if (device == NULL)
			break;
		free(device->model);
		device->model = text_copy(devices[i].model);
		device->index = devices[i].index;
		device->memory_mib = devices[i].memory_mib;
		device->is_healthy = devices[i].is_healthy;
		device->is_shared = devices[i].is_shared;
		device->numa_node = devices[i].numa_node;
		device->compute = devices[i].compute;
		device->driver = devices[i].driver;
		device->cuda = devices[i].cuda;
		node->present_count += !device->is_present; // a UUID named twice is one device
		device->is_present = true;
	}
	size_t kept = 0; // a device that is gone is remembered as long as a pod holds it
	for (size_t i = 0; i < node->device_count; i++) {
		const struct device *device = &node->devices[i];
		bool is_held = device->holder != NULL || device->used.milli > 0 ||
			       device->used.memory_mib > 0;
		if (device->is_present || is_held)
			node->devices[kept++] = node->devices[i];
		else
			free_device(&node->devices[i]);
	}
	node->device_count = kept;
	if (kept > 1)
		qsort(node->devices, kept, sizeof node->devices[0], compare_devices);
	device_link(node, devices, count);
	claim_book_mark(sched, node);
	node->hold_stamp++;
	queueing_node_changed(sched, node);
	loads_node_changed(sched, node);
	node->static_gen = ++sched->gen;
	core_load_changed(sched, node);
	core_touch(sched, node);
	core_node_release(sched, node);
}

void sched_namespace_set(struct sched *sched, struct str name, const struct sched_labels *labels)
{
	sched_namespace_remove(sched, name);
	struct sched_labels *copy = core_alloc(1, sizeof *copy);
	*copy = core_labels_copy(labels);
	(void)map_set(sched->namespaces, name, copy);
	sched->wakes_all = true;
}

void sched_namespace_remove(struct sched *sched, struct str name)
{
	struct sched_labels *labels = map_remove(sched->namespaces, name);
	if (labels == NULL)
		return;
	free(labels->items);
	free(labels);
	sched->wakes_all = true;
}
