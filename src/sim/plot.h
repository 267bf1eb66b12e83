// SPDX-License-Identifier: Apache-2.0
// Pictures of what gpuaas-sim has written: lines over one axis, as SVG or as a table of the points.
// plot.c draws, plot_data.c makes the points of a CSV file, plot_main.c is the command. Points are
// the arena's and few (PLOT_POINTS_MAX a line), however long the file is. Same input: same bytes.
#pragma once

#include "base/arena.h"
#include "base/buf.h"

enum { PLOT_LINES_MAX = 6, PLOT_POINTS_MAX = 400 };

struct plot_point {
	double x, y;
};
struct plot_line {
	struct str name;
	struct plot_point *points;
	size_t count;
};
struct plot {
	const char *title, *x_title, *y_title;
	bool is_x_log; // x + 1 is drawn, so that 0 has a place
	double y_max;  // 0: what the points need
	struct plot_line lines[PLOT_LINES_MAX];
	size_t line_count;
};

void plot_put_svg(const struct plot *plot, struct buf *out);
void plot_put_csv(const struct plot *plot, struct buf *out); // line,x,y

// plot_data.c: of a file that pack (curve) or queue and run (jobs) wrote; gpus: of the cluster.
typedef err_status plot_read_fn(struct arena *arena, struct str csv, double gpus,
				struct plot_line *ret, struct err *err);
plot_read_fn plot_read_unallocated, plot_read_waits, plot_read_utilization;
