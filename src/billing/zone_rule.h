// SPDX-License-Identifier: Apache-2.0
// The rule at the end of a TZif file: a POSIX TZ string ("CET-1CEST,M3.5.0,M10.5.0/3"), which
// tells for every year when summer time begins and ends. Hours up to 167 as RFC 9636 allows.
#pragma once

#include "base/str.h"

struct zone_date {
	enum { ZONE_DATE_JULIAN, ZONE_DATE_ZERO, ZONE_DATE_WEEKDAY } kind;
	int month, week, day; // day alone for the first two
	int64_t time_s;       // local time of that day, may be negative or beyond the day
};

struct zone_rule {
	int64_t standard_s, summer_s; // offsets from UTC
	bool has_summer;
	struct zone_date begin, end; // of summer time
};

MUST_USE bool zone_rule_parse(struct str text, struct zone_rule *ret_rule);
// As zone_offset_s.
int64_t zone_rule_offset_s(const struct zone_rule *rule, int64_t t_s, int64_t *ret_until_s);
