// SPDX-License-Identifier: Apache-2.0
#include "base/pb.h"
#include "k8s/kobj.h"

// Recursion follows the tables, which are constants and nest a dozen levels at most; the input
// cannot deepen it.
static err_status read_message(struct kobj_decoder *d, const struct kobj_table *table,
			       struct str bytes, const struct kobj_path *path, void *object);

static err_status fail_limit(struct kobj_decoder *d, const struct kobj_path *path)
{
	return kobj_fail(d, ERR_LIMIT, path, "has too many items or needs too much memory");
}

static err_status fail_wire(struct kobj_decoder *d, const struct kobj_path *path)
{
	return kobj_fail(d, ERR_PROTOCOL, path, "has a wrong protobuf encoding");
}

// The single string of a Quantity.
static bool read_quantity(struct str bytes, struct str *ret_text)
{
	struct pb_reader reader = pb_reader_of(bytes);
	struct pb_field field;
	struct str text = { NULL, 0 };
	while (pb_next(&reader, &field)) {
		if (field.number == 1 && field.wire == PB_BYTES)
			text = field.bytes;
	}
	*ret_text = text;
	return !reader.failed;
}

static bool read_time(struct str bytes, int64_t *ret_s)
{
	struct pb_reader reader = pb_reader_of(bytes);
	struct pb_field field;
	int64_t seconds = 0;
	while (pb_next(&reader, &field)) {
		if (field.number == 1 && field.wire == PB_VARINT)
			seconds = (int64_t)field.value;
	}
	*ret_s = seconds;
	return !reader.failed;
}

static err_status read_pair(struct kobj_decoder *d, const struct kobj_field *field,
			    struct str bytes, const struct kobj_path *path, void *place)
{
	struct pb_reader reader = pb_reader_of(bytes);
	struct pb_field part;
	struct kobj_pair pair = { .key = STR(""), .value = STR("") };
	bool good = true;
	while (pb_next(&reader, &part)) {
		if (part.wire != PB_BYTES)
			continue;
		if (part.number == 1)
			pair.key = part.bytes;
		else if (part.number == 2 && field->kind == KOBJ_QUANTITIES)
			good = good && read_quantity(part.bytes, &pair.value);
		else if (part.number == 2)
			pair.value = part.bytes;
	}
	if (reader.failed || !good)
		return fail_wire(d, path);
	struct kobj_pair *slot = kobj_list_add(d, place, sizeof pair);
	if (slot == NULL)
		return fail_limit(d, path);
	*slot = pair;
	return ERR_OK;
}

static err_status read_object(struct kobj_decoder *d, const struct kobj_field *field,
			      struct str bytes, const struct kobj_path *path, void *place)
{
	void **slot = place; // a second occurrence is merged into the first, as protobuf says
	if (*slot == NULL)
		*slot = arena_alloc(d->arena, field->table->size_bytes);
	if (*slot == NULL)
		return fail_limit(d, path);
	return read_message(d, field->table, bytes, path, *slot);
}

static err_status read_item(struct kobj_decoder *d, const struct kobj_field *field,
			    struct str bytes, struct kobj_path *path, void *place)
{
	struct kobj_list *list = place;
	path->item_i = list->count;
	void *item = kobj_list_add(d, list, field->table->size_bytes);
	if (item == NULL)
		return fail_limit(d, path);
	return read_message(d, field->table, bytes, path, item);
}

static err_status read_scalar(struct kobj_decoder *d, const struct kobj_field *field,
			      uint64_t value, const struct kobj_path *path, void *place)
{
	switch (field->kind) {
	case KOBJ_INT: *(int64_t *)place = (int64_t)value; return ERR_OK;
	case KOBJ_BOOL: *(bool *)place = value != 0; return ERR_OK;
	case KOBJ_TRISTATE: *(int *)place = value != 0 ? 1 : -1; return ERR_OK;
	case KOBJ_IGNORED:
	case KOBJ_PRESENT:
	case KOBJ_TEXT:
	case KOBJ_TIME:
	case KOBJ_TEXTS:
	case KOBJ_PAIRS:
	case KOBJ_QUANTITIES:
	case KOBJ_OBJECT:
	case KOBJ_OBJECTS:
	case KOBJ_PART:
	case KOBJ_INLINE: break;
	}
	return fail_wire(d, path);
}

