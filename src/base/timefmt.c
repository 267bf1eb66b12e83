// SPDX-License-Identifier: Apache-2.0
#include "base/timefmt.h"

#include <stdio.h>

enum { DAY_S = 86400, YEAR_MAX = 9999 };

static const int64_t YEAR_10000_S = 253402300800;

bool time_is_leap_year(int year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

static int days_in_month(int year, int month)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	return month == 2 && time_is_leap_year(year) ? 29 : days[month - 1];
}

// Days from 1970-01-01, with years that begin in March so that the leap day comes last.
static int64_t days_from_civil(int64_t year, int month, int day)
{
	year -= month <= 2;
	int64_t era = (year >= 0 ? year : year - 399) / 400;
	int64_t year_of_era = year - era * 400;
	int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
	int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
	return era * 146097 + day_of_era - 719468;
}

int64_t time_from_civil(struct civil c)
{
	ASSERT(c.month >= 1 && c.month <= 12);
	return days_from_civil(c.year, c.month, c.day) * DAY_S + c.hour * 3600 + c.minute * 60 +
	       c.second;
}

struct civil time_to_civil(int64_t unix_s)
{
	int64_t days = unix_s / DAY_S, rest = unix_s % DAY_S;
	if (rest < 0) {
		rest += DAY_S;
		days--;
	}
	int64_t z = days + 719468;
	int64_t era = (z >= 0 ? z : z - 146096) / 146097;
	int64_t day_of_era = z - era * 146097;
	int64_t year_of_era =
		(day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
	int64_t day_of_year =
		day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	int64_t month_i = (5 * day_of_year + 2) / 153;
	struct civil c = { .day = (int)(day_of_year - (153 * month_i + 2) / 5 + 1),
			   .month = (int)(month_i < 10 ? month_i + 3 : month_i - 9) };
	c.year = (int)(year_of_era + era * 400 + (c.month <= 2));
	c.hour = (int)(rest / 3600);
	c.minute = (int)(rest / 60 % 60);
	c.second = (int)(rest % 60);
	return c;
}

static bool digits(struct str *s, size_t count, int *ret)
{
	if (s->len < count)
		return false;
	uint64_t value = 0;
	if (!str_to_u64(str_slice(*s, 0, count), &value))
		return false;
	*ret = (int)value;
	*s = str_slice(*s, count, s->len);
	return true;
}

static bool literal(struct str *s, char c)
{
	if (s->len == 0 || s->data[0] != c)
		return false;
	*s = str_slice(*s, 1, s->len);
	return true;
}

static bool fraction(struct str *s, uint32_t *ret_ns)
{
	*ret_ns = 0;
	if (!literal(s, '.'))
		return true;
	size_t count = 0;
	uint32_t ns = 0;
	while (count < s->len && s->data[count] >= '0' && s->data[count] <= '9') {
		if (count < 9)
			ns = ns * 10 + (uint32_t)(s->data[count] - '0');
		count++;
	}
	for (size_t i = count; i < 9; i++)
		ns *= 10;
	*s = str_slice(*s, count, s->len);
	*ret_ns = ns;
	return count > 0 && count <= 18;
}

static bool offset(struct str *s, int64_t *ret_s)
{
	if (s->len == 1 && (s->data[0] == 'Z' || s->data[0] == 'z')) {
		*ret_s = 0;
		return true;
	}
	bool west = s->len > 0 && s->data[0] == '-';
	int hours, minutes;
	if (!(literal(s, '+') || literal(s, '-')) || !digits(s, 2, &hours) || !literal(s, ':') ||
	    !digits(s, 2, &minutes) || s->len != 0 || hours > 23 || minutes > 59)
		return false;
	*ret_s = (hours * 60 + minutes) * (west ? -60 : 60);
	return true;
}

bool time_parse(struct str text, int64_t *ret_unix_s, uint32_t *ret_ns)
{
	struct civil c;
	uint32_t ns;
	int64_t offset_s;
	struct str s = text;
	if (!digits(&s, 4, &c.year) || !literal(&s, '-') || !digits(&s, 2, &c.month) ||
	    !literal(&s, '-') || !digits(&s, 2, &c.day) ||
	    !(literal(&s, 'T') || literal(&s, 't')) || !digits(&s, 2, &c.hour) ||
	    !literal(&s, ':') || !digits(&s, 2, &c.minute) || !literal(&s, ':') ||
	    !digits(&s, 2, &c.second) || !fraction(&s, &ns) || !offset(&s, &offset_s))
		return false;
	if (c.year < 1970 || c.month < 1 || c.month > 12 || c.day < 1 ||
	    c.day > days_in_month(c.year, c.month) || c.hour > 23 || c.minute > 59 || c.second > 59)
		return false;
	int64_t unix_s = time_from_civil(c) - offset_s;
	if (unix_s < 0 || unix_s >= YEAR_10000_S) // by its offset
		return false;
	*ret_unix_s = unix_s;
	if (ret_ns != NULL)
		*ret_ns = ns;
	return true;
}

char *time_format(int64_t unix_s, char out[TIME_TEXT_BYTES])
{
	struct civil c = time_to_civil(unix_s);
	ASSERT(c.year <= YEAR_MAX);
	(void)snprintf(out, TIME_TEXT_BYTES, "%04d-%02d-%02dT%02d:%02d:%02dZ", c.year % 10000,
		       c.month, c.day, c.hour, c.minute, c.second);
	return out;
}

char *time_format_ns(int64_t unix_s, uint32_t ns, char out[TIME_TEXT_BYTES])
{
	ASSERT(ns < 1000000000);
	(void)time_format(unix_s, out);
	(void)snprintf(out + 19, TIME_TEXT_BYTES - 19, ".%09uZ", ns);
	return out;
}

static int64_t unit_s(char unit)
{
	return unit == 's' ? 1 : unit == 'm' ? 60 : unit == 'h' ? 3600 : unit == 'd' ? DAY_S : 0;
}

bool time_parse_duration(struct str text, int64_t *ret_s)
{
	int64_t total_s = 0;
	if (str_to_i64(text, &total_s) && total_s >= 0) {
		*ret_s = total_s;
		return true;
	}
	total_s = 0;
	for (size_t from = 0, i = 0; i < text.len || from < text.len; i++) {
		if (i == text.len)
			return false;
		if (text.data[i] >= '0' && text.data[i] <= '9')
			continue;
		int64_t count, part_s;
		if (unit_s(text.data[i]) == 0 || !str_to_i64(str_slice(text, from, i), &count) ||
		    __builtin_mul_overflow(count, unit_s(text.data[i]), &part_s) ||
		    __builtin_add_overflow(total_s, part_s, &total_s))
			return false;
		from = i + 1;
	}
	if (text.len == 0)
		return false;
	*ret_s = total_s;
	return true;
}
