// SPDX-License-Identifier: Apache-2.0
#include "base/pb.h"

enum { VARINT_MAX_BYTES = 10 };

struct pb_reader pb_reader_of(struct str message) { return (struct pb_reader){ message, false }; }

static bool take_varint(struct str *s, uint64_t *ret)
{
	uint64_t value = 0;
	for (size_t i = 0; i < s->len && i < VARINT_MAX_BYTES; i++) {
		uint64_t byte = (unsigned char)s->data[i];
		if (i == VARINT_MAX_BYTES - 1 && byte > 1)
			return false;
		value |= (byte & 0x7f) << (7 * i);
		if (byte < 0x80) {
			*s = str_slice(*s, i + 1, s->len);
			*ret = value;
			return true;
		}
	}
	return false;
}

static bool take_fixed(struct str *s, size_t size_bytes, uint64_t *ret)
{
	if (s->len < size_bytes)
		return false;
	uint64_t value = 0;
	for (size_t i = size_bytes; i-- > 0;)
		value = value << 8 | (unsigned char)s->data[i];
	*s = str_slice(*s, size_bytes, s->len);
	*ret = value;
	return true;
}

static bool take_payload(struct str *s, struct pb_field *field)
{
	uint64_t length;
	switch (field->wire) {
	case PB_VARINT: return take_varint(s, &field->value);
	case PB_FIXED64: return take_fixed(s, 8, &field->value);
	case PB_FIXED32: return take_fixed(s, 4, &field->value);
	case PB_BYTES:
		if (!take_varint(s, &length) || length > s->len)
			return false;
		field->bytes = str_slice(*s, 0, (size_t)length);
		*s = str_slice(*s, (size_t)length, s->len);
		return true;
	}
	return false; // groups and reserved wire types
}

bool pb_next(struct pb_reader *reader, struct pb_field *ret_field)
{
	if (reader->failed || reader->rest.len == 0)
		return false;
	uint64_t tag;
	struct pb_field field = { 0 };
	bool good = take_varint(&reader->rest, &tag) && tag >> 3 != 0 && tag >> 3 < (1U << 29);
	if (good) {
		field.number = (uint32_t)(tag >> 3);
		field.wire = (enum pb_wire)(tag & 7);
		good = take_payload(&reader->rest, &field);
	}
	if (!good) {
		reader->failed = true;
		return false;
	}
	*ret_field = field;
	return true;
}

static void put_raw_varint(struct buf *out, uint64_t value)
{
	unsigned char bytes[VARINT_MAX_BYTES];
	size_t count = 0;
	do {
		bytes[count] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
		value >>= 7;
		count++;
	} while (value != 0);
	buf_put_bytes(out, bytes, count);
}

void pb_put_varint(struct buf *out, uint32_t number, uint64_t value)
{
	ASSERT(number > 0);
	put_raw_varint(out, (uint64_t)number << 3 | PB_VARINT);
	put_raw_varint(out, value);
}

void pb_put_bytes(struct buf *out, uint32_t number, struct str bytes)
{
	ASSERT(number > 0);
	put_raw_varint(out, (uint64_t)number << 3 | PB_BYTES);
	put_raw_varint(out, bytes.len);
	buf_put(out, bytes);
}
