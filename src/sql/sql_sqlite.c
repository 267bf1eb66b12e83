// SPDX-License-Identifier: Apache-2.0
#include "sql/driver.h"

#include "base/map.h"

#include <sqlite3.h>
#include <stdlib.h>

enum { BUSY_TIMEOUT_MS = 5000 };

struct sqlite {
	sqlite3 *db;
	struct map *statements; // text -> sqlite3_stmt
};

// What a result code of SQLite means to a caller; the text names the database's own words.
static err_status fail(const struct sqlite *sql, int rc, const char *what, struct err *err)
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

static err_status run_plain(struct sqlite *sql, const char *text, struct err *err)
{
	int rc = sqlite3_exec(sql->db, text, NULL, NULL, NULL);
	return rc == SQLITE_OK ? ERR_OK : fail(sql, rc, text, err);
}

static err_status set_up(struct sqlite *sql, struct err *err)
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

static void close_db(void *self)
{
	struct sqlite *sql = self;
	size_t i = 0;
	void *statement;
	while (map_next(sql->statements, &i, NULL, &statement))
		(void)sqlite3_finalize(statement);
	map_free(sql->statements);
	(void)sqlite3_close(sql->db);
	free(sql);
}

err_status sqlite_open(const char *path, void **ret_self, struct err *err)
{
	if (path[0] == '\0')
		return err_set(err, ERR_INVALID, "store \"sqlite:\" lacks the path of the file");
	struct sqlite *sql = calloc(1, sizeof *sql);
	if (sql == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the database");
	sql->statements = map_new(0);
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
	int rc = sqlite3_open_v2(path, &sql->db, flags, NULL);
	err_status status = rc == SQLITE_OK ? set_up(sql, err) : fail(sql, rc, path, err);
	if (status != ERR_OK) {
		close_db(sql);
		return status;
	}
	*ret_self = sql;
	return ERR_OK;
}

static err_status prepare(struct sqlite *sql, const char *text, sqlite3_stmt **ret, struct err *err)
{
	sqlite3_stmt *statement = map_find(sql->statements, str_of(text));
	if (statement == NULL) {
		// Statements are written in our code, never made from input: there are few.
		ASSERT(map_count(sql->statements) < SQL_STATEMENTS_MAX);
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

static err_status bind(struct sqlite *sql, sqlite3_stmt *statement, const struct sql_value *args,
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
	struct sql_value columns[SQL_COLUMNS_MAX];
	int count = sqlite3_column_count(statement);
	ASSERT(count <= SQL_COLUMNS_MAX);
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

static err_status run(void *self, const struct sql_call *call, int64_t *ret_changes,
		      struct err *err)
{
	struct sqlite *sql = self;
	sqlite3_stmt *prepared = NULL;
	err_status status = prepare(sql, call->statement, &prepared, err);
	if (status != ERR_OK)
		return status;
	ASSERT(!sqlite3_stmt_busy(prepared));
	status = bind(sql, prepared, call->args, call->arg_count, err);
	if (status == ERR_OK) {
		int rc = step_all(prepared, call->row_fn, call->row_arg);
		if (rc != SQLITE_DONE)
			status = fail(sql, rc, "statement", err);
	}
	(void)sqlite3_reset(prepared);
	(void)sqlite3_clear_bindings(prepared);
	if (status == ERR_OK)
		*ret_changes = sqlite3_changes64(sql->db);
	return status;
}

static err_status begin(void *self, struct err *err)
{
	return run_plain(self, "BEGIN IMMEDIATE", err);
}

// Some errors (full disk, I/O) roll the transaction back by themselves.
static void rollback(void *self)
{
	struct sqlite *sql = self;
	if (sqlite3_get_autocommit(sql->db) == 0)
		(void)sqlite3_exec(sql->db, "ROLLBACK", NULL, NULL, NULL);
}

static err_status commit(void *self, struct err *err)
{
	err_status status = run_plain(self, "COMMIT", err);
	if (status != ERR_OK)
		rollback(self);
	return status;
}

static enum sql_state tend(void *self, struct err *err)
{
	(void)self;
	(void)err;
	return SQL_READY;
}

static uint64_t connection(const void *self)
{
	(void)self;
	return 1;
}

const struct sql_driver sqlite_driver = {
	.run = run,
	.begin = begin,
	.commit = commit,
	.rollback = rollback,
	.tend = tend,
	.connection = connection,
	.close = close_db,
};
