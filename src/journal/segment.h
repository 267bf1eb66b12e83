// SPDX-License-Identifier: Apache-2.0
// The bytes of a journal file: lines "CCCCCCCC TEXT\n", where C is the CRC-32C of TEXT in hex.
// Reading stops at nothing: a damaged line in the middle is counted and skipped, a torn end is
// reported with the length up to which the file is good. Pure.
#pragma once

#include "base/buf.h"

enum { SEGMENT_FRAME_BYTES = 10 }; // added to each text

struct segment_scan {
	size_t good_bytes; // length of the file without its torn end
	size_t lines;      // good ones
	size_t damaged;    // bad lines before good_bytes
};

// at: offset of the line in the file.
typedef void segment_line_fn(void *arg, struct str text, size_t at);

uint32_t segment_crc(struct str text);
void segment_put(struct buf *out, struct str text); // text holds no line feed
// fn may be NULL.
struct segment_scan segment_read(struct str content, segment_line_fn *fn, void *arg);
