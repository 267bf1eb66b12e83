// SPDX-License-Identifier: Apache-2.0
#include "sched/stock.h"

#include "sched/claim_book.h"

#include <stdlib.h>

// Copies in two passes over the same code: the first counts, the second fills. Each function
// takes a part whose lists still are the caller's and leaves it with lists of its own.
struct pack {
	char *at; // NULL: counting
	size_t used_bytes;
};

static size_t aligned(size_t size_bytes)
{
	enum { ALIGN_BYTES = _Alignof(max_align_t) };
	return (size_bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
}

static void *pack_put(struct pack *pack, const void *data, size_t size_bytes)
{
	char *place = pack->at == NULL ? NULL : pack->at + pack->used_bytes;
	if (place != NULL && size_bytes > 0)
		memcpy(place, data, size_bytes);
	pack->used_bytes += aligned(max_size(size_bytes, 1));
	return place;
}

static void pack_text(struct pack *pack, struct str *text)
{
	if (text->data != NULL)
		text->data = pack_put(pack, text->data, text->len);
}

static void pack_texts(struct pack *pack, struct str **texts, size_t count)
{
	const struct str *from = *texts;
	struct str *to = pack_put(pack, from, count * sizeof *from);
	for (size_t i = 0; i < count; i++) {
		struct str text = from[i];
		pack_text(pack, &text);
		if (to != NULL)
			to[i] = text;
	}
	*texts = to;
}

static void pack_selector(struct pack *pack, struct sched_selector *selector)
{
	const struct sched_requirement *from = selector->items;
	struct sched_requirement *to = pack_put(pack, from, selector->count * sizeof *from);
	for (size_t i = 0; i < selector->count; i++) {
		struct sched_requirement item = from[i];
		pack_text(pack, &item.key);
		pack_texts(pack, &item.values, item.value_count);
		if (to != NULL)
			to[i] = item;
	}
	selector->items = to;
}

static void pack_claim(struct pack *pack, struct sched_claim_in *claim)
{
	pack_text(pack, &claim->uid);
	pack_text(pack, &claim->version);
	pack_text(pack, &claim->class_name);
	pack_text(pack, &claim->volume_name);
	pack_text(pack, &claim->attributes_class);
	pack_text(pack, &claim->owner_uid);
	pack_text(pack, &claim->selected_node);
	pack_selector(pack, &claim->selector);
}

static void pack_volume(struct pack *pack, struct sched_volume_in *volume)
{
	pack_text(pack, &volume->version);
	pack_text(pack, &volume->class_name);
	pack_text(pack, &volume->attributes_class);
	pack_text(pack, &volume->claim_key);
	pack_text(pack, &volume->claim_uid);
	pack_text(pack, &volume->driver);
	pack_text(pack, &volume->handle);
	_Static_assert(sizeof(struct sched_label) == 2 * sizeof(struct str), "two texts");
	struct str *labels = (void *)volume->labels.items;
	pack_texts(pack, &labels, 2 * volume->labels.count);
	volume->labels.items = (void *)labels;
	const struct sched_node_term *from = volume->terms;
	struct sched_node_term *to = pack_put(pack, from, volume->term_count * sizeof *from);
	for (size_t i = 0; i < volume->term_count; i++) {
		struct sched_node_term term = from[i];
		pack_selector(pack, &term.labels);
		pack_selector(pack, &term.fields);
		if (to != NULL)
			to[i] = term;
	}
	volume->terms = to;
}

static void pack_class(struct pack *pack, struct sched_class_in *class_)
{
	const struct sched_selector *from = class_->topologies;
	struct sched_selector *to = pack_put(pack, from, class_->topology_count * sizeof *from);
	for (size_t i = 0; i < class_->topology_count; i++) {
		struct sched_selector topology = from[i];
		pack_selector(pack, &topology);
		if (to != NULL)
			to[i] = topology;
	}
	class_->topologies = to;
	pack_text(pack, &class_->provisioner);
}

static void pack_csi_node(struct pack *pack, struct sched_csi_node_in *node)
{
	const struct sched_driver_limit *from = node->limits;
	struct sched_driver_limit *to = pack_put(pack, from, node->limit_count * sizeof *from);
	for (size_t i = 0; i < node->limit_count; i++) {
		struct sched_driver_limit limit = from[i];
		pack_text(pack, &limit.driver);
		if (to != NULL)
			to[i] = limit;
	}
	node->limits = to;
}

static void pack_all(struct pack *pack, struct sched_storage_in *in)
{
	pack_text(pack, &in->key);
	switch (in->kind) {
	case SCHED_CLAIM: pack_claim(pack, &in->claim); break;
	case SCHED_VOLUME: pack_volume(pack, &in->volume); break;
	case SCHED_CLASS: pack_class(pack, &in->class_); break;
	case SCHED_CSI_NODE: pack_csi_node(pack, &in->csi_node); break;
	case SCHED_CSI_DRIVER: break;
	case SCHED_CAPACITY:
		pack_text(pack, &in->capacity.class_name);
		pack_selector(pack, &in->capacity.nodes);
		break;
	case SCHED_ATTACHMENT:
		pack_text(pack, &in->attachment.driver);
		pack_text(pack, &in->attachment.node);
		pack_text(pack, &in->attachment.volume);
		break;
	case SCHED_STORAGES: ASSERT(false && "no kind");
	}
}

static struct stored *copy(const struct sched_storage_in *in)
{
	struct sched_storage_in counted = *in, filled = *in;
	struct pack count = { NULL, 0 };
	pack_all(&count, &counted);
	size_t head_bytes = aligned(sizeof(struct stored));
	struct stored *stored = core_alloc(1, head_bytes + count.used_bytes);
	struct pack fill = { (char *)stored + head_bytes, 0 };
	pack_all(&fill, &filled);
	ASSERT(fill.used_bytes == count.used_bytes);
	stored->in = filled;
	return stored;
}

struct stock *stock_new(uint64_t seed)
{
	struct stock *stock = core_alloc(1, sizeof *stock);
	for (int kind = 0; kind < SCHED_STORAGES; kind++)
		stock->stored[kind] = map_new(seed);
	stock->claim_users = map_new(seed);
	stock->attached = map_new(seed);
	return stock;
}

void stock_free(struct stock *stock)
{
	if (stock == NULL)
		return;
	struct str key;
	void *stored;
	for (int kind = 0; kind < SCHED_STORAGES; kind++) {
		for (size_t i = 0; map_next(stock->stored[kind], &i, &key, &stored);)
			free(stored);
		map_free(stock->stored[kind]);
	}
	map_free(stock->claim_users);
	map_free(stock->attached);
	free(stock);
}

struct stored *stock_find(const struct stock *stock, sched_storage kind, struct str key)
{
	return map_find(stock->stored[kind], key);
}

static void attach(struct stock *stock, struct stored *stored)
{
	struct str node = stored->in.attachment.node;
	stored->next_on_node = map_find(stock->attached, node);
	(void)map_set(stock->attached, node, stored);
}

static void detach(struct stock *stock, struct stored *stored)
{
	struct str node = stored->in.attachment.node;
	struct stored *at = map_find(stock->attached, node);
	if (at == stored && stored->next_on_node == NULL) {
		(void)map_remove(stock->attached, node);
	} else if (at == stored) {
		(void)map_set(stock->attached, node, stored->next_on_node);
	} else {
		while (at->next_on_node != stored)
			at = at->next_on_node;
		at->next_on_node = stored->next_on_node;
	}
}

static void forget_assumed(struct stored *stored)
{
	stored->assumed = NULL;
	stored->assumed_by = NULL;
	free((void *)(uintptr_t)stored->assumed_node.data);
	stored->assumed_node = (struct str){ NULL, 0 };
}

static void disjoin(struct stored *stored)
{
	if (stored->assumed != NULL)
		forget_assumed(stored->assumed);
	forget_assumed(stored);
}

// The API server says itself what was assumed, or something that excludes it.
static bool is_told(const struct sched_storage_in *in)
{
	if (in->kind == SCHED_CLAIM)
		return in->claim.volume_name.len > 0 || in->claim.selected_node.data != NULL;
	return in->kind != SCHED_VOLUME || in->volume.has_claim || in->volume.is_deleting;
}

static void take_assumed(struct stored *from, struct stored *to)
{
	if (from->assumed_by == NULL)
		return;
	if (is_told(&to->in)) {
		disjoin(from);
		return;
	}
	to->assumed_by = from->assumed_by;
	to->assumed_node = from->assumed_node;
	to->assumed = from->assumed;
	if (to->assumed != NULL)
		to->assumed->assumed = to;
}

void sched_storage_set(struct sched *sched, const struct sched_storage_in *in)
{
	struct stock *stock = sched->stock;
	ASSERT(in->kind < SCHED_STORAGES && in->key.len > 0);
	struct stored *stored = copy(in);
	struct stored *old = map_set(stock->stored[in->kind], in->key, stored);
	if (old != NULL) {
		if (in->kind == SCHED_ATTACHMENT)
			detach(stock, old);
		take_assumed(old, stored);
		free(old);
	}
	if (in->kind == SCHED_ATTACHMENT)
		attach(stock, stored);
	sched->wakes_volumes = true;
}

void sched_storage_remove(struct sched *sched, sched_storage kind, struct str key)
{
	struct stock *stock = sched->stock;
	struct stored *stored = map_remove(stock->stored[kind], key);
	if (stored == NULL)
		return;
	if (kind == SCHED_ATTACHMENT)
		detach(stock, stored);
	disjoin(stored);
	free(stored);
	sched->wakes_volumes = true;
}

struct str stock_claim_key(const struct sched_claim_ref *ref, struct buf *out)
{
	buf_clear(out);
	buf_put(out, ref->namespace_);
	buf_put_byte(out, '/');
	buf_put(out, ref->name);
	return buf_str(out);
}

size_t stock_users(const struct stock *stock, struct str claim_key)
{
	return (size_t)(uintptr_t)map_find(stock->claim_users, claim_key);
}

void stock_use(struct sched *sched, const struct pod *pod, int change)
{
	const struct sched_spec *spec = pod->shape->spec;
	AUTO(buf_done) struct buf text = { .limit = 1024 };
	for (size_t i = 0; i < spec->claim_count; i++) {
		if (spec->claims[i].is_ephemeral)
			continue;
		struct str key = stock_claim_key(&spec->claims[i], &text);
		size_t users = stock_users(sched->stock, key) + (size_t)change;
		if (users == 0)
			(void)map_remove(sched->stock->claim_users, key);
		else
			(void)map_set(sched->stock->claim_users, key, (void *)(uintptr_t)users);
		sched->wakes_volumes = sched->wakes_volumes || users == 0;
	}
}

void stock_unassume(struct sched *sched, const struct pod *pod)
{
	const struct sched_spec *spec = pod->shape->spec;
	AUTO(buf_done) struct buf text = { .limit = 1024 };
	for (size_t i = 0; i < spec->claim_count; i++) {
		struct str key = stock_claim_key(&spec->claims[i], &text);
		struct stored *claim = stock_find(sched->stock, SCHED_CLAIM, key);
		if (claim == NULL || claim->assumed_by != pod)
			continue;
		disjoin(claim);
		sched->wakes_volumes = true;
	}
	claim_book_unassume(sched, pod);
}
