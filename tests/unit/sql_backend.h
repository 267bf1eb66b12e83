// SPDX-License-Identifier: Apache-2.0
// Which engine tests of SQL run on: SQLite, or the PostgreSQL that SQL_TEST_URL names. That one is
// emptied by each fresh opening, so it must be for tests alone. A handle is the caller's.
#pragma once

#include "check.h"
#include "sql/sql.h"

#include <stdlib.h>
#include <unistd.h>

static inline const char *backend_url(void) { return getenv("SQL_TEST_URL"); }

static inline bool backend_is_postgres(void) { return backend_url() != NULL; }

// The process before may have been killed a moment ago and still own the database.
static inline err_status backend_try(const char *sqlite_url, struct sql **ret_sql, struct err *err)
{
	const char *url = backend_is_postgres() ? backend_url() : sqlite_url;
	err_status status = sql_open(url, ret_sql, err);
	for (int i = 0; i < 200 && status == ERR_UNAVAILABLE; i++) {
		(void)usleep(50000);
		status = sql_open(url, ret_sql, err);
	}
	return status;
}

static inline struct sql *backend_open(struct check *c, const char *sqlite_url)
{
	struct sql *sql = NULL;
	struct err err = { 0 };
	CHECK_INT(c, err.text, backend_try(sqlite_url, &sql, &err), ERR_OK);
	if (sql == NULL)
		printf("  %s\n", err.text);
	return sql;
}

// The same with nothing in it.
static inline struct sql *backend_open_fresh(struct check *c, const char *sqlite_url)
{
	static const char *const wipe[] = { "DROP SCHEMA public CASCADE", "CREATE SCHEMA public" };
	struct err err = { 0 };
	struct sql *sql = backend_open(c, sqlite_url);
	if (!backend_is_postgres())
		return sql;
	for (size_t i = 0; i < ARRAY_COUNT(wipe); i++)
		CHECK_INT(c, wipe[i], sql_run(sql, wipe[i], NULL, 0, NULL, NULL, &err), ERR_OK);
	sql_close(sql);
	return backend_open(c, sqlite_url);
}
