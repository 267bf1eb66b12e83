// SPDX-License-Identifier: Apache-2.0
// pb, metric: bytes that other programs read.
#include "base/metric.h"
#include "base/pb.h"
#include "check.h"

static void test_pb(struct check *c)
{
	AUTO(buf_done) struct buf b = { 0 };
	pb_put_varint(&b, 1, 150);
	pb_put_bytes(&b, 2, STR("testing"));
	pb_put_varint(&b, 16, UINT64_MAX);
	CHECK_STR(c, "encoding of the public example", str_slice(buf_str(&b), 0, 3),
		  "\x08\x96\x01");
	struct pb_reader r = pb_reader_of(buf_str(&b));
	struct pb_field f;
	CHECK(c, "first", pb_next(&r, &f) && f.number == 1 && f.value == 150);
	CHECK(c, "second", pb_next(&r, &f) && f.number == 2 && str_eq_c(f.bytes, "testing"));
	CHECK(c, "third", pb_next(&r, &f) && f.number == 16 && f.value == UINT64_MAX);
	CHECK(c, "end", !pb_next(&r, &f) && !r.failed);
	static const struct {
		const char *name;
		struct str bytes;
	} bad[] = {
		{ "cut varint", { "\x08\x96", 2 } },
		{ "field number 0", { "\x00\x01", 2 } },
		{ "length past the end",
		  { "\x12\x05"
		    "ab",
		    4 } },
		{ "group", { "\x0b\x0c", 2 } },
		{ "cut fixed64", { "\x09\x01\x02", 3 } },
		{ "varint of 11 bytes",
		  { "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12 } },
	};
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
		r = pb_reader_of(bad[i].bytes);
		while (pb_next(&r, &f)) {
		}
		CHECK(c, bad[i].name, r.failed);
	}
}

static void test_metric(struct check *c)
{
	AUTO(buf_done) struct buf b = { 0 };
	struct metric_label labels[] = { { "pod", STR("a\"b\\c\nd") } };
	metric_family(&b, "x_total", "counter", "Two\nlines.");
	metric_int(&b, "x_total", labels, 1, 5);
	metric_float(&b, "y", NULL, 0, 0.25);
	CHECK_STR(c, "exposition", buf_str(&b),
		  "# HELP x_total Two\\nlines.\n# TYPE x_total counter\n"
		  "x_total{pod=\"a\\\"b\\\\c\\nd\"} 5\ny 0.25\n");
	static const double bounds[] = { 0.1, 1 };
	struct metric_histogram h = { .bounds = bounds, .bounds_count = 2 };
	metric_observe(&h, 0.1);
	metric_observe(&h, 0.5);
	metric_observe(&h, 7);
	buf_clear(&b);
	metric_histogram_put(&b, "w", NULL, 0, &h);
	CHECK_STR(c, "histogram", buf_str(&b),
		  "w_bucket{le=\"0.1\"} 1\nw_bucket{le=\"1\"} 2\nw_bucket{le=\"+Inf\"} 3\n"
		  "w_sum 7.6\nw_count 3\n");
}

int main(void)
{
	struct check c = { 0 };
	test_pb(&c);
	test_metric(&c);
	return check_done(&c);
}
