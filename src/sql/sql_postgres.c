// SPDX-License-Identifier: Apache-2.0
#include "sql/dialect.h"
#include "sql/pg_session.h"

#include "base/map.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>

enum { STATEMENT_MAX_BYTES = 16 * 1024, NAME_BYTES = 16 };

// Types of PostgreSQL's catalogue, whose numbers are part of its protocol.
enum type_oid {
	OID_ANY = 0,
	OID_BYTEA = 17,
	OID_NAME = 19,
	OID_INT8 = 20,
	OID_INT2 = 21,
	OID_INT4 = 23,
	OID_TEXT = 25,
	OID_UNKNOWN = 705,
	OID_VARCHAR = 1043,
};

struct statement {
	char name[NAME_BYTES];
	Oid types[SQL_ARGS_MAX];
};

struct postgres {
	struct pg_session *session;
	struct map *statements; // text -> struct statement of this connection, owned
	uint64_t number;        // of the connection that they are prepared on
	unsigned names;
	bool in_transaction;
};

static void forget_statements(struct postgres *db)
{
	struct str text;
	void *statement;
	for (size_t i = 0; map_next(db->statements, &i, &text, &statement);)
		free(statement);
	map_free(db->statements);
	db->statements = map_new(0);
	db->names = 0;
	db->number = pg_session_number(db->session);
}

// Inside a transaction there is only the connection that began it.
static PGconn *use(struct postgres *db, struct err *err)
{
	PGconn *conn = db->in_transaction ? pg_session_get(db->session)
					  : pg_session_need(db->session, err);
	if (conn == NULL && db->in_transaction)
		(void)err_set(err, ERR_UNAVAILABLE, "the connection of the transaction is lost");
	if (conn != NULL && db->number != pg_session_number(db->session))
		forget_statements(db);
	return conn;
}

// ---- statements

static Oid type_of(const struct sql_value *value)
{
	switch (value->type) {
	case SQL_NULL: return OID_ANY;
	case SQL_INT: return OID_INT8;
	case SQL_TEXT: return OID_TEXT;
	case SQL_BLOB: return OID_BYTEA;
	}
	return OID_ANY;
}

static bool fits(const struct statement *statement, const struct sql_call *call)
{
	for (size_t i = 0; i < call->arg_count; i++) {
		const Oid type = type_of(&call->args[i]);
		if (type != OID_ANY && type != statement->types[i])
			return false;
	}
	return true;
}

static err_status take_prepared(struct postgres *db, const char *text, struct err *err)
{
	PGresult *result = NULL;
	err_status status = pg_session_result(db->session, &result, err);
	if (status != ERR_OK)
		return status;
	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		status = pg_session_fail(db->session, result, text, err);
	PQclear(result);
	if (pg_session_get(db->session) == NULL)
		return status;
	const err_status drained = pg_session_drain(db->session, status == ERR_OK ? err : NULL);
	return status == ERR_OK ? drained : status;
}

static err_status prepare(struct postgres *db, const struct sql_call *call,
			  struct statement **ret_statement, struct err *err)
{
	const struct str key = str_of(call->statement);
	struct statement *statement = map_find(db->statements, key);
	if (statement != NULL && fits(statement, call)) {
		*ret_statement = statement;
		return ERR_OK;
	}
	ASSERT(db->names < SQL_STATEMENTS_MAX); // written in our code: there are few
	AUTO(buf_done) struct buf text = { .limit = STATEMENT_MAX_BYTES };
	err_status status = dialect_to_postgres(key, &text, err);
	if (status != ERR_OK)
		return status;
	buf_put_byte(&text, '\0');
	statement = calloc(1, sizeof *statement);
	ASSERT(buf_ok(&text) && statement != NULL);
	(void)snprintf(statement->name, sizeof statement->name, "s%u", db->names);
	for (size_t i = 0; i < call->arg_count; i++)
		statement->types[i] = type_of(&call->args[i]);
	if (PQsendPrepare(pg_session_get(db->session), statement->name, text.data,
			  (int)call->arg_count, statement->types) == 0)
		status = pg_session_fail(db->session, NULL, "preparation", err);
	else
		status = take_prepared(db, call->statement, err);
	if (status != ERR_OK) {
		free(statement);
		return status;
	}
	db->names++;
	free(map_set(db->statements, key, statement));
	*ret_statement = statement;
	return ERR_OK;
}

