// SPDX-License-Identifier: Apache-2.0
// Growing bytes with a maximum. A failed append (limit or memory) marks the buffer as failed
// and later appends do nothing, so a writer checks once at the end with buf_ok. Owned by one
// caller; buf_done frees. Zero-initialised with a limit it is ready: struct buf b = { .limit = N }.
#pragma once

#include "base/str.h"

struct buf {
	char *data; // always terminated when not NULL
	size_t len;
	size_t cap;
	size_t limit; // maximum of len; 0 means BUF_LIMIT_DEFAULT
	bool failed;
};

enum { BUF_LIMIT_DEFAULT = 64 * 1024 * 1024 };

void buf_done(struct buf *buf); // for AUTO too
void buf_clear(struct buf *buf);
bool buf_ok(const struct buf *buf);
struct str buf_str(const struct buf *buf);
void buf_put(struct buf *buf, struct str text);
void buf_put_c(struct buf *buf, const char *text);
void buf_put_byte(struct buf *buf, char byte);
void buf_put_bytes(struct buf *buf, const void *data, size_t size_bytes);
void buf_printf(struct buf *buf, const char *fmt, ...) PRINTF_LIKE(2, 3);
// A JSON string with quotes; bytes that are not UTF-8 become U+FFFD.
void buf_put_json(struct buf *buf, struct str text);
// Room for size_bytes more; NULL on failure. buf_commit says how much of it was used.
char *buf_reserve(struct buf *buf, size_t size_bytes);
void buf_commit(struct buf *buf, size_t size_bytes);
// Drops the first size_bytes.
void buf_consume(struct buf *buf, size_t size_bytes);
