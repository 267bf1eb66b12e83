// SPDX-License-Identifier: Apache-2.0
// The same list of pods as JSON and as protobuf, from a real API server: both must decode to the
// same spec, without unknown fields. Arguments: list.json list.pb
#include "base/pb.h"
#include "feed/feed.h"
#include "sys/fs.h"

#include "check.h"

#include <stdlib.h>

enum { LIST_MAX_BYTES = 16 * 1024 * 1024, PODS_MAX = 4096 };

struct read_pod {
	struct sched_pod_in in;
	struct str key; // canonical bytes of the spec
	size_t unknown_count;
	struct str unknown;
};

static void must(bool good, const char *what, const struct err *err)
{
	if (good)
		return;
	(void)fprintf(stderr, "%s: %s\n", what, err->text);
	exit(2);
}

static void feed_one(struct arena *arena, struct kobj_pod *pod,
		     const struct kobj_unknowns *unknowns, struct read_pod *ret)
{
	struct err err = { .text = "no memory" };
	must(feed_pod(arena, pod, unknowns, STR("gpuaas"), &ret->in), "feed", &err);
	AUTO(buf_done) struct buf key = { .limit = 1 << 20 };
	sched_spec_key(ret->in.spec, &key);
	ret->key = arena_dup(arena, buf_str(&key));
	ret->unknown_count = unknowns->count;
	ret->unknown = unknowns->paths[0];
}

static size_t read_json(struct arena *arena, const json_t *list, struct read_pod *pods)
{
	const json_t *items = json_object_get(list, "items");
	for (size_t i = 0; i < json_array_size(items); i++) {
		struct kobj_pod pod;
		struct kobj_unknowns unknowns = { .count = 0 };
		struct err err = { 0 };
		must(kobj_from_json(arena, &KOBJ_POD, json_array_get(items, i), &unknowns, &pod,
				    &err) == ERR_OK,
		     "JSON", &err);
		feed_one(arena, &pod, &unknowns, &pods[i]);
	}
	return json_array_size(items);
}

static size_t read_protobuf(struct arena *arena, struct str bytes, struct read_pod *pods)
{
	struct str list;
	struct err err = { .text = "envelope" };
	must(kobj_unwrap(bytes, &list), "protobuf", &err);
	struct pb_reader reader = pb_reader_of(list);
	struct pb_field field;
	size_t count = 0;
	while (pb_next(&reader, &field) && count < PODS_MAX) {
		struct kobj_pod pod;
		struct kobj_unknowns unknowns = { .count = 0 };
		if (field.number != 2) // items
			continue;
		must(kobj_from_protobuf(arena, &KOBJ_POD, field.bytes, &unknowns, &pod, &err) ==
			     ERR_OK,
		     "protobuf", &err);
		feed_one(arena, &pod, &unknowns, &pods[count++]);
	}
	return count;
}

static void compare(struct check *c, const struct read_pod *a, const struct read_pod *b)
{
	char name[128];
	(void)snprintf(name, sizeof name, STR_FMT, STR_ARG(a->in.name));
	CHECK_INT(c, name, a->unknown_count, 0);
	CHECK_INT(c, name, b->unknown_count, 0);
	if (a->unknown_count + b->unknown_count > 0)
		printf("unknown: " STR_FMT ", " STR_FMT "\n", STR_ARG(a->unknown),
		       STR_ARG(b->unknown));
	CHECK(c, name, str_eq(a->key, b->key));
	CHECK(c, name, str_eq(a->in.uid, b->in.uid) && str_eq(a->in.name, b->in.name));
	CHECK(c, name, str_eq(a->in.namespace_, b->in.namespace_));
	CHECK(c, name, str_eq(a->in.node, b->in.node));
	CHECK_INT(c, name, a->in.created_s, b->in.created_s);
	CHECK_INT(c, name, a->in.priority, b->in.priority);
	CHECK_INT(c, name, a->in.labels.count, b->in.labels.count);
	CHECK_INT(c, name, a->in.is_ours, b->in.is_ours);
	CHECK_INT(c, name, a->in.is_gated, b->in.is_gated);
	CHECK_INT(c, name, a->in.is_terminating, b->in.is_terminating);
}

int main(int argc, char **argv)
{
	struct check c = { 0 };
	struct err err = { 0 };
	AUTO(buf_done) struct buf json_text_ = { .limit = LIST_MAX_BYTES };
	AUTO(buf_done) struct buf bytes = { .limit = LIST_MAX_BYTES };
	AUTO(json_decrefp) json_t *list = NULL;
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 28);
	if (argc != 3)
		return 2;
	must(fs_read(argv[1], LIST_MAX_BYTES, &json_text_, &err) == ERR_OK, "read", &err);
	must(fs_read(argv[2], LIST_MAX_BYTES, &bytes, &err) == ERR_OK, "read", &err);
	must(json_parse(buf_str(&json_text_), &list, &err) == ERR_OK, "JSON", &err);
	struct read_pod *a = ARENA_ARRAY(arena, struct read_pod, PODS_MAX);
	struct read_pod *b = ARENA_ARRAY(arena, struct read_pod, PODS_MAX);
	size_t count = read_json(arena, list, a);
	CHECK_INT(&c, "as many", read_protobuf(arena, buf_str(&bytes), b), count);
	for (size_t i = 0; i < count; i++)
		compare(&c, &a[i], &b[i]);
	return check_done(&c);
}
