// SPDX-License-Identifier: Apache-2.0
#include "sched/claim_book.h"

#include "sched/claim_use.h"
#include "sched/gang.h"

#include <stdlib.h>

enum { KEY_MAX_BYTES = 1024 };

struct claim_book *claim_book_new(uint64_t seed)
{
	struct claim_book *book = core_alloc(1, sizeof *book);
	for (int kind = 0; kind < SCHED_CLAIM_KINDS; kind++)
		book->kept[kind] = map_new(seed);
	book->pools = map_new(seed);
	book->held = map_new(seed);
	book->uses = map_new(seed);
	link_head_init(&book->idle);
	return book;
}

static void forget_picks(struct claim_kept *kept)
{
	free(kept->picks);
	free((void *)(uintptr_t)kept->assumed_node.data);
	kept->picks = NULL;
	kept->pick_count = 0;
	kept->assumed_by = NULL;
	kept->assumed_node = (struct str){ NULL, 0 };
}

static void free_kept(struct claim_kept *kept)
{
	claim_idle_drop(kept);
	forget_picks(kept);
	arena_free(kept->object->arena);
	free(kept);
}

void claim_book_free(struct claim_book *book)
{
	struct str key;
	void *kept;
	if (book == NULL)
		return;
	for (int kind = 0; kind < SCHED_CLAIM_KINDS; kind++) {
		for (size_t i = 0; map_next(book->kept[kind], &i, &key, &kept);)
			free_kept(kept);
		map_free(book->kept[kind]);
	}
	map_free(book->pools);
	map_free(book->held);
	claim_uses_free(book->uses);
	free(book);
}

struct claim_kept *claim_book_find(const struct claim_book *book, sched_claim_kind kind,
				   struct str key)
{
	return map_find(book->kept[kind], key);
}

static struct str held_key(struct str node, struct str device, struct buf *out)
{
	buf_clear(out);
	buf_put(out, node);
	buf_put_byte(out, '/');
	for (size_t i = 0; i < device.len; i++) { // a GPU's UUID in small letters is its name
		char c = device.data[i];
		buf_put_byte(out, c >= 'A' && c <= 'Z' ? (char)(c + 32) : c);
	}
	return buf_str(out);
}

bool claim_book_is_held(const struct claim_book *book, struct str node, struct str device)
{
	AUTO(buf_done) struct buf key = { .limit = KEY_MAX_BYTES };
	return map_count(book->held) > 0 &&
	       map_find(book->held, held_key(node, device, &key)) != NULL;
}

void claim_book_mark(const struct sched *sched, struct node *node)
{
	for (size_t i = 0; i < node->device_count; i++)
		node->devices[i].is_claimed = claim_book_is_held(sched->claim_book, node->name,
								 str_of(node->devices[i].uuid));
}

static void hold(struct sched *sched, struct claim_kept *claim, struct str pool, struct str device)
{
	AUTO(buf_done) struct buf key = { .limit = KEY_MAX_BYTES };
	(void)map_set(sched->claim_book->held, held_key(pool, device, &key), claim);
}

static void let_go(struct sched *sched, const struct claim_kept *claim, struct str pool,
		   struct str device)
{
	AUTO(buf_done) struct buf key = { .limit = KEY_MAX_BYTES };
	if (map_find(sched->claim_book->held, held_key(pool, device, &key)) == claim)
		(void)map_remove(sched->claim_book->held, buf_str(&key));
}

static void mark_pool(struct sched *sched, struct str pool)
{
	struct node *node = map_find(sched->node_by_name, pool);
	if (node == NULL)
		return;
	claim_book_mark(sched, node);
	if (!sched->gangs->is_trying) // a question wakes nobody
		core_touch(sched, node);
}

// What the claim has, by the API server's word and by a decision of ours.
static void hold_all(struct sched *sched, struct claim_kept *kept, bool holds)
{
	const struct sched_device_claim_in *in = &kept->object->claim;
	if (kept->object->kind != SCHED_DEVICE_CLAIM)
		return;
	for (size_t i = 0; i < in->given_count; i++) {
		if (holds)
			hold(sched, kept, in->given[i].pool, in->given[i].device);
		else
			let_go(sched, kept, in->given[i].pool, in->given[i].device);
		mark_pool(sched, in->given[i].pool);
	}
	for (size_t i = 0; i < kept->pick_count; i++) {
		if (holds)
			hold(sched, kept, kept->assumed_node, str_of(kept->picks[i].device));
		else
			let_go(sched, kept, kept->assumed_node, str_of(kept->picks[i].device));
	}
	if (kept->pick_count > 0)
		mark_pool(sched, kept->assumed_node);
}

void claim_book_lift(struct sched *sched, struct claim_kept *claim)
{
	ASSERT(!claim->is_lifted && sched->gangs->is_trying);
	hold_all(sched, claim, false);
	claim->is_lifted = true;
}

void claim_book_lower(struct sched *sched, struct claim_kept *claim)
{
	ASSERT(claim->is_lifted && sched->gangs->is_trying);
	hold_all(sched, claim, true);
	claim->is_lifted = false;
}

