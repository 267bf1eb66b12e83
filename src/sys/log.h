// SPDX-License-Identifier: Apache-2.0
// Structured log: one JSON object a line on standard error, keys ts, level, part, msg and then
// the fields given. Only daemons and commands log; libraries return errors. Values are escaped,
// so input cannot forge a line. Secrets are never passed in.
#pragma once

#include "base/str.h"

typedef enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR } log_level;

void log_init(const char *part, log_level minimum); // part: "agent", "scheduler", ...
MUST_USE bool log_level_parse(struct str text, log_level *ret_level);
// kv: pairs of key and text, ended by NULL: log_kv(LOG_INFO, "bound", "pod", name, NULL).
void log_kv(log_level level, const char *message, ...) __attribute__((sentinel));
void log_err(log_level level, const char *message, const struct err *err);
