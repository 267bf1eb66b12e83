// SPDX-License-Identifier: Apache-2.0
// Borrowed text: a pointer and a length, not terminated, never owned. Everything that reads
// bytes from outside uses it, so that no function depends on a terminating zero.
#pragma once

#include "base/err.h"

#include <string.h>

struct str {
	const char *data; // may be NULL when len is 0
	size_t len;
};

#define STR(literal) ((struct str){ "" literal, sizeof(literal) - 1 })
#define STR_FMT "%.*s"
#define STR_ARG(s) (int)(s).len, (s).data == NULL ? "" : (s).data

static inline struct str str_of(const char *text)
{
	return (struct str){ text, text == NULL ? 0 : strlen(text) };
}

bool str_eq(struct str a, struct str b);
bool str_eq_c(struct str a, const char *b);
bool str_eq_nocase(struct str a, struct str b); // ASCII letters only
int str_cmp(struct str a, struct str b);        // order of bytes
bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
// Index of the first such byte at or after from, or SIZE_MAX.
size_t str_find_byte(struct str s, char byte, size_t from);
struct str str_slice(struct str s, size_t from, size_t to); // clamps to the text
struct str str_trim(struct str s);                          // blanks, tabs, CR, LF at both ends
// Cuts the part before the next separator off rest; false when rest was empty and done.
bool str_split_next(struct str *rest, char separator, struct str *ret_part);

// Whole text must be one decimal number without blanks; false if not or out of range.
MUST_USE bool str_to_i64(struct str s, int64_t *ret_value);
MUST_USE bool str_to_u64(struct str s, uint64_t *ret_value);
// A DNS label of RFC 1123: 1-63 of [a-z0-9-], first and last alphanumeric.
bool str_is_dns_label(struct str s);
// A DNS subdomain of RFC 1123: labels joined by dots, at most 253 bytes.
bool str_is_dns_name(struct str s);
// 0 to 15 of a hexadecimal digit, -1 of anything else.
int str_hex_value(char c);
// Valid UTF-8 without NUL.
bool str_is_utf8(struct str s);
