// SPDX-License-Identifier: Apache-2.0
#include "k8s/microtime.h"

#include <stdio.h>

char *k8s_micro_time(int64_t unix_s, uint32_t micros, char out[TIME_TEXT_BYTES])
{
	char seconds[TIME_TEXT_BYTES];
	ASSERT(micros < 1000000);
	(void)time_format(unix_s, seconds);
	size_t len = strlen(seconds);
	ASSERT(len > 0 && seconds[len - 1] == 'Z');
	(void)snprintf(out, TIME_TEXT_BYTES, "%.*s.%06uZ", (int)(len - 1), seconds,
		       (unsigned)micros);
	return out;
}
