// SPDX-License-Identifier: Apache-2.0
// Memory of one request, cycle or list page: allocations are bumped from chunks and freed all
// at once with the arena. A limit given at creation bounds what hostile input can take; when it
// is reached arena_alloc returns NULL and the caller fails with ERR_LIMIT. One thread at a time.
#pragma once

#include "base/str.h"

struct arena;

struct arena *arena_new(size_t limit_bytes); // NULL when the system has no memory
void arena_free(struct arena *arena);        // NULL is allowed
void arena_freep(struct arena **arena);      // for AUTO
void arena_reset(struct arena *arena);       // forgets all, keeps one chunk
size_t arena_used_bytes(const struct arena *arena);

// Zeroed, aligned for any type; NULL when the limit is reached.
void *arena_alloc(struct arena *arena, size_t size_bytes);
void *arena_alloc_array(struct arena *arena, size_t count, size_t size_bytes);
// Grown copy of an array (old stays until the arena dies); NULL at the limit.
void *arena_grow(struct arena *arena, const void *old, size_t old_bytes, size_t new_bytes);
// Terminated copy; data is NULL at the limit.
struct str arena_dup(struct arena *arena, struct str text);
char *arena_cstr(struct arena *arena, struct str text);
// Formatted, terminated text; NULL at the limit.
char *arena_printf(struct arena *arena, const char *fmt, ...) PRINTF_LIKE(2, 3);

#define ARENA_NEW(arena, type) ((type *)arena_alloc((arena), sizeof(type)))
#define ARENA_ARRAY(arena, type, count) ((type *)arena_alloc_array((arena), (count), sizeof(type)))
