// SPDX-License-Identifier: Apache-2.0
#include "billing/names.h"

#include "base/arena.h"
#include "billing/slots.h"

#include <stdlib.h>

struct names {
	struct arena *arena;
	struct str *texts;
	size_t count, cap;
	struct slots index;
	uint32_t last; // the one asked for last: usage comes in runs of the same source and GPU
};

struct wanted {
	const struct names *names;
	struct str text;
};

struct names *names_new(void)
{
	struct names *names = calloc(1, sizeof *names);
	if (names == NULL)
		return NULL;
	names->arena = arena_new(NAMES_TEXT_MAX_BYTES);
	if (names->arena != NULL)
		return names;
	free(names);
	return NULL;
}

void names_free(struct names *names)
{
	if (names == NULL)
		return;
	arena_free(names->arena);
	free(names->texts);
	slots_done(&names->index);
	free(names);
}

static bool is_wanted(const void *arg, uint32_t item)
{
	const struct wanted *wanted = arg;
	return str_eq(wanted->names->texts[item], wanted->text);
}

uint32_t names_find(const struct names *names, struct str text)
{
	struct wanted wanted = { names, text };
	return slots_find(&names->index, slots_hash(text.data, text.len), is_wanted, &wanted);
}

uint32_t names_add(struct names *names, struct str text)
{
	if (names->last < names->count && str_eq(names->texts[names->last], text))
		return names->last;
	uint32_t id = names_find(names, text);
	if (id != NAMES_NONE)
		return names->last = id;
	struct str copy = arena_dup(names->arena, text);
	if (copy.data == NULL || !slots_room(&names->texts, &names->cap, names->count, sizeof copy))
		return NAMES_NONE;
	id = (uint32_t)names->count;
	if (!slots_add(&names->index, slots_hash(text.data, text.len), id))
		return NAMES_NONE;
	names->texts[names->count++] = copy;
	return names->last = id;
}

struct str names_text(const struct names *names, uint32_t id)
{
	ASSERT(id < names->count);
	return names->texts[id];
}

size_t names_count(const struct names *names) { return names->count; }
