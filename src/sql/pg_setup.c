// SPDX-License-Identifier: Apache-2.0
#include "sql/pg_setup.h"

#include "sys/clock.h"
#include "sys/fdwait.h"

#include <stdio.h>

enum { VERSION_MIN = 120000, LOCK_TRIES = 20, LOCK_TRY_MS = 25 };
#define NS_PER_MS UINT64_C(1000000)

// An installation is a schema of a database; the first number is ours alone.
#define LOCK_KEYS "1735423329, hashtext(current_schema())"
#define ENDS_OF_LOCK                                                                               \
	"l.locktype = 'advisory' AND l.classid = 1735423329 AND l.objsubid = 2 AND l.granted"      \
	" AND l.objid::bigint = (hashtext(current_schema())::bigint & 4294967295)"
#define START_US "(extract(epoch FROM backend_start) * 1000000)::bigint"

static err_status check_server(PGconn *conn, struct err *err)
{
	const char *encoding = PQparameterStatus(conn, "server_encoding");
	const char *standby = PQparameterStatus(conn, "in_hot_standby");
	const int version = PQserverVersion(conn);
	if (version < VERSION_MIN)
		return err_set(err, ERR_UNSUPPORTED, "PostgreSQL %d is too old, %d is the oldest",
			       version / 10000, VERSION_MIN / 10000);
	if (encoding == NULL || strcmp(encoding, "UTF8") != 0)
		return err_set(err, ERR_UNSUPPORTED,
			       "the database has the encoding %s; make it with ENCODING 'UTF8'",
			       encoding == NULL ? "?" : encoding);
	if (standby != NULL && strcmp(standby, "on") == 0)
		return err_set(err, ERR_UNAVAILABLE, "the database is a standby, it only reads");
	return ERR_OK;
}

// The database ends by itself what takes too long, also when we are gone. What the role or the
// database was given with ALTER ... SET statement_timeout stays.
static err_status set_limits(struct pg_session *session, struct pg_claim *claim, struct err *err)
{
	static const char settings[] =
		"SELECT set_config('lock_timeout', '5000', false),"
		" set_config('idle_in_transaction_session_timeout', '60000', false),"
		" set_config('tcp_keepalives_idle', '10', false),"
		" set_config('tcp_keepalives_interval', '3', false),"
		" set_config('tcp_keepalives_count', '3', false),"
		" set_config('default_transaction_isolation', 'read committed', false),"
		" set_config('synchronous_commit', CASE current_setting('synchronous_commit')"
		" WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false),"
		" set_config('statement_timeout', CASE current_setting('statement_timeout')"
		" WHEN '0' THEN '20000' ELSE current_setting('statement_timeout') END, false)";
	char answer[PG_ANSWER_BYTES] = "";
	err_status status = pg_session_ask(session, settings, NULL, 0, answer, err);
	if (status == ERR_OK)
		status = pg_session_ask(
			session, "SELECT setting FROM pg_settings WHERE name = 'statement_timeout'",
			NULL, 0, answer, err);
	if (status != ERR_OK)
		return status;
	if (!str_to_i64(str_of(answer), &claim->statement_timeout_ms))
		return err_set(err, ERR_PROTOCOL, "statement_timeout is \"%s\"", answer);
	return ERR_OK;
}

// A connection that broke may still hold the lock for us at the other end.
static err_status end_session_before(struct pg_session *session, const struct pg_claim *claim,
				     struct err *err)
{
	char pid[16], answer[PG_ANSWER_BYTES];
	if (claim->pid == 0)
		return ERR_OK;
	(void)snprintf(pid, sizeof pid, "%d", claim->pid);
	const char *const values[] = { pid, claim->started_us };
	return pg_session_ask(session,
			      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid ="
			      " $1::int AND " START_US " = $2::bigint",
			      values, 2, answer, err);
}

