// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHUNK_BYTES = 16 * 1024, ALIGN_BYTES = 16 };

struct chunk {
	struct chunk *next;
	size_t size_bytes; // of data
	size_t used_bytes;
	_Alignas(ALIGN_BYTES) unsigned char data[];
};

struct arena {
	struct chunk *head; // the chunk that is filled now
	size_t limit_bytes;
	size_t used_bytes; // of all chunks, data only
};

struct arena *arena_new(size_t limit_bytes)
{
	ASSERT(limit_bytes > 0);
	struct arena *arena = calloc(1, sizeof *arena);
	if (arena != NULL)
		arena->limit_bytes = limit_bytes;
	return arena;
}

static void free_chunks(struct chunk *chunk)
{
	while (chunk != NULL) {
		struct chunk *next = chunk->next;
		free(chunk);
		chunk = next;
	}
}

void arena_free(struct arena *arena)
{
	if (arena == NULL)
		return;
	free_chunks(arena->head);
	free(arena);
}

void arena_freep(struct arena **arena)
{
	arena_free(*arena);
	*arena = NULL;
}

void arena_reset(struct arena *arena)
{
	arena->used_bytes = 0;
	if (arena->head == NULL)
		return;
	free_chunks(arena->head->next);
	arena->head->next = NULL;
	arena->head->used_bytes = 0;
}

size_t arena_used_bytes(const struct arena *arena) { return arena->used_bytes; }

static struct chunk *add_chunk(struct arena *arena, size_t need_bytes)
{
	size_t size_bytes = max_size(need_bytes, CHUNK_BYTES);
	struct chunk *chunk = malloc(sizeof *chunk + size_bytes);
	if (chunk == NULL)
		return NULL;
	chunk->size_bytes = size_bytes;
	chunk->used_bytes = 0;
	chunk->next = arena->head;
	arena->head = chunk;
	return chunk;
}

void *arena_alloc(struct arena *arena, size_t size_bytes)
{
	ASSERT(arena != NULL);
	if (size_bytes > arena->limit_bytes)
		return NULL;
	size_t need = (max_size(size_bytes, 1) + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
	if (need > arena->limit_bytes - min_size(arena->used_bytes, arena->limit_bytes))
		return NULL;
	struct chunk *chunk = arena->head;
	if (chunk == NULL || chunk->size_bytes - chunk->used_bytes < need)
		chunk = add_chunk(arena, need);
	if (chunk == NULL)
		return NULL;
	void *memory = chunk->data + chunk->used_bytes;
	chunk->used_bytes += need;
	arena->used_bytes += need;
	ASSERT(chunk->used_bytes <= chunk->size_bytes);
	return memset(memory, 0, need);
}

void *arena_alloc_array(struct arena *arena, size_t count, size_t size_bytes)
{
	size_t total_bytes;
	if (__builtin_mul_overflow(count, size_bytes, &total_bytes))
		return NULL;
	return arena_alloc(arena, total_bytes);
}

void *arena_grow(struct arena *arena, const void *old, size_t old_bytes, size_t new_bytes)
{
	ASSERT(new_bytes >= old_bytes);
	void *memory = arena_alloc(arena, new_bytes);
	if (memory != NULL && old_bytes > 0)
		memcpy(memory, old, old_bytes);
	return memory;
}

char *arena_cstr(struct arena *arena, struct str text)
{
	char *copy = arena_alloc(arena, text.len + 1);
	if (copy != NULL && text.len > 0)
		memcpy(copy, text.data, text.len);
	return copy;
}

struct str arena_dup(struct arena *arena, struct str text)
{
	char *copy = arena_cstr(arena, text);
	return (struct str){ copy, copy == NULL ? 0 : text.len };
}

char *arena_printf(struct arena *arena, const char *fmt, ...)
{
	va_list args, again;
	va_start(args, fmt);
	va_copy(again, args);
	int length = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	char *text = length < 0 ? NULL : arena_alloc(arena, (size_t)length + 1);
	if (text != NULL)
		(void)vsnprintf(text, (size_t)length + 1, fmt, again);
	va_end(again);
	return text;
}
