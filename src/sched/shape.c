// SPDX-License-Identifier: Apache-2.0
#include "sched/hold.h"
#include "sched/queueing.h"
#include "sched/window_book.h"

#include <stdlib.h>

enum { SHAPE_ARENA_MAX_BYTES = 128 * 1024 * 1024 };

// The arena is big enough for what the feed lets through, so a NULL from it is our own bug.
static void *must(void *memory)
{
	ASSERT(memory != NULL);
	return memory;
}

static struct str copy_text(struct arena *arena, struct str text)
{
	struct str copy = arena_dup(arena, text);
	ASSERT(copy.data != NULL);
	return copy;
}

static struct str *copy_texts(struct arena *arena, const struct str *texts, size_t count)
{
	struct str *copies = must(ARENA_ARRAY(arena, struct str, count));
	for (size_t i = 0; i < count; i++)
		copies[i] = copy_text(arena, texts[i]);
	return copies;
}

static void *copy_array(struct arena *arena, const void *items, size_t count, size_t size_bytes)
{
	void *copy = must(arena_alloc_array(arena, count, size_bytes));
	if (count > 0)
		memcpy(copy, items, count * size_bytes);
	return copy;
}

#define COPY_ARRAY(arena, items, count) copy_array(arena, items, count, sizeof *(items))

void shape_copy_selector(struct arena *arena, struct sched_selector *selector)
{
	selector->items = COPY_ARRAY(arena, selector->items, selector->count);
	for (size_t i = 0; i < selector->count; i++) {
		struct sched_requirement *item = &selector->items[i];
		item->key = copy_text(arena, item->key);
		item->values = copy_texts(arena, item->values, item->value_count);
	}
}

static void copy_node_term(struct arena *arena, struct sched_node_term *term)
{
	shape_copy_selector(arena, &term->labels);
	shape_copy_selector(arena, &term->fields);
}

static void copy_nodes_part(struct arena *arena, struct sched_spec *spec)
{
	shape_copy_selector(arena, &spec->node_selector);
	spec->terms = COPY_ARRAY(arena, spec->terms, spec->term_count);
	for (size_t i = 0; i < spec->term_count; i++)
		copy_node_term(arena, &spec->terms[i]);
	spec->preferences = COPY_ARRAY(arena, spec->preferences, spec->preference_count);
	for (size_t i = 0; i < spec->preference_count; i++)
		copy_node_term(arena, &spec->preferences[i].term);
	spec->tolerations = COPY_ARRAY(arena, spec->tolerations, spec->toleration_count);
	for (size_t i = 0; i < spec->toleration_count; i++) {
		struct sched_toleration *toleration = &spec->tolerations[i];
		toleration->key = copy_text(arena, toleration->key);
		toleration->value = copy_text(arena, toleration->value);
		toleration->effect = copy_text(arena, toleration->effect);
	}
}

static struct sched_term *copy_terms(struct arena *arena, struct sched_term *terms, size_t count)
{
	struct sched_term *copies = COPY_ARRAY(arena, terms, count);
	for (size_t i = 0; i < count; i++) {
		struct sched_term *term = &copies[i];
		term->topology_key = copy_text(arena, term->topology_key);
		shape_copy_selector(arena, &term->selector);
		term->namespaces = copy_texts(arena, term->namespaces, term->namespace_count);
		shape_copy_selector(arena, &term->namespace_selector);
	}
	return copies;
}

static void copy_pods_part(struct arena *arena, struct sched_spec *spec)
{
	spec->ports = COPY_ARRAY(arena, spec->ports, spec->port_count);
	for (size_t i = 0; i < spec->port_count; i++) {
		spec->ports[i].protocol = copy_text(arena, spec->ports[i].protocol);
		spec->ports[i].ip = copy_text(arena, spec->ports[i].ip);
	}
	spec->spreads = COPY_ARRAY(arena, spec->spreads, spec->spread_count);
	for (size_t i = 0; i < spec->spread_count; i++) {
		spec->spreads[i].topology_key = copy_text(arena, spec->spreads[i].topology_key);
		shape_copy_selector(arena, &spec->spreads[i].selector);
	}
	spec->near = copy_terms(arena, spec->near, spec->near_count);
	spec->apart = copy_terms(arena, spec->apart, spec->apart_count);
}

static void copy_volumes_part(struct arena *arena, struct sched_spec *spec)
{
	spec->claims = COPY_ARRAY(arena, spec->claims, spec->claim_count);
	for (size_t i = 0; i < spec->claim_count; i++) {
		struct sched_claim_ref *claim = &spec->claims[i];
		claim->namespace_ = copy_text(arena, claim->namespace_);
		claim->name = copy_text(arena, claim->name);
		claim->owner_uid = copy_text(arena, claim->owner_uid);
	}
	spec->disks = COPY_ARRAY(arena, spec->disks, spec->disk_count);
	for (size_t i = 0; i < spec->disk_count; i++) {
		struct sched_disk *disk = &spec->disks[i];
		disk->id = copy_text(arena, disk->id);
		disk->monitors = copy_texts(arena, disk->monitors, disk->monitor_count);
	}
}

