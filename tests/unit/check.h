// SPDX-License-Identifier: Apache-2.0
// Table tests without a framework: CHECK counts, prints what failed with the name of the case,
// and check_done prints the line that runners count. One struct check per test program.
#pragma once

#include "base/str.h"

#include <stdio.h>

struct check {
	int passed, failed;
};

#define CHECK(c, name, expr)                                                                       \
	check_note((c), (expr), (name), #expr, __FILE__, __LINE__)
#define CHECK_INT(c, name, got, want)                                                              \
	check_int((c), (name), (long long)(got), (long long)(want), #got, __FILE__, __LINE__)
#define CHECK_STR(c, name, got, want)                                                              \
	check_str((c), (name), (got), (want), #got, __FILE__, __LINE__)

static inline void check_note(struct check *c, bool good, const char *name, const char *expr,
			      const char *file, int line)
{
	if (good) {
		c->passed++;
		return;
	}
	c->failed++;
	printf("%s:%d: %s: not true: %s\n", file, line, name, expr);
}

static inline void check_int(struct check *c, const char *name, long long got, long long want,
			     const char *expr, const char *file, int line)
{
	if (got == want) {
		c->passed++;
		return;
	}
	c->failed++;
	printf("%s:%d: %s: %s is %lld, wanted %lld\n", file, line, name, expr, got, want);
}

static inline void check_str(struct check *c, const char *name, struct str got, const char *want,
			     const char *expr, const char *file, int line)
{
	if (str_eq_c(got, want)) {
		c->passed++;
		return;
	}
	c->failed++;
	printf("%s:%d: %s: %s is \"" STR_FMT "\", wanted \"%s\"\n", file, line, name, expr,
	       STR_ARG(got), want);
}

static inline int check_done(const struct check *c)
{
	printf("%d passed, %d failed\n", c->passed, c->failed);
	return c->failed == 0 && c->passed > 0 ? 0 : 1;
}
