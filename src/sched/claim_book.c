// SPDX-License-Identifier: Apache-2.0
#include "sched/claim_book.h"

#include <stdlib.h>

enum { KEY_MAX_BYTES = 1024 };

struct claim_book *claim_book_new(uint64_t seed)
{
	struct claim_book *book = core_alloc(1, sizeof *book);
	for (int kind = 0; kind < SCHED_CLAIM_KINDS; kind++)
		book->kept[kind] = map_new(seed);
	book->pools = map_new(seed);
	book->held = map_new(seed);
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

static void leave_pool(struct sched *sched, const struct claim_kept *kept)
{
	if (kept->object->kind != SCHED_SLICE)
		return;
	struct str node = kept->object->slice.node;
	if (map_find(sched->claim_book->pools, node) == kept)
		(void)map_remove(sched->claim_book->pools, node);
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
	hold_all(sched, kept, true);
	if (object->kind == SCHED_SLICE)
		(void)map_set(sched->claim_book->pools, object->slice.node, kept);
	sched->wakes_volumes = true;
}

void sched_claim_object_remove(struct sched *sched, sched_claim_kind kind, struct str key)
{
	struct claim_kept *kept = map_remove(sched->claim_book->kept[kind], key);
	if (kept == NULL)
		return;
	hold_all(sched, kept, false);
	leave_pool(sched, kept);
	free_kept(kept);
	sched->wakes_volumes = true;
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
		sched->wakes_volumes = true;
	}
}
