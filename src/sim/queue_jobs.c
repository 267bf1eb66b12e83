// SPDX-License-Identifier: Apache-2.0
// Jobs of the public traces: openb and Tiresias have columns with names, Philly (as Gavel wrote
// it) has none and tells steps instead of seconds.
#include "base/map.h"
#include "base/money.h"
#include "sim/queue.h"

#include <stdlib.h>

enum { COLUMNS_MAX = 32 };
static const int64_t SECONDS_MAX = INT64_C(1) << 32, STEPS_MAX = INT64_C(1) << 52;

struct reader { // a text line by line
	const char *name;
	struct str rest;
	size_t line;
	char separator;
	struct str columns[COLUMNS_MAX];
	size_t count;
};

static bool next_row(struct reader *reader)
{
	struct str line, part;
	do {
		if (!str_split_next(&reader->rest, '\n', &line))
			return false;
		reader->line++;
		line = str_trim(line);
	} while (line.len == 0);
	reader->count = 0;
	while (reader->count < COLUMNS_MAX && str_split_next(&line, reader->separator, &part))
		reader->columns[reader->count++] = part;
	return true;
}

static err_status refuse(const struct reader *reader, struct err *err, const char *text)
{
	return err_set(err, ERR_INVALID, "%s:%zu: %s", reader->name, reader->line, text);
}

static int column_of(const struct reader *reader, const char *name)
{
	for (size_t i = 0; i < reader->count; i++) {
		if (str_eq_c(reader->columns[i], name))
			return (int)i;
	}
	return -1;
}

static err_status read_int(const struct reader *reader, int column, int64_t max, int64_t *ret,
			   struct err *err)
{
	int64_t value;
	if (!str_to_i64(reader->columns[column], &value) || value < 0 || value > max)
		return err_set(err, ERR_INVALID,
			       "%s:%zu: column %d is \"" STR_FMT
			       "\"; write a whole number from 0 to %lld",
			       reader->name, reader->line, column + 1,
			       STR_ARG(str_slice(reader->columns[column], 0, 40)), (long long)max);
	*ret = value;
	return ERR_OK;
}

struct load { // of a file into jobs
	struct arena *arena;
	const struct queue_files *files;
	struct queue_jobs jobs;
	struct map *rates; // "type\tGPUs" -> nano steps a second
};

static int64_t at_ms(const struct load *load, int64_t submit_ms)
{
	static const wide MAX_MS = (wide)1 << 52;
	wide instant_ms = (wide)submit_ms * MONEY_NANO_PER_UNIT / load->files->speed_nano;
	return (int64_t)(instant_ms < MAX_MS ? instant_ms : MAX_MS);
}

static err_status add(struct load *load, const struct reader *reader, const struct queue_job *job,
		      struct err *err)
{
	if (job->gpus < 1 || job->duration_ms < 1) {
		load->jobs.left_out++;
		return ERR_OK;
	}
	if (load->jobs.count == QUEUE_JOBS_MAX)
		return refuse(reader, err, "more jobs than can be read; split the list");
	struct queue_job *kept = &load->jobs.items[load->jobs.count++];
	*kept = *job;
	kept->line = reader->line;
	kept->submit_ms = at_ms(load, job->submit_ms);
	kept->start_ms = kept->end_ms = kept->reserved_ms = -1;
	kept->told_ms = kept->low_ms = kept->high_ms = -1;
	return ERR_OK;
}

static err_status find_columns(struct reader *reader, const char *const *names, int *ret_columns,
			       size_t count, struct err *err)
{
	if (!next_row(reader))
		return err_set(err, ERR_INVALID, "%s: empty", reader->name);
	for (size_t i = 0; i < count; i++) {
		ret_columns[i] = column_of(reader, names[i]);
		if (ret_columns[i] < 0)
			return err_set(err, ERR_INVALID, "%s:1: a column %s is wanted",
				       reader->name, names[i]);
	}
	return ERR_OK;
}

// As in the demo: latency sensitive above burstable above best effort.
static int64_t priority_of(struct str qos)
{
	if (str_eq_c(qos, "LS") || str_eq_c(qos, "Guaranteed"))
		return 1000000;
	return str_eq_c(qos, "Burstable") ? 100000 : 10000;
}

