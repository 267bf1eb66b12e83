// SPDX-License-Identifier: Apache-2.0
// From the lines of a CSV file to a few points of a picture.
#include "base/money.h"
#include "sim/plot.h"

#include <math.h>
#include <stdlib.h>

enum { COLUMNS_MAX = 4, QUANTILES = 200, NONE = -1 };

struct rows { // the wanted columns of all lines in which the first `needed` are not empty
	double (*items)[COLUMNS_MAX];
	size_t count, cap, needed;
};
static void rows_done(struct rows *rows) { free(rows->items); }

static bool find_columns(struct str head, const char *const *names, size_t count, size_t *ret)
{
	size_t found = 0;
	struct str name;
	for (size_t at = 0; str_split_next(&head, ',', &name); at++) {
		for (size_t i = 0; i < count; i++) {
			if (!str_eq_c(str_trim(name), names[i]))
				continue;
			ret[i] = at;
			found++;
		}
	}
	return found == count;
}

// False: a cell is no number. An empty one leaves the line out.
static bool read_line(struct str line, const size_t *columns, size_t count, struct rows *rows)
{
	struct str cell;
	double *row = rows->items[rows->count];
	size_t found = 0;
	for (size_t i = 0; i < COLUMNS_MAX; i++)
		row[i] = NONE;
	for (size_t at = 0; str_split_next(&line, ',', &cell); at++) {
		for (size_t i = 0; i < count; i++) {
			int64_t nano;
			if (columns[i] != at || cell.len == 0)
				continue;
			if (!money_parse(str_trim(cell), &nano))
				return false;
			row[i] = (double)nano / MONEY_NANO_PER_UNIT;
			found += i < rows->needed;
		}
	}
	rows->count += found == rows->needed;
	return true;
}

static err_status read_rows(struct str csv, const char *const *names, size_t count,
			    struct rows *rows, struct err *err)
{
	size_t columns[COLUMNS_MAX], line_no = 1;
	struct str line;
	if (!str_split_next(&csv, '\n', &line) || !find_columns(line, names, count, columns))
		return err_set(err, ERR_INVALID, "there is no column %s in the first line",
			       names[0]);
	while (str_split_next(&csv, '\n', &line)) {
		line_no++;
		if (rows->count == rows->cap) {
			rows->cap = max_size(2 * rows->cap, 1024);
			rows->items = realloc(rows->items, rows->cap * sizeof *rows->items);
			ASSERT(rows->items != NULL);
		}
		if (!read_line(line, columns, count, rows))
			return err_set(err, ERR_INVALID, "line %zu: a cell is no number", line_no);
	}
	return rows->count > 0 ? ERR_OK : err_set(err, ERR_INVALID, "there are no lines");
}

static err_status points_new(struct arena *arena, size_t count, struct plot_line *ret,
			     struct err *err)
{
	ASSERT(count <= PLOT_POINTS_MAX);
	ret->points = arena_alloc(arena, count * sizeof *ret->points);
	ret->count = count;
	return ret->points != NULL ? ERR_OK : err_set(err, ERR_LIMIT, "no memory");
}

err_status plot_read_unallocated(struct arena *arena, struct str csv, double gpus,
				 struct plot_line *ret, struct err *err)
{
	static const char *const NAMES[] = { "arrived_pct", "allocated_pct" };
	AUTO(rows_done) struct rows rows = { .needed = 2 };
	(void)gpus;
	if (read_rows(csv, NAMES, ARRAY_COUNT(NAMES), &rows, err) != ERR_OK)
		return err->status;
	size_t count = min_size(rows.count, PLOT_POINTS_MAX);
	if (points_new(arena, count, ret, err) != ERR_OK)
		return err->status;
	for (size_t i = 0; i < count; i++)
		ret->points[i] = (struct plot_point){ rows.items[i][0], 100 - rows.items[i][1] };
	return ERR_OK;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

err_status plot_read_waits(struct arena *arena, struct str csv, double gpus, struct plot_line *ret,
			   struct err *err)
{
	static const char *const NAMES[] = { "submit_s", "start_s" };
	AUTO(rows_done) struct rows rows = { .needed = 2 };
	(void)gpus;
	if (read_rows(csv, NAMES, ARRAY_COUNT(NAMES), &rows, err) != ERR_OK ||
	    points_new(arena, QUANTILES + 1, ret, err) != ERR_OK)
		return err->status;
	double *waits = malloc(rows.count * sizeof *waits);
	ASSERT(waits != NULL);
	for (size_t i = 0; i < rows.count; i++)
		waits[i] = rows.items[i][1] - rows.items[i][0];
	qsort(waits, rows.count, sizeof *waits, by_value);
	for (size_t i = 0; i <= QUANTILES; i++)
		ret->points[i] = (struct plot_point){ waits[(rows.count - 1) * i / QUANTILES],
						      100.0 * (double)i / QUANTILES };
	free(waits);
	return ERR_OK;
}

// Adds a job's GPUs to the means of the intervals of time that it touches.
static void spread_job(const double *job, double from_s, double step_s, double *sums)
{
	for (size_t i = 0; i < PLOT_POINTS_MAX; i++) {
		double low_s = from_s + (double)i * step_s, high_s = low_s + step_s;
		double begin_s = fmax(job[0], low_s), end_s = fmin(job[2], high_s);
		if (end_s > begin_s)
			sums[i] += job[1] * (end_s - begin_s) / step_s;
	}
}

err_status plot_read_utilization(struct arena *arena, struct str csv, double gpus,
				 struct plot_line *ret, struct err *err)
{
	static const char *const NAMES[] = { "start_s", "gpus", "end_s" };
	AUTO(rows_done) struct rows rows = { .needed = 2 }; // one without an end still runs
	double sums[PLOT_POINTS_MAX] = { 0 };
	if (read_rows(csv, NAMES, ARRAY_COUNT(NAMES), &rows, err) != ERR_OK ||
	    points_new(arena, PLOT_POINTS_MAX, ret, err) != ERR_OK)
		return err->status;
	double from_s = rows.items[0][0], to_s = from_s;
	for (size_t i = 0; i < rows.count; i++) {
		from_s = fmin(from_s, rows.items[i][0]);
		to_s = fmax(to_s, fmax(rows.items[i][0], rows.items[i][2]));
	}
	for (size_t i = 0; i < rows.count; i++) {
		if (rows.items[i][2] < 0)
			rows.items[i][2] = to_s;
	}
	double step_s = to_s > from_s ? (to_s - from_s) / PLOT_POINTS_MAX : 1;
	for (size_t i = 0; i < rows.count; i++)
		spread_job(rows.items[i], from_s, step_s, sums);
	for (size_t i = 0; i < PLOT_POINTS_MAX; i++)
		ret->points[i] = (struct plot_point){ (from_s + ((double)i + 0.5) * step_s) / 3600,
						      100 * sums[i] / gpus };
	return ERR_OK;
}
