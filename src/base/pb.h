// SPDX-License-Identifier: Apache-2.0
// Protocol Buffers wire format, reading and writing, without generated code. A reader walks the
// fields of one message; strings and submessages are borrowed from the input. Format:
// protobuf.dev/programming-guides/encoding. Groups are refused, varints over 64 bits too.
#pragma once

#include "base/buf.h"

enum pb_wire { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2, PB_FIXED32 = 5 };

struct pb_reader {
	struct str rest;
	bool failed; // set when the bytes are not a message; pb_next then ended early
};

struct pb_field {
	uint32_t number;
	enum pb_wire wire;
	uint64_t value;   // PB_VARINT, PB_FIXED64, PB_FIXED32
	struct str bytes; // PB_BYTES
};

struct pb_reader pb_reader_of(struct str message);
bool pb_next(struct pb_reader *reader, struct pb_field *ret_field); // false at the end or failure

void pb_put_varint(struct buf *out, uint32_t number, uint64_t value); // also 0 is written
void pb_put_bytes(struct buf *out, uint32_t number, struct str bytes);
