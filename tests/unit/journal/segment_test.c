// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "journal/segment.h"

static void join(void *arg, struct str text, size_t at)
{
	(void)at;
	buf_put(arg, text);
	buf_put_byte(arg, '|');
}

int main(void)
{
	struct check c = { 0 };
	AUTO(buf_done) struct buf file = { 0 };
	AUTO(buf_done) struct buf got = { 0 };
	CHECK_INT(&c, "the checksum of the standard", segment_crc(STR("123456789")), 0xe3069283);
	segment_put(&file, STR("one"));
	segment_put(&file, STR("two"));
	segment_put(&file, STR("three"));
	const size_t whole = file.len, two = 13 + 13;

	struct segment_scan scan = segment_read(buf_str(&file), join, &got);
	CHECK_STR(&c, "whole", buf_str(&got), "one|two|three|");
	CHECK_INT(&c, "whole", scan.good_bytes, whole);

	// Every way to be torn leaves the lines before.
	for (size_t len = 0; len < whole; len++) {
		scan = segment_read(str_slice(buf_str(&file), 0, len), NULL, NULL);
		size_t lines = len < 13 ? 0 : len < two ? 1 : 2;
		CHECK_INT(&c, "torn: lines", scan.lines, lines);
		CHECK_INT(&c, "torn: good bytes", scan.good_bytes, lines * 13);
		CHECK_INT(&c, "torn: damaged", scan.damaged, 0);
	}
	// Every flipped bit is seen.
	for (size_t bit = 0; bit < whole * 8; bit++) {
		file.data[bit / 8] = (char)(file.data[bit / 8] ^ 1 << bit % 8);
		scan = segment_read(buf_str(&file), NULL, NULL);
		CHECK(&c, "flipped", scan.lines < 3);
		file.data[bit / 8] = (char)(file.data[bit / 8] ^ 1 << bit % 8);
	}
	file.data[14] ^= 1;
	buf_clear(&got);
	scan = segment_read(buf_str(&file), join, &got);
	CHECK_STR(&c, "damage in the middle", buf_str(&got), "one|three|");
	CHECK_INT(&c, "damage in the middle", scan.damaged, 1);
	CHECK_INT(&c, "damage in the middle", scan.good_bytes, whole);
	return check_done(&c);
}
