// SPDX-License-Identifier: Apache-2.0
// Table tests without a framework: CHECK counts, prints what failed with the name of the case,
// and check_done prints the line that runners count. One struct check per test program.
#pragma once

#include "base/str.h"

#include <stdio.h>

struct check {
	int passed, failed;
};

// Where a check stands in the source and what it says.
struct check_at {
	const char *expr, *file;
	int line;
};

#define CHECK_AT(expr) ((struct check_at){ #expr, __FILE__, __LINE__ })
#define CHECK(c, name, expr) check_note((c), (expr), (name), CHECK_AT(expr))
#define CHECK_INT(c, name, got, want)                                                              \
	check_int((c), (name), (long long)(got), (long long)(want), CHECK_AT(got))
#define CHECK_STR(c, name, got, want) check_str((c), (name), (got), (want), CHECK_AT(got))

static inline void check_count(struct check *c, bool good)
{
	c->passed += good ? 1 : 0;
	c->failed += good ? 0 : 1;
}

static inline void check_note(struct check *c, bool good, const char *name, struct check_at at)
{
	check_count(c, good);
	if (!good)
		printf("%s:%d: %s: not true: %s\n", at.file, at.line, name, at.expr);
}

static inline void check_int(struct check *c, const char *name, long long got, long long want,
			     struct check_at at)
{
	check_count(c, got == want);
	if (got != want)
		printf("%s:%d: %s: %s is %lld, wanted %lld\n", at.file, at.line, name, at.expr, got,
		       want);
}

static inline void check_str(struct check *c, const char *name, struct str got, const char *want,
			     struct check_at at)
{
	check_count(c, str_eq_c(got, want));
	if (!str_eq_c(got, want))
		printf("%s:%d: %s: %s is \"" STR_FMT "\", wanted \"%s\"\n", at.file, at.line, name,
		       at.expr, STR_ARG(got), want);
}

static inline int check_done(const struct check *c)
{
	printf("%d passed, %d failed\n", c->passed, c->failed);
	return c->failed == 0 && c->passed > 0 ? 0 : 1;
}
