// SPDX-License-Identifier: Apache-2.0
// The few macros that every file uses. Nothing here calls the operating system except the
// failing assertion, which prints where it failed and aborts: an assertion states a belief
// about our own code and stays on in release builds; input is never checked with it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ASSERT(expr) ((expr) ? (void)0 : assert_failed(#expr, __FILE__, __LINE__))

// Runs fn(&variable) when the variable leaves its scope; for handles, never for arena data.
#define AUTO(fn) __attribute__((cleanup(fn)))

// Moves a pointer out of a variable that has AUTO, so that it survives the scope.
#define TAKE(ptr)                                                                                  \
	__extension__({                                                                            \
		__typeof__(ptr) taken_ = (ptr);                                                    \
		(ptr) = NULL;                                                                      \
		taken_;                                                                            \
	})

#define MUST_USE __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt_i, args_i) __attribute__((format(printf, fmt_i, args_i)))
#define NORETURN __attribute__((noreturn))
#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))

static inline size_t min_size(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t max_size(size_t a, size_t b) { return a > b ? a : b; }
static inline int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline int64_t max_i64(int64_t a, int64_t b) { return a > b ? a : b; }

NORETURN void assert_failed(const char *expr, const char *file, int line);
