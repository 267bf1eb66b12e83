// SPDX-License-Identifier: Apache-2.0
#include "sql/pg_session.h"

#include "sql/dialect.h"
#include "sql/pg_setup.h"
#include "sql/pg_target.h"
#include "sys/clock.h"
#include "sys/fdwait.h"
#include "sys/random.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	CONNECT_TIMEOUT_MS = 5000,
	USE_WAIT_MS = 500,     // that all uses together wait for one attempt
	GRACE_MS = 2000,       // beyond the time limit that the database keeps itself
	BACK_OFF_MIN_MS = 100, // doubled with each failure
	BACK_OFF_MAX_MS = 5000,
	FAILURES_COUNTED_MAX = 16,
};
#define NS_PER_MS UINT64_C(1000000)

struct pg_session {
	struct pg_target *target;
	PGconn *conn; // NULL: away
	bool is_ready;
	uint64_t number;
	unsigned awaits;        // of the attempt under way: what libpq waits for
	uint64_t give_up_ns;    // of the attempt under way
	uint64_t use_wait_ns;   // that uses may still wait for it
	uint64_t not_before_ns; // of the next attempt
	unsigned failures;
	struct pg_claim claim;
	struct err why; // it is away
};

// ---- losing it

void pg_session_drop(struct pg_session *session)
{
	PQfinish(session->conn);
	session->conn = NULL;
	session->is_ready = false;
}

// An attempt failed, for the reason in session->why.
static void postpone(struct pg_session *session)
{
	const uint64_t ms = (uint64_t)BACK_OFF_MIN_MS << session->failures;
	pg_session_drop(session);
	session->failures += session->failures < FAILURES_COUNTED_MAX ? 1 : 0;
	session->not_before_ns = clock_mono_ns() + min_u64(ms, BACK_OFF_MAX_MS) * NS_PER_MS;
}

static err_status lose(struct pg_session *session, err_status status, struct str how,
		       struct err *err)
{
	(void)err_set(&session->why, status, "the connection to the database %s is lost: " STR_FMT,
		      pg_target_name(session->target), STR_ARG(how));
	if (session->is_ready) { // else it belongs to an attempt, whose back-off grows
		session->failures = 0;
		session->not_before_ns = 0;
	}
	pg_session_drop(session);
	return err_set(err, status, "%s", session->why.text);
}

static err_status lose_broken(struct pg_session *session, struct err *err)
{
	return lose(session, ERR_UNAVAILABLE, STR("the other end closed it"), err);
}

// ---- making it

static void note_failure(struct pg_session *session)
{
	struct str message = { NULL, 0 };
	const struct str text = str_of(PQerrorMessage(session->conn));
	const struct str code = dialect_find_code(text, &message);
	const err_status status = code.len > 0 ? dialect_fault_of(code).status : ERR_UNAVAILABLE;
	pg_target_note(session->target, code.len > 0 ? message : str_trim(text), status,
		       &session->why);
}

static void begin_attempt(struct pg_session *session)
{
	session->number++;
	session->awaits = WAIT_WRITE;
	session->give_up_ns = clock_mono_ns() + CONNECT_TIMEOUT_MS * NS_PER_MS;
	session->use_wait_ns = USE_WAIT_MS * NS_PER_MS;
	session->conn = pg_target_start(session->target);
	ASSERT(session->conn != NULL); // else there is no memory at all
	if (PQstatus(session->conn) != CONNECTION_BAD)
		return;
	note_failure(session);
	postpone(session);
}

static void finish_attempt(struct pg_session *session)
{
	struct err err = { 0 };
	const err_status status = PQsetnonblocking(session->conn, 1) == 0
					  ? pg_setup(session, &session->claim, &err)
					  : lose_broken(session, &err);
	session->is_ready = status == ERR_OK;
	if (status == ERR_OK) {
		session->failures = 0;
		return;
	}
	pg_target_note(session->target, str_of(err.text),
		       status == ERR_TIMEOUT ? ERR_UNAVAILABLE : status, &session->why);
	postpone(session);
}

