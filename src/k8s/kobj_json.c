// SPDX-License-Identifier: Apache-2.0
#include "base/timefmt.h"
#include "k8s/kobj.h"

// Recursion follows the tables, which are constants and nest a dozen levels at most; the input
// cannot deepen it.
static err_status read_members(struct kobj_decoder *d, const struct kobj_table *table,
			       const json_t *value, const struct kobj_path *path, void *object);

static err_status fail_limit(struct kobj_decoder *d, const struct kobj_path *path)
{
	return kobj_fail(d, ERR_LIMIT, path, "has too many items or needs too much memory");
}

static struct str text_of(const json_t *value)
{
	return (struct str){ json_string_value(value), json_string_length(value) };
}

static bool read_quantity(struct arena *arena, const json_t *value, struct str *ret_text)
{
	if (json_is_string(value))
		*ret_text = text_of(value);
	else if (json_is_integer(value))
		*ret_text = str_of(
			arena_printf(arena, "%" JSON_INTEGER_FORMAT, json_integer_value(value)));
	else if (json_is_real(value)) // "cpu: 0.5" in YAML
		*ret_text = str_of(arena_printf(arena, "%.9g", json_real_value(value)));
	else
		return false;
	return ret_text->data != NULL;
}

static err_status read_pairs(struct kobj_decoder *d, const struct kobj_field *field,
			     const json_t *value, const struct kobj_path *path,
			     struct kobj_pairs *pairs)
{
	if (!json_is_object(value))
		return kobj_fail(d, ERR_INVALID, path, "must be an object");
	const char *key;
	json_t *member;
	*pairs = (struct kobj_pairs){ NULL, 0 };
	json_object_foreach((json_t *)(uintptr_t)value, key, member)
	{
		struct kobj_pair pair = { str_of(key), text_of(member) };
		bool good = field->kind == KOBJ_QUANTITIES
				    ? read_quantity(d->arena, member, &pair.value)
				    : json_is_string(member);
		if (!good)
			return kobj_fail(d, ERR_INVALID, path, "must hold texts only");
		struct kobj_list list = { pairs->items, pairs->count };
		struct kobj_pair *slot = kobj_list_add(d, &list, sizeof pair);
		if (slot == NULL)
			return fail_limit(d, path);
		*slot = pair;
		*pairs = (struct kobj_pairs){ list.items, list.count };
	}
	return kobj_pairs_sort(d, pairs) ? ERR_OK : fail_limit(d, path);
}

static err_status read_texts(struct kobj_decoder *d, const json_t *value,
			     const struct kobj_path *path, struct kobj_texts *texts)
{
	size_t count = json_array_size(value);
	if (!json_is_array(value))
		return kobj_fail(d, ERR_INVALID, path, "must be an array");
	texts->items = ARENA_ARRAY(d->arena, struct str, count);
	if (count > KOBJ_LIST_MAX || texts->items == NULL)
		return fail_limit(d, path);
	texts->count = count;
	for (size_t i = 0; i < count; i++) {
		const json_t *item = json_array_get(value, i);
		if (!json_is_string(item))
			return kobj_fail(d, ERR_INVALID, path, "must hold texts only");
		texts->items[i] = text_of(item);
	}
	return ERR_OK;
}

static err_status read_items(struct kobj_decoder *d, const struct kobj_field *field,
			     const json_t *value, struct kobj_path *path, struct kobj_list *list)
{
	size_t count = json_array_size(value);
	if (!json_is_array(value))
		return kobj_fail(d, ERR_INVALID, path, "must be an array");
	list->items = arena_alloc_array(d->arena, count, field->table->size_bytes);
	if (count > KOBJ_LIST_MAX || list->items == NULL)
		return fail_limit(d, path);
	list->count = count;
	for (size_t i = 0; i < count; i++) {
		path->item_i = i;
		void *item = (char *)list->items + i * field->table->size_bytes;
		err_status status =
			read_members(d, field->table, json_array_get(value, i), path, item);
		if (status != ERR_OK)
			return status;
	}
	return ERR_OK;
}

static err_status read_object(struct kobj_decoder *d, const struct kobj_field *field,
			      const json_t *value, const struct kobj_path *path, void **place)
{
	*place = arena_alloc(d->arena, field->table->size_bytes);
	if (*place == NULL)
		return fail_limit(d, path);
	return read_members(d, field->table, value, path, *place);
}

