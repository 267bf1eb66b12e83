// SPDX-License-Identifier: Apache-2.0
// What the measuring programs share: samples with percentiles, and one JSON object on
// standard output for ./bench to read. They end the program when something cannot be measured,
// because half a figure is worse than none.
#pragma once

#include "base/buf.h"
#include "sys/clock.h"

struct samples { // in nanoseconds
	uint64_t *items;
	size_t count, cap;
};

void samples_add(struct samples *samples, uint64_t value_ns);
uint64_t samples_at(struct samples *samples, unsigned permille); // sorts; 0 when empty
void samples_done(struct samples *samples);
// "NAME_p50":..,"NAME_p99":..,"NAME_max":..,"NAME_count":.. in nanoseconds, with a comma before.
void samples_put(struct samples *samples, const char *name, struct buf *out);

NORETURN void measure_fail(const char *fmt, ...) PRINTF_LIKE(1, 2);
void *measure_alloc(size_t count, size_t size_bytes); // zeroed
// The value of the option at argv[*i]; fails when there is none.
const char *measure_value(int argc, char **argv, int *i);
int64_t measure_number(int argc, char **argv, int *i); // > 0
void measure_print(const struct buf *json);
