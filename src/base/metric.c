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