// Goes on with the attempt until it is through, failed, or the instant has come.
static void advance(struct pg_session *session, uint64_t until_ns)
{
	const uint64_t end_ns = min_u64(until_ns, session->give_up_ns);
	while (session->conn != NULL && !session->is_ready) {
		if (wait_fd(PQsocket(session->conn), session->awaits, end_ns) == 0) {
			if (clock_mono_ns() < session->give_up_ns)
				return;
			pg_target_note(session->target, STR("it does not answer"), ERR_UNAVAILABLE,
				       &session->why);
			postpone(session);
			return;
		}
		switch (PQconnectPoll(session->conn)) {
		case PGRES_POLLING_READING: session->awaits = WAIT_READ; break;
		case PGRES_POLLING_WRITING:
		case PGRES_POLLING_ACTIVE: session->awaits = WAIT_WRITE; break;
		case PGRES_POLLING_OK: finish_attempt(session); return;
		case PGRES_POLLING_FAILED:
			note_failure(session);
			postpone(session);
			return;
		}
	}
}

// What came while nobody asked: notices, and the end.
static void look(struct pg_session *session)
{
	struct err err;
	while (session->is_ready && wait_fd(PQsocket(session->conn), WAIT_READ, 0) != 0) {
		if (PQconsumeInput(session->conn) == 0 || PQstatus(session->conn) == CONNECTION_BAD)
			(void)lose_broken(session, &err);
	}
}

// Uses wait for an attempt only so long in all, so that a database that does not answer costs
// the loop no more.
static void make_ready(struct pg_session *session, uint64_t wait_ns)
{
	look(session);
	const uint64_t start_ns = clock_mono_ns();
	if (session->is_ready || session->claim.is_superseded)
		return;
	if (session->conn == NULL && start_ns < session->not_before_ns)
		return;
	if (session->conn == NULL)
		begin_attempt(session);
	advance(session, start_ns + min_u64(wait_ns, session->use_wait_ns));
	session->use_wait_ns -= min_u64(clock_mono_ns() - start_ns, session->use_wait_ns);
}

err_status pg_session_open(const char *url, struct pg_session **ret_session, struct err *err)
{
	struct pg_session *session = calloc(1, sizeof *session);
	if (session == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the database");
	err_status status = pg_target_new(url, &session->target, err);
	if (status == ERR_OK) {
		random_uuid(session->claim.instance);
		begin_attempt(session);
		advance(session, session->give_up_ns);
		if (!session->is_ready)
			status = err_set(err, session->why.status, "%s", session->why.text);
	}
	if (status != ERR_OK) {
		pg_session_free(session);
		return status;
	}
	*ret_session = session;
	return ERR_OK;
}

void pg_session_free(struct pg_session *session)
{
	if (session == NULL)
		return;
	PQfinish(session->conn);
	pg_target_free(session->target);
	free(session);
}

PGconn *pg_session_need(struct pg_session *session, struct err *err)
{
	make_ready(session, UINT64_MAX / 2);
	if (session->is_ready)
		return session->conn;
	(void)err_set(err, ERR_UNAVAILABLE, "%s", session->why.text);
	return NULL;
}

PGconn *pg_session_get(const struct pg_session *session) { return session->conn; }

enum sql_state pg_session_tend(struct pg_session *session, struct err *err)
{
	make_ready(session, 0);
	if (session->is_ready)
		return SQL_READY;
	(void)err_set(err, ERR_UNAVAILABLE, "%s", session->why.text);
	return session->claim.is_superseded ? SQL_LOST : SQL_AWAY;
}

uint64_t pg_session_number(const struct pg_session *session) { return session->number; }

// ---- statements

static uint64_t limit_ns(const struct pg_session *session)
{
	if (!session->is_ready)
		return session->give_up_ns;
	const uint64_t ms = (uint64_t)session->claim.statement_timeout_ms + GRACE_MS;
	return clock_mono_ns() + ms * NS_PER_MS;
}

err_status pg_session_result(struct pg_session *session, PGresult **ret_result, struct err *err)
{
	PGconn *conn = session->conn;
	if (conn == NULL)
		return err_set(err, ERR_UNAVAILABLE, "%s", session->why.text);
	const uint64_t until_ns = limit_ns(session);
	for (;;) {
		const int unsent = PQflush(conn);
		if (unsent < 0)
			return lose_broken(session, err);
		if (unsent == 0 && PQisBusy(conn) == 0)
			break;
		const unsigned events = unsent > 0 ? WAIT_READ | WAIT_WRITE : WAIT_READ;
		const unsigned ready = wait_fd(PQsocket(conn), events, until_ns);
		if (ready == 0)
			return lose(session, ERR_TIMEOUT, STR("it does not answer"), err);
		if ((ready & WAIT_READ) != 0 && PQconsumeInput(conn) == 0)
			return lose_broken(session, err);
	}
	*ret_result = PQgetResult(conn);
	return ERR_OK;
}

err_status pg_session_drain(struct pg_session *session, struct err *err)
{
	for (;;) {
		PGresult *result = NULL;
		err_status status = pg_session_result(session, &result, err);
		if (status != ERR_OK || result == NULL)
			return status;
		PQclear(result);
	}
}

err_status pg_session_fail(struct pg_session *session, const PGresult *result, const char *what,
			   struct err *err)
{
	const struct str code = str_of(PQresultErrorField(result, PG_DIAG_SQLSTATE));
	const struct str message = str_of(PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY));
	const struct dialect_fault fault = dialect_fault_of(code);
	if (fault.is_lost)
		return lose(session, fault.status, message, err);
	if (session->conn == NULL || PQstatus(session->conn) == CONNECTION_BAD)
		return lose_broken(session, err);
	struct str text = fault.note != NULL ? str_of(fault.note) : message;
	if (text.len == 0)
		text = str_trim(str_of(PQerrorMessage(session->conn)));
	return err_set(err, fault.status, "%s: " STR_FMT, what, STR_ARG(text));
}

