// SPDX-License-Identifier: Apache-2.0
// Prometheus text exposition (format 0.0.4) into a buffer, and the histogram that goes with it.
// The writer keeps families whole: metric_family first, then its samples. Label values are
// escaped. Source of the format: prometheus.io/docs/instrumenting/exposition_formats.
#pragma once

#include "base/buf.h"

struct metric_label {
	const char *name;
	struct str value;
};

enum { METRIC_BUCKETS_MAX = 24 };

struct metric_histogram {
	const double *bounds; // ascending upper bounds, +Inf is implied
	size_t bounds_count;  // <= METRIC_BUCKETS_MAX
	uint64_t counts[METRIC_BUCKETS_MAX + 1];
	double sum;
	uint64_t count;
};

// type: "gauge", "counter", "histogram", "untyped".
void metric_family(struct buf *out, const char *name, const char *type, const char *help);
void metric_int(struct buf *out, const char *name, const struct metric_label *labels,
		size_t label_count, int64_t value);
void metric_float(struct buf *out, const char *name, const struct metric_label *labels,
		  size_t label_count, double value);
void metric_observe(struct metric_histogram *histogram, double value);
// The same page as OpenMetrics 1.0.0: families of counters without "_total", "# EOF" at the end. A
// counter whose name lacks "_total" cannot be one there and is of type unknown.
void metric_to_openmetrics(struct str page, struct buf *out);
void metric_histogram_put(struct buf *out, const char *name, const struct metric_label *labels,
			  size_t label_count, const struct metric_histogram *histogram);
