// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "k8s/watch_frame.h"

#include <stdlib.h>

// However the bytes are cut, the frames are the same.
static void test_lines(struct check *c)
{
	static const char *const lines[] = { "{\"a\":1}", "", "second", "{}" };
	struct buf wire = { 0 };
	for (size_t i = 0; i < ARRAY_COUNT(lines); i++)
		buf_printf(&wire, "%s\n", lines[i]);
	for (size_t step = 1; step <= wire.len; step++) {
		struct watch_framer framer;
		size_t found = 0;
		watch_framer_init(&framer, false);
		for (size_t at = 0; at < wire.len; at += step) {
			struct str piece = str_slice(buf_str(&wire), at, at + step), frame;
			while (watch_framer_next(&framer, &piece, &frame)) {
				ASSERT(found < ARRAY_COUNT(lines));
				CHECK_STR(c, "line", frame, lines[found++]);
			}
			CHECK_INT(c, "all taken", piece.len, 0);
		}
		CHECK_INT(c, "all lines", found, ARRAY_COUNT(lines));
		watch_framer_done(&framer);
	}
	buf_done(&wire);
}

static void put_length(struct buf *out, size_t length)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		buf_put_byte(out, (char)(uint8_t)(length >> shift));
}

static void test_messages(struct check *c)
{
	static const char *const frames[] = { "one", "", "\n\n", "four" };
	struct buf wire = { 0 };
	for (size_t i = 0; i < ARRAY_COUNT(frames); i++) {
		put_length(&wire, strlen(frames[i]));
		buf_put_c(&wire, frames[i]);
	}
	for (size_t step = 1; step <= wire.len; step++) {
		struct watch_framer framer;
		size_t found = 0;
		watch_framer_init(&framer, true);
		for (size_t at = 0; at < wire.len; at += step) {
			struct str piece = str_slice(buf_str(&wire), at, at + step), frame;
			while (watch_framer_next(&framer, &piece, &frame)) {
				ASSERT(found < ARRAY_COUNT(frames));
				CHECK_STR(c, "message", frame, frames[found++]);
			}
		}
		CHECK_INT(c, "all messages", found, ARRAY_COUNT(frames));
		watch_framer_done(&framer);
	}
	buf_done(&wire);
}

static void test_too_large(struct check *c)
{
	struct watch_framer framer;
	struct str frame, data = STR("\1\0\0\0xxxx");
	watch_framer_init(&framer, true);
	CHECK(c, "16 MiB", !watch_framer_next(&framer, &data, &frame) && framer.failed);
	CHECK(c, "little memory", framer.part.cap < 1024);
	watch_framer_done(&framer);
	char *line = malloc(WATCH_FRAME_MAX_BYTES + 10);
	ASSERT(line != NULL);
	memset(line, 'x', WATCH_FRAME_MAX_BYTES + 10);
	watch_framer_init(&framer, false);
	data = (struct str){ line, WATCH_FRAME_MAX_BYTES + 10 };
	CHECK(c, "long line", !watch_framer_next(&framer, &data, &frame) && framer.failed);
	watch_framer_done(&framer);
	free(line);
}

static void test_events_json(struct check *c)
{
	static const struct {
		const char *json;
		bool ok;
		enum watch_message_kind kind;
		const char *version;
		bool ends_initial;
		int code;
	} cases[] = {
		{ "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"5\"}}}",
		  true, WATCH_MESSAGE_ADDED, "5", false, 0 },
		{ "{\"object\":{\"metadata\":{\"resourceVersion\":\"6\"}},\"type\":\"DELETED\"}",
		  true, WATCH_MESSAGE_DELETED, "6", false, 0 },
		{ "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\","
		  "\"annotations\":{\"x\":\"y\",\"k8s.io/initial-events-end\":\"true\"}}}}",
		  true, WATCH_MESSAGE_BOOKMARK, "7", true, 0 },
		{ "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"8\","
		  "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}",
		  true, WATCH_MESSAGE_ADDED, "8", false, 0 },
		{ "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410}}", true,
		  WATCH_MESSAGE_ERROR, "", false, 410 },
		{ "{\"type\":\"ADDED\",\"object\":{\"metadata\":{}}}", false, 0, "", false, 0 },
		{ "{\"type\":\"OTHER\",\"object\":{\"metadata\":{\"resourceVersion\":\"5\"}}}",
		  false, 0, "", false, 0 },
		{ "{\"type\":\"ADDED\"}", false, 0, "", false, 0 },
		{ "{\"type\":\"ADDED\",\"object\":{", false, 0, "", false, 0 },
		{ "[]", false, 0, "", false, 0 },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct watch_message m = { .kind = WATCH_MESSAGE_ERROR };
		bool ok = watch_message_parse(str_of(cases[i].json), false, &m);
		CHECK(c, cases[i].json, ok == cases[i].ok);
		if (!ok || !cases[i].ok)
			continue;
		CHECK_INT(c, cases[i].json, m.kind, cases[i].kind);
		CHECK_STR(c, cases[i].json, m.resource_version, cases[i].version);
		CHECK(c, cases[i].json, m.ends_initial == cases[i].ends_initial);
		CHECK_INT(c, cases[i].json, m.status.code, cases[i].code);
	}
}

