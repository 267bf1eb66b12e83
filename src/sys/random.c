// SPDX-License-Identifier: Apache-2.0
#include "sys/random.h"

#include <stdio.h>
#include <unistd.h>

void random_bytes(void *out, size_t size_bytes)
{
	enum { CALL_MAX_BYTES = 256 }; // of getentropy
	unsigned char *at = out;
	while (size_bytes > 0) {
		size_t part_bytes = min_size(size_bytes, CALL_MAX_BYTES);
		int rc = getentropy(at, part_bytes);
		ASSERT(rc == 0);
		at += part_bytes;
		size_bytes -= part_bytes;
	}
}

void random_base62(char *out, size_t count)
{
	static const char digits[] =
		"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	// 248 = 4 x 62: higher bytes would favour the first digits.
	enum { BASE = 62, FAIR = 248 };
	_Static_assert(sizeof digits == BASE + 1, "62 digits");

	for (size_t i = 0; i < count;) {
		unsigned char bytes[64];
		random_bytes(bytes, sizeof bytes);
		for (size_t j = 0; j < sizeof bytes && i < count; j++)
			if (bytes[j] < FAIR)
				out[i++] = digits[bytes[j] % BASE];
	}
	out[count] = '\0';
}

void random_uuid(char out[37])
{
	unsigned char b[16];
	random_bytes(b, sizeof b);
	b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
	b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
	int n = snprintf(out, 37,
			 "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
			 b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11],
			 b[12], b[13], b[14], b[15]);
	ASSERT(n == 36);
}
