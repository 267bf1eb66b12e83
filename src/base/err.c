// SPDX-License-Identifier: Apache-2.0
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

NORETURN void assert_failed(const char *expr, const char *file, int line)
{
	(void)fprintf(stderr, "assertion failed: %s at %s:%d\n", expr, file, line);
	abort();
}

PRINTF_LIKE(2, 0)
static void put_text(struct err *err, const char *fmt, va_list args)
{
	(void)vsnprintf(err->text, sizeof err->text, fmt, args);
}

err_status err_set(struct err *err, err_status status, const char *fmt, ...)
{
	ASSERT(status != ERR_OK);
	if (err == NULL)
		return status;
	va_list args;
	va_start(args, fmt);
	put_text(err, fmt, args);
	va_end(args);
	err->status = status;
	err->sys_errno = 0;
	return status;
}

err_status err_sys(struct err *err, int sys_errno, const char *fmt, ...)
{
	if (err == NULL)
		return ERR_IO;
	va_list args;
	va_start(args, fmt);
	put_text(err, fmt, args);
	va_end(args);
	size_t used = strlen(err->text);
	(void)snprintf(err->text + used, sizeof err->text - used, ": %s", strerror(sys_errno));
	err->status = ERR_IO;
	err->sys_errno = sys_errno;
	return ERR_IO;
}

err_status err_wrap(struct err *err, const char *fmt, ...)
{
	ASSERT(err != NULL && err->status != ERR_OK);
	char inner[sizeof err->text];
	memcpy(inner, err->text, sizeof inner);
	va_list args;
	va_start(args, fmt);
	put_text(err, fmt, args);
	va_end(args);
	size_t used = strlen(err->text);
	(void)snprintf(err->text + used, sizeof err->text - used, ": %s", inner);
	return err->status;
}

const char *err_status_name(err_status status)
{
	static const char *const names[] = {
		[ERR_OK] = "ok",
		[ERR_INVALID] = "invalid",
		[ERR_NOT_FOUND] = "not_found",
		[ERR_CONFLICT] = "conflict",
		[ERR_LIMIT] = "limit",
		[ERR_UNAUTHENTICATED] = "unauthenticated",
		[ERR_DENIED] = "denied",
		[ERR_UNAVAILABLE] = "unavailable",
		[ERR_TIMEOUT] = "timeout",
		[ERR_IO] = "io",
		[ERR_PROTOCOL] = "protocol",
		[ERR_UNSUPPORTED] = "unsupported",
		[ERR_INTERNAL] = "internal",
	};
	ASSERT((size_t)status < ARRAY_COUNT(names));
	return names[status];
}

int err_exit_code(err_status status)
{
	static const int codes[] = {
		[ERR_OK] = 0,       [ERR_INVALID] = 1,     [ERR_NOT_FOUND] = 3,
		[ERR_CONFLICT] = 5, [ERR_LIMIT] = 6,       [ERR_UNAUTHENTICATED] = 4,
		[ERR_DENIED] = 4,   [ERR_UNAVAILABLE] = 8, [ERR_TIMEOUT] = 7,
		[ERR_IO] = 1,       [ERR_PROTOCOL] = 1,    [ERR_UNSUPPORTED] = 1,
		[ERR_INTERNAL] = 9,
	};
	ASSERT((size_t)status < ARRAY_COUNT(codes));
	return codes[status];
}
