// SPDX-License-Identifier: Apache-2.0
#include "base/metric.h"

#include <math.h>
#include <stdio.h>

static void put_escaped(struct buf *out, struct str text, bool quotes)
{
	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];
		if (c == '\\')
			buf_put_c(out, "\\\\");
		else if (c == '\n')
			buf_put_c(out, "\\n");
		else if (c == '"' && quotes)
			buf_put_c(out, "\\\"");
		else
			buf_put_byte(out, c);
	}
}

void metric_family(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_printf(out, "# HELP %s ", name);
	put_escaped(out, str_of(help), false);
	buf_printf(out, "\n# TYPE %s %s\n", name, type);
}

static void put_labels(struct buf *out, const struct metric_label *labels, size_t count,
		       const char *le)
{
	if (count == 0 && le == NULL)
		return;
	buf_put_byte(out, '{');
	for (size_t i = 0; i < count; i++) {
		buf_printf(out, "%s%s=\"", i == 0 ? "" : ",", labels[i].name);
		put_escaped(out, labels[i].value, true);
		buf_put_byte(out, '"');
	}
	if (le != NULL)
		buf_printf(out, "%sle=\"%s\"", count == 0 ? "" : ",", le);
	buf_put_byte(out, '}');
}

void metric_int(struct buf *out, const char *name, const struct metric_label *labels,
		size_t label_count, int64_t value)
{
	buf_put_c(out, name);
	put_labels(out, labels, label_count, NULL);
	buf_printf(out, " %lld\n", (long long)value);
}

void metric_float(struct buf *out, const char *name, const struct metric_label *labels,
		  size_t label_count, double value)
{
	buf_put_c(out, name);
	put_labels(out, labels, label_count, NULL);
	if (isnan(value))
		buf_put_c(out, " NaN\n");
	else if (isinf(value))
		buf_put_c(out, value > 0 ? " +Inf\n" : " -Inf\n");
	else
		buf_printf(out, " %.15g\n", value);
}

void metric_observe(struct metric_histogram *histogram, double value)
{
	ASSERT(histogram->bounds_count <= METRIC_BUCKETS_MAX);
	size_t i = 0;
	while (i < histogram->bounds_count && value > histogram->bounds[i])
		i++;
	histogram->counts[i]++;
	histogram->count++;
	histogram->sum += value;
}

static void put_bucket(struct buf *out, const char *name, const struct metric_label *labels,
		       size_t label_count, const char *le, uint64_t count)
{
	buf_printf(out, "%s_bucket", name);
	put_labels(out, labels, label_count, le);
	buf_printf(out, " %llu\n", (unsigned long long)count);
}

void metric_histogram_put(struct buf *out, const char *name, const struct metric_label *labels,
			  size_t label_count, const struct metric_histogram *histogram)
{
	uint64_t cumulative = 0;
	for (size_t i = 0; i < histogram->bounds_count; i++) {
		char le[32];
		(void)snprintf(le, sizeof le, "%g", histogram->bounds[i]);
		cumulative += histogram->counts[i];
		put_bucket(out, name, labels, label_count, le, cumulative);
	}
	put_bucket(out, name, labels, label_count, "+Inf", histogram->count);
	buf_printf(out, "%s_sum", name);
	put_labels(out, labels, label_count, NULL);
	buf_printf(out, " %.15g\n%s_count", histogram->sum, name);
	put_labels(out, labels, label_count, NULL);
	buf_printf(out, " %llu\n", (unsigned long long)histogram->count);
}

// Escaped again: in OpenMetrics a quote in a help text is too.
static void put_help(struct buf *out, struct str family, struct str help)
{
	buf_printf(out, "# HELP " STR_FMT " ", STR_ARG(family));
	for (size_t i = 0; i < help.len; i++) {
		if (help.data[i] == '"')
			buf_put_byte(out, '\\');
		buf_put_byte(out, help.data[i]);
	}
	buf_put_byte(out, '\n');
}

static struct str word_of(struct str *rest)
{
	struct str word = STR("");
	return str_split_next(rest, ' ', &word) ? word : STR("");
}

void metric_to_openmetrics(struct str page, struct buf *out)
{
	static const struct str total = { "_total", 6 };
	struct str line, help = { NULL, 0 };
	while (str_split_next(&page, '\n', &line)) {
		struct str rest = str_slice(line, 7, line.len);
		if (str_starts(line, STR("# HELP "))) {
			(void)word_of(&rest);
			help = rest; // told with the type, which says the family's name
			continue;
		}
		if (!str_starts(line, STR("# TYPE "))) {
			buf_put(out, line);
			if (line.len > 0)
				buf_put_byte(out, '\n');
			continue;
		}
		struct str family = word_of(&rest), type = rest;
		if (str_eq_c(type, "counter") && str_ends(family, total))
			family = str_slice(family, 0, family.len - total.len);
		else if (str_eq_c(type, "counter") || str_eq_c(type, "untyped"))
			type = STR("unknown");
		buf_printf(out, "# TYPE " STR_FMT " " STR_FMT "\n", STR_ARG(family), STR_ARG(type));
		put_help(out, family, help);
	}
	buf_put_c(out, "# EOF\n");
}
