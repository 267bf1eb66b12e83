// SPDX-License-Identifier: Apache-2.0
// One connection to PostgreSQL and how it is kept: made without blocking, set up, given the
// advisory lock that makes this program the database's owner, found lost and made again with a
// growing back-off. libpq is only called here and in sql_postgres.c; every wait has a limit. The
// owner of the session frees it. No text that leaves it holds the password.
#pragma once

#include "sql/driver.h"

#include <libpq-fe.h>

struct pg_session;

MUST_USE err_status pg_session_open(const char *url, struct pg_session **ret_session,
				    struct err *err);
void pg_session_free(struct pg_session *session); // NULL allowed

// The connection, ready for a statement outside of a transaction; NULL with the reason in err.
PGconn *pg_session_need(struct pg_session *session, struct err *err);
// The connection that is there, whatever its state; NULL: none.
PGconn *pg_session_get(const struct pg_session *session);
enum sql_state pg_session_tend(struct pg_session *session, struct err *err);
void pg_session_drop(struct pg_session *session); // what is open on it ends with it
// Counts connections: what was prepared on an earlier one is gone.
uint64_t pg_session_number(const struct pg_session *session);

// Sends what PQsend... has queued, and waits for the next result (NULL: no more), within the
// time limit of statements. An error is a session that is no more.
MUST_USE err_status pg_session_result(struct pg_session *session, PGresult **ret_result,
				      struct err *err);
// Reads what else is to come, so that the next statement can be sent.
MUST_USE err_status pg_session_drain(struct pg_session *session, struct err *err);
// Fills err with what a failed result means; gives the session up where it is of no more use.
err_status pg_session_fail(struct pg_session *session, const PGresult *result, const char *what,
			   struct err *err);
// BEGIN, COMMIT or ROLLBACK; something else that the database did instead is an error.
MUST_USE err_status pg_session_command(struct pg_session *session, const char *word,
				       struct err *err);
// For the set-up: one statement in the words of PostgreSQL with arguments as text. The first
// column of the first row lands in answer, cut; without a row or with NULL it stays as it is.
enum { PG_ANSWER_BYTES = 200 };
MUST_USE err_status pg_session_ask(struct pg_session *session, const char *text,
				   const char *const *values, int count,
				   char answer[PG_ANSWER_BYTES], struct err *err);
