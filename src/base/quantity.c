// SPDX-License-Identifier: Apache-2.0
#include "base/quantity.h"

typedef unsigned __int128 uwide;

struct suffix {
	const char *text;
	int binary;  // power of 1024
	int decimal; // power of 10
};

static const struct suffix suffixes[] = {
	{ "", 0, 0 },   { "n", 0, -9 }, { "u", 0, -6 }, { "m", 0, -3 },
	{ "k", 0, 3 },  { "M", 0, 6 },  { "G", 0, 9 },  { "T", 0, 12 },
	{ "P", 0, 15 }, { "E", 0, 18 }, { "Ki", 1, 0 }, { "Mi", 2, 0 },
	{ "Gi", 3, 0 }, { "Ti", 4, 0 }, { "Pi", 5, 0 }, { "Ei", 6, 0 },
};

// Digits with at most one point; *ret_scale is the count of digits after it.
static bool mantissa(struct str *s, uwide *ret, int *ret_scale)
{
	uwide value = 0;
	int scale = 0, count = 0;
	bool point = false;
	size_t i = 0;
	for (; i < s->len; i++) {
		char c = s->data[i];
		if (c == '.' && !point) {
			point = true;
			continue;
		}
		if (c < '0' || c > '9')
			break;
		if (value > ((uwide)1 << 100))
			return false;
		value = value * 10 + (uwide)(unsigned)(c - '0');
		scale += point;
		count++;
	}
	*s = str_slice(*s, i, s->len);
	*ret = value;
	*ret_scale = scale;
	return count > 0 && scale <= 18;
}

static bool exponent_of(struct str s, int *ret_binary, int *ret_decimal)
{
	for (size_t i = 0; i < ARRAY_COUNT(suffixes); i++) {
		if (str_eq_c(s, suffixes[i].text)) {
			*ret_binary = suffixes[i].binary;
			*ret_decimal = suffixes[i].decimal;
			return true;
		}
	}
	if (s.len < 2 || (s.data[0] != 'e' && s.data[0] != 'E'))
		return false;
	int64_t power;
	struct str digits = str_slice(s, s.data[1] == '+' ? 2 : 1, s.len);
	if (!str_to_i64(digits, &power) || power < -18 || power > 18)
		return false;
	*ret_binary = 0;
	*ret_decimal = (int)power;
	return true;
}

// value * 10^extra, rounded up to a whole number.
static bool convert(struct str text, int extra, int64_t *ret)
{
	struct str s = text.len > 0 && text.data[0] == '+' ? str_slice(text, 1, text.len) : text;
	uwide value;
	int scale, binary = 0, decimal = 0;
	if (!mantissa(&s, &value, &scale) || !exponent_of(s, &binary, &decimal))
		return false;
	for (; binary > 0; binary--) {
		if (value >> 117 != 0)
			return false;
		value <<= 10;
	}
	int power = decimal + extra - scale;
	for (; power > 0; power--) {
		if (value > ~(uwide)0 / 10)
			return false;
		value *= 10;
	}
	bool inexact = false;
	for (; power < 0; power++) {
		inexact = inexact || value % 10 != 0;
		value /= 10;
	}
	value += inexact ? 1U : 0U;
	if (value > INT64_MAX)
		return false;
	*ret = (int64_t)value;
	return true;
}

bool quantity_to_milli(struct str text, int64_t *ret_milli) { return convert(text, 3, ret_milli); }
bool quantity_to_units(struct str text, int64_t *ret_units) { return convert(text, 0, ret_units); }
