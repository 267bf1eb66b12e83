// SPDX-License-Identifier: Apache-2.0
#include "sql/sql.h"

#include "base/map.h"

#include <sqlite3.h>
#include <stdlib.h>

enum { BUSY_TIMEOUT_MS = 5000, COLUMNS_MAX = 32, STATEMENTS_MAX = 512 };

struct sql {
	sqlite3 *db;
	struct map *statements; // text -> sqlite3_stmt
	bool in_transaction;
};

// What a result code of SQLite means to a caller; the text names the database's own words.
static err_status fail(const struct sql *sql, int rc, const char *what, struct err *err)
{
	const char *text = sql->db == NULL ? sqlite3_errstr(rc) : sqlite3_errmsg(sql->db);
	switch (rc & 0xff) {
	case SQLITE_CONSTRAINT: return err_set(err, ERR_CONFLICT, "%s: %s", what, text);
	case SQLITE_FULL:
		return err_set(err, ERR_IO,
			       "%s: the disk of the database is full; free space and it goes on",
			       what);
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_set(err, ERR_UNAVAILABLE, "%s: the database is busy: %s", what, text);
	case SQLITE_IOERR:
	case SQLITE_READONLY:
	case SQLITE_CANTOPEN: return err_set(err, ERR_IO, "%s: %s", what, text);
	case SQLITE_NOMEM:
	case SQLITE_TOOBIG: return err_set(err, ERR_LIMIT, "%s: %s", what, text);
	default: return err_set(err, ERR_INTERNAL, "%s: %s", what, text);
	}
}

static err_status run_plain(struct sql *sql, const char *text, struct err *err)
{
	int rc = sqlite3_exec(sql->db, text, NULL, NULL, NULL);
	return rc == SQLITE_OK ? ERR_OK : fail(sql, rc, text, err);
}

