// SPDX-License-Identifier: Apache-2.0
// Calendar arithmetic and text of instants, UTC only, no operating system: seconds since
// 1970-01-01T00:00:00Z as int64. Years 1970 to 9999 in UTC, so what time_parse takes time_format
// can write. Format: RFC 3339.
#pragma once

#include "base/str.h"

enum { TIME_TEXT_BYTES = 40 };

struct civil {
	int year;  // 1970..9999
	int month; // 1..12
	int day;   // 1..31
	int hour, minute, second;
};

int64_t time_from_civil(struct civil civil);
struct civil time_to_civil(int64_t unix_s);
bool time_is_leap_year(int year);
// "2026-02-10T00:00:00Z", offsets and fractions accepted; *ret_ns (may be NULL) gets the fraction.
MUST_USE bool time_parse(struct str text, int64_t *ret_unix_s, uint32_t *ret_ns);
// Writes "2026-02-10T00:00:00Z" and returns out.
char *time_format(int64_t unix_s, char out[TIME_TEXT_BYTES]);
char *time_format_ns(int64_t unix_s, uint32_t ns, char out[TIME_TEXT_BYTES]); // with nine digits
// "90", "90s", "15m", "2h", "1h30m", "7d" to seconds.
MUST_USE bool time_parse_duration(struct str text, int64_t *ret_s);
