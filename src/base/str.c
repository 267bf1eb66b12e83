// SPDX-License-Identifier: Apache-2.0
#include "base/str.h"

#include <strings.h>

bool str_eq(struct str a, struct str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

bool str_eq_c(struct str a, const char *b) { return str_eq(a, str_of(b)); }

bool str_eq_nocase(struct str a, struct str b)
{
	return a.len == b.len && (a.len == 0 || strncasecmp(a.data, b.data, a.len) == 0);
}

int str_cmp(struct str a, struct str b)
{
	size_t common = min_size(a.len, b.len);
	int order = common == 0 ? 0 : memcmp(a.data, b.data, common);
	if (order != 0)
		return order;
	return a.len < b.len ? -1 : a.len > b.len ? 1 : 0;
}

bool str_starts(struct str s, struct str prefix)
{
	return s.len >= prefix.len && str_eq((struct str){ s.data, prefix.len }, prefix);
}

bool str_ends(struct str s, struct str suffix)
{
	return s.len >= suffix.len && str_eq(str_slice(s, s.len - suffix.len, s.len), suffix);
}

size_t str_find_byte(struct str s, char byte, size_t from)
{
	if (from >= s.len)
		return SIZE_MAX;
	const char *at = memchr(s.data + from, byte, s.len - from);
	return at == NULL ? SIZE_MAX : (size_t)(at - s.data);
}

struct str str_slice(struct str s, size_t from, size_t to)
{
	to = min_size(to, s.len);
	from = min_size(from, to);
	return (struct str){ s.data == NULL ? NULL : s.data + from, to - from };
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

struct str str_trim(struct str s)
{
	while (s.len > 0 && is_blank(s.data[0]))
		s = str_slice(s, 1, s.len);
	while (s.len > 0 && is_blank(s.data[s.len - 1]))
		s.len--;
	return s;
}

bool str_split_next(struct str *rest, char separator, struct str *ret_part)
{
	if (rest->data == NULL)
		return false;
	size_t at = str_find_byte(*rest, separator, 0);
	if (at == SIZE_MAX) {
		*ret_part = *rest;
		*rest = (struct str){ NULL, 0 };
		return true;
	}
	*ret_part = str_slice(*rest, 0, at);
	*rest = (struct str){ rest->data + at + 1, rest->len - at - 1 };
	return true;
}

bool str_to_u64(struct str s, uint64_t *ret_value)
{
	if (s.len == 0 || s.len > 20)
		return false;
	uint64_t value = 0;
	for (size_t i = 0; i < s.len; i++) {
		if (s.data[i] < '0' || s.data[i] > '9')
			return false;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(s.data[i] - '0'), &value))
			return false;
	}
	*ret_value = value;
	return true;
}

bool str_to_i64(struct str s, int64_t *ret_value)
{
	bool negative = s.len > 0 && s.data[0] == '-';
	uint64_t magnitude = 0;
	if (!str_to_u64(negative ? str_slice(s, 1, s.len) : s, &magnitude))
		return false;
	if (magnitude > (uint64_t)INT64_MAX + (negative ? 1U : 0U))
		return false;
	*ret_value = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
	return true;
}

int str_hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static bool is_alnum_low(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool str_is_dns_label(struct str s)
{
	if (s.len == 0 || s.len > 63 || !is_alnum_low(s.data[0]) ||
	    !is_alnum_low(s.data[s.len - 1]))
		return false;
	for (size_t i = 0; i < s.len; i++)
		if (!is_alnum_low(s.data[i]) && s.data[i] != '-')
			return false;
	return true;
}

bool str_is_dns_name(struct str s)
{
	if (s.len == 0 || s.len > 253)
		return false;
	struct str part;
	while (str_split_next(&s, '.', &part))
		if (!str_is_dns_label(part))
			return false;
	return true;
}

// Bytes of the sequence that starts here, 0 if it is not valid (RFC 3629, no surrogates).
static size_t utf8_length(const unsigned char *p, size_t left)
{
	if (p[0] < 0x80)
		return p[0] == 0 ? 0 : 1;
	size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	if (p[0] < 0xc2 || p[0] > 0xf4 || n > left)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

bool str_is_utf8(struct str s)
{
	for (size_t i = 0; i < s.len;) {
		size_t n = utf8_length((const unsigned char *)s.data + i, s.len - i);
		if (n == 0)
			return false;
		i += n;
	}
	return true;
}
