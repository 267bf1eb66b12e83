// SPDX-License-Identifier: Apache-2.0
#include "sql/pg_target.h"

#include "sql/url.h"

#include <stdlib.h>
#include <string.h>

enum { OPTIONS_MAX = 80, NAME_MAX_BYTES = 160, MESSAGE_MAX_BYTES = 400 };

struct pg_target {
	PQconninfoOption *options;
	const char *keywords[OPTIONS_MAX + 1], *values[OPTIONS_MAX + 1];
	size_t count;
	char name[NAME_MAX_BYTES];
};

// What holds where the URL says nothing. Kerberos is asked for only on demand, because its
// library blocks; the figures find a peer that is gone within about 20 s.
static const struct {
	const char *keyword, *value, *variable;
} defaults[] = {
	{ "sslmode", "require", "PGSSLMODE" },       { "application_name", "gpuaas", "PGAPPNAME" },
	{ "gssencmode", "disable", "PGGSSENCMODE" }, { "keepalives_idle", "10", NULL },
	{ "keepalives_interval", "3", NULL },        { "keepalives_count", "3", NULL },
	{ "tcp_user_timeout", "10000", NULL },
};

static void add(struct pg_target *target, const char *keyword, const char *value)
{
	ASSERT(target->count < OPTIONS_MAX);
	target->keywords[target->count] = keyword;
	target->values[target->count] = value;
	target->count++;
}

static const char *value_of(const struct pg_target *target, const char *keyword)
{
	for (size_t i = 0; i < target->count; i++) {
		if (strcmp(target->keywords[i], keyword) == 0)
			return target->values[i];
	}
	return NULL;
}

static void fill(struct pg_target *target)
{
	for (const PQconninfoOption *o = target->options; o->keyword != NULL; o++) {
		if (o->val != NULL && strcmp(o->keyword, "client_encoding") != 0)
			add(target, o->keyword, o->val);
	}
	add(target, "client_encoding", "UTF8");
	for (size_t i = 0; i < ARRAY_COUNT(defaults); i++) {
		const char *variable = defaults[i].variable;
		if (value_of(target, defaults[i].keyword) == NULL &&
		    (variable == NULL || getenv(variable) == NULL))
			add(target, defaults[i].keyword, defaults[i].value);
	}
}

err_status pg_target_new(const char *url, struct pg_target **ret_target, struct err *err)
{
	struct str inner;
	err_status status = url_check_postgres(str_of(url), &inner, err);
	if (status != ERR_OK)
		return status;
	struct pg_target *target = calloc(1, sizeof *target);
	if (target == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the database");
	AUTO(buf_done) struct buf name = { .limit = NAME_MAX_BYTES - 1 };
	url_show(inner, &name);
	const struct str shown = buf_ok(&name) ? buf_str(&name) : STR("postgres:...");
	memcpy(target->name, shown.data, shown.len);
	target->options = PQconninfoParse(inner.data, NULL); // ends where url ends
	if (target->options == NULL) {
		pg_target_free(target);
		return err_set(err, ERR_INVALID,
			       "the URL of PostgreSQL has a parameter that libpq does not know, or "
			       "a %% without two hexadecimal digits");
	}
	fill(target);
	*ret_target = target;
	return ERR_OK;
}

void pg_target_free(struct pg_target *target)
{
	if (target == NULL)
		return;
	PQconninfoFree(target->options);
	free(target);
}

const char *pg_target_name(const struct pg_target *target) { return target->name; }

static void drop_notice(void *arg, const char *text)
{
	(void)arg;
	(void)text;
}

PGconn *pg_target_start(const struct pg_target *target)
{
	PGconn *conn = PQconnectStartParams(target->keywords, target->values, 0);
	if (conn == NULL)
		return NULL;
	(void)PQsetNoticeProcessor(conn, drop_notice, NULL); // else it prints them
	(void)PQsetErrorVerbosity(conn, PQERRORS_VERBOSE);   // brings the code along
	return conn;
}

// libpq does not repeat a password, as far as known; that stays so whatever it does.
static struct str without_secrets(const struct pg_target *target, struct str rest, struct buf *out)
{
	static const char *const secrets[] = { "password", "sslpassword" };
	while (rest.len > 0) {
		size_t taken = 0;
		for (size_t i = 0; taken == 0 && i < ARRAY_COUNT(secrets); i++) {
			const struct str secret = str_of(value_of(target, secrets[i]));
			if (secret.len > 0 && str_starts(rest, secret))
				taken = secret.len;
		}
		if (taken > 0)
			buf_put_c(out, "***");
		else
			buf_put_byte(out, rest.data[0] < ' ' ? ' ' : rest.data[0]);
		rest = str_slice(rest, max_size(taken, 1), rest.len);
	}
	return buf_str(out);
}

void pg_target_note(const struct pg_target *target, struct str message, err_status status,
		    struct err *err)
{
	AUTO(buf_done) struct buf clean = { .limit = MESSAGE_MAX_BYTES };
	// A line that begins with a tab is advice to people at a terminal.
	struct str cut = str_slice(message, 0, MESSAGE_MAX_BYTES / 2);
	for (size_t i = 0; i + 1 < cut.len; i++) {
		if (cut.data[i] == '\n' && cut.data[i + 1] == '\t')
			cut.len = i;
	}
	const struct str text = without_secrets(target, cut, &clean);
	(void)err_set(err, status, "the database %s takes no connection: " STR_FMT, target->name,
		      STR_ARG(text));
}