static struct sched_spec *copy_spec(struct arena *arena, const struct sched_spec *source)
{
	struct sched_spec *spec = COPY_ARRAY(arena, source, 1);
	spec->duration_s = 0; // of one pod, not of all
	spec->amounts = COPY_ARRAY(arena, spec->amounts, spec->amount_count);
	for (size_t i = 0; i < spec->amount_count; i++)
		spec->amounts[i].resource = copy_text(arena, spec->amounts[i].resource);
	copy_nodes_part(arena, spec);
	copy_pods_part(arena, spec);
	copy_volumes_part(arena, spec);
	spec->device_claims = copy_texts(arena, spec->device_claims, spec->device_claim_count);
	spec->features = copy_texts(arena, spec->features, spec->feature_count);
	spec->gpu_models = copy_texts(arena, spec->gpu_models, spec->gpu_model_count);
	spec->topology_label = copy_text(arena, spec->topology_label);
	spec->gpu_asks = COPY_ARRAY(arena, spec->gpu_asks, spec->gpu_ask_count);
	for (size_t i = 0; i < spec->gpu_ask_count; i++)
		spec->gpu_asks[i].container = copy_text(arena, spec->gpu_asks[i].container);
	spec->shares = COPY_ARRAY(arena, spec->shares, spec->share_count);
	for (size_t i = 0; i < spec->share_count; i++)
		spec->shares[i].container = copy_text(arena, spec->shares[i].container);
	spec->refusals = COPY_ARRAY(arena, spec->refusals, spec->refusal_count);
	for (size_t i = 0; i < spec->refusal_count; i++)
		spec->refusals[i].detail = copy_text(arena, spec->refusals[i].detail);
	return spec;
}

// Pods whose own labels and namespace decide where they fit share a shape only with equals;
// priority is part of the reasons.
static void put_key(const struct sched *sched, const struct sched_pod_in *pod, struct buf *out)
{
	const struct sched_spec *spec = pod->spec;
	buf_printf(out, pod->stay.never_preempts ? "%lldn:" : "%lld:", (long long)pod->priority);
	sched_spec_key(spec, out);
	queueing_put_key(sched, pod, out);
	bool is_by_labels = spec->near_count + spec->apart_count + spec->spread_count > 0;
	bool is_windowed = spec->gpu_count > 0 && windows_concern(sched, pod->namespace_);
	if (!is_by_labels && !is_windowed && !slices_are_asked(spec))
		return;
	buf_printf(out, "|%zu:", pod->namespace_.len);
	buf_put(out, pod->namespace_);
	if (!is_by_labels)
		return;
	for (size_t i = 0; i < pod->labels.count; i++) {
		const struct sched_label *label = &pod->labels.items[i];
		buf_printf(out, "|%zu,%zu:", label->key.len, label->value.len);
		buf_put(out, label->key);
		buf_put(out, label->value);
	}
}

struct shape *shape_ref(struct sched *sched, const struct sched_pod_in *pod)
{
	AUTO(buf_done) struct buf key = { .limit = SHAPE_ARENA_MAX_BYTES };
	put_key(sched, pod, &key);
	ASSERT(buf_ok(&key));
	struct shape *shape = map_find(sched->shape_by_key, buf_str(&key));
	if (shape == NULL) {
		shape = core_alloc(1, sizeof *shape);
		shape->arena = must(arena_new(SHAPE_ARENA_MAX_BYTES));
		shape->spec = copy_spec(shape->arena, pod->spec);
		shape->key = copy_text(shape->arena, buf_str(&key));
		shape->dims = core_alloc(shape->spec->amount_count, sizeof *shape->dims);
		shape->queue = queues_find(sched->queueing->queues, pod->namespace_);
		shape->gpu_parts = queueing_gpu_parts(shape->spec);
		shape->gpu_milli = milli_of_parts(shape->gpu_parts);
		if (slices_are_asked(shape->spec))
			shape->slice_tenant = copy_text(shape->arena, pod->namespace_);
		(void)map_set(sched->shape_by_key, shape->key, shape);
	}
	shape->pod_count++;
	return shape;
}

void shape_unref(struct sched *sched, struct shape *shape)
{
	ASSERT(shape->pod_count > 0);
	if (--shape->pod_count > 0)
		return;
	ASSERT(tree_count(&shape->waiting) == 0 && !tree_has(&shape->active));
	if (link_is_in(&shape->in_parked))
		link_drop(&shape->in_parked);
	if (link_is_in(&shape->in_telling))
		link_drop(&shape->in_telling);
	if (link_is_in(&shape->in_blocked))
		link_drop(&shape->in_blocked);
	if (link_is_in(&shape->in_limited))
		link_drop(&shape->in_limited);
	(void)map_remove(sched->shape_by_key, shape->key);
	free(shape->dims);
	free(shape->memo);
	free(shape->static_fits);
	hold_cache_free(shape->holds);
	arena_free(shape->arena);
	free(shape);
}

