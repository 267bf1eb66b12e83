// SPDX-License-Identifier: Apache-2.0
#include "sim/plot.h"

#include <math.h>

enum { WIDTH = 720, HEIGHT = 420, LEFT = 64, RIGHT = 20, TOP = 64, BOTTOM = 52, TICKS = 8 };

// Told apart also by who cannot tell red from green, and in print by their dashes.
static const struct {
	const char *color, *dash;
} STYLES[PLOT_LINES_MAX] = {
	{ "#0072b2", "none" }, { "#d55e00", "none" }, { "#009e73", "none" },
	{ "#cc79a7", "6 3" },  { "#e69f00", "6 3" },  { "#56b4e9", "2 3" },
};

struct axes {
	const struct plot *plot;
	double x_low, x_high, y_high;
};

static double scaled(const struct plot *plot, double x)
{
	return plot->is_x_log ? log10(x + 1) : x;
}

static double nice_step(double span)
{
	double raw = span / TICKS, power = pow(10, floor(log10(raw)));
	double times = raw / power;
	return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

static struct axes axes_of(const struct plot *plot)
{
	struct axes axes = { .plot = plot, .x_low = INFINITY, .x_high = -INFINITY };
	double y_high = plot->y_max;
	for (size_t i = 0; i < plot->line_count; i++) {
		const struct plot_line *line = &plot->lines[i];
		for (size_t k = 0; k < line->count; k++) {
			axes.x_low = fmin(axes.x_low, scaled(plot, line->points[k].x));
			axes.x_high = fmax(axes.x_high, scaled(plot, line->points[k].x));
			if (plot->y_max <= 0)
				y_high = fmax(y_high, line->points[k].y);
		}
	}
	if (!isfinite(axes.x_low))
		axes.x_low = axes.x_high = 0;
	if (axes.x_high <= axes.x_low)
		axes.x_high = axes.x_low + 1;
	axes.y_high = y_high > 0 ? y_high : 1;
	return axes;
}

static double x_of(const struct axes *axes, double x)
{
	double part = (scaled(axes->plot, x) - axes->x_low) / (axes->x_high - axes->x_low);
	return LEFT + part * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct axes *axes, double y)
{
	return HEIGHT - BOTTOM - y / axes->y_high * (HEIGHT - TOP - BOTTOM);
}

static void put_text(struct buf *out, const char *where, struct str text)
{
	buf_printf(out, "<text %s>", where);
	for (size_t i = 0; i < text.len; i++) {
		char byte = text.data[i];
		if (byte == '<' || byte == '&')
			buf_put_c(out, byte == '<' ? "&lt;" : "&amp;");
		else
			buf_put_byte(out, (unsigned char)byte < ' ' ? ' ' : byte);
	}
	buf_put_c(out, "</text>\n");
}

static void put_x_tick(const struct axes *axes, double x, struct buf *out)
{
	double at = x_of(axes, x);
	if (at < LEFT - 0.5 || at > WIDTH - RIGHT + 0.5)
		return;
	buf_printf(out, "<path d='M%.1f %dV%d' class='grid'/>\n", at, TOP, HEIGHT - BOTTOM);
	buf_printf(out, "<text x='%.1f' y='%d' text-anchor='middle'>%.10g</text>\n", at,
		   HEIGHT - BOTTOM + 18, x);
}

static void put_axes(const struct axes *axes, struct buf *out)
{
	double y_step = nice_step(axes->y_high), x_step = nice_step(axes->x_high - axes->x_low);
	for (int i = 0; i * y_step <= axes->y_high * 1.0001; i++) {
		double at = y_of(axes, i * y_step);
		buf_printf(out, "<path d='M%d %.1fH%d' class='grid'/>\n", LEFT, at, WIDTH - RIGHT);
		buf_printf(out, "<text x='%d' y='%.1f' text-anchor='end'>%.10g</text>\n", LEFT - 8,
			   at + 4, i * y_step);
	}
	if (axes->plot->is_x_log) {
		put_x_tick(axes, 0, out);
		for (int power = 0; power <= (int)axes->x_high; power++)
			put_x_tick(axes, pow(10, power), out);
	} else {
		double first = ceil(axes->x_low / x_step);
		for (int i = 0; (first + i) * x_step <= axes->x_high * 1.0001; i++)
			put_x_tick(axes, (first + i) * x_step, out);
	}
}

static void put_titles(const struct plot *plot, struct buf *out)
{
	AUTO(buf_done) struct buf where = { .limit = 256 };
	put_text(out, "x='20' y='24' class='title'", str_of(plot->title));
	buf_printf(&where, "x='%d' y='%d' text-anchor='middle'", (LEFT + WIDTH - RIGHT) / 2,
		   HEIGHT - 12);
	buf_put_byte(&where, '\0');
	put_text(out, where.data, str_of(plot->x_title));
	buf_clear(&where);
	buf_printf(&where, "transform='translate(18 %d) rotate(-90)' text-anchor='middle'",
		   (TOP + HEIGHT - BOTTOM) / 2);
	buf_put_byte(&where, '\0');
	put_text(out, where.data, str_of(plot->y_title));
}

static void put_line(const struct axes *axes, size_t i, struct buf *out)
{
	const struct plot_line *line = &axes->plot->lines[i];
	AUTO(buf_done) struct buf where = { .limit = 256 };
	int legend_x = LEFT + (int)i * (WIDTH - LEFT - RIGHT) / PLOT_LINES_MAX;
	buf_printf(out,
		   "<path fill='none' stroke-width='1.8' stroke='%s' stroke-dasharray='%s' d='M",
		   STYLES[i].color, STYLES[i].dash);
	for (size_t k = 0; k < line->count; k++)
		buf_printf(out, "%s%.1f %.1f", k == 0 ? "" : "L", x_of(axes, line->points[k].x),
			   y_of(axes, fmin(line->points[k].y, axes->y_high)));
	if (line->count == 0)
		buf_printf(out, "%d %d", LEFT, HEIGHT - BOTTOM);
	buf_printf(out,
		   "'/>\n<path d='M%d 44h22' stroke='%s' stroke-width='3' "
		   "stroke-dasharray='%s'/>\n",
		   legend_x, STYLES[i].color, STYLES[i].dash);
	buf_printf(&where, "x='%d' y='48'", legend_x + 28);
	buf_put_byte(&where, '\0');
	put_text(out, where.data, line->name);
}

void plot_put_svg(const struct plot *plot, struct buf *out)
{
	ASSERT(plot->line_count <= PLOT_LINES_MAX);
	struct axes axes = axes_of(plot);
	buf_printf(out,
		   "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' "
		   "viewBox='0 0 %d %d'>\n",
		   WIDTH, HEIGHT, WIDTH, HEIGHT);
	buf_put_c(out, "<style>text{font:12px sans-serif;fill:#333}.title{font-size:15px}"
		       ".grid{stroke:#ddd;fill:none}</style>\n<rect width='100%' height='100%' "
		       "fill='#fff'/>\n");
	put_axes(&axes, out);
	put_titles(plot, out);
	for (size_t i = 0; i < plot->line_count; i++)
		put_line(&axes, i, out);
	buf_put_c(out, "</svg>\n");
}

void plot_put_csv(const struct plot *plot, struct buf *out)
{
	buf_put_c(out, "line,x,y\n");
	for (size_t i = 0; i < plot->line_count; i++) {
		const struct plot_line *line = &plot->lines[i];
		for (size_t k = 0; k < line->count; k++)
			buf_printf(out, STR_FMT ",%.10g,%.10g\n", STR_ARG(line->name),
				   line->points[k].x, line->points[k].y);
	}
}
