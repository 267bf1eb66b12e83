// SPDX-License-Identifier: Apache-2.0
#include "billing/slots.h"

#include <stdlib.h>
#include <string.h>

enum { CAP_FIRST = 64 };

void slots_done(struct slots *slots)
{
	free(slots->slots);
	*slots = (struct slots){ 0 };
}

// The 32 bits that a slot keeps decide its place too, so that a wider table needs no more.
static uint32_t fold(uint64_t hash) { return (uint32_t)(hash ^ (hash >> 32)); }

uint32_t slots_find(const struct slots *slots, uint64_t hash, slots_same_fn *same, const void *arg)
{
	uint32_t folded = fold(hash);
	if (slots->cap == 0)
		return UINT32_MAX;
	for (size_t i = folded & (slots->cap - 1); slots->slots[i].item != 0;
	     i = (i + 1) & (slots->cap - 1)) {
		const struct slot *slot = &slots->slots[i];
		if (slot->hash == folded && same(arg, slot->item - 1))
			return slot->item - 1;
	}
	return UINT32_MAX;
}

static void put(struct slot *slots, size_t cap, struct slot slot)
{
	size_t at = slot.hash & (cap - 1);
	while (slots[at].item != 0)
		at = (at + 1) & (cap - 1);
	slots[at] = slot;
}

static bool widen(struct slots *slots)
{
	size_t cap = slots->cap == 0 ? CAP_FIRST : slots->cap * 2;
	struct slot *wider = calloc(cap, sizeof *wider);
	if (wider == NULL)
		return false;
	for (size_t i = 0; i < slots->cap; i++)
		if (slots->slots[i].item != 0)
			put(wider, cap, slots->slots[i]);
	free(slots->slots);
	slots->slots = wider;
	slots->cap = cap;
	return true;
}

bool slots_add(struct slots *slots, uint64_t hash, uint32_t item)
{
	ASSERT(item < SLOTS_ITEMS_MAX);
	if (slots->count * 3 >= slots->cap * 2 && !widen(slots))
		return false;
	put(slots->slots, slots->cap, (struct slot){ item + 1, fold(hash) });
	slots->count++;
	return true;
}

bool slots_room(void *data, size_t *cap, size_t count, size_t item_bytes)
{
	void *old = NULL;
	ASSERT(count <= *cap);
	if (count < *cap)
		return true;
	if (count >= SLOTS_ITEMS_MAX)
		return false;
	size_t wider = count < 16 ? 16 : count + count / 2;
	memcpy(&old, data, sizeof old);
	void *grown = realloc(old, wider * item_bytes);
	if (grown == NULL)
		return false;
	memcpy(data, &grown, sizeof grown);
	*cap = wider;
	return true;
}

uint64_t slots_hash(const void *data, size_t size_bytes)
{
	const char *bytes = data;
	uint64_t hash = 0x9e3779b97f4a7c15U ^ size_bytes;
	for (size_t i = 0; i < size_bytes; i += 8) {
		uint64_t word = 0;
		memcpy(&word, bytes + i, min_size(8, size_bytes - i));
		unsigned __int128 product = (unsigned __int128)(hash ^ word) * 0xd6e8feb86659fd93U;
		hash = ((uint64_t)product ^ (uint64_t)(product >> 64)) + 0x2545f4914f6cdd1dU;
	}
	return hash;
}
