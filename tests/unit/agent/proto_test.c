// SPDX-License-Identifier: Apache-2.0
#include "base/pb.h"
#include "check.h"
#include "daemons/agent/checkpoint.h"
#include "daemons/agent/dp_proto.h"

#include <stdio.h>

static void check_list(struct check *c)
{
	AUTO(buf_done) struct buf out = { 0 };
	const struct dp_device devices[] = { { STR("a"), true, -1 }, { STR("b"), false, 0 } };
	// Node 0: an empty message within the topology, not a missing one.
	static const char want[] = "\x0a\x0c\x0a\x01"
				   "a\x12\x07Healthy"
				   "\x0a\x12\x0a\x01"
				   "b\x12\x09Unhealthy\x1a\x02\x0a";
	dp_put_list(&out, devices, 2);
	CHECK_INT(c, "length", out.len, sizeof want);
	CHECK(c, "bytes", out.len == sizeof want && memcmp(out.data, want, sizeof want) == 0);
}

static void check_requests(struct check *c)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
	struct dp_preferred_list preferred = { 0 };
	struct dp_allocate_list allocate = { 0 };
	const struct str ask = STR("\x0a\x0b\x0a\x01"
				   "a\x0a\x01"
				   "b\x12\x01"
				   "a\x18\x01");
	CHECK_INT(c, "preferred", dp_read_preferred(arena, ask, &preferred, NULL), ERR_OK);
	CHECK_INT(c, "containers", preferred.count, 1);
	CHECK_INT(c, "available", preferred.items[0].available.count, 2);
	CHECK_STR(c, "must", preferred.items[0].must.items[0], "a");
	CHECK_INT(c, "size", preferred.items[0].size, 1);
	const struct str give = STR("\x0a\x06\x0a\x01"
				    "a\x0a\x01"
				    "b\x0a\x03\x0a\x01"
				    "c");
	CHECK_INT(c, "allocate", dp_read_allocate(arena, give, &allocate, NULL), ERR_OK);
	CHECK_INT(c, "containers", allocate.count, 2);
	CHECK_STR(c, "second", allocate.items[1].items[0], "c");

	for (size_t len = 1; len < give.len; len++) {
		struct dp_allocate_list cut = { .count = 99 };
		bool is_whole = len == 8; // the first container alone
		err_status status = dp_read_allocate(arena, str_slice(give, 0, len), &cut, NULL);
		CHECK(c, "cut", is_whole == (status == ERR_OK));
		CHECK(c, "untouched", is_whole || cut.count == 99);
	}
	CHECK_INT(c, "negative size",
		  dp_read_preferred(arena,
				    STR("\x0a\x0b\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
				    &preferred, NULL),
		  ERR_PROTOCOL);
	AUTO(buf_done) struct buf many = { 0 };
	for (int i = 0; i <= DP_CONTAINERS_MAX; i++)
		pb_put_bytes(&many, 1, STR(""));
	CHECK_INT(c, "too many", dp_read_allocate(arena, buf_str(&many), &allocate, NULL),
		  ERR_LIMIT);
}

static void check_register(struct check *c)
{
	AUTO(buf_done) struct buf out = { 0 };
	const struct dp_register sent = { STR("v1beta1"), STR("x.sock"), STR("nvidia.com/gpu"),
					  true, true };
	struct dp_register got = { 0 };
	dp_put_register(&out, &sent);
	CHECK_INT(c, "register", dp_read_register(buf_str(&out), &got, NULL), ERR_OK);
	CHECK_STR(c, "endpoint", got.endpoint, "x.sock");
	CHECK(c, "prefers", got.prefers);
	CHECK(c, "asks before the start", got.pre_starts);
}

static void join(void *arg, const struct podres_row *row)
{
	buf_printf(arg, STR_FMT "/" STR_FMT ":" STR_FMT ":" STR_FMT "=" STR_FMT " ",
		   STR_ARG(row->namespace_), STR_ARG(row->pod), STR_ARG(row->container),
		   STR_ARG(row->resource), STR_ARG(row->id));
}

static void check_pod_resources(struct check *c)
{
	AUTO(buf_done) struct buf got = { 0 };
	const struct str list = STR("\x0a\x16\x0a\x01p\x12\x01n\x1a\x0e\x0a\x01"
				    "c\x12\x09\x0a\x01r\x12\x01x\x12\x01y");
	CHECK_INT(c, "list", podres_read_list(list, join, &got, NULL), ERR_OK);
	CHECK_STR(c, "rows", buf_str(&got), "n/p:c:r=x n/p:c:r=y ");
	for (size_t len = 1; len < list.len; len++) {
		buf_clear(&got);
		CHECK_INT(c, "cut", podres_read_list(str_slice(list, 0, len), join, &got, NULL),
			  ERR_PROTOCOL);
		CHECK_INT(c, "tells nothing", got.len, 0);
	}
}

static void join_checkpoint(void *arg, const struct checkpoint_row *row)
{
	buf_printf(arg, STR_FMT ":" STR_FMT "=" STR_FMT " ", STR_ARG(row->pod_uid),
		   STR_ARG(row->container), STR_ARG(row->id));
}

static void check_checkpoint(struct check *c)
{
#define ENTRY(ids)                                                                                 \
	"{\"PodUID\":\"u\",\"ContainerName\":\"c\",\"ResourceName\":\"r\",\"DeviceIDs\":" ids "}"
#define FILE_OF(entries) "{\"Data\":{\"PodDeviceEntries\":[" entries "]},\"Checksum\":7}"
	static const struct {
		const char *text, *want; // want NULL: refused
	} cases[] = {
		{ FILE_OF(""), "" },
		{ FILE_OF(ENTRY("{\"-1\":[\"x\",\"y\"]}")), "u:c=x u:c=y " },
		{ FILE_OF(ENTRY("{\"0\":[\"x\"],\"1\":[\"y\"]}")), "u:c=x u:c=y " },
		{ FILE_OF(ENTRY("[\"x\"]")), "u:c=x " },
		{ FILE_OF(ENTRY("null")), "" },
		{ "{\"Data\":{\"PodDeviceEntries\":null}}", "" },
		{ FILE_OF(ENTRY("{\"0\":[\"x\"]}") "," ENTRY("[7]")), NULL },
		{ FILE_OF("{}"), NULL },
		{ FILE_OF(ENTRY("\"x\"")), NULL },
		{ "{\"Data\":{\"PodDeviceEntries\":{}}}", NULL },
		{ "", NULL },
		{ "{", NULL },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		AUTO(buf_done) struct buf got = { 0 };
		err_status status =
			checkpoint_read(str_of(cases[i].text), join_checkpoint, &got, NULL);
		CHECK(c, cases[i].text, (status == ERR_OK) == (cases[i].want != NULL));
		CHECK_STR(c, cases[i].text, buf_str(&got),
			  cases[i].want == NULL ? "" : cases[i].want);
	}
}

int main(void)
{
	struct check c = { 0 };
	check_list(&c);
	check_requests(&c);
	check_register(&c);
	check_pod_resources(&c);
	check_checkpoint(&c);
	return check_done(&c);
}
