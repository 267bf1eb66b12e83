// SPDX-License-Identifier: Apache-2.0
#include "policy/token.h"

static const char prefix[] = "gpx_";
static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

// CRC-32 of IEEE 802.3, bit by bit: 30 bytes need no table.
static uint32_t crc32_of(const char *data, size_t len)
{
	uint32_t crc = UINT32_MAX;
	for (size_t i = 0; i < len; i++) {
		crc ^= (unsigned char)data[i];
		for (int bit = 0; bit < 8; bit++)
			crc = (crc >> 1) ^ ((crc & 1) != 0 ? UINT32_C(0xEDB88320) : 0);
	}
	return ~crc;
}

void token_check_digits(const char random[TOKEN_RANDOM_CHARS], char out[TOKEN_CHECK_CHARS + 1])
{
	uint32_t rest = crc32_of(random, TOKEN_RANDOM_CHARS);
	for (int i = TOKEN_CHECK_CHARS - 1; i >= 0; i--) {
		out[i] = digits[rest % 62];
		rest /= 62;
	}
	out[TOKEN_CHECK_CHARS] = '\0';
	ASSERT(rest == 0); // 62^6 is larger than 2^32
}

void token_compose(const char random[TOKEN_RANDOM_CHARS], char out[TOKEN_CHARS + 1])
{
	memcpy(out, prefix, sizeof prefix - 1);
	memcpy(out + sizeof prefix - 1, random, TOKEN_RANDOM_CHARS);
	token_check_digits(random, out + sizeof prefix - 1 + TOKEN_RANDOM_CHARS);
	ASSERT(token_is_well_formed((struct str){ out, TOKEN_CHARS }));
}

bool token_is_well_formed(struct str text)
{
	if (text.len != TOKEN_CHARS || !str_starts(text, STR("gpx_")))
		return false;
	const char *random = text.data + sizeof prefix - 1;
	for (size_t i = 0; i < TOKEN_RANDOM_CHARS; i++) {
		if (random[i] == '\0' || strchr(digits, random[i]) == NULL)
			return false;
	}
	char check[TOKEN_CHECK_CHARS + 1];
	token_check_digits(random, check);
	return memcmp(check, random + TOKEN_RANDOM_CHARS, TOKEN_CHECK_CHARS) == 0;
}

bool token_of_header(struct str header, struct str *ret_token)
{
	enum { SCHEME_CHARS = 7 };
	if (header.len <= SCHEME_CHARS ||
	    !str_eq_nocase(str_slice(header, 0, SCHEME_CHARS), STR("Bearer ")))
		return false;
	struct str token = str_slice(header, SCHEME_CHARS, header.len);
	for (size_t i = 0; i < token.len; i++) {
		if ((unsigned char)token.data[i] <= ' ' || (unsigned char)token.data[i] > '~')
			return false;
	}
	*ret_token = token;
	return true;
}