static bool send_call(struct postgres *db, const struct sql_call *call,
		      const struct statement *statement)
{
	const char *values[SQL_ARGS_MAX];
	int lengths[SQL_ARGS_MAX], formats[SQL_ARGS_MAX];
	uint64_t numbers[SQL_ARGS_MAX];
	PGconn *conn = pg_session_get(db->session);
	for (size_t i = 0; i < call->arg_count; i++) {
		const struct sql_value *arg = &call->args[i];
		formats[i] = 1; // as bytes: no terminator, no conversion
		lengths[i] = (int)arg->text.len;
		values[i] = arg->text.data == NULL ? "" : arg->text.data;
		if (arg->type == SQL_NULL)
			values[i] = NULL;
		if (arg->type == SQL_INT) {
			numbers[i] = htobe64((uint64_t)arg->number);
			values[i] = (const char *)&numbers[i];
			lengths[i] = (int)sizeof numbers[i];
		}
	}
	return PQsendQueryPrepared(conn, statement->name, (int)call->arg_count, values, lengths,
				   formats, 1) != 0 &&
	       PQsetSingleRowMode(conn) != 0;
}

// ---- results

static int64_t read_int(const char *data, size_t size_bytes)
{
	uint64_t value = (data[0] & 0x80) != 0 ? UINT64_MAX : 0;
	for (size_t i = 0; i < size_bytes; i++)
		value = value << 8 | (unsigned char)data[i];
	return (int64_t)value;
}

static bool read_column(const PGresult *result, int at, struct sql_value *ret_value)
{
	const char *data = PQgetvalue(result, 0, at);
	const size_t size_bytes = (size_t)PQgetlength(result, 0, at);
	if (PQgetisnull(result, 0, at) != 0) {
		*ret_value = (struct sql_value){ SQL_NULL, 0, { NULL, 0 } };
		return true;
	}
	switch ((enum type_oid)PQftype(result, at)) {
	case OID_INT2:
	case OID_INT4:
	case OID_INT8: *ret_value = sql_int(read_int(data, size_bytes)); return true;
	case OID_TEXT:
	case OID_VARCHAR:
	case OID_NAME:
	case OID_UNKNOWN: *ret_value = sql_text((struct str){ data, size_bytes }); return true;
	case OID_BYTEA:
		*ret_value = (struct sql_value){ SQL_BLOB, 0, { data, size_bytes } };
		return true;
	case OID_ANY: break;
	}
	return false;
}

struct taking {
	const struct sql_call *call;
	bool is_stopped;
	size_t rows;
};

static err_status take_row(struct taking *taking, const PGresult *result, struct err *err)
{
	struct sql_value columns[SQL_COLUMNS_MAX];
	const int count = PQnfields(result);
	ASSERT(count <= SQL_COLUMNS_MAX);
	for (int i = 0; i < count; i++) {
		if (!read_column(result, i, &columns[i]))
			return err_set(err, ERR_INTERNAL, "%s: column %s has the type %u",
				       taking->call->statement, PQfname(result, i),
				       PQftype(result, i));
	}
	taking->rows++;
	if (taking->call->row_fn != NULL && !taking->is_stopped)
		taking->is_stopped =
			!taking->call->row_fn(taking->call->row_arg, columns, (size_t)count);
	return ERR_OK;
}

static int64_t changes_of(PGresult *result)
{
	int64_t changes = 0;
	return str_to_i64(str_of(PQcmdTuples(result)), &changes) ? changes : 0;
}

static err_status take_result(struct postgres *db, struct taking *taking, PGresult *result,
			      int64_t *ret_changes, struct err *err)
{
	const ExecStatusType got = PQresultStatus(result);
	if (got == PGRES_SINGLE_TUPLE)
		return take_row(taking, result, err);
	if (got == PGRES_COMMAND_OK || got == PGRES_TUPLES_OK) {
		*ret_changes = changes_of(result);
		return ERR_OK;
	}
	return pg_session_fail(db->session, result, "statement", err);
}