void shape_ready_dims(struct sched *sched, struct shape *shape)
{
	if (shape->dims_gen == sched->columns_gen)
		return;
	for (size_t i = 0; i < shape->spec->amount_count; i++)
		shape->dims[i] = core_dim_find(sched, shape->spec->amounts[i].resource);
	shape->dims_gen = sched->columns_gen;
}

enum { WORD_BITS = 64 };

bool shape_is_static_fit(const struct shape *shape, uint32_t slot)
{
	ASSERT(slot < shape->static_cap);
	return (shape->static_fits[slot / WORD_BITS] >> (slot % WORD_BITS) & 1) != 0;
}

// Which nodes suit the shape, as a number: shapes with equal ones stand in the same line.
static void refresh_pool(const struct sched *sched, struct shape *shape)
{
	uint64_t hash = shape->spec->gpu_count > 0 ? 1 : 0;
	for (uint32_t slot = 0; slot < sched->slot_count; slot++) {
		if (sched->nodes[slot] != NULL && shape_is_static_fit(shape, slot))
			hash = (hash ^ (slot + 1)) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	shape->pool = hash;
}

static void refresh_static(struct sched *sched, struct shape *shape)
{
	if (shape->static_cap < sched->slot_cap) {
		free(shape->static_fits);
		shape->static_fits = core_alloc(sched->slot_cap / WORD_BITS + 1, sizeof(uint64_t));
		shape->static_cap = sched->slot_cap;
		shape->static_gen = 0;
	}
	if (shape->static_gen == sched->gen)
		return;
	for (uint32_t slot = 0; slot < sched->slot_count; slot++) {
		const struct node *node = sched->nodes[slot];
		if (node == NULL || node->static_gen <= shape->static_gen)
			continue;
		uint64_t bit = UINT64_C(1) << (slot % WORD_BITS);
		uint64_t *word = &shape->static_fits[slot / WORD_BITS];
		bool fits = node->is_known && filter_static(shape->spec, node) == 0;
		*word = fits ? *word | bit : *word & ~bit;
	}
	shape->static_gen = sched->gen;
	refresh_pool(sched, shape);
}

void shape_ready(struct sched *sched, struct shape *shape)
{
	shape_ready_dims(sched, shape);
	refresh_static(sched, shape);
}

void shape_activate(struct sched *sched, struct shape *shape)
{
	if (link_is_in(&shape->in_parked))
		link_drop(&shape->in_parked);
	if (tree_has(&shape->active) || tree_count(&shape->waiting) == 0)
		return;
	queueing_activate(sched, shape);
}

void shape_park(struct sched *sched, struct shape *shape)
{
	queueing_deactivate(sched, shape);
	shape->is_stale = false;
	if (!link_is_in(&shape->in_parked))
		link_add(&sched->parked, &shape->in_parked);
	queueing_park(sched, shape);
}

// A shape stands in the active tree under its first pod's key, so it leaves and comes back when
// that pod changes.
void shape_add_pod(struct sched *sched, struct pod *pod)
{
	struct shape *shape = pod->shape;
	bool was_active = tree_has(&shape->active);
	if (was_active)
		queueing_deactivate(sched, shape);
	tree_insert(&shape->waiting, &pod->wait->in_shape, &pod->key);
	if (was_active || !link_is_in(&shape->in_parked))
		shape_activate(sched, shape);
}

void shape_drop_pod(struct sched *sched, struct pod *pod)
{
	struct shape *shape = pod->shape;
	bool was_active = tree_has(&shape->active);
	if (was_active)
		queueing_deactivate(sched, shape);
	if (shape->cursor == &pod->wait->in_shape)
		shape->cursor = tree_next(&pod->wait->in_shape);
	tree_remove(&shape->waiting, &pod->wait->in_shape);
	if (was_active)
		shape_activate(sched, shape);
	bool is_idle = tree_count(&shape->waiting) == 0 && link_is_in(&shape->in_parked);
	if (is_idle)
		link_drop(&shape->in_parked);
	if (is_idle && link_is_in(&shape->in_blocked))
		link_drop(&shape->in_blocked);
	if (is_idle && link_is_in(&shape->in_limited))
		link_drop(&shape->in_limited);
}

void shape_move_pod(struct pod *pod, int64_t score)
{
	struct shape *shape = pod->shape;
	if (shape->cursor == &pod->wait->in_shape)
		shape->cursor = tree_next(&pod->wait->in_shape);
	tree_remove(&shape->waiting, &pod->wait->in_shape);
	pod->key.score = score;
	tree_insert(&shape->waiting, &pod->wait->in_shape, &pod->key);
}

void shape_tell(struct sched *sched, struct shape *shape)
{
	shape->cursor = tree_first(&shape->waiting);
	if (!link_is_in(&shape->in_telling))
		link_add(&sched->telling, &shape->in_telling);
}
