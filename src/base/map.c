// SPDX-License-Identifier: Apache-2.0
#include "base/map.h"

#include <stdio.h>
#include <stdlib.h>

struct entry {
	const char *key; // NULL: removed
	void *value;
	uint32_t key_len, hash;
};

// Entries in order of insertion; slots hold entry index + 1, open addressing.
struct map {
	struct entry *entries;
	size_t entry_count, entry_cap; // count includes removed ones
	uint32_t *slots;
	size_t slot_count; // power of two
	size_t live_count;
	uint64_t seed;
	bool is_borrowing; // keys are the caller's
};

static void *must(void *memory)
{
	if (memory == NULL) {
		(void)fputs("out of memory\n", stderr);
		abort();
	}
	return memory;
}

static uint32_t hash_of(const struct map *map, struct str key)
{
	uint64_t h = map->seed ^ UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < key.len; i++) {
		h ^= (unsigned char)key.data[i];
		h *= UINT64_C(0x100000001b3);
		h ^= h >> 29;
	}
	h ^= h >> 32;
	h *= UINT64_C(0xd6e8feb86659fd93);
	return (uint32_t)(h ^ (h >> 32));
}

struct map *map_new(uint64_t seed)
{
	struct map *map = must(calloc(1, sizeof *map));
	map->seed = seed;
	map->slot_count = 16;
	map->slots = must(calloc(map->slot_count, sizeof *map->slots));
	return map;
}

struct map *map_new_borrowing(uint64_t seed)
{
	struct map *map = map_new(seed);
	map->is_borrowing = true;
	return map;
}

static void free_key(const struct map *map, const struct entry *e)
{
	if (!map->is_borrowing)
		free((void *)(uintptr_t)e->key);
}

void map_free(struct map *map)
{
	if (map == NULL)
		return;
	for (size_t i = 0; i < map->entry_count; i++)
		free_key(map, &map->entries[i]);
	free(map->entries);
	free(map->slots);
	free(map);
}

size_t map_count(const struct map *map) { return map->live_count; }

static void place(struct map *map, size_t entry_i)
{
	size_t mask = map->slot_count - 1;
	size_t slot = map->entries[entry_i].hash & mask;
	while (map->slots[slot] != 0)
		slot = (slot + 1) & mask;
	map->slots[slot] = (uint32_t)entry_i + 1;
}

// Drops removed entries and doubles the slots when they are more than half full.
static void rebuild(struct map *map)
{
	size_t live = 0;
	for (size_t i = 0; i < map->entry_count; i++)
		if (map->entries[i].key != NULL)
			map->entries[live++] = map->entries[i];
	ASSERT(live == map->live_count);
	map->entry_count = live;
	while (map->slot_count < (live + 1) * 2)
		map->slot_count *= 2;
	free(map->slots);
	map->slots = must(calloc(map->slot_count, sizeof *map->slots));
	for (size_t i = 0; i < live; i++)
		place(map, i);
}

static struct entry *lookup(const struct map *map, struct str key, uint32_t hash)
{
	size_t mask = map->slot_count - 1;
	for (size_t slot = hash & mask; map->slots[slot] != 0; slot = (slot + 1) & mask) {
		struct entry *e = &map->entries[map->slots[slot] - 1];
		if (e->key != NULL && e->hash == hash &&
		    str_eq((struct str){ e->key, e->key_len }, key))
			return e;
	}
	return NULL;
}

void *map_find(const struct map *map, struct str key)
{
	ASSERT(map != NULL);
	struct entry *e = lookup(map, key, hash_of(map, key));
	return e == NULL ? NULL : e->value;
}

static const char *borrowed(struct str key) { return key.data == NULL ? "" : key.data; }

static const char *copy_of(struct str key)
{
	char *copy = must(malloc(key.len + 1));
	if (key.len > 0)
		memcpy(copy, key.data, key.len);
	copy[key.len] = '\0';
	return copy;
}

void *map_set(struct map *map, struct str key, void *value)
{
	ASSERT(map != NULL && value != NULL && key.len <= UINT32_MAX);
	uint32_t hash = hash_of(map, key);
	struct entry *e = lookup(map, key, hash);
	if (e != NULL) {
		void *old = e->value;
		e->value = value;
		e->key = map->is_borrowing ? borrowed(key) : e->key;
		return old;
	}
	if ((map->entry_count + 1) * 2 > map->slot_count)
		rebuild(map);
	if (map->entry_count == map->entry_cap) {
		map->entry_cap = max_size(map->entry_cap * 2, 16);
		map->entries = must(realloc(map->entries, map->entry_cap * sizeof *map->entries));
	}
	const char *own = map->is_borrowing ? borrowed(key) : copy_of(key);
	map->entries[map->entry_count] = (struct entry){ own, value, (uint32_t)key.len, hash };
	place(map, map->entry_count++);
	map->live_count++;
	return NULL;
}

void *map_remove(struct map *map, struct str key)
{
	struct entry *e = lookup(map, key, hash_of(map, key));
	if (e == NULL)
		return NULL;
	void *value = e->value;
	free_key(map, e);
	e->key = NULL;
	e->value = NULL;
	map->live_count--;
	return value;
}

bool map_next(const struct map *map, size_t *i, struct str *ret_key, void **ret_value)
{
	while (*i < map->entry_count) {
		const struct entry *e = &map->entries[(*i)++];
		if (e->key == NULL)
			continue;
		if (ret_key != NULL)
			*ret_key = (struct str){ e->key, e->key_len };
		if (ret_value != NULL)
			*ret_value = e->value;
		return true;
	}
	return false;
}