static err_status read_bytes(struct kobj_decoder *d, const struct kobj_field *field,
			     struct str bytes, struct kobj_path *path, void *place)
{
	struct str *text;
	switch (field->kind) {
	case KOBJ_TEXT: *(struct str *)place = bytes; return ERR_OK;
	case KOBJ_TIME: return read_time(bytes, place) ? ERR_OK : fail_wire(d, path);
	case KOBJ_TEXTS:
		text = kobj_list_add(d, place, sizeof *text);
		if (text == NULL)
			return fail_limit(d, path);
		*text = bytes;
		return ERR_OK;
	case KOBJ_PAIRS:
	case KOBJ_QUANTITIES: return read_pair(d, field, bytes, path, place);
	case KOBJ_OBJECT: return read_object(d, field, bytes, path, place);
	case KOBJ_OBJECTS: return read_item(d, field, bytes, path, place);
	case KOBJ_PART:
	case KOBJ_INLINE: return read_message(d, field->table, bytes, path, place);
	case KOBJ_IGNORED:
	case KOBJ_PRESENT:
	case KOBJ_INT:
	case KOBJ_BOOL:
	case KOBJ_TRISTATE: break;
	}
	return fail_wire(d, path);
}

static const struct kobj_field *find_field(const struct kobj_table *table, uint32_t number)
{
	for (size_t i = 0; i < table->field_count; i++) {
		if (table->fields[i].number == number)
			return &table->fields[i];
	}
	return NULL;
}

static err_status sort_pairs(struct kobj_decoder *d, const struct kobj_table *table,
			     const struct kobj_path *path, void *object)
{
	for (size_t i = 0; i < table->field_count; i++) {
		const struct kobj_field *field = &table->fields[i];
		if (field->kind != KOBJ_PAIRS && field->kind != KOBJ_QUANTITIES)
			continue;
		if (!kobj_pairs_sort(d, (void *)((char *)object + field->offset_bytes)))
			return fail_limit(d, path);
	}
	return ERR_OK;
}

static err_status read_field(struct kobj_decoder *d, const struct kobj_field *field,
			     const struct pb_field *wire, struct kobj_path *path, void *object)
{
	void *place = (char *)object + field->offset_bytes;
	if (field->kind == KOBJ_IGNORED)
		return ERR_OK;
	if (field->kind == KOBJ_PRESENT) {
		*(bool *)place = true;
		return ERR_OK;
	}
	if (wire->wire == PB_BYTES)
		return read_bytes(d, field, wire->bytes, path, place);
	if (wire->wire == PB_VARINT)
		return read_scalar(d, field, wire->value, path, place);
	return fail_wire(d, path);
}

static err_status read_message(struct kobj_decoder *d, const struct kobj_table *table,
			       struct str bytes, const struct kobj_path *path, void *object)
{
	ASSERT(table->field_count > 0 && object != NULL);
	struct pb_reader reader = pb_reader_of(bytes);
	struct pb_field wire;
	while (pb_next(&reader, &wire)) {
		const struct kobj_field *field = find_field(table, wire.number);
		struct kobj_path here = { path, field == NULL ? NULL : field->name, wire.number,
					  SIZE_MAX };
		if (field == NULL) {
			if (!table->open)
				kobj_note_unknown(d, &here);
			continue;
		}
		// JSON has no name for what is inline, so neither has the path.
		bool is_inline = field->kind == KOBJ_INLINE;
		struct kobj_path inlined = path == NULL ? here : *path;
		err_status status =
			read_field(d, field, &wire, is_inline ? &inlined : &here, object);
		if (status != ERR_OK)
			return status;
	}
	if (reader.failed)
		return fail_wire(d, path);
	return sort_pairs(d, table, path, object);
}

err_status kobj_from_protobuf(struct arena *arena, const struct kobj_table *table, struct str bytes,
			      struct kobj_unknowns *ret_unknowns, void *ret_object, struct err *err)
{
	void *object = arena_alloc(arena, table->size_bytes);
	struct kobj_unknowns unknowns = { .count = 0 };
	struct kobj_decoder decoder = { arena, &unknowns, err };
	if (object == NULL)
		return err_set(err, ERR_LIMIT, "%s needs too much memory", table->name);
	err_status status = read_message(&decoder, table, bytes, NULL, object);
	if (status != ERR_OK)
		return err == NULL ? status : err_wrap(err, "%s", table->name);
	memcpy(ret_object, object, table->size_bytes);
	if (ret_unknowns != NULL)
		*ret_unknowns = unknowns;
	return ERR_OK;
}

bool kobj_unwrap(struct str bytes, struct str *ret_message)
{
	static const char MAGIC[4] = { 'k', '8', 's', 0 };
	if (bytes.len < sizeof MAGIC || memcmp(bytes.data, MAGIC, sizeof MAGIC) != 0) {
		*ret_message = bytes;
		return true;
	}
	enum { RUNTIME_UNKNOWN_RAW = 2 };
	struct pb_reader reader = pb_reader_of(str_slice(bytes, sizeof MAGIC, bytes.len));
	struct pb_field field;
	struct str message = { NULL, 0 };
	while (pb_next(&reader, &field)) {
		if (field.number == RUNTIME_UNKNOWN_RAW && field.wire == PB_BYTES)
			message = field.bytes;
	}
	if (reader.failed)
		return false;
	*ret_message = message;
	return true;
}
