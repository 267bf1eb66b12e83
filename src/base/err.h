// SPDX-License-Identifier: Apache-2.0
// Errors as values. A function that can fail for more than one reason returns err_status and
// fills a struct err in the caller's memory: the status is for programs (whose fault, retry?),
// the text for people (what, which object, what to do). No allocation, so the error path cannot
// fail itself. err may be NULL where the caller needs the status alone.
#pragma once

#include "base/defs.h"

typedef enum err_status {
	ERR_OK = 0,
	ERR_INVALID, // the input is wrong; repeating it will not help
	ERR_NOT_FOUND,
	ERR_CONFLICT, // somebody else changed or made it first
	ERR_LIMIT,    // a stated maximum, quota or memory bound was reached
	ERR_UNAUTHENTICATED,
	ERR_DENIED,
	ERR_UNAVAILABLE, // the other side is away; repeat later
	ERR_TIMEOUT,
	ERR_IO,       // a system call failed; sys_errno says how
	ERR_PROTOCOL, // the other side broke its protocol
	ERR_UNSUPPORTED,
	ERR_INTERNAL, // an invariant of ours is broken
} err_status;

struct err {
	err_status status;
	int sys_errno; // errno of ERR_IO, else 0
	char text[400];
};

// Fill err (if any) and return status, so that callers write "return err_set(...)".
err_status err_set(struct err *err, err_status status, const char *fmt, ...) PRINTF_LIKE(3, 4);
// Like err_set with ERR_IO; appends ": " and the text of sys_errno.
err_status err_sys(struct err *err, int sys_errno, const char *fmt, ...) PRINTF_LIKE(3, 4);
// Puts "what: " before the text that is there and returns the status that is there; not for NULL,
// which keeps no status.
err_status err_wrap(struct err *err, const char *fmt, ...) PRINTF_LIKE(2, 3);
// Short machine name: "invalid", "not_found", ...
const char *err_status_name(err_status status);
// Exit code of a program that ends with this status (the table in interfaces of the project:
// 0 ok, 1 failed, 2 usage, 3 not found, 4 not allowed, 5 conflict, 6 limit, 7 time-out,
// 8 unreachable, 9 invariant).
int err_exit_code(err_status status);
