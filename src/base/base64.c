// SPDX-License-Identifier: Apache-2.0
#include "base/base64.h"

static const char standard[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url_safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static void encode(struct buf *out, struct str bytes, const char *alphabet, bool pads)
{
	for (size_t i = 0; i < bytes.len; i += 3) {
		size_t n = min_size(3, bytes.len - i);
		uint32_t group = 0;
		for (size_t k = 0; k < 3; k++)
			group = group << 8 | (k < n ? (uint8_t)bytes.data[i + k] : 0U);
		char text[4];
		for (size_t k = 0; k < 4; k++)
			text[k] = k <= n ? alphabet[group >> (18 - 6 * k) & 63] : '=';
		buf_put_bytes(out, text, pads ? 4 : n + 1);
	}
}

void base64_encode(struct buf *out, struct str bytes) { encode(out, bytes, standard, true); }
void base64url_encode(struct buf *out, struct str bytes) { encode(out, bytes, url_safe, false); }

static int digit_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+' || c == '-')
		return 62;
	if (c == '/' || c == '_')
		return 63;
	return -1;
}

bool base64_decode(struct buf *out, struct str text)
{
	uint32_t group = 0;
	unsigned bits = 0;
	size_t digits = 0, pads = 0;
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] == '\n' || text.data[i] == '\r')
			continue;
		if (text.data[i] == '=') {
			pads++;
			continue;
		}
		int value = digit_value(text.data[i]);
		if (value < 0 || pads > 0)
			return false;
		digits++;
		group = group << 6 | (uint32_t)value;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			buf_put_byte(out, (char)(uint8_t)(group >> bits));
		}
	}
	bool ends_well = digits % 4 != 1 && (pads == 0 || (digits + pads) % 4 == 0) && pads <= 2;
	// Bits beyond the last byte must be 0, so that a text has one decoding only.
	return ends_well && (group & ((1U << bits) - 1)) == 0 && buf_ok(out);
}
