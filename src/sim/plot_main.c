// SPDX-License-Identifier: Apache-2.0
// gpuaas-sim plot: which picture, of which files.
#include "sim/plot.h"
#include "sim/usage.h"
#include "sys/fs.h"

#include <stdio.h>

enum { FILE_MAX_BYTES = 200 * 1024 * 1024, ARENA_MAX_BYTES = 64 * 1024 * 1024 };
enum { PICTURE_MAX_BYTES = 4 * 1024 * 1024, GPUS_MAX = 10000000 };

static const struct picture {
	const char *name;
	plot_read_fn *read;
	struct plot plot;
} PICTURES[] = {
	{ "unallocated",
	  plot_read_unallocated,
	  { .title = "GPUs left unallocated",
	    .x_title = "arrived, % of all GPUs",
	    .y_title = "unallocated, % of all GPUs" } },
	{ "waits",
	  plot_read_waits,
	  { .title = "Jobs that have started",
	    .x_title = "after waiting, seconds (logarithmic)",
	    .y_title = "% of the jobs",
	    .is_x_log = true,
	    .y_max = 100 } },
	{ "utilization",
	  plot_read_utilization,
	  { .title = "GPUs in use",
	    .x_title = "time, hours",
	    .y_title = "% of all GPUs",
	    .y_max = 100 } },
};

struct plot_options {
	const struct picture *picture;
	const char *out, *csv, *files[PLOT_LINES_MAX];
	size_t file_count;
	int64_t gpus, from;
};

// NAME=FILE, or the file's name is the line's.
static err_status read_line(struct arena *arena, const struct plot_options *options, size_t i,
			    struct plot_line *ret, struct err *err)
{
	const char *word = options->files[i];
	size_t split = str_find_byte(str_of(word), '=', 0);
	const char *path = split == SIZE_MAX ? word : word + split + 1;
	AUTO(buf_done) struct buf text = { .limit = FILE_MAX_BYTES };
	if (fs_read(path, FILE_MAX_BYTES, &text, err) != ERR_OK)
		return err->status;
	if (options->picture->read(arena, buf_str(&text), (double)options->gpus, ret, err) !=
	    ERR_OK)
		return err_wrap(err, "%s", path);
	while (ret->count > 0 && ret->points[0].x < (double)options->from) {
		ret->points++;
		ret->count--;
	}
	ret->name = split == SIZE_MAX ? str_of(word) : str_slice(str_of(word), 0, split);
	return ERR_OK;
}

static int run(const struct plot_options *options)
{
	struct err err = { .status = ERR_OK };
	AUTO(arena_freep) struct arena *arena = arena_new(ARENA_MAX_BYTES);
	AUTO(buf_done) struct buf svg = { .limit = PICTURE_MAX_BYTES };
	AUTO(buf_done) struct buf csv = { .limit = PICTURE_MAX_BYTES };
	struct plot plot = options->picture->plot;
	for (size_t i = 0; i < options->file_count && err.status == ERR_OK; i++)
		(void)read_line(arena, options, i, &plot.lines[plot.line_count++], &err);
	if (err.status == ERR_OK) {
		plot_put_svg(&plot, &svg);
		plot_put_csv(&plot, &csv);
		ASSERT(buf_ok(&svg) && buf_ok(&csv));
		if (fs_write_atomic(options->out, buf_str(&svg), 0644, &err) == ERR_OK &&
		    options->csv != NULL &&
		    fs_write_atomic(options->csv, buf_str(&csv), 0644, &err) != ERR_OK)
			(void)err_wrap(&err, "the picture is there, its points are not");
	}
	if (err.status != ERR_OK)
		(void)fprintf(stderr, "gpuaas-sim: %s\n", err.text);
	return err_exit_code(err.status);
}

int plot_command(int argc, char **argv)
{
	struct plot_options options = { .picture = NULL };
	for (size_t i = 0; argc > 2 && i < ARRAY_COUNT(PICTURES); i++) {
		if (strcmp(argv[2], PICTURES[i].name) == 0)
			options.picture = &PICTURES[i];
	}
	if (options.picture == NULL)
		return usage_fail("plot unallocated, waits or utilization");
	for (int i = 3; i < argc; i++) {
		bool has_value = i + 1 < argc;
		if (strcmp(argv[i], "--out") == 0 && has_value) {
			options.out = argv[++i];
		} else if (strcmp(argv[i], "--csv") == 0 && has_value) {
			options.csv = argv[++i];
		} else if (strcmp(argv[i], "--gpus") == 0 && has_value) {
			if (!usage_number(argv[++i], GPUS_MAX, &options.gpus) || options.gpus == 0)
				return usage_fail("--gpus is a number above 0");
		} else if (strcmp(argv[i], "--from") == 0 && has_value) {
			if (!usage_number(argv[++i], INT32_MAX, &options.from))
				return usage_fail("--from is a number");
		} else if (argv[i][0] == '-') {
			return usage_fail("unknown option");
		} else if (options.file_count == PLOT_LINES_MAX) {
			return usage_fail("six lines at most");
		} else {
			options.files[options.file_count++] = argv[i];
		}
	}
	if (options.out == NULL || options.file_count == 0)
		return usage_fail("plot needs --out and files");
	if (options.picture->read == plot_read_utilization && options.gpus == 0)
		return usage_fail("plot utilization needs --gpus, how many there are");
	return run(&options);
}