static err_status set_up(struct sql *sql, struct err *err)
{
	static const char *const pragmas[] = {
		"PRAGMA journal_mode=WAL",   "PRAGMA synchronous=FULL",  "PRAGMA foreign_keys=ON",
		"PRAGMA trusted_schema=OFF", "PRAGMA temp_store=MEMORY",
	};
	int rc = sqlite3_busy_timeout(sql->db, BUSY_TIMEOUT_MS);
	if (rc != SQLITE_OK)
		return fail(sql, rc, "busy time-out", err);
	(void)sqlite3_db_config(sql->db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
	(void)sqlite3_db_config(sql->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	(void)sqlite3_extended_result_codes(sql->db, 1);
	for (size_t i = 0; i < ARRAY_COUNT(pragmas); i++) {
		err_status status = run_plain(sql, pragmas[i], err);
		if (status != ERR_OK)
			return status;
	}
	return ERR_OK;
}

err_status sql_open(const char *url, struct sql **ret_sql, struct err *err)
{
	ASSERT(url != NULL && ret_sql != NULL);
	if (!str_starts(str_of(url), STR("sqlite:")))
		return err_set(err, ERR_INVALID, "store \"%s\" must begin with sqlite:", url);
	const char *path = url + strlen("sqlite:");
	if (path[0] == '\0')
		return err_set(err, ERR_INVALID, "store \"sqlite:\" lacks the path of the file");
	struct sql *sql = calloc(1, sizeof *sql);
	if (sql == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the database");
	sql->statements = map_new(0);
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
	int rc = sqlite3_open_v2(path, &sql->db, flags, NULL);
	err_status status = rc == SQLITE_OK ? set_up(sql, err) : fail(sql, rc, path, err);
	if (status != ERR_OK) {
		sql_close(sql);
		return status;
	}
	*ret_sql = sql;
	return ERR_OK;
}

void sql_close(struct sql *sql)
{
	if (sql == NULL)
		return;
	size_t i = 0;
	void *statement;
	while (map_next(sql->statements, &i, NULL, &statement))
		(void)sqlite3_finalize(statement);
	map_free(sql->statements);
	(void)sqlite3_close(sql->db);
	free(sql);
}

static err_status prepare(struct sql *sql, const char *text, sqlite3_stmt **ret, struct err *err)
{
	sqlite3_stmt *statement = map_find(sql->statements, str_of(text));
	if (statement == NULL) {
		// Statements are written in our code, never made from input: there are few.
		ASSERT(map_count(sql->statements) < STATEMENTS_MAX);
		const char *rest = NULL;
		int rc = sqlite3_prepare_v3(sql->db, text, -1, SQLITE_PREPARE_PERSISTENT,
					    &statement, &rest);
		if (rc != SQLITE_OK)
			return fail(sql, rc, text, err);
		ASSERT(statement != NULL && str_trim(str_of(rest)).len == 0);
		(void)map_set(sql->statements, str_of(text), statement);
	}
	*ret = statement;
	return ERR_OK;
}

static err_status bind(struct sql *sql, sqlite3_stmt *statement, const struct sql_value *args,
		       size_t arg_count, struct err *err)
{
	ASSERT((size_t)sqlite3_bind_parameter_count(statement) == arg_count);
	for (size_t i = 0; i < arg_count; i++) {
		const struct sql_value *a = &args[i];
		const char *data = a->text.data == NULL ? "" : a->text.data;
		int at = (int)i + 1, rc = SQLITE_OK;
		switch (a->type) {
		case SQL_NULL: rc = sqlite3_bind_null(statement, at); break;
		case SQL_INT: rc = sqlite3_bind_int64(statement, at, a->number); break;
		case SQL_TEXT:
			rc = sqlite3_bind_text64(statement, at, data, a->text.len, SQLITE_STATIC,
						 SQLITE_UTF8);
			break;
		case SQL_BLOB:
			rc = sqlite3_bind_blob64(statement, at, data, a->text.len, SQLITE_STATIC);
			break;
		}
		if (rc != SQLITE_OK)
			return fail(sql, rc, "binding of a value", err);
	}
	return ERR_OK;
}

static struct sql_value column(sqlite3_stmt *statement, int at)
{
	struct sql_value value = { SQL_NULL, 0, { NULL, 0 } };
	int type = sqlite3_column_type(statement, at);
	if (type == SQLITE_INTEGER)
		return sql_int(sqlite3_column_int64(statement, at));
	if (type == SQLITE_TEXT || type == SQLITE_BLOB) {
		value.type = type == SQLITE_TEXT ? SQL_TEXT : SQL_BLOB;
		value.text.data = sqlite3_column_blob(statement, at);
		value.text.len = (size_t)sqlite3_column_bytes(statement, at);
	}
	ASSERT(type != SQLITE_FLOAT); // no statement of ours makes one
	return value;
}

static int step_all(sqlite3_stmt *statement, sql_row_fn *row_fn, void *row_arg)
{
	struct sql_value columns[COLUMNS_MAX];
	int count = sqlite3_column_count(statement);
	ASSERT(count <= COLUMNS_MAX);
	for (;;) {
		int rc = sqlite3_step(statement);
		if (rc != SQLITE_ROW)
			return rc;
		for (int i = 0; i < count; i++)
			columns[i] = column(statement, i);
		if (row_fn != NULL && !row_fn(row_arg, columns, (size_t)count))
			return SQLITE_DONE;
	}
}

err_status sql_run(struct sql *sql, const char *statement, const struct sql_value *args,
		   size_t arg_count, sql_row_fn *row_fn, void *row_arg, struct err *err)
{
	ASSERT(sql != NULL && statement != NULL);
	sqlite3_stmt *prepared = NULL;
	err_status status = prepare(sql, statement, &prepared, err);
	if (status != ERR_OK)
		return status;
	ASSERT(!sqlite3_stmt_busy(prepared)); // a row function does not run its own statement
	status = bind(sql, prepared, args, arg_count, err);
	if (status == ERR_OK) {
		int rc = step_all(prepared, row_fn, row_arg);
		if (rc != SQLITE_DONE)
			status = fail(sql, rc, "statement", err);
	}
	(void)sqlite3_reset(prepared);
	(void)sqlite3_clear_bindings(prepared);
	// Some errors (full disk, I/O) roll the transaction back by themselves.
	if (sql->in_transaction && sqlite3_get_autocommit(sql->db) != 0)
		sql->in_transaction = false;
	return status;
}

int64_t sql_changes(const struct sql *sql) { return sqlite3_changes64(sql->db); }

err_status sql_begin(struct sql *sql, struct err *err)
{
	ASSERT(!sql->in_transaction);
	err_status status = run_plain(sql, "BEGIN IMMEDIATE", err);
	sql->in_transaction = status == ERR_OK;
	return status;
}

err_status sql_commit(struct sql *sql, struct err *err)
{
	if (!sql->in_transaction)
		return err_set(err, ERR_IO, "the transaction was rolled back by an error before");
	err_status status = run_plain(sql, "COMMIT", err);
	if (status != ERR_OK)
		sql_rollback(sql);
	sql->in_transaction = false;
	return status;
}

void sql_rollback(struct sql *sql)
{
	if (sqlite3_get_autocommit(sql->db) == 0)
		(void)sqlite3_exec(sql->db, "ROLLBACK", NULL, NULL, NULL);
	sql->in_transaction = false;
}
