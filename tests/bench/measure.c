// SPDX-License-Identifier: Apache-2.0
#include "measure.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void measure_fail(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	(void)vfprintf(stderr, fmt, args);
	va_end(args);
	(void)fputc('\n', stderr);
	exit(1);
}

void *measure_alloc(size_t count, size_t size_bytes)
{
	void *memory = calloc(count, size_bytes);
	if (memory == NULL)
		measure_fail("no memory for %zu x %zu bytes", count, size_bytes);
	return memory;
}

void samples_add(struct samples *samples, uint64_t value_ns)
{
	if (samples->count == samples->cap) {
		samples->cap = samples->cap == 0 ? 1024 : samples->cap * 2;
		uint64_t *items = measure_alloc(samples->cap, sizeof *items);
		if (samples->count > 0)
			memcpy(items, samples->items, samples->count * sizeof *items);
		free(samples->items);
		samples->items = items;
	}
	samples->items[samples->count++] = value_ns;
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

uint64_t samples_at(struct samples *samples, unsigned permille)
{
	if (samples->count == 0)
		return 0;
	qsort(samples->items, samples->count, sizeof *samples->items, compare);
	return samples->items[(samples->count - 1) * permille / 1000];
}

void samples_done(struct samples *samples)
{
	free(samples->items);
	*samples = (struct samples){ 0 };
}

void samples_put(struct samples *samples, const char *name, struct buf *out)
{
	const unsigned long long p50 = samples_at(samples, 500), p99 = samples_at(samples, 990),
				 max = samples_at(samples, 1000);
	buf_printf(out, ",\"%s_p50\":%llu,\"%s_p99\":%llu,\"%s_max\":%llu,\"%s_count\":%zu", name,
		   p50, name, p99, name, max, name, samples->count);
}

const char *measure_value(int argc, char **argv, int *i)
{
	if (*i + 1 >= argc)
		measure_fail("%s needs a value", argv[*i]);
	*i += 1;
	return argv[*i];
}

int64_t measure_number(int argc, char **argv, int *i)
{
	const char *name = argv[*i];
	int64_t value;
	if (!str_to_i64(str_of(measure_value(argc, argv, i)), &value) || value <= 0)
		measure_fail("%s: a whole number above 0", name);
	return value;
}

void measure_print(const struct buf *json)
{
	if (!buf_ok(json))
		measure_fail("the figures are too long");
	(void)printf(STR_FMT "\n", STR_ARG(buf_str(json)));
}
