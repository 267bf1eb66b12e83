// SPDX-License-Identifier: Apache-2.0
#include "ledger/ledger_priv.h"

#include <stdio.h>
#include <stdlib.h>

enum { ARENA_BYTES = 64 * 1024 * 1024 };

err_status ledger_open(struct sql *sql, struct ledger **ret_ledger, struct err *err)
{
	ASSERT(sql != NULL);
	err_status status =
		sql_migrate(sql, "ledger", ledger_migrations, ledger_migration_count, err);
	if (status != ERR_OK)
		return status;
	struct ledger *ledger = calloc(1, sizeof *ledger);
	if (ledger == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the ledger");
	ledger->sql = sql;
	*ret_ledger = ledger;
	return ERR_OK;
}

void ledger_free(struct ledger *ledger) { free(ledger); }

struct ledger_counts ledger_counts_get(const struct ledger *ledger) { return ledger->counts; }

void ledger_owner_set(struct ledger *ledger, ledger_owner_fn *fn, void *arg)
{
	ASSERT(ledger != NULL);
	ledger->owner = fn;
	ledger->owner_arg = arg;
}

static bool take_digest(void *arg, const struct sql_value *columns, size_t column_count)
{
	ASSERT(column_count == 2);
	*(struct event_digest *)arg =
		(struct event_digest){ (uint64_t)columns[0].number, (uint64_t)columns[1].number };
	return false;
}

// An event of this identity is there; it must have the same content.
static err_status check_content(struct ledger *ledger, const struct event *event, struct err *err)
{
	const struct event_digest digest = event_digest_of(event);
	struct event_digest known = { 0, 0 };
	struct sql_value args[] = { sql_text(event->source), sql_text(event->boot),
				    sql_int(event->seq) };
	err_status status = sql_run(ledger->sql,
				    "SELECT digest_high, digest_low FROM usage_events"
				    " WHERE source = ?1 AND boot = ?2 AND seq = ?3",
				    args, 3, take_digest, &known, err);
	if (status == ERR_OK && (digest.high != known.high || digest.low != known.low))
		return err_set(err, ERR_CONFLICT,
			       "event " STR_FMT "/" STR_FMT "/%lld is in the ledger with another "
			       "content",
			       STR_ARG(event->source), STR_ARG(event->boot), (long long)event->seq);
	return status;
}

struct told {
	struct arena *arena;
	const struct event *event;
	bool contradicts;
};

// Compares with what was told before of the same allocation.
static bool take_told(void *arg, const struct sql_value *columns, size_t column_count)
{
	ASSERT(column_count == 1);
	struct told *told = arg;
	const struct event *event = told->event;
	struct event other;
	if (event_parse(told->arena, columns[0].text, &other, NULL) != ERR_OK)
		return true; // of an older version; it no longer counts
	bool both_name_tenant = event_has(event, EVENT_F_TENANT) &&
				event_has(&other, EVENT_F_TENANT);
	if (both_name_tenant && !str_eq(event->tenant, other.tenant))
		told->contradicts = true;
	if (other.type == event->type && other.t_s != event->t_s)
		told->contradicts = true;
	if (other.type == event->type &&
	    (other.share_num != event->share_num || other.share_den != event->share_den))
		told->contradicts = true;
	return !told->contradicts;
}

// An allocation is told once, or alike by several sources. What contradicts an earlier word on it
// would make every later bill fail: it is set aside. A release that comes before its binding is
// kept, because sources do not wait for each other; a bill leaves it out until the binding is
// there.
static err_status is_disputed(struct ledger *ledger, struct arena *arena, const struct event *event,
			      bool *ret_disputed, struct err *err)
{
	*ret_disputed = false;
	if (event->type != EVENT_BOUND && event->type != EVENT_RELEASED)
		return ERR_OK;
	struct told told = { .arena = arena, .event = event };
	struct sql_value args[] = { sql_text(event->gpu), sql_text(event->pod_uid),
				    sql_text(event->container) };
	err_status status = sql_run(ledger->sql,
				    "SELECT content FROM usage_events WHERE gpu = ?1 AND"
				    " pod_uid = ?2 AND container = ?3 AND disputed = 0"
				    " AND type IN ('bound', 'released')",
				    args, 3, take_told, &told, err);
	*ret_disputed = told.contradicts;
	return status;
}

static err_status take_event(struct ledger *ledger, struct arena *arena, const struct event *event,
			     struct str line, int64_t now_s, struct err *err)
{
	bool disputed = false;
	err_status status = is_disputed(ledger, arena, event, &disputed, err);
	if (status != ERR_OK)
		return status;
	struct event_digest digest = event_digest_of(event);
	struct sql_value args[] = {
		sql_text(event->source),
		sql_text(event->boot),
		sql_int(event->seq),
		sql_int(event->t_s),
		sql_text(str_of(event_type_name(event->type))),
		sql_text(event->gpu),
		sql_text(event->tenant),
		sql_text(event->pod_uid),
		sql_text(event->container),
		sql_int(disputed ? 1 : 0),
		sql_int((int64_t)digest.high),
		sql_int((int64_t)digest.low),
		sql_text(line),
		sql_int(now_s),
	};
	status = sql_run(
		ledger->sql,
		"INSERT INTO usage_events (source, boot, seq, t_s, type, gpu, tenant,"
		" pod_uid, container, disputed, digest_high, digest_low, content, received_s)"
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
		" ON CONFLICT (source, boot, seq) DO NOTHING",
		args, ARRAY_COUNT(args), NULL, NULL, err);
	if (status != ERR_OK)
		return status;
	if (sql_changes(ledger->sql) == 0) {
		ledger->counts.duplicates++;
		return check_content(ledger, event, err);
	}
	ledger->counts.events++;
	ledger->counts.disputed += disputed ? 1 : 0;
	return ERR_OK;
}

static bool take_found(void *arg, const struct sql_value *columns, size_t column_count)
{
	(void)columns;
	ASSERT(column_count == 1);
	*(bool *)arg = true;
	return false;
}

// The owner is asked first: it answers from memory. source is no bare column here, so that the
// database looks by GPU and not through all that the source ever sent.
static err_status check_owner(struct ledger *ledger, const struct event *event, struct err *err)
{
	struct err why = { 0 };
	bool is_named_before = false;
	err_status owned = ledger->owner(ledger->owner_arg, event->source, event->gpu, &why);
	if (owned == ERR_OK)
		return ERR_OK;
	struct sql_value args[] = { sql_text(event->gpu), sql_text(event->source) };
	err_status status = sql_run(ledger->sql,
				    "SELECT 1 FROM usage_events WHERE gpu = ?1"
				    " AND source || '' = ?2 LIMIT 1",
				    args, 2, take_found, &is_named_before, err);
	if (status != ERR_OK || is_named_before)
		return status;
	return err_set(err, owned, "%s", why.text);
}

static err_status take_line(struct ledger *ledger, struct arena *arena, struct str source,
			    struct str line, struct ledger_cursor *cursor, int64_t now_s,
			    struct err *err)
{
	struct event event;
	err_status status = event_parse(arena, line, &event, err);
	if (status != ERR_OK)
		return status;
	if (source.len > 0 && !str_eq(event.source, source))
		return err_set(err, ERR_DENIED,
			       "source \"" STR_FMT "\" is not yours: you speak for \"" STR_FMT "\"",
			       STR_ARG(event.source), STR_ARG(source));
	if (event.boot.len > LEDGER_BOOT_MAX_BYTES)
		return err_set(err, ERR_INVALID, "boot has %zu bytes, at most %d", event.boot.len,
			       LEDGER_BOOT_MAX_BYTES);
	if (event.t_s > now_s + LEDGER_AHEAD_MAX_S)
		return err_set(err, ERR_INVALID,
			       "t is %lld s in the future, at most %d are taken: set the clock of "
			       "the source right",
			       (long long)(event.t_s - now_s), LEDGER_AHEAD_MAX_S);
	if (source.len > 0 && ledger->owner != NULL)
		status = check_owner(ledger, &event, err);
	if (status != ERR_OK)
		return status;
	status = take_event(ledger, arena, &event, line, now_s, err);
	if (status == ERR_OK) {
		(void)snprintf(cursor->boot, sizeof cursor->boot, STR_FMT, STR_ARG(event.boot));
		cursor->seq = event.seq;
	}
	return status;
}

static err_status take_lines(struct ledger *ledger, struct str source, struct str lines,
			     struct ledger_cursor *cursor, int64_t now_s, struct err *err)
{
	AUTO(arena_freep) struct arena *arena = arena_new(ARENA_BYTES);
	if (arena == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the batch");
	struct str rest = lines, line;
	for (size_t number = 1; str_split_next(&rest, '\n', &line); number++) {
		line = str_trim(line);
		if (line.len == 0)
			continue;
		arena_reset(arena);
		err_status status = take_line(ledger, arena, source, line, cursor, now_s, err);
		if (status != ERR_OK)
			return err == NULL ? status : err_wrap(err, "line %zu", number);
	}
	return ERR_OK;
}

static bool take_cursor(void *arg, const struct sql_value *columns, size_t column_count)
{
	ASSERT(column_count == 2);
	struct ledger_cursor *cursor = arg;
	(void)snprintf(cursor->boot, sizeof cursor->boot, STR_FMT, STR_ARG(columns[0].text));
	cursor->seq = columns[1].number;
	return false;
}

static err_status load_cursor(struct ledger *ledger, struct str source,
			      struct ledger_cursor *ret_cursor, struct err *err)
{
	struct sql_value args[] = { sql_text(source) };
	return sql_run(ledger->sql, "SELECT boot, seq FROM usage_cursors WHERE source = ?1", args,
		       1, take_cursor, ret_cursor, err);
}

static err_status save_cursor(struct ledger *ledger, struct str source,
			      const struct ledger_cursor *cursor, int64_t now_s, struct err *err)
{
	struct sql_value args[] = { sql_text(source), sql_text(str_of(cursor->boot)),
				    sql_int(cursor->seq), sql_int(now_s) };
	return sql_run(ledger->sql,
		       "INSERT INTO usage_cursors (source, boot, seq, updated_s)"
		       " VALUES (?1, ?2, ?3, ?4) ON CONFLICT (source) DO UPDATE"
		       " SET boot = ?2, seq = ?3, updated_s = ?4",
		       args, 4, NULL, NULL, err);
}

err_status ledger_append(struct ledger *ledger, struct str source, struct str lines, int64_t now_s,
			 struct ledger_cursor *ret_cursor, struct err *err)
{
	ASSERT(ledger != NULL && ret_cursor != NULL);
	if (lines.len > LEDGER_BATCH_MAX_BYTES)
		return err_set(err, ERR_LIMIT, "a batch has at most %d bytes; send it in parts",
			       LEDGER_BATCH_MAX_BYTES);
	struct ledger_counts before = ledger->counts;
	struct ledger_cursor cursor = { .boot = "" };
	err_status status = sql_begin(ledger->sql, err);
	if (status != ERR_OK)
		return status;
	status = load_cursor(ledger, source, &cursor, err);
	if (status == ERR_OK)
		status = take_lines(ledger, source, lines, &cursor, now_s, err);
	if (status == ERR_OK && source.len > 0 && cursor.boot[0] != '\0')
		status = save_cursor(ledger, source, &cursor, now_s, err);
	if (status == ERR_OK)
		status = sql_commit(ledger->sql, err);
	else
		sql_rollback(ledger->sql);
	if (status != ERR_OK) {
		ledger->counts = before;
		return status;
	}
	*ret_cursor = cursor;
	return ERR_OK;
}