static err_status read_openb(struct load *load, struct reader *reader, struct err *err)
{
	enum { NAME, GPUS, MILLI, QOS, CREATED, SCHEDULED, DELETED, CPU, MEMORY, WANTED };
	static const char *const NAMES[WANTED] = {
		"name",           "num_gpu",       "gpu_milli", "qos",       "creation_time",
		"scheduled_time", "deletion_time", "cpu_milli", "memory_mib"
	};
	int at[WANTED];
	if (find_columns(reader, NAMES, at, WANTED, err) != ERR_OK)
		return err->status;
	for (size_t wanted = reader->count; next_row(reader);) {
		int64_t milli = 0, created_s = 0, scheduled_s = 0, deleted_s = 0, gpus = 0;
		if (reader->count != wanted)
			return refuse(reader, err, "write as many columns as in the first line");
		bool has_times = reader->columns[at[CREATED]].len > 0 &&
				 reader->columns[at[SCHEDULED]].len > 0 &&
				 reader->columns[at[DELETED]].len > 0;
		if (read_int(reader, at[GPUS], QUEUE_GPUS_MAX, &gpus, err) != ERR_OK ||
		    read_int(reader, at[MILLI], 1000, &milli, err) != ERR_OK ||
		    (has_times &&
		     (read_int(reader, at[CREATED], SECONDS_MAX, &created_s, err) != ERR_OK ||
		      read_int(reader, at[SCHEDULED], SECONDS_MAX, &scheduled_s, err) != ERR_OK ||
		      read_int(reader, at[DELETED], SECONDS_MAX, &deleted_s, err) != ERR_OK)))
			return err->status;
		struct queue_job job = { .name = reader->columns[at[NAME]],
					 .submit_ms = 1000 * created_s,
					 .duration_ms = 1000 * (deleted_s - scheduled_s),
					 .gpus = milli == 1000 ? gpus : 0,
					 .priority = priority_of(reader->columns[at[QOS]]) };
		job.work = str_of(arena_printf(load->arena, STR_FMT " " STR_FMT " " STR_FMT,
					       STR_ARG(reader->columns[at[QOS]]),
					       STR_ARG(reader->columns[at[CPU]]),
					       STR_ARG(reader->columns[at[MEMORY]])));
		if (add(load, reader, &job, err) != ERR_OK)
			return err->status;
	}
	return ERR_OK;
}

static err_status read_tiresias(struct load *load, struct reader *reader, struct err *err)
{
	enum { NAME, GPUS, SUBMIT, DURATION, MODEL, WANTED };
	static const char *const NAMES[WANTED] = { "job_id", "num_gpu", "submit_time", "duration",
						   "model_name" };
	int at[WANTED];
	if (find_columns(reader, NAMES, at, WANTED, err) != ERR_OK)
		return err->status;
	for (size_t wanted = reader->count; next_row(reader);) {
		struct queue_job job = { .priority = 0 };
		if (reader->count != wanted)
			return refuse(reader, err, "write as many columns as in the first line");
		job.name = reader->columns[at[NAME]];
		job.work = reader->columns[at[MODEL]];
		if (read_int(reader, at[GPUS], QUEUE_GPUS_MAX, &job.gpus, err) != ERR_OK ||
		    read_int(reader, at[SUBMIT], SECONDS_MAX, &job.submit_ms, err) != ERR_OK ||
		    read_int(reader, at[DURATION], SECONDS_MAX, &job.duration_ms, err) != ERR_OK)
			return err->status;
		job.submit_ms *= 1000;
		job.duration_ms *= 1000;
		if (add(load, reader, &job, err) != ERR_OK)
			return err->status;
	}
	return ERR_OK;
}

static struct str rate_key(struct arena *arena, struct str type, int64_t gpus)
{
	return str_of(
		arena_printf(arena, STR_FMT "\t%lld", STR_ARG(str_trim(type)), (long long)gpus));
}

static err_status read_rates(struct load *load, struct err *err)
{
	struct reader reader = { .name = load->files->throughput_name,
				 .rest = load->files->throughput,
				 .separator = ',' };
	while (next_row(&reader)) {
		int64_t gpus, *rate = ARENA_NEW(load->arena, int64_t);
		bool is_head = reader.line == 1 && str_eq_c(reader.columns[0], "type");
		if (is_head)
			continue;
		if (rate == NULL)
			return err_set(err, ERR_LIMIT, "%s: no memory", reader.name);
		if (reader.count != 3 || !str_to_i64(str_trim(reader.columns[1]), &gpus) ||
		    gpus < 1 || !money_parse(str_trim(reader.columns[2]), rate) || *rate < 1)
			return refuse(&reader, err, "write type,GPUs,steps a second");
		(void)map_set(load->rates, rate_key(load->arena, reader.columns[0], gpus), rate);
	}
	return ERR_OK;
}