// WatchEvent{type, RawExtension{envelope}} with an object that has only metadata.
static struct str make_event(struct buf *out, const char *type, const char *version, bool marked)
{
	struct buf meta = { 0 }, object = { 0 }, unknown = { 0 }, raw = { 0 }, pair = { 0 };
	pb_put_bytes(&meta, 1, STR("name"));
	pb_put_bytes(&meta, 6, str_of(version));
	if (marked) {
		pb_put_bytes(&pair, 1, STR("k8s.io/initial-events-end"));
		pb_put_bytes(&pair, 2, STR("true"));
		pb_put_bytes(&meta, 12, buf_str(&pair));
	}
	pb_put_bytes(&object, 1, buf_str(&meta));
	pb_put_bytes(&unknown, 1, STR(""));
	pb_put_bytes(&unknown, 2, buf_str(&object));
	struct buf envelope = { 0 };
	buf_put_bytes(&envelope, "k8s\0", 4);
	buf_put(&envelope, buf_str(&unknown));
	pb_put_bytes(&raw, 1, buf_str(&envelope));
	buf_clear(out);
	pb_put_bytes(out, 1, str_of(type));
	pb_put_bytes(out, 2, buf_str(&raw));
	buf_done(&meta);
	buf_done(&object);
	buf_done(&unknown);
	buf_done(&raw);
	buf_done(&pair);
	buf_done(&envelope);
	return buf_str(out);
}

static void test_events_protobuf(struct check *c)
{
	struct buf bytes = { 0 };
	struct watch_message m = { .kind = WATCH_MESSAGE_ERROR };
	CHECK(c, "added", watch_message_parse(make_event(&bytes, "ADDED", "12", false), true, &m));
	CHECK_INT(c, "added", m.kind, WATCH_MESSAGE_ADDED);
	CHECK_STR(c, "added", m.resource_version, "12");
	CHECK_INT(c, "the object without the envelope", m.object.data[0], 0x0a);
	CHECK(c, "end", watch_message_parse(make_event(&bytes, "BOOKMARK", "13", true), true, &m));
	CHECK(c, "end", m.ends_initial);
	CHECK(c, "no version",
	      !watch_message_parse(make_event(&bytes, "ADDED", "", false), true, &m));
	struct str whole = make_event(&bytes, "MODIFIED", "14", false);
	for (size_t n = 0; n < whole.len; n++)
		CHECK(c, "cut", !watch_message_parse(str_slice(whole, 0, n), true, &m));
	buf_done(&bytes);
}

static void test_lists(struct check *c)
{
	static const struct {
		const char *json;
		bool ok;
		int item_count;
		bool failed;
		const char *version, *next;
	} cases[] = {
		{ "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[{},{}]"
		  "}",
		  true, 2, false, "9", "" },
		{ "{\"items\":[{\"a\":[1]}],\"metadata\":{\"resourceVersion\":\"9\","
		  "\"continue\":\"abc==\",\"remainingItemCount\":7}}",
		  true, 1, false, "9", "abc==" },
		{ "{\"metadata\":{\"resourceVersion\":\"9\"},\"items\":null}", true, 0, false, "9",
		  "" },
		{ "{\"metadata\":{\"resourceVersion\":\"9\"}}", true, 0, false, "9", "" },
		{ "{\"metadata\":{},\"items\":[]}", false, 0, false, "", "" },
		{ "{\"metadata\":{\"resourceVersion\":\"9\"},\"items\":{}}", false, 0, false, "",
		  "" },
		{ "{\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[", false, 0, false, "",
		  "" },
		{ "{\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[{} {}]}", true, 1, true,
		  "9", "" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct watch_list list;
		struct str object;
		int count = 0;
		bool ok = watch_list_open(str_of(cases[i].json), false, &list);
		CHECK(c, cases[i].json, ok == cases[i].ok);
		if (!ok || !cases[i].ok)
			continue;
		while (watch_list_next(&list, &object))
			count++;
		CHECK_INT(c, cases[i].json, count, cases[i].item_count);
		CHECK(c, cases[i].json, watch_list_failed(&list) == cases[i].failed);
		CHECK_STR(c, cases[i].json, list.resource_version, cases[i].version);
		CHECK_STR(c, cases[i].json, list.next, cases[i].next);
	}
}

int main(void)
{
	struct check c = { 0 };
	test_lines(&c);
	test_messages(&c);
	test_too_large(&c);
	test_events_json(&c);
	test_events_protobuf(&c);
	test_lists(&c);
	return check_done(&c);
}
