// SPDX-License-Identifier: Apache-2.0
#include "sql/driver.h"
#include "sql/url.h"

#include <stdlib.h>

struct sql {
	const struct sql_driver *driver;
	void *self;
	bool in_transaction;
	bool is_doomed;  // a statement of the transaction failed
	bool is_running; // a row function is being called
	int64_t changes;
};

err_status sql_open(const char *url, struct sql **ret_sql, struct err *err)
{
	static const struct str sqlite = { "sqlite:", sizeof "sqlite:" - 1 };
	ASSERT(url != NULL && ret_sql != NULL);
	struct sql *sql = calloc(1, sizeof *sql);
	if (sql == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the database");
	const bool is_sqlite = str_starts(str_of(url), sqlite);
	err_status status = is_sqlite ? sqlite_open(url + sqlite.len, &sql->self, err)
				      : postgres_open(url, &sql->self, err);
	if (status != ERR_OK) {
		free(sql);
		return status;
	}
	sql->driver = is_sqlite ? &sqlite_driver : &postgres_driver;
	*ret_sql = sql;
	return ERR_OK;
}

void sql_close(struct sql *sql)
{
	if (sql == NULL)
		return;
	sql->driver->close(sql->self);
	free(sql);
}

static err_status refuse_doomed(struct err *err)
{
	return err_set(err, ERR_IO, "the transaction was rolled back by an error before");
}

err_status sql_run(struct sql *sql, const char *statement, const struct sql_value *args,
		   size_t arg_count, sql_row_fn *row_fn, void *row_arg, struct err *err)
{
	ASSERT(sql != NULL && statement != NULL && arg_count <= SQL_ARGS_MAX);
	ASSERT(!sql->is_running); // a row function runs no statement
	if (sql->is_doomed)
		return refuse_doomed(err);
	const struct sql_call call = { statement, args, arg_count, row_fn, row_arg };
	sql->is_running = true;
	err_status status = sql->driver->run(sql->self, &call, &sql->changes, err);
	sql->is_running = false;
	sql->is_doomed = sql->in_transaction && status != ERR_OK;
	return status;
}

int64_t sql_changes(const struct sql *sql) { return sql->changes; }

err_status sql_begin(struct sql *sql, struct err *err)
{
	ASSERT(!sql->in_transaction && !sql->is_running);
	err_status status = sql->driver->begin(sql->self, err);
	sql->in_transaction = status == ERR_OK;
	return status;
}

err_status sql_commit(struct sql *sql, struct err *err)
{
	ASSERT(sql->in_transaction && !sql->is_running);
	if (sql->is_doomed) {
		sql_rollback(sql);
		return refuse_doomed(err);
	}
	sql->in_transaction = false;
	return sql->driver->commit(sql->self, err);
}

void sql_rollback(struct sql *sql)
{
	ASSERT(!sql->is_running);
	if (sql->in_transaction)
		sql->driver->rollback(sql->self);
	sql->in_transaction = false;
	sql->is_doomed = false;
}

enum sql_state sql_tend(struct sql *sql, struct err *err)
{
	ASSERT(!sql->in_transaction && !sql->is_running);
	return sql->driver->tend(sql->self, err);
}

uint64_t sql_connection(const struct sql *sql) { return sql->driver->connection(sql->self); }

void sql_url_show(const char *url, struct buf *out) { url_show(str_of(url), out); }