// Takes all results of what was sent; fn sees each good one.
static err_status take_results(struct pg_session *session, const char *what,
			       bool (*fn)(void *arg, const PGresult *result), void *arg,
			       struct err *err)
{
	for (;;) {
		PGresult *result = NULL;
		err_status status = pg_session_result(session, &result, err);
		if (status != ERR_OK || result == NULL)
			return status;
		const ExecStatusType got = PQresultStatus(result);
		if (got != PGRES_COMMAND_OK && got != PGRES_TUPLES_OK)
			status = pg_session_fail(session, result, what, err);
		else if (!fn(arg, result))
			status = err_set(err, ERR_INTERNAL, "%s: the database did %s", what,
					 PQcmdStatus((PGresult *)(uintptr_t)result));
		PQclear(result);
		if (status != ERR_OK) {
			if (session->conn != NULL && pg_session_drain(session, NULL) != ERR_OK)
				ASSERT(session->conn == NULL);
			return status;
		}
	}
}

static bool is_done(void *arg, const PGresult *result)
{
	// PQcmdStatus changes nothing; it is older than const.
	return strcmp(PQcmdStatus((PGresult *)(uintptr_t)result), arg) == 0;
}

err_status pg_session_command(struct pg_session *session, const char *word, struct err *err)
{
	if (session->conn == NULL || PQsendQuery(session->conn, word) == 0)
		return lose_broken(session, err);
	return take_results(session, word, is_done, (void *)(uintptr_t)word, err);
}

static bool take_answer(void *arg, const PGresult *result)
{
	if (PQntuples(result) > 0 && PQgetisnull(result, 0, 0) == 0)
		(void)snprintf(arg, PG_ANSWER_BYTES, "%s", PQgetvalue(result, 0, 0));
	return true;
}

err_status pg_session_ask(struct pg_session *session, const char *text, const char *const *values,
			  int count, char answer[PG_ANSWER_BYTES], struct err *err)
{
	if (session->conn == NULL ||
	    PQsendQueryParams(session->conn, text, count, NULL, values, NULL, NULL, 0) == 0)
		return lose_broken(session, err);
	return take_results(session, "set-up", take_answer, answer, err);
}
