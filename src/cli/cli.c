// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.h"

#include "base/timefmt.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

// 9999-12-31T00:00:00Z: later instants have no text in UTC.
static const int64_t INSTANT_MAX_S = INT64_C(253402214400);

int cli_fail(const struct err *err)
{
	(void)fprintf(stderr, "error: %s\n", err->text);
	return err_exit_code(err->status);
}

int cli_fail_usage(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	(void)fputs("error: ", stderr);
	(void)vfprintf(stderr, fmt, args);
	(void)fputs("\n", stderr);
	va_end(args);
	return EXIT_USAGE;
}

void cli_warn(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	(void)fputs("warning: ", stderr);
	(void)vfprintf(stderr, fmt, args);
	(void)fputs("\n", stderr);
	va_end(args);
}

int cli_print(struct str text)
{
	while (text.len > 0) {
		ssize_t done = write(STDOUT_FILENO, text.data, text.len);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0) {
			struct err err;
			(void)err_sys(&err, errno, "writing to standard output");
			return cli_fail(&err);
		}
		text = str_slice(text, (size_t)done, text.len);
	}
	return 0;
}

err_status cli_parse_instant(const char *name, const char *text, int64_t *ret_s, struct err *err)
{
	uint32_t ns;
	int64_t t_s;
	if (!time_parse(str_of(text), &t_s, &ns) || ns != 0 || t_s < 0 || t_s > INSTANT_MAX_S)
		return err_set(err, ERR_INVALID,
			       "--%s must be an instant in whole seconds, as 2026-02-10T00:00:00Z",
			       name);
	*ret_s = t_s;
	return ERR_OK;
}
