// SPDX-License-Identifier: Apache-2.0
#include "net/http1.h"

enum {
	SIZE_DIGITS_MAX = 15, // hex: sizes stay far below 2^63
	EXTRA_MAX_BYTES = 4096,
};

// Names say what the next byte belongs to.
enum chunk_state {
	AT_SIZE,
	AT_EXTENSION,
	AT_SIZE_LF,
	AT_DATA,
	AT_DATA_CR,
	AT_DATA_LF,
	AT_TRAILER,
	AT_TRAILER_LF,
	AT_END,
	AT_ERROR,
};

static bool is_text(char c) { return http1_is_value((struct str){ &c, 1 }); }

static enum chunk_state after_size(struct http1_chunks *chunks, char c)
{
	int digit = str_hex_value(c);
	if (digit >= 0 && chunks->digits < SIZE_DIGITS_MAX) {
		chunks->digits++;
		chunks->left = chunks->left * 16 + (uint64_t)digit;
		return AT_SIZE;
	}
	if (chunks->digits == 0)
		return AT_ERROR;
	return c == '\r' ? AT_SIZE_LF : c == ';' ? AT_EXTENSION : AT_ERROR;
}

// Extensions are ignored, but not without end: they cost the sender nothing.
static enum chunk_state after_extension(struct http1_chunks *chunks, char c)
{
	if (c == '\r')
		return AT_SIZE_LF;
	return is_text(c) && ++chunks->extra_bytes <= EXTRA_MAX_BYTES ? AT_EXTENSION : AT_ERROR;
}

// Trailers are checked for their form and dropped.
static enum chunk_state after_trailer(struct http1_chunks *chunks, char c)
{
	if (c == '\r')
		return chunks->line_bytes == 0 || chunks->colon ? AT_TRAILER_LF : AT_ERROR;
	if (!is_text(c) || ++chunks->extra_bytes > EXTRA_MAX_BYTES)
		return AT_ERROR;
	if (c == ':' && chunks->line_bytes > 0)
		chunks->colon = true;
	if (!chunks->colon && !http1_is_token((struct str){ &c, 1 }))
		return AT_ERROR;
	chunks->line_bytes++;
	return AT_TRAILER;
}

static enum chunk_state after_trailer_lf(struct http1_chunks *chunks, char c)
{
	bool last = chunks->line_bytes == 0;
	chunks->line_bytes = 0;
	chunks->colon = false;
	if (c != '\n')
		return AT_ERROR;
	return last ? AT_END : AT_TRAILER;
}

static enum chunk_state after_size_lf(const struct http1_chunks *chunks, char c)
{
	if (c != '\n')
		return AT_ERROR;
	return chunks->left == 0 ? AT_TRAILER : AT_DATA;
}

static enum chunk_state after_data_lf(struct http1_chunks *chunks, char c)
{
	chunks->digits = 0;
	chunks->left = 0;
	return c == '\n' ? AT_SIZE : AT_ERROR;
}

static enum chunk_state after_byte(struct http1_chunks *chunks, char c)
{
	switch ((enum chunk_state)chunks->state) {
	case AT_SIZE: return after_size(chunks, c);
	case AT_EXTENSION: return after_extension(chunks, c);
	case AT_SIZE_LF: return after_size_lf(chunks, c);
	case AT_DATA_CR: return c == '\r' ? AT_DATA_LF : AT_ERROR;
	case AT_DATA_LF: return after_data_lf(chunks, c);
	case AT_TRAILER: return after_trailer(chunks, c);
	case AT_TRAILER_LF: return after_trailer_lf(chunks, c);
	case AT_DATA:
	case AT_END:
	case AT_ERROR: break;
	}
	return AT_ERROR;
}

http1_step http1_chunks_next(struct http1_chunks *chunks, struct str *bytes, struct str *ret_data)
{
	while (chunks->state != AT_END && chunks->state != AT_ERROR) {
		if (bytes->len == 0)
			return HTTP1_STEP_MORE;
		if (chunks->state == AT_DATA) {
			size_t part = chunks->left < bytes->len ? (size_t)chunks->left : bytes->len;
			ASSERT(part > 0);
			*ret_data = str_slice(*bytes, 0, part);
			*bytes = str_slice(*bytes, part, bytes->len);
			chunks->left -= part;
			if (chunks->left == 0)
				chunks->state = AT_DATA_CR;
			return HTTP1_STEP_DATA;
		}
		chunks->state = (int)after_byte(chunks, bytes->data[0]);
		*bytes = str_slice(*bytes, 1, bytes->len);
	}
	return chunks->state == AT_END ? HTTP1_STEP_END : HTTP1_STEP_BAD;
}
