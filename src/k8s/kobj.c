// SPDX-License-Identifier: Apache-2.0
#include "k8s/kobj.h"

#include <stdio.h>
#include <stdlib.h>

enum { PATH_TEXT_BYTES = 256, PATH_DEPTH_MAX = 24, LIST_FIRST_COUNT = 4 };

static void put_part(char *out, size_t *len, const struct kobj_path *part)
{
	char text[96];
	const char *dot = *len > 0 ? "." : "";
	if (part->name != NULL)
		(void)snprintf(text, sizeof text, "%s%s", dot, part->name);
	else
		(void)snprintf(text, sizeof text, "%s#%u", dot, part->number);
	size_t text_len = strlen(text);
	if (part->item_i != SIZE_MAX)
		(void)snprintf(text + text_len, sizeof text - text_len, "[%zu]", part->item_i);
	text_len = min_size(strlen(text), PATH_TEXT_BYTES - 1 - *len);
	memcpy(out + *len, text, text_len);
	*len += text_len;
}

static struct str path_text(struct arena *arena, const struct kobj_path *path)
{
	const struct kobj_path *parts[PATH_DEPTH_MAX];
	size_t count = 0;
	for (; path != NULL && count < PATH_DEPTH_MAX; path = path->parent)
		parts[count++] = path;
	char out[PATH_TEXT_BYTES];
	size_t len = 0;
	while (count > 0)
		put_part(out, &len, parts[--count]);
	ASSERT(len < sizeof out);
	return arena_dup(arena, (struct str){ out, len });
}

err_status kobj_fail(struct kobj_decoder *decoder, err_status status, const struct kobj_path *path,
		     const char *what)
{
	struct str text = path_text(decoder->arena, path);
	const char *blank = text.len > 0 ? " " : "";
	return err_set(decoder->err, status, STR_FMT "%s%s", STR_ARG(text), blank, what);
}

void kobj_note_unknown(struct kobj_decoder *decoder, const struct kobj_path *path)
{
	struct kobj_unknowns *unknowns = decoder->unknowns;
	if (unknowns == NULL)
		return;
	if (unknowns->count < KOBJ_UNKNOWN_MAX)
		unknowns->paths[unknowns->count] = path_text(decoder->arena, path);
	unknowns->count++;
}

void *kobj_list_add(struct kobj_decoder *decoder, struct kobj_list *list, size_t item_bytes)
{
	size_t count = list->count;
	if (count >= KOBJ_LIST_MAX)
		return NULL;
	bool is_full = count == 0 || (count >= LIST_FIRST_COUNT && (count & (count - 1)) == 0);
	if (is_full) {
		size_t cap = count == 0 ? LIST_FIRST_COUNT : 2 * count;
		void *grown = arena_grow(decoder->arena, list->items, count * item_bytes,
					 cap * item_bytes);
		if (grown == NULL)
			return NULL;
		list->items = grown;
	}
	list->count++;
	return (char *)list->items + count * item_bytes;
}

struct ordered_pair {
	struct kobj_pair pair;
	size_t order_i;
};

static int compare_ordered(const void *a, const void *b)
{
	const struct ordered_pair *x = a, *y = b;
	int order = str_cmp(x->pair.key, y->pair.key);
	if (order != 0)
		return order;
	return x->order_i < y->order_i ? -1 : 1;
}

static bool is_sorted(const struct kobj_pairs *pairs)
{
	for (size_t i = 1; i < pairs->count; i++) {
		if (str_cmp(pairs->items[i - 1].key, pairs->items[i].key) >= 0)
			return false;
	}
	return true;
}

bool kobj_pairs_sort(struct kobj_decoder *decoder, struct kobj_pairs *pairs)
{
	if (is_sorted(pairs)) // as the API server sends them
		return true;
	struct ordered_pair *ordered =
		ARENA_ARRAY(decoder->arena, struct ordered_pair, pairs->count);
	if (ordered == NULL)
		return false;
	for (size_t i = 0; i < pairs->count; i++)
		ordered[i] = (struct ordered_pair){ pairs->items[i], i };
	qsort(ordered, pairs->count, sizeof ordered[0], compare_ordered);
	size_t kept = 0;
	for (size_t i = 0; i < pairs->count; i++) {
		bool is_last = i + 1 == pairs->count ||
			       !str_eq(ordered[i].pair.key, ordered[i + 1].pair.key);
		if (is_last)
			pairs->items[kept++] = ordered[i].pair;
	}
	pairs->count = kept;
	ASSERT(is_sorted(pairs));
	return true;
}

struct str kobj_pairs_get(const struct kobj_pairs *pairs, struct str key)
{
	size_t low = 0, high = pairs->count;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = str_cmp(pairs->items[mid].key, key);
		if (order == 0)
			return pairs->items[mid].value;
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return (struct str){ NULL, 0 };
}