static err_status read_philly_row(struct load *load, const struct reader *reader,
				  struct queue_job *ret, struct err *err)
{
	enum { TYPE, STEPS = 4, ARRIVAL, GPUS, WANTED };
	int64_t steps = 0, arrival_nano;
	if (reader->count != WANTED)
		return refuse(reader, err, "write seven columns with tabs between them");
	if (read_int(reader, STEPS, STEPS_MAX, &steps, err) != ERR_OK ||
	    read_int(reader, GPUS, QUEUE_GPUS_MAX, &ret->gpus, err) != ERR_OK)
		return err->status;
	if (!money_parse(reader->columns[ARRIVAL], &arrival_nano) || arrival_nano < 0)
		return refuse(reader, err, "column 6 is no number of seconds");
	struct str key = rate_key(load->arena, reader->columns[TYPE], ret->gpus);
	const int64_t *rate = map_find(load->rates, key);
	if (rate == NULL)
		return err_set(err, ERR_INVALID, "%s:%zu: %s says nothing of " STR_FMT " GPUs",
			       reader->name, reader->line, load->files->throughput_name,
			       STR_ARG(key));
	wide duration_ms = (wide)steps * 1000 * MONEY_NANO_PER_UNIT / *rate;
	if (duration_ms > 1000 * (wide)SECONDS_MAX)
		return refuse(reader, err, "runs for more than a century at that rate");
	ret->submit_ms = arrival_nano / 1000000;
	ret->duration_ms = max_i64(1, (int64_t)duration_ms);
	ret->name = str_of(arena_printf(load->arena, "%zu", reader->line));
	ret->work = str_trim(reader->columns[TYPE]);
	return ERR_OK;
}

static err_status read_philly(struct load *load, struct reader *reader, struct err *err)
{
	reader->separator = '\t';
	if (read_rates(load, err) != ERR_OK)
		return err->status;
	while (next_row(reader)) {
		struct queue_job job = { .priority = 0 };
		if (read_philly_row(load, reader, &job, err) != ERR_OK ||
		    add(load, reader, &job, err) != ERR_OK)
			return err->status;
	}
	return ERR_OK;
}

static int compare(const void *a, const void *b)
{
	const struct queue_job *x = a, *y = b;
	if (x->submit_ms != y->submit_ms)
		return x->submit_ms < y->submit_ms ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

static size_t count_lines(struct str text)
{
	size_t lines = 1;
	for (size_t i = 0; (i = str_find_byte(text, '\n', i)) != SIZE_MAX; i++)
		lines++;
	return lines;
}

err_status queue_jobs_parse(struct arena *arena, const struct queue_files *files,
			    struct queue_jobs *ret, struct err *err)
{
	static const struct {
		const char *format;
		err_status (*read)(struct load *load, struct reader *reader, struct err *err);
	} FORMATS[] = { { "openb", read_openb },
			{ "tiresias", read_tiresias },
			{ "philly", read_philly } };
	struct reader reader = { .name = files->jobs_name, .rest = files->jobs, .separator = ',' };
	struct load load = { .arena = arena, .files = files };
	size_t cap = min_size(count_lines(files->jobs), QUEUE_JOBS_MAX), i = 0;
	while (i < ARRAY_COUNT(FORMATS) && strcmp(FORMATS[i].format, files->format) != 0)
		i++;
	if (i == ARRAY_COUNT(FORMATS))
		return err_set(err, ERR_INVALID, "formats are openb, tiresias and philly");
	load.jobs.items = ARENA_ARRAY(arena, struct queue_job, cap);
	if (load.jobs.items == NULL)
		return err_set(err, ERR_LIMIT, "%s: no memory", files->jobs_name);
	load.rates = map_new(0);
	err_status status = FORMATS[i].read(&load, &reader, err);
	map_free(load.rates);
	if (status != ERR_OK)
		return status;
	qsort(load.jobs.items, load.jobs.count, sizeof *load.jobs.items, compare);
	*ret = load.jobs;
	return ERR_OK;
}
