// SPDX-License-Identifier: Apache-2.0
#include "net/grpc_frame.h"

#include <stdio.h>

void grpc_deframer_init(struct grpc_deframer *deframer, size_t limit_bytes)
{
	ASSERT(limit_bytes > 0 && limit_bytes <= UINT32_MAX);
	*deframer = (struct grpc_deframer){ .limit_bytes = limit_bytes };
	deframer->body.limit = limit_bytes;
}

void grpc_deframer_done(struct grpc_deframer *deframer) { buf_done(&deframer->body); }

static size_t body_size(const struct grpc_deframer *deframer)
{
	const uint8_t *p = deframer->prefix;
	return (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | (size_t)p[4];
}

static enum grpc_frame_state check_prefix(const struct grpc_deframer *deframer)
{
	if (deframer->prefix[0] == 1)
		return GRPC_FRAME_COMPRESSED;
	if (deframer->prefix[0] != 0)
		return GRPC_FRAME_BROKEN;
	if (body_size(deframer) > deframer->limit_bytes)
		return GRPC_FRAME_TOO_LARGE;
	return GRPC_FRAME_PARTIAL;
}

static void take_prefix(struct grpc_deframer *deframer, struct str *data)
{
	size_t n = min_size(GRPC_PREFIX_BYTES - deframer->prefix_len, data->len);
	if (n > 0)
		memcpy(deframer->prefix + deframer->prefix_len, data->data, n);
	deframer->prefix_len += n;
	*data = str_slice(*data, n, data->len);
	if (deframer->prefix_len == GRPC_PREFIX_BYTES)
		deframer->state = check_prefix(deframer);
}

enum grpc_frame_state grpc_deframer_feed(struct grpc_deframer *deframer, struct str *data)
{
	if (deframer->state != GRPC_FRAME_PARTIAL)
		return deframer->state;
	if (deframer->prefix_len < GRPC_PREFIX_BYTES)
		take_prefix(deframer, data);
	if (deframer->prefix_len < GRPC_PREFIX_BYTES || deframer->state != GRPC_FRAME_PARTIAL)
		return deframer->state;
	size_t size_bytes = body_size(deframer);
	size_t n = min_size(size_bytes - deframer->body.len, data->len);
	buf_put(&deframer->body, str_slice(*data, 0, n));
	*data = str_slice(*data, n, data->len);
	ASSERT(deframer->body.failed || deframer->body.len <= size_bytes);
	if (deframer->body.failed)
		deframer->state = GRPC_FRAME_TOO_LARGE;
	else if (deframer->body.len == size_bytes)
		deframer->state = GRPC_FRAME_MESSAGE;
	return deframer->state;
}

void grpc_deframer_next(struct grpc_deframer *deframer)
{
	ASSERT(deframer->state == GRPC_FRAME_MESSAGE);
	buf_clear(&deframer->body);
	deframer->prefix_len = 0;
	deframer->state = GRPC_FRAME_PARTIAL;
}

bool grpc_deframer_is_idle(const struct grpc_deframer *deframer)
{
	return deframer->state == GRPC_FRAME_PARTIAL && deframer->prefix_len == 0;
}

void grpc_frame_put(struct buf *out, struct str message)
{
	ASSERT(message.len <= UINT32_MAX);
	const uint8_t prefix[GRPC_PREFIX_BYTES] = {
		0,
		(uint8_t)(message.len >> 24),
		(uint8_t)(message.len >> 16),
		(uint8_t)(message.len >> 8),
		(uint8_t)message.len,
	};
	buf_put_bytes(out, prefix, sizeof prefix);
	buf_put(out, message);
}

void grpc_message_escape(struct buf *out, struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.data[i];
		if (c >= 0x20 && c < 0x7f && c != '%')
			buf_put_byte(out, (char)c);
		else
			buf_printf(out, "%%%02X", (unsigned)c);
	}
}

void grpc_message_unescape(struct buf *out, struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		int high = -1, low = -1;
		if (text.data[i] == '%' && text.len - i > 2) {
			high = str_hex_value(text.data[i + 1]);
			low = str_hex_value(text.data[i + 2]);
		}
		if (high < 0 || low < 0) {
			buf_put_byte(out, text.data[i]);
			continue;
		}
		buf_put_byte(out, (char)(high * 16 + low));
		i += 2;
	}
}

static const struct {
	char unit;
	uint64_t ns;
} units[] = {
	{ 'n', 1 },
	{ 'u', UINT64_C(1000) },
	{ 'm', UINT64_C(1000000) },
	{ 'S', UINT64_C(1000000000) },
	{ 'M', UINT64_C(60000000000) },
	{ 'H', UINT64_C(3600000000000) },
};

bool grpc_timeout_parse(struct str text, uint64_t *ret_ns)
{
	uint64_t count = 0;
	if (text.len < 2 || text.len > 9 || !str_to_u64(str_slice(text, 0, text.len - 1), &count))
		return false;
	for (size_t i = 0; i < ARRAY_COUNT(units); i++)
		if (units[i].unit == text.data[text.len - 1]) {
			uint64_t ns = 0;
			// 99999999 hours do not fit; no call lives that long.
			*ret_ns = __builtin_mul_overflow(count, units[i].ns, &ns) ? UINT64_MAX : ns;
			return true;
		}
	return false;
}

char *grpc_timeout_format(uint64_t timeout_ns, char out[GRPC_TIMEOUT_TEXT_BYTES])
{
	size_t i = 0;
	uint64_t count = timeout_ns;
	while (count > 99999999 && i + 1 < ARRAY_COUNT(units)) {
		i++;
		count = timeout_ns / units[i].ns + (timeout_ns % units[i].ns != 0 ? 1 : 0);
	}
	ASSERT(count <= 99999999);
	(void)snprintf(out, GRPC_TIMEOUT_TEXT_BYTES, "%u%c", (unsigned)count, units[i].unit);
	return out;
}

enum grpc_code grpc_code_of_http(int http_status)
{
	switch (http_status) {
	case 400: return GRPC_INTERNAL;
	case 401: return GRPC_UNAUTHENTICATED;
	case 403: return GRPC_PERMISSION_DENIED;
	case 404: return GRPC_UNIMPLEMENTED;
	case 429:
	case 502:
	case 503:
	case 504: return GRPC_UNAVAILABLE;
	default: return GRPC_UNKNOWN;
	}
}
