// SPDX-License-Identifier: Apache-2.0
// What an engine gives to sql.c, which keeps the rules that are alike for both: an error inside a
// transaction leaves only its end, and a row function runs no statement. A driver owns its
// connection; errors are those of sql.h. One thread.
#pragma once

#include "sql/sql.h"

struct sql_call {
	const char *statement;
	const struct sql_value *args;
	size_t arg_count;
	sql_row_fn *row_fn; // NULL: rows are dropped
	void *row_arg;
};

struct sql_driver {
	err_status (*run)(void *self, const struct sql_call *call, int64_t *ret_changes,
			  struct err *err);
	err_status (*begin)(void *self, struct err *err);
	err_status (*commit)(void *self, struct err *err); // failed: nothing stays open
	void (*rollback)(void *self);
	enum sql_state (*tend)(void *self, struct err *err);
	uint64_t (*connection)(const void *self);
	void (*close)(void *self);
};

enum { SQL_COLUMNS_MAX = 32, SQL_STATEMENTS_MAX = 512, SQL_ARGS_MAX = 32 };

extern const struct sql_driver sqlite_driver, postgres_driver;
MUST_USE err_status sqlite_open(const char *path, void **ret_self, struct err *err);
MUST_USE err_status postgres_open(const char *url, void **ret_self, struct err *err);
