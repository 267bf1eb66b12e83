// SPDX-License-Identifier: Apache-2.0
#include "journal/segment.h"

#include <inttypes.h>

// CRC-32C (Castagnoli), reflected, half a byte a step: sixteen entries are enough for lines.
static const uint32_t crc_table[16] = {
	0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
	0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
	0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t segment_crc(struct str text)
{
	uint32_t crc = UINT32_MAX;
	for (size_t i = 0; i < text.len; i++) {
		crc ^= (uint8_t)text.data[i];
		crc = crc >> 4 ^ crc_table[crc & 15];
		crc = crc >> 4 ^ crc_table[crc & 15];
	}
	return ~crc;
}

void segment_put(struct buf *out, struct str text)
{
	ASSERT(memchr(text.data, '\n', text.len) == NULL);
	buf_printf(out, "%08" PRIx32 " ", segment_crc(text));
	buf_put(out, text);
	buf_put_byte(out, '\n');
}

static bool check_line(struct str line, struct str *ret_text)
{
	uint32_t crc = 0;
	if (line.len < SEGMENT_FRAME_BYTES || line.data[8] != ' ')
		return false;
	for (size_t i = 0; i < 8; i++) {
		int digit = str_hex_value(line.data[i]);
		// Small letters alone, as they are written: else a flipped bit goes unseen.
		if (digit < 0 || (line.data[i] >= 'A' && line.data[i] <= 'F'))
			return false;
		crc = crc << 4 | (uint32_t)digit;
	}
	struct str text = str_slice(line, 9, line.len);
	if (segment_crc(text) != crc)
		return false;
	*ret_text = text;
	return true;
}

struct segment_scan segment_read(struct str content, segment_line_fn *fn, void *arg)
{
	struct segment_scan scan = { 0 };
	size_t bad = 0; // since the last good line
	for (size_t at = 0; at < content.len;) {
		size_t end = str_find_byte(content, '\n', at);
		struct str text = { 0 };
		if (end == SIZE_MAX)
			break;
		if (check_line(str_slice(content, at, end), &text)) {
			if (fn != NULL)
				fn(arg, text, at);
			scan.lines++;
			scan.damaged += bad;
			bad = 0;
			scan.good_bytes = end + 1;
		} else {
			bad++;
		}
		at = end + 1;
	}
	ASSERT(scan.good_bytes <= content.len);
	return scan;
}