static err_status read_scalar(struct kobj_decoder *d, const struct kobj_field *field,
			      const json_t *value, const struct kobj_path *path, void *place)
{
	if (field->kind == KOBJ_TEXT) {
		if (!json_is_string(value))
			return kobj_fail(d, ERR_INVALID, path, "must be a text");
		*(struct str *)place = text_of(value);
	} else if (field->kind == KOBJ_INT) {
		if (!json_is_integer(value))
			return kobj_fail(d, ERR_INVALID, path, "must be an integer");
		*(int64_t *)place = json_integer_value(value);
	} else if (field->kind == KOBJ_TIME) {
		if (!json_is_string(value) || !time_parse(text_of(value), place, NULL))
			return kobj_fail(d, ERR_INVALID, path, "must be a time of RFC 3339");
	} else {
		if (!json_is_boolean(value))
			return kobj_fail(d, ERR_INVALID, path, "must be true or false");
		if (field->kind == KOBJ_BOOL)
			*(bool *)place = json_is_true(value);
		else
			*(int *)place = json_is_true(value) ? 1 : -1;
	}
	return ERR_OK;
}

static err_status read_field(struct kobj_decoder *d, const struct kobj_field *field,
			     const json_t *value, struct kobj_path *path, void *object)
{
	void *place = (char *)object + field->offset_bytes;
	switch (field->kind) {
	case KOBJ_IGNORED:
	case KOBJ_INLINE: // its members are looked up in find_field
		return ERR_OK;
	case KOBJ_PRESENT: *(bool *)place = true; return ERR_OK;
	case KOBJ_TEXT:
	case KOBJ_INT:
	case KOBJ_BOOL:
	case KOBJ_TRISTATE:
	case KOBJ_TIME: return read_scalar(d, field, value, path, place);
	case KOBJ_TEXTS: return read_texts(d, value, path, place);
	case KOBJ_PAIRS:
	case KOBJ_QUANTITIES: return read_pairs(d, field, value, path, place);
	case KOBJ_OBJECT: return read_object(d, field, value, path, place);
	case KOBJ_OBJECTS: return read_items(d, field, value, path, place);
	case KOBJ_PART: return read_members(d, field->table, value, path, place);
	}
	ASSERT(false && "a kind is missing");
	return ERR_INTERNAL;
}

// Looks a member up, also in what is inline; ret_object is moved to the structure it is in.
static const struct kobj_field *find_field(const struct kobj_table *table, const char *name,
					   void **ret_object)
{
	for (size_t i = 0; i < table->field_count; i++) {
		const struct kobj_field *field = &table->fields[i];
		if (field->kind != KOBJ_INLINE) {
			if (strcmp(field->name, name) == 0)
				return field;
			continue;
		}
		void *inner = (char *)*ret_object + field->offset_bytes;
		const struct kobj_field *found = find_field(field->table, name, &inner);
		if (found != NULL) {
			*ret_object = inner;
			return found;
		}
	}
	return NULL;
}

static err_status read_members(struct kobj_decoder *d, const struct kobj_table *table,
			       const json_t *value, const struct kobj_path *path, void *object)
{
	if (!json_is_object(value))
		return kobj_fail(d, ERR_INVALID, path, "must be an object");
	const char *name;
	json_t *member;
	json_object_foreach((json_t *)(uintptr_t)value, name, member)
	{
		if (json_is_null(member))
			continue;
		struct kobj_path here = { path, name, 0, SIZE_MAX };
		void *owner = object;
		const struct kobj_field *field = find_field(table, name, &owner);
		if (field == NULL) {
			if (!table->open)
				kobj_note_unknown(d, &here);
			continue;
		}
		err_status status = read_field(d, field, member, &here, owner);
		if (status != ERR_OK)
			return status;
	}
	return ERR_OK;
}

err_status kobj_from_json(struct arena *arena, const struct kobj_table *table, const json_t *value,
			  struct kobj_unknowns *ret_unknowns, void *ret_object, struct err *err)
{
	void *object = arena_alloc(arena, table->size_bytes);
	struct kobj_unknowns unknowns = { .count = 0 };
	struct kobj_decoder decoder = { arena, &unknowns, err };
	if (object == NULL)
		return err_set(err, ERR_LIMIT, "%s needs too much memory", table->name);
	err_status status = read_members(&decoder, table, value, NULL, object);
	if (status != ERR_OK)
		return err == NULL ? status : err_wrap(err, "%s", table->name);
	memcpy(ret_object, object, table->size_bytes);
	if (ret_unknowns != NULL)
		*ret_unknowns = unknowns;
	return ERR_OK;
}