static err_status try_lock(struct pg_session *session, bool *ret_is_held, struct err *err)
{
	char answer[PG_ANSWER_BYTES] = "";
	err_status status = pg_session_ask(session, "SELECT pg_try_advisory_lock(" LOCK_KEYS ")",
					   NULL, 0, answer, err);
	if (status == ERR_OK && answer[0] == '\0')
		return err_set(err, ERR_NOT_FOUND, "the search_path names no schema that exists");
	*ret_is_held = answer[0] == 't';
	return status;
}

static err_status take_lock(struct pg_session *session, const struct pg_claim *claim,
			    struct err *err)
{
	const int tries = claim->pid == 0 ? 1 : LOCK_TRIES;
	char holder[PG_ANSWER_BYTES] = "";
	for (int i = 0; i < tries; i++) {
		bool is_held = false;
		err_status status = try_lock(session, &is_held, err);
		if (status != ERR_OK || is_held)
			return status;
		if (i + 1 < tries)
			(void)wait_fd(PQsocket(pg_session_get(session)), WAIT_READ,
				      clock_mono_ns() + LOCK_TRY_MS * NS_PER_MS);
	}
	err_status status = pg_session_ask(
		session,
		"SELECT coalesce(' from ' || host(a.client_addr), '') || ' since ' ||"
		" to_char(a.backend_start AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"
		" FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid WHERE " ENDS_OF_LOCK,
		NULL, 0, holder, err);
	if (status != ERR_OK)
		return status;
	return err_set(err, ERR_UNAVAILABLE,
		       "another program owns the database%s; only one gpuaas-server uses it at a "
		       "time, this one waits",
		       holder);
}

static err_status name_owner(struct pg_session *session, struct pg_claim *claim, struct err *err)
{
	const char *const values[] = { claim->instance };
	char owner[PG_ANSWER_BYTES] = "";
	err_status status = pg_session_ask(session,
					   "CREATE TABLE IF NOT EXISTS sql_owner (id BIGINT PRIMARY"
					   " KEY, instance TEXT COLLATE \"C\" NOT NULL)",
					   NULL, 0, owner, err);
	if (status == ERR_OK)
		status = pg_session_ask(session, "SELECT instance FROM sql_owner WHERE id = 1",
					NULL, 0, owner, err);
	if (status != ERR_OK)
		return status;
	claim->is_superseded = claim->is_confirmed && strcmp(owner, claim->instance) != 0;
	if (claim->is_superseded)
		return err_set(err, ERR_UNAVAILABLE,
			       "another program owned the database meanwhile; this one must be "
			       "started again");
	status = pg_session_ask(session,
				"INSERT INTO sql_owner (id, instance) VALUES (1, $1) ON CONFLICT"
				" (id) DO UPDATE SET instance = excluded.instance",
				values, 1, owner, err);
	claim->is_confirmed = claim->is_confirmed || status == ERR_OK;
	return status;
}

static err_status note_session(struct pg_session *session, struct pg_claim *claim, struct err *err)
{
	char answer[PG_ANSWER_BYTES] = "";
	err_status status = pg_session_ask(session,
					   "SELECT " START_US " FROM pg_stat_activity WHERE pid ="
					   " pg_backend_pid()",
					   NULL, 0, answer, err);
	if (status != ERR_OK)
		return status;
	(void)snprintf(claim->started_us, sizeof claim->started_us, "%.*s",
		       (int)sizeof claim->started_us - 1, answer);
	claim->pid = PQbackendPID(pg_session_get(session));
	return ERR_OK;
}

err_status pg_setup(struct pg_session *session, struct pg_claim *claim, struct err *err)
{
	err_status status = check_server(pg_session_get(session), err);
	if (status == ERR_OK)
		status = set_limits(session, claim, err);
	if (status == ERR_OK)
		status = end_session_before(session, claim, err);
	if (status == ERR_OK)
		status = take_lock(session, claim, err);
	if (status == ERR_OK)
		status = note_session(session, claim, err);
	if (status == ERR_OK)
		status = name_owner(session, claim, err);
	return status;
}