static bool is_ill(const struct sched_pool_device *device)
{
	for (size_t i = 0; i < device->taint_count; i++) {
		struct str effect = device->taints[i].effect;
		if (str_eq_c(effect, "NoSchedule") || str_eq_c(effect, "NoExecute"))
			return true;
	}
	return false;
}

int64_t claim_book_capacity_parts(const struct sched *sched)
{
	struct str node;
	void *pool;
	int64_t sum = 0;
	for (size_t i = 0; map_next(sched->claim_book->pools, &i, &node, &pool);) {
		const struct sched_slice_in *slice = &((struct claim_kept *)pool)->object->slice;
		for (size_t k = 0; k < slice->device_count; k++)
			sum += is_ill(&slice->devices[k])
				       ? 0
				       : claim_fit_device_parts(&slice->devices[k]);
	}
	return sum;
}

static bool has_parts(const struct sched_slice_in *slice)
{
	size_t i = 0;
	while (i < slice->device_count && claim_fit_device_parts(&slice->devices[i]) == GPU_PARTS)
		i++;
	return i < slice->device_count;
}

static void leave_pool(struct sched *sched, const struct claim_kept *kept)
{
	if (kept->object->kind != SCHED_SLICE)
		return;
	sched->claim_book->part_count -= has_parts(&kept->object->slice);
	struct str node = kept->object->slice.node;
	if (map_find(sched->claim_book->pools, node) == kept)
		(void)map_remove(sched->claim_book->pools, node);
}

// After a change of the object. What all devices of a request are depends on slices and classes.
static void note_change(struct sched *sched, sched_claim_kind kind, struct str key)
{
	struct str claim;
	void *use;
	sched->wakes_volumes = true;
	if (kind == SCHED_DEVICE_CLAIM) {
		claim_use_changed(sched, key);
		return;
	}
	sched->claim_book->pools_gen++;
	for (size_t i = 0; map_next(sched->claim_book->uses, &i, &claim, &use);)
		claim_use_changed(sched, claim);
}

void sched_claim_object_set(struct sched *sched, struct sched_claim_object *object)
{
	struct map *map = sched->claim_book->kept[object->kind];
	struct claim_kept *kept = map_find(map, object->key);
	ASSERT(object->key.len > 0);
	if (kept == NULL) {
		kept = core_alloc(1, sizeof *kept);
		(void)map_set(map, object->key, kept);
	} else {
		hold_all(sched, kept, false);
		leave_pool(sched, kept);
		bool is_same = object->kind == SCHED_DEVICE_CLAIM &&
			       str_eq(kept->object->claim.uid, object->claim.uid);
		if (!is_same || object->claim.is_allocated)
			forget_picks(kept); // the API server says itself what was assumed
		arena_free(kept->object->arena);
	}
	kept->object = object;
	kept->asked_gen = UINT64_MAX;
	hold_all(sched, kept, true);
	if (object->kind == SCHED_SLICE) {
		(void)map_set(sched->claim_book->pools, object->slice.node, kept);
		sched->claim_book->part_count += has_parts(&object->slice);
	} else if (object->kind == SCHED_DEVICE_CLAIM) {
		claim_idle_note(sched, kept);
	}
	note_change(sched, object->kind, object->key);
}

void sched_claim_object_remove(struct sched *sched, sched_claim_kind kind, struct str key)
{
	struct claim_kept *kept = map_remove(sched->claim_book->kept[kind], key);
	if (kept == NULL)
		return;
	hold_all(sched, kept, false);
	leave_pool(sched, kept);
	free_kept(kept);
	note_change(sched, kind, key);
}

void claim_book_assume(struct sched *sched, struct claim_kept *claim, const struct pod *pod,
		       const struct claim_pick *picks, size_t count)
{
	ASSERT(claim->assumed_by == NULL && count > 0 && pod->node != NULL);
	struct str name = pod->node->name;
	char *node = core_alloc(1, name.len + 1);
	memcpy(node, name.data, name.len);
	claim->picks = core_alloc(count, sizeof *picks);
	memcpy(claim->picks, picks, count * sizeof *picks);
	claim->pick_count = count;
	claim->assumed_by = pod;
	claim->assumed_node = (struct str){ node, name.len };
	for (size_t i = 0; i < count; i++)
		hold(sched, claim, name, str_of(picks[i].device));
	claim_book_mark(sched, pod->node);
	claim_use_changed(sched, claim->object->key);
}

void claim_book_unassume(struct sched *sched, const struct pod *pod)
{
	const struct sched_spec *spec = pod->shape->spec;
	for (size_t i = 0; i < spec->device_claim_count; i++) {
		struct claim_kept *claim = claim_book_find(sched->claim_book, SCHED_DEVICE_CLAIM,
							   spec->device_claims[i]);
		if (claim == NULL || claim->assumed_by != pod)
			continue;
		hold_all(sched, claim, false);
		forget_picks(claim);
		hold_all(sched, claim, true);
		claim_use_changed(sched, claim->object->key);
		sched->wakes_volumes = true;
	}
}
