// SPDX-License-Identifier: Apache-2.0
#include "sys/log.h"

#include "base/buf.h"
#include "base/timefmt.h"
#include "sys/clock.h"
#include "sys/fs.h"

#include <stdarg.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 16 * 1024 };

static struct {
	const char *part;
	log_level minimum;
} logger = { .part = "unnamed", .minimum = LOG_INFO };

static const char *const level_names[] = {
	[LOG_DEBUG] = "debug",
	[LOG_INFO] = "info",
	[LOG_WARN] = "warn",
	[LOG_ERROR] = "error",
};

void log_init(const char *part, log_level minimum)
{
	ASSERT(part != NULL);
	logger.part = part;
	logger.minimum = minimum;
}

bool log_level_parse(struct str text, log_level *ret_level)
{
	for (size_t i = 0; i < ARRAY_COUNT(level_names); i++) {
		if (str_eq_c(text, level_names[i])) {
			*ret_level = (log_level)i;
			return true;
		}
	}
	return false;
}

static void put_member(struct buf *line, const char *key, struct str value)
{
	buf_put_byte(line, line->len == 0 ? '{' : ',');
	buf_put_json(line, str_of(key));
	buf_put_byte(line, ':');
	buf_put_json(line, value);
}

static void put_start(struct buf *line, log_level level, const char *message)
{
	char text[TIME_TEXT_BYTES];
	int64_t now_ns = clock_wall_ns(), s_ns = INT64_C(1000000000);
	put_member(line, "ts",
		   str_of(time_format_ns(now_ns / s_ns, (uint32_t)(now_ns % s_ns), text)));
	put_member(line, "level", str_of(level_names[level]));
	put_member(line, "part", str_of(logger.part));
	put_member(line, "msg", str_of(message));
}

// A line that does not fit is replaced, not cut: half a JSON object helps nobody.
static void put_end(struct buf *line, log_level level, const char *message)
{
	if (!buf_ok(line)) {
		buf_clear(line);
		put_start(line, level, "log line too long");
		put_member(line, "first_bytes", str_slice(str_of(message), 0, 1000));
	}
	buf_put_c(line, "}\n");
	// One write a line keeps lines of several processes whole; where it fails nobody listens.
	err_status ignored = fs_write_all(STDERR_FILENO, buf_str(line), NULL);
	(void)ignored;
}

void log_kv(log_level level, const char *message, ...)
{
	if (level < logger.minimum)
		return;
	AUTO(buf_done) struct buf line = { .limit = LINE_MAX_BYTES };
	put_start(&line, level, message);
	va_list args;
	va_start(args, message);
	for (const char *key = va_arg(args, const char *); key != NULL;
	     key = va_arg(args, const char *))
		put_member(&line, key, str_of(va_arg(args, const char *)));
	va_end(args);
	put_end(&line, level, message);
}

void log_err(log_level level, const char *message, const struct err *err)
{
	if (level < logger.minimum)
		return;
	AUTO(buf_done) struct buf line = { .limit = LINE_MAX_BYTES };
	put_start(&line, level, message);
	put_member(&line, "status", str_of(err_status_name(err->status)));
	put_member(&line, "error", str_of(err->text));
	put_end(&line, level, message);
}
