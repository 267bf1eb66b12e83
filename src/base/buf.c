// SPDX-License-Identifier: Apache-2.0
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void buf_done(struct buf *buf)
{
	free(buf->data);
	buf->data = NULL;
	buf->len = buf->cap = 0;
}

void buf_clear(struct buf *buf)
{
	buf->len = 0;
	buf->failed = false;
	if (buf->data != NULL)
		buf->data[0] = '\0';
}

bool buf_ok(const struct buf *buf) { return !buf->failed; }

struct str buf_str(const struct buf *buf)
{
	return (struct str){ buf->data == NULL ? "" : buf->data, buf->len };
}

char *buf_reserve(struct buf *buf, size_t size_bytes)
{
	size_t limit = buf->limit == 0 ? BUF_LIMIT_DEFAULT : buf->limit;
	if (buf->failed || buf->len > limit || size_bytes > limit - buf->len) {
		buf->failed = true;
		return NULL;
	}
	size_t need = buf->len + size_bytes + 1;
	if (need > buf->cap) {
		size_t cap = max_size(max_size(buf->cap * 2, need), 64);
		char *data = realloc(buf->data, cap);
		if (data == NULL) {
			buf->failed = true;
			return NULL;
		}
		buf->data = data;
		buf->cap = cap;
	}
	return buf->data + buf->len;
}

void buf_commit(struct buf *buf, size_t size_bytes)
{
	ASSERT(buf->data != NULL && buf->len + size_bytes < buf->cap);
	buf->len += size_bytes;
	buf->data[buf->len] = '\0';
}

void buf_put_bytes(struct buf *buf, const void *data, size_t size_bytes)
{
	char *room = buf_reserve(buf, size_bytes);
	if (room == NULL)
		return;
	if (size_bytes > 0)
		memcpy(room, data, size_bytes);
	buf_commit(buf, size_bytes);
}

void buf_put(struct buf *buf, struct str text) { buf_put_bytes(buf, text.data, text.len); }
void buf_put_c(struct buf *buf, const char *text) { buf_put(buf, str_of(text)); }
void buf_put_byte(struct buf *buf, char byte) { buf_put_bytes(buf, &byte, 1); }

void buf_printf(struct buf *buf, const char *fmt, ...)
{
	va_list args, again;
	va_start(args, fmt);
	va_copy(again, args);
	int length = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	char *room = length < 0 ? NULL : buf_reserve(buf, (size_t)length);
	if (room != NULL) {
		(void)vsnprintf(room, (size_t)length + 1, fmt, again);
		buf_commit(buf, (size_t)length);
	}
	va_end(again);
}

void buf_consume(struct buf *buf, size_t size_bytes)
{
	ASSERT(size_bytes <= buf->len);
	if (size_bytes == 0)
		return;
	memmove(buf->data, buf->data + size_bytes, buf->len - size_bytes);
	buf->len -= size_bytes;
	buf->data[buf->len] = '\0';
}

static void put_json_byte(struct buf *buf, char c)
{
	switch (c) {
	case '"': buf_put_c(buf, "\\\""); break;
	case '\\': buf_put_c(buf, "\\\\"); break;
	case '\n': buf_put_c(buf, "\\n"); break;
	case '\r': buf_put_c(buf, "\\r"); break;
	case '\t': buf_put_c(buf, "\\t"); break;
	default:
		if ((unsigned char)c < 0x20 || c == 0x7f)
			buf_printf(buf, "\\u%04x", (unsigned)(unsigned char)c);
		else
			buf_put_byte(buf, c);
	}
}

void buf_put_json(struct buf *buf, struct str text)
{
	buf_put_byte(buf, '"');
	for (size_t i = 0; i < text.len;) {
		size_t n = 1;
		if ((unsigned char)text.data[i] >= 0x80) {
			for (n = 2; n <= 4 && i + n <= text.len; n++)
				if (str_is_utf8((struct str){ text.data + i, n }))
					break;
			bool valid = n <= 4 && i + n <= text.len;
			if (valid)
				buf_put_bytes(buf, text.data + i, n);
			else
				buf_put_c(buf, "\xef\xbf\xbd");
			n = valid ? n : 1;
		} else {
			put_json_byte(buf, text.data[i]);
		}
		i += n;
	}
	buf_put_byte(buf, '"');
}
