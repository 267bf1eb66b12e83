// SPDX-License-Identifier: Apache-2.0
// Log lines: whole JSON objects whatever the values hold, levels, lines that are too long.
#include "sys/log.h"

#include "base/json.h"
#include "check.h"
#include "sys/fs.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static char path[] = "/tmp/log_test.XXXXXX";

static void write_lines(void)
{
	static char huge[20000];
	struct err err;
	err_status status = err_set(&err, ERR_CONFLICT, "it is \"there\"\nalready");
	ASSERT(status == ERR_CONFLICT);
	memset(huge, 'h', sizeof huge - 1);
	log_init("test", LOG_INFO);
	log_kv(LOG_DEBUG, "not written", NULL);
	log_kv(LOG_INFO, "two", "pod", "a\"}\n{\"level\":\"error\"", "empty", NULL, NULL);
	log_kv(LOG_WARN, "no fields", NULL);
	log_err(LOG_ERROR, "failed", &err);
	log_kv(LOG_ERROR, huge, NULL);
}

static void check_lines(struct check *c, struct str text)
{
	static const struct {
		const char *level, *msg, *key, *value;
	} wanted[] = {
		{ "info", "two", "pod", "a\"}\n{\"level\":\"error\"" },
		{ "warn", "no fields", "part", "test" },
		{ "error", "failed", "error", "it is \"there\"\nalready" },
		{ "error", "log line too long", "part", "test" },
	};
	struct str line;
	size_t count = 0;
	while (str_split_next(&text, '\n', &line) && line.len > 0) {
		AUTO(json_decrefp) json_t *object = NULL;
		CHECK_INT(c, "line parses", json_parse(line, &object, NULL), ERR_OK);
		if (object == NULL || count >= ARRAY_COUNT(wanted))
			break;
		CHECK_STR(c, "level", json_text(object, "level"), wanted[count].level);
		CHECK_STR(c, "msg", json_text(object, "msg"), wanted[count].msg);
		CHECK_STR(c, "field", json_text(object, wanted[count].key), wanted[count].value);
		CHECK_INT(c, "time with nanoseconds", json_text(object, "ts").len, 30);
		count++;
	}
	CHECK_INT(c, "lines", count, ARRAY_COUNT(wanted));
}

int main(void)
{
	struct check c = { 0, 0 };
	AUTO(buf_done) struct buf text = { .limit = 0 };
	int saved = dup(STDERR_FILENO);
	int file = mkstemp(path);
	ASSERT(saved >= 0 && file >= 0);
	(void)dup2(file, STDERR_FILENO);
	write_lines();
	(void)dup2(saved, STDERR_FILENO);
	CHECK_INT(&c, "read back", fs_read(path, 1 << 20, &text, NULL), ERR_OK);
	check_lines(&c, buf_str(&text));
	(void)unlink(path);

	log_level level = LOG_INFO;
	CHECK(&c, "parse", log_level_parse(STR("warn"), &level) && level == LOG_WARN);
	CHECK(&c, "refuse", !log_level_parse(STR("loud"), &level) && level == LOG_WARN);
	return check_done(&c);
}
