// SPDX-License-Identifier: Apache-2.0
// SQL for the server: statements written once in the text that SQLite and PostgreSQL share
// (placeholders ?1..?n, integers int64, ids and times as text or int64, ON CONFLICT, RETURNING),
// behind one interface. One thread owns a connection. Every statement is prepared once and kept.
// One program owns a database at a time: SQLite by being alone with its file, PostgreSQL by an
// advisory lock that the connection holds, so that who lost the one has lost the other.
#pragma once

#include "base/arena.h"
#include "base/buf.h"

struct sql;

struct sql_value {
	enum { SQL_NULL, SQL_INT, SQL_TEXT, SQL_BLOB } type;
	int64_t number;
	struct str text;
};

static inline struct sql_value sql_int(int64_t n)
{
	return (struct sql_value){ SQL_INT, n, { 0, 0 } };
}
static inline struct sql_value sql_text(struct str s)
{
	return (struct sql_value){ SQL_TEXT, 0, s };
}

// url: "sqlite:PATH", "sqlite::memory:" (WAL, synchronous FULL, foreign keys on), or
// "postgres://...", whose parameters are those of libpq; without sslmode it is require.
// ERR_UNAVAILABLE: the database is away or another program owns it; it may be tried again.
// No error text ever holds a password.
MUST_USE err_status sql_open(const char *url, struct sql **ret_sql, struct err *err);
void sql_close(struct sql *sql);                     // NULL allowed
void sql_url_show(const char *url, struct buf *out); // without user, password and parameters

// Runs one statement; row_fn (may be NULL) gets each row, values valid during the call; it
// returns false to stop and runs no statements. Constraint violations give ERR_CONFLICT, a full
// disk ERR_IO, a busy database and a lost connection ERR_UNAVAILABLE, one that does not answer in
// time ERR_TIMEOUT. After a lost connection it is not known whether a statement outside of a
// transaction, or a commit, was done: what is repeated must be safe to repeat. The next use
// connects again, at most once in a back-off.
typedef bool sql_row_fn(void *arg, const struct sql_value *columns, size_t column_count);
MUST_USE err_status sql_run(struct sql *sql, const char *statement, const struct sql_value *args,
			    size_t arg_count, sql_row_fn *row_fn, void *row_arg, struct err *err);
int64_t sql_changes(const struct sql *sql); // rows changed by the last statement

// An error inside a transaction leaves only its end: further statements and the commit fail.
MUST_USE err_status sql_begin(struct sql *sql, struct err *err);
MUST_USE err_status sql_commit(struct sql *sql, struct err *err); // rolls back when it fails
void sql_rollback(struct sql *sql);                               // no transaction: nothing

enum sql_state {
	SQL_READY,
	SQL_AWAY, // err says why; connected again when it can be
	SQL_LOST, // another program owned the database meanwhile: what is in memory is no longer
		  // true
};
// Once a second or so, outside of transactions: notices a lost connection and makes a new one
// without waiting for it.
enum sql_state sql_tend(struct sql *sql, struct err *err);
// Another number is another connection; one that broke may have left something unclear.
uint64_t sql_connection(const struct sql *sql);

struct sql_migration {
	int64_t version;               // ascending from 1
	const char *const *statements; // NULL-terminated
};
// Applies what is missing of one set ("store", "ledger"; each counts its own versions), each
// migration in one transaction; refuses a schema that is newer than the program.
MUST_USE err_status sql_migrate(struct sql *sql, const char *set,
				const struct sql_migration *migrations, size_t count,
				struct err *err);
