// SPDX-License-Identifier: Apache-2.0
#include "billing/zone_rule.h"

#include "base/timefmt.h"

enum { DAY_S = 86400, HOURS_MAX = 167, SUMMER_DEFAULT_S = 3600, CHANGE_DEFAULT_S = 7200 };

static bool take(struct str *rest, char byte)
{
	if (rest->len == 0 || rest->data[0] != byte)
		return false;
	*rest = str_slice(*rest, 1, rest->len);
	return true;
}

static bool take_number(struct str *rest, int max, int *ret_value)
{
	size_t count = 0;
	while (count < rest->len && rest->data[count] >= '0' && rest->data[count] <= '9')
		count++;
	uint64_t value;
	if (!str_to_u64(str_slice(*rest, 0, count), &value) || value > (uint64_t)max)
		return false;
	*rest = str_slice(*rest, count, rest->len);
	*ret_value = (int)value;
	return true;
}

// "CET" or "<+0330>".
static bool take_name(struct str *rest)
{
	size_t count = 0;
	if (take(rest, '<')) {
		size_t end = str_find_byte(*rest, '>', 0);
		if (end == SIZE_MAX)
			return false;
		*rest = str_slice(*rest, end + 1, rest->len);
		return end >= 3;
	}
	while (count < rest->len &&
	       ((rest->data[count] | 0x20) >= 'a' && (rest->data[count] | 0x20) <= 'z'))
		count++;
	*rest = str_slice(*rest, count, rest->len);
	return count >= 3;
}

// [+-]hh[:mm[:ss]]
static bool take_time(struct str *rest, int64_t *ret_s)
{
	bool negative = take(rest, '-');
	int hours = 0, minutes = 0, seconds = 0;
	if (!negative)
		(void)take(rest, '+');
	if (!take_number(rest, HOURS_MAX, &hours))
		return false;
	if (take(rest, ':') && !take_number(rest, 59, &minutes))
		return false;
	if (take(rest, ':') && !take_number(rest, 59, &seconds))
		return false;
	int64_t total_s = (int64_t)hours * 3600 + minutes * 60 + seconds;
	*ret_s = negative ? -total_s : total_s;
	return true;
}

static bool take_date(struct str *rest, struct zone_date *ret_date)
{
	struct zone_date date = { .kind = ZONE_DATE_ZERO, .time_s = CHANGE_DEFAULT_S };
	if (!take(rest, ','))
		return false;
	if (take(rest, 'M')) {
		date.kind = ZONE_DATE_WEEKDAY;
		if (!take_number(rest, 12, &date.month) || date.month == 0 || !take(rest, '.') ||
		    !take_number(rest, 5, &date.week) || date.week == 0 || !take(rest, '.') ||
		    !take_number(rest, 6, &date.day))
			return false;
	} else {
		if (take(rest, 'J'))
			date.kind = ZONE_DATE_JULIAN;
		if (!take_number(rest, 365, &date.day) ||
		    (date.kind == ZONE_DATE_JULIAN && date.day == 0))
			return false;
	}
	if (take(rest, '/') && !take_time(rest, &date.time_s))
		return false;
	*ret_date = date;
	return true;
}

bool zone_rule_parse(struct str text, struct zone_rule *ret_rule)
{
	struct zone_rule rule = { 0 };
	struct str rest = text;
	// POSIX counts offsets westward.
	if (!take_name(&rest) || !take_time(&rest, &rule.standard_s))
		return false;
	rule.standard_s = -rule.standard_s;
	rule.has_summer = rest.len > 0;
	if (rule.has_summer) {
		if (!take_name(&rest))
			return false;
		rule.summer_s = rule.standard_s + SUMMER_DEFAULT_S;
		if (rest.len > 0 && rest.data[0] != ',') {
			if (!take_time(&rest, &rule.summer_s))
				return false;
			rule.summer_s = -rule.summer_s;
		}
		if (!take_date(&rest, &rule.begin) || !take_date(&rest, &rule.end))
			return false;
	}
	if (rest.len > 0)
		return false;
	*ret_rule = rule;
	return true;
}

static int64_t year_start(int year)
{
	return time_from_civil((struct civil){ .year = year, .month = 1, .day = 1 });
}

// Local midnight of that date, as if local time were UTC.
static int64_t date_in_year(const struct zone_date *date, int year)
{
	bool leap = time_is_leap_year(year);
	if (date->kind == ZONE_DATE_ZERO)
		return year_start(year) + (int64_t)date->day * DAY_S;
	if (date->kind == ZONE_DATE_JULIAN) // 1..365, 29 February is never counted
		return year_start(year) +
		       (int64_t)(date->day - 1 + (leap && date->day >= 60 ? 1 : 0)) * DAY_S;
	int64_t first = time_from_civil((struct civil){ year, date->month, 1, 0, 0, 0 });
	int next_month = date->month % 12 + 1;
	int64_t next = time_from_civil(
		(struct civil){ year + (date->month == 12), next_month, 1, 0, 0, 0 });
	int64_t weekday = (first / DAY_S + 4) % 7; // 1970-01-01 was a Thursday
	if (weekday < 0)
		weekday += 7;
	int64_t day = first + ((date->day - weekday + 7) % 7 + (date->week - 1) * 7) * DAY_S;
	return day >= next ? day - 7 * (int64_t)DAY_S : day;
}

int64_t zone_rule_offset_s(const struct zone_rule *rule, int64_t t_s, int64_t *ret_until_s)
{
	*ret_until_s = INT64_MAX;
	if (!rule->has_summer)
		return rule->standard_s;
	int year = time_to_civil(t_s).year;
	int64_t last_s = INT64_MIN, offset_s = rule->standard_s;
	for (int i = year - 1; i <= year + 1; i++) {
		int64_t begin =
			date_in_year(&rule->begin, i) + rule->begin.time_s - rule->standard_s;
		int64_t end = date_in_year(&rule->end, i) + rule->end.time_s - rule->summer_s;
		if (begin <= t_s && begin > last_s) {
			last_s = begin;
			offset_s = rule->summer_s;
		}
		if (end <= t_s && end > last_s) {
			last_s = end;
			offset_s = rule->standard_s;
		}
		if (begin > t_s)
			*ret_until_s = min_i64(*ret_until_s, begin);
		if (end > t_s)
			*ret_until_s = min_i64(*ret_until_s, end);
	}
	return offset_s;
}