// A row function that stops early leaves rows that have to be read nevertheless; statements of
// ours that may have many are read whole.
static err_status take_results(struct postgres *db, struct taking *taking, int64_t *ret_changes,
			       struct err *err)
{
	int64_t changes = 0;
	for (;;) {
		PGresult *result = NULL;
		err_status status = pg_session_result(db->session, &result, err);
		if (status != ERR_OK)
			return status;
		if (result == NULL)
			break;
		status = take_result(db, taking, result, &changes, err);
		PQclear(result);
		if (status == ERR_OK)
			continue;
		if (pg_session_get(db->session) != NULL &&
		    pg_session_drain(db->session, NULL) != ERR_OK)
			ASSERT(pg_session_get(db->session) == NULL);
		return status;
	}
	*ret_changes = changes;
	return ERR_OK;
}

// ---- driver

static void close_db(void *self)
{
	struct postgres *db = self;
	forget_statements(db);
	map_free(db->statements);
	pg_session_free(db->session);
	free(db);
}

err_status postgres_open(const char *url, void **ret_self, struct err *err)
{
	struct pg_session *session = NULL;
	err_status status = pg_session_open(url, &session, err);
	if (status != ERR_OK)
		return status;
	struct postgres *db = calloc(1, sizeof *db);
	ASSERT(db != NULL);
	*db = (struct postgres){ .session = session, .statements = map_new(0) };
	db->number = pg_session_number(session);
	*ret_self = db;
	return ERR_OK;
}

static err_status run_once(struct postgres *db, struct taking *taking, int64_t *ret_changes,
			   struct err *err)
{
	const struct sql_call *call = taking->call;
	struct err why = { 0 };
	struct statement *statement = NULL;
	if (use(db, &why) == NULL)
		return err_set(err, why.status, "%s", why.text);
	err_status status = prepare(db, call, &statement, err);
	if (status != ERR_OK)
		return status;
	if (!send_call(db, call, statement))
		return pg_session_fail(db->session, NULL, "statement", err);
	return take_results(db, taking, ret_changes, err);
}

// What only reads, and has given no row yet, is asked again on a new connection.
static err_status run(void *self, const struct sql_call *call, int64_t *ret_changes,
		      struct err *err)
{
	struct postgres *db = self;
	struct taking taking = { call, false, 0 };
	const uint64_t number = pg_session_number(db->session);
	const bool was_ready = pg_session_get(db->session) != NULL;
	err_status status = run_once(db, &taking, ret_changes, err);
	const bool is_lost = was_ready && pg_session_get(db->session) == NULL &&
			     number == pg_session_number(db->session);
	if (status == ERR_UNAVAILABLE && is_lost && taking.rows == 0 && !db->in_transaction &&
	    str_starts(str_of(call->statement), STR("SELECT ")))
		status = run_once(db, &taking, ret_changes, err);
	return status;
}

static err_status begin(void *self, struct err *err)
{
	struct postgres *db = self;
	struct err why = { 0 };
	if (use(db, &why) == NULL)
		return err_set(err, why.status, "%s", why.text);
	err_status status = pg_session_command(db->session, "BEGIN", err);
	db->in_transaction = status == ERR_OK;
	return status;
}

// What is left of the transaction ends with the connection.
static void rollback(void *self)
{
	struct postgres *db = self;
	db->in_transaction = false;
	if (pg_session_get(db->session) != NULL &&
	    pg_session_command(db->session, "ROLLBACK", NULL) != ERR_OK)
		pg_session_drop(db->session);
}

static err_status commit(void *self, struct err *err)
{
	struct postgres *db = self;
	err_status status = pg_session_command(db->session, "COMMIT", err);
	db->in_transaction = false;
	if (status != ERR_OK)
		rollback(self);
	return status;
}

static enum sql_state tend(void *self, struct err *err)
{
	const struct postgres *db = self;
	return pg_session_tend(db->session, err);
}

static uint64_t connection(const void *self)
{
	const struct postgres *db = self;
	return pg_session_number(db->session);
}

const struct sql_driver postgres_driver = {
	.run = run,
	.begin = begin,
	.commit = commit,
	.rollback = rollback,
	.tend = tend,
	.connection = connection,
	.close = close_db,
};
