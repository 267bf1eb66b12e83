// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "policy/token.h"

static const struct {
	const char *name, *token;
	bool good;
} tokens[] = {
	{ "vector", "gpx_zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17", true },
	{ "one digit of the check wrong", "gpx_zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq18", false },
	{ "one character wrong", "gpx_zQWBuTSOoRi4A9spHcVY5ncnsDkxkI0mLq17", false },
	{ "two characters swapped", "gpx_zQWBuTSOoRi4A9spHcVY5ncnsDkkxJ0mLq17", false },
	{ "cut", "gpx_zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq1", false },
	{ "longer", "gpx_zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq177", false },
	{ "other prefix", "gpy_zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17", false },
	{ "capital prefix", "GPX_zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17", false },
	{ "character outside base62", "gpx_zQWBuTSOoRi4A9spHcVY5ncnsDkxk-0mLq17", false },
	{ "empty", "", false },
};

static const struct {
	const char *name, *header, *token; // token NULL: refused
} headers[] = {
	{ "bearer", "Bearer abc", "abc" },          { "case of the scheme", "bEARER abc", "abc" },
	{ "other scheme", "Basic abc", NULL },      { "no token", "Bearer ", NULL },
	{ "no scheme", "gpx_abc", NULL },           { "two blanks", "Bearer  abc", NULL },
	{ "blank inside", "Bearer ab c", NULL },    { "control character", "Bearer ab\x01", NULL },
	{ "not ASCII", "Bearer ab\xc3\xa4", NULL }, { "empty", "", NULL },
};

static void check_vector(struct check *c)
{
	char digits[TOKEN_CHECK_CHARS + 1], token[TOKEN_CHARS + 1];
	token_check_digits("zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ", digits);
	CHECK_STR(c, "vector", str_of(digits), "0mLq17");
	token_compose("zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ", token);
	CHECK_STR(c, "vector", str_of(token), "gpx_zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17");
}

int main(void)
{
	struct check c = { 0, 0 };
	check_vector(&c);
	for (size_t i = 0; i < ARRAY_COUNT(tokens); i++)
		CHECK(&c, tokens[i].name,
		      token_is_well_formed(str_of(tokens[i].token)) == tokens[i].good);
	for (size_t i = 0; i < ARRAY_COUNT(headers); i++) {
		struct str token = STR("untouched");
		bool good = token_of_header(str_of(headers[i].header), &token);
		CHECK(&c, headers[i].name, good == (headers[i].token != NULL));
		CHECK_STR(&c, headers[i].name, token, good ? headers[i].token : "untouched");
	}
	return check_done(&c);
}
