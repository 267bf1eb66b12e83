// SPDX-License-Identifier: Apache-2.0
// Which values /metrics shows, as a CSV file of dcgm-exporter says it: "NAME, type, help" a line,
// '#' comments. Its default files are read unchanged: names that are known there and that the
// driver's library does not give here are taken and counted as not served. Everything else that
// is not right is refused with its line and what to do. Pure; plain memory.
#pragma once

#include "gpu/field.h"

enum {
	COUNTERS_MAX = 128,
	COUNTERS_MAX_BYTES = 64 * 1024,
	COUNTER_HELP_BYTES = 200,
	COUNTER_TYPE_BYTES = 12,
};

typedef enum counter_kind {
	COUNTER_FIELD,
	COUNTER_XID,
} counter_kind;

struct counter {
	counter_kind kind;
	enum gpu_field field; // of COUNTER_FIELD
	char type[COUNTER_TYPE_BYTES], help[COUNTER_HELP_BYTES];
};

struct counters {
	struct counter items[COUNTERS_MAX];
	size_t count;
	bool has_driver_label; // DCGM_FI_DRIVER_VERSION on every series
	size_t unserved;       // known names without values here
};

void counters_init(struct counters *counters); // all that are served
// ret is untouched on failure.
MUST_USE err_status counters_parse(struct str text, struct counters *ret, struct err *err);
