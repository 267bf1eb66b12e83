// SPDX-License-Identifier: Apache-2.0
// A list of storage objects as JSON and as protobuf, from a real API server: both must decode to
// the same structures, field by field. Arguments: Kind list.json list.pb
#include "base/pb.h"
#include "feed/feed_storage.h"
#include "sys/fs.h"

#include "check.h"

#include <stdlib.h>

enum { LIST_MAX_BYTES = 16 * 1024 * 1024 };

static void must(bool good, const char *what, const struct err *err)
{
	if (good)
		return;
	(void)fprintf(stderr, "%s: %s\n", what, err->text);
	exit(2);
}

static bool are_texts_same(const struct kobj_texts *a, const struct kobj_texts *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		if (!str_eq(a->items[i], b->items[i]))
			return false;
	}
	return true;
}

static bool are_pairs_same(const struct kobj_pairs *a, const struct kobj_pairs *b)
{
	_Static_assert(sizeof(struct kobj_pair) == 2 * sizeof(struct str), "two texts");
	const struct kobj_texts x = { (struct str *)(void *)a->items, 2 * a->count };
	const struct kobj_texts y = { (struct str *)(void *)b->items, 2 * b->count };
	return are_texts_same(&x, &y);
}

static bool are_same(const struct kobj_table *table, const void *a, const void *b);

static bool are_lists_same(const struct kobj_table *table, const struct kobj_list *a,
			   const struct kobj_list *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		size_t at = i * table->size_bytes;
		if (!are_same(table, (const char *)a->items + at, (const char *)b->items + at))
			return false;
	}
	return true;
}

static bool is_field_same(const struct kobj_field *field, const void *a, const void *b)
{
	const void *const *x = a, *const *y = b;
	switch (field->kind) {
	case KOBJ_IGNORED: return true;
	case KOBJ_PRESENT:
	case KOBJ_BOOL: return *(const bool *)a == *(const bool *)b;
	case KOBJ_TEXT: return str_eq(*(const struct str *)a, *(const struct str *)b);
	case KOBJ_INT:
	case KOBJ_TIME: return *(const int64_t *)a == *(const int64_t *)b;
	case KOBJ_TRISTATE: return *(const int *)a == *(const int *)b;
	case KOBJ_TEXTS: return are_texts_same(a, b);
	case KOBJ_PAIRS:
	case KOBJ_QUANTITIES: return are_pairs_same(a, b);
	case KOBJ_OBJECT:
		return (*x == NULL) == (*y == NULL) &&
		       (*x == NULL || are_same(field->table, *x, *y));
	case KOBJ_OBJECTS: return are_lists_same(field->table, a, b);
	case KOBJ_PART:
	case KOBJ_INLINE: return are_same(field->table, a, b);
	}
	return false;
}

static bool are_same(const struct kobj_table *table, const void *a, const void *b)
{
	bool same = true;
	for (size_t i = 0; i < table->field_count; i++) {
		const struct kobj_field *field = &table->fields[i];
		if (is_field_same(field, (const char *)a + field->offset_bytes,
				  (const char *)b + field->offset_bytes))
			continue;
		printf("differs: %s of %s\n", field->name, table->name);
		same = false;
	}
	return same;
}

static void compare(struct check *c, const struct feed_storage *feed, const json_t *items,
		    struct str list)
{
	struct pb_reader reader = pb_reader_of(list);
	struct pb_field field;
	size_t i = 0;
	while (pb_next(&reader, &field)) {
		AUTO(arena_freep) struct arena *arena = arena_new(LIST_MAX_BYTES);
		union feed_storage_object a, b;
		struct err err = { 0 };
		if (field.number != 2) // items
			continue;
		must(kobj_from_json(arena, feed->table, json_array_get(items, i), NULL, &a, &err) ==
			     ERR_OK,
		     "JSON", &err);
		must(kobj_from_protobuf(arena, feed->table, field.bytes, NULL, &b, &err) == ERR_OK,
		     "protobuf", &err);
		CHECK(c, feed->kind, are_same(feed->table, &a, &b));
		i++;
	}
	CHECK_INT(c, "as many", i, json_array_size(items));
	CHECK(c, "some", i > 0);
}

int main(int argc, char **argv)
{
	struct check c = { 0 };
	struct err err = { .text = "no such kind, or a broken envelope" };
	struct str list;
	AUTO(buf_done) struct buf text = { .limit = LIST_MAX_BYTES };
	AUTO(buf_done) struct buf bytes = { .limit = LIST_MAX_BYTES };
	AUTO(json_decrefp) json_t *json = NULL;
	const struct feed_storage *feed = FEED_STORAGES;
	if (argc != 4)
		return 2;
	while (feed < FEED_STORAGES + SCHED_STORAGES && strcmp(feed->kind, argv[1]) != 0)
		feed++;
	must(feed < FEED_STORAGES + SCHED_STORAGES, argv[1], &err);
	must(fs_read(argv[2], LIST_MAX_BYTES, &text, &err) == ERR_OK, "read", &err);
	must(fs_read(argv[3], LIST_MAX_BYTES, &bytes, &err) == ERR_OK, "read", &err);
	must(json_parse(buf_str(&text), &json, &err) == ERR_OK, "JSON", &err);
	must(kobj_unwrap(buf_str(&bytes), &list), "protobuf", &err);
	compare(&c, feed, json_object_get(json, "items"), list);
	return check_done(&c);
}
