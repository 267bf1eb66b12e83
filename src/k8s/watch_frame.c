// SPDX-License-Identifier: Apache-2.0
#include "k8s/watch_frame.h"

#include "k8s/kobj.h"

enum { LENGTH_BYTES = 4 };

// Field numbers: WatchEvent, RawExtension, any object, ObjectMeta, ListMeta, lists.
enum { EVENT_TYPE = 1, EVENT_OBJECT = 2, RAW_BYTES = 1, OBJECT_META = 1 };
enum { META_VERSION = 6, META_ANNOTATIONS = 12, PAIR_KEY = 1, PAIR_VALUE = 2 };
enum { LIST_META = 1, LIST_ITEMS = 2, LIST_VERSION = 2, LIST_CONTINUE = 3 };

#define INITIAL_END "k8s.io/initial-events-end"

void watch_framer_init(struct watch_framer *framer, bool is_protobuf)
{
	*framer = (struct watch_framer){ .is_protobuf = is_protobuf };
	framer->part.limit = WATCH_FRAME_MAX_BYTES + LENGTH_BYTES;
}

void watch_framer_done(struct watch_framer *framer) { buf_done(&framer->part); }

static size_t frame_length(struct str bytes)
{
	ASSERT(bytes.len >= LENGTH_BYTES);
	const unsigned char *p = (const unsigned char *)bytes.data;
	return (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | (size_t)p[3];
}

// Moves n bytes of data to the part.
static void keep(struct watch_framer *framer, struct str *data, size_t n)
{
	buf_put(&framer->part, str_slice(*data, 0, n));
	*data = str_slice(*data, n, data->len);
	if (!buf_ok(&framer->part))
		framer->failed = true;
}

static bool next_line(struct watch_framer *framer, struct str *data, struct str *ret_frame)
{
	size_t end = str_find_byte(*data, '\n', 0);
	if (end == SIZE_MAX) {
		keep(framer, data, data->len);
		return false;
	}
	if (framer->part.len == 0 && end <= WATCH_FRAME_MAX_BYTES) {
		*ret_frame = str_slice(*data, 0, end);
		*data = str_slice(*data, end + 1, data->len);
		return true;
	}
	keep(framer, data, end + 1);
	if (framer->failed)
		return false;
	framer->has_part = true;
	*ret_frame = str_slice(buf_str(&framer->part), 0, framer->part.len - 1);
	return true;
}

static bool next_message(struct watch_framer *framer, struct str *data, struct str *ret_frame)
{
	if (framer->part.len == 0 && data->len >= LENGTH_BYTES) {
		size_t length = frame_length(*data);
		if (length <= data->len - LENGTH_BYTES && length <= WATCH_FRAME_MAX_BYTES) {
			*ret_frame = str_slice(*data, LENGTH_BYTES, LENGTH_BYTES + length);
			*data = str_slice(*data, LENGTH_BYTES + length, data->len);
			return true;
		}
	}
	if (framer->part.len < LENGTH_BYTES)
		keep(framer, data, min_size(LENGTH_BYTES - framer->part.len, data->len));
	if (framer->failed || framer->part.len < LENGTH_BYTES)
		return false;
	size_t want = LENGTH_BYTES + frame_length(buf_str(&framer->part));
	if (want > WATCH_FRAME_MAX_BYTES + LENGTH_BYTES) {
		framer->failed = true;
		return false;
	}
	ASSERT(framer->part.len <= want);
	keep(framer, data, min_size(want - framer->part.len, data->len));
	if (framer->failed || framer->part.len < want)
		return false;
	framer->has_part = true;
	*ret_frame = str_slice(buf_str(&framer->part), LENGTH_BYTES, want);
	return true;
}

bool watch_framer_next(struct watch_framer *framer, struct str *data, struct str *ret_frame)
{
	if (framer->has_part) {
		framer->has_part = false;
		buf_clear(&framer->part);
	}
	if (framer->failed || data->len == 0)
		return false;
	return framer->is_protobuf ? next_message(framer, data, ret_frame)
				   : next_line(framer, data, ret_frame);
}

// ---- events

static bool take_kind(struct str type, enum watch_message_kind *ret_kind)
{
	static const char *const names[] = {
		[WATCH_MESSAGE_ADDED] = "ADDED",     [WATCH_MESSAGE_MODIFIED] = "MODIFIED",
		[WATCH_MESSAGE_DELETED] = "DELETED", [WATCH_MESSAGE_BOOKMARK] = "BOOKMARK",
		[WATCH_MESSAGE_ERROR] = "ERROR",
	};
	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		if (str_eq_c(type, names[i])) {
			*ret_kind = (enum watch_message_kind)i;
			return true;
		}
	return false;
}

static void take_meta_json(struct str object, struct watch_message *message)
{
	struct str meta = json_scan_at(object, "metadata"), key, value;
	message->resource_version = json_scan_text(json_scan_at(meta, "resourceVersion"));
	if (message->kind != WATCH_MESSAGE_BOOKMARK)
		return;
	struct json_iter annotations = json_iter_of(json_scan_at(meta, "annotations"));
	while (json_iter_next(&annotations, &key, &value))
		if (str_eq_c(key, INITIAL_END))
			message->ends_initial = str_eq_c(value, "\"true\"");
}

static bool parse_json(struct str frame, struct watch_message *message)
{
	struct str key, value, type = { NULL, 0 };
	struct json_iter iter = json_iter_of(frame);
	while (json_iter_next(&iter, &key, &value)) {
		if (str_eq_c(key, "type"))
			type = json_scan_text(value);
		else if (str_eq_c(key, "object"))
			message->object = value;
	}
	if (iter.failed || message->object.data == NULL || !take_kind(type, &message->kind))
		return false;
	if (message->kind == WATCH_MESSAGE_ERROR)
		message->status = k8s_status_parse(0, message->object);
	else
		take_meta_json(message->object, message);
	return true;
}

// The last submessage or text with that number; data NULL when absent.
static struct str pb_find(struct str bytes, uint32_t number)
{
	struct pb_reader reader = pb_reader_of(bytes);
	struct pb_field field;
	struct str found = { NULL, 0 };
	while (pb_next(&reader, &field))
		if (field.number == number && field.wire == PB_BYTES)
			found = field.bytes;
	return reader.failed ? (struct str){ NULL, 0 } : found;
}

static bool is_initial_end(struct str pair)
{
	return str_eq_c(pb_find(pair, PAIR_KEY), INITIAL_END) &&
	       str_eq_c(pb_find(pair, PAIR_VALUE), "true");
}

static void take_meta_protobuf(struct str object, struct watch_message *message)
{
	struct pb_reader reader = pb_reader_of(pb_find(object, OBJECT_META));
	struct pb_field field;
	while (pb_next(&reader, &field)) {
		if (field.wire != PB_BYTES)
			continue;
		if (field.number == META_VERSION)
			message->resource_version = field.bytes;
		else if (field.number == META_ANNOTATIONS && is_initial_end(field.bytes))
			message->ends_initial = message->kind == WATCH_MESSAGE_BOOKMARK;
	}
}

static bool parse_protobuf(struct str frame, struct watch_message *message)
{
	struct str raw = pb_find(pb_find(frame, EVENT_OBJECT), RAW_BYTES);
	if (raw.data == NULL || !take_kind(pb_find(frame, EVENT_TYPE), &message->kind) ||
	    !kobj_unwrap(raw, &message->object))
		return false;
	if (message->kind == WATCH_MESSAGE_ERROR)
		message->status = k8s_status_parse(0, raw);
	else
		take_meta_protobuf(message->object, message);
	return true;
}

bool watch_message_parse(struct str frame, bool is_protobuf, struct watch_message *ret_message)
{
	struct watch_message message = { .kind = WATCH_MESSAGE_ERROR };
	bool good = is_protobuf ? parse_protobuf(frame, &message) : parse_json(frame, &message);
	// Without a version the watch could not go on from here.
	if (good && message.kind != WATCH_MESSAGE_ERROR && message.resource_version.len == 0)
		good = false;
	if (good)
		*ret_message = message;
	return good;
}

// ---- lists

static bool open_json(struct str body, struct watch_list *list)
{
	struct str key, value, items = { NULL, 0 };
	struct json_iter iter = json_iter_of(body);
	while (json_iter_next(&iter, &key, &value)) {
		if (str_eq_c(key, "items"))
			items = value;
		if (!str_eq_c(key, "metadata"))
			continue;
		list->resource_version = json_scan_text(json_scan_at(value, "resourceVersion"));
		list->next = json_scan_text(json_scan_at(value, "continue"));
	}
	if (iter.failed)
		return false;
	// An empty list may have null for its items.
	list->json =
		json_iter_of(items.data == NULL || str_eq_c(items, "null") ? STR("[]") : items);
	return list->json.close == ']';
}

static bool open_protobuf(struct str body, struct watch_list *list)
{
	struct str message;
	if (!kobj_unwrap(body, &message))
		return false;
	struct str meta = pb_find(message, LIST_META);
	list->resource_version = pb_find(meta, LIST_VERSION);
	list->next = pb_find(meta, LIST_CONTINUE);
	list->pb = pb_reader_of(message);
	return meta.data != NULL;
}

bool watch_list_open(struct str body, bool is_protobuf, struct watch_list *ret_list)
{
	struct watch_list list = { .is_protobuf = is_protobuf };
	bool good = is_protobuf ? open_protobuf(body, &list) : open_json(body, &list);
	if (!good || list.resource_version.len == 0)
		return false;
	*ret_list = list;
	return true;
}

bool watch_list_next(struct watch_list *list, struct str *ret_object)
{
	struct str key;
	struct pb_field field;
	if (!list->is_protobuf)
		return json_iter_next(&list->json, &key, ret_object);
	while (pb_next(&list->pb, &field))
		if (field.number == LIST_ITEMS && field.wire == PB_BYTES) {
			*ret_object = field.bytes;
			return true;
		}
	return false;
}

bool watch_list_failed(const struct watch_list *list)
{
	return list->is_protobuf ? list->pb.failed : list->json.failed;
}
