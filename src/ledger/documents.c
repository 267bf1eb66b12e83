// SPDX-License-Identifier: Apache-2.0
#include "billing/book.h"
#include "ledger/ledger_priv.h"

enum { ARENA_BYTES = 64 * 1024 * 1024, EXPORT_PART_ROWS = 5000 };

const char *ledger_document_name(ledger_document kind)
{
	static const char *const names[] = { "assets", "prices", "pools" };
	ASSERT((size_t)kind < ARRAY_COUNT(names));
	return names[kind];
}

static err_status check(ledger_document kind, struct str json, struct err *err)
{
	AUTO(arena_freep) struct arena *arena = arena_new(ARENA_BYTES);
	if (arena == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the document");
	struct assets assets;
	struct prices prices;
	struct pools pools;
	switch (kind) {
	case LEDGER_ASSETS: return book_parse_assets(arena, json, &assets, err);
	case LEDGER_PRICES: return book_parse_prices(arena, json, &prices, err);
	case LEDGER_POOLS: return book_parse_pools(arena, json, &pools, err);
	}
	return err_set(err, ERR_INTERNAL, "unknown kind of document");
}

err_status ledger_document_put(struct ledger *ledger, ledger_document kind, struct str json,
			       struct str user, int64_t now_s, struct err *err)
{
	err_status status = check(kind, json, err);
	if (status != ERR_OK)
		return status;
	struct sql_value args[] = { sql_text(str_of(ledger_document_name(kind))), sql_text(json),
				    sql_int(now_s), sql_text(user) };
	return sql_run(ledger->sql,
		       "INSERT INTO documents (kind, version, content, created_s, created_by)"
		       " VALUES (?1, 1 + (SELECT coalesce(max(version), 0) FROM documents"
		       " WHERE kind = ?1), ?2, ?3, ?4)",
		       args, 4, NULL, NULL, err);
}

struct found {
	struct arena *arena;
	struct str json;
};

static bool take_document(void *arg, const struct sql_value *columns, size_t column_count)
{
	ASSERT(column_count == 1);
	struct found *found = arg;
	found->json = arena_dup(found->arena, columns[0].text);
	return false;
}

err_status ledger_document_get(struct ledger *ledger, ledger_document kind, struct arena *arena,
			       struct str *ret_json, struct err *err)
{
	struct found found = { arena, { NULL, 0 } };
	struct sql_value args[] = { sql_text(str_of(ledger_document_name(kind))) };
	err_status status = sql_run(ledger->sql,
				    "SELECT content FROM documents WHERE kind = ?1"
				    " ORDER BY version DESC LIMIT 1",
				    args, 1, take_document, &found, err);
	if (status != ERR_OK)
		return status;
	if (found.json.data == NULL)
		return err_set(err, ERR_NOT_FOUND,
			       "no %s have been put yet; an admin does it with "
			       "POST /v1/%s",
			       ledger_document_name(kind), ledger_document_name(kind));
	*ret_json = found.json;
	return ERR_OK;
}

// Behind which a part of an export begins.
struct place {
	int64_t t_s, seq;
	struct str source, boot;
};

struct export
{
	ledger_line_fn *fn;
	void *arg;
	struct arena *arena; // of places
	struct place place;
	size_t rows; // of this part
	bool is_stopped;
};

static bool pass_line(void *arg, const struct sql_value *columns, size_t column_count)
{
	ASSERT(column_count == 5);
	struct export *export = arg;
	if (++export->rows == EXPORT_PART_ROWS)
		export->place = (struct place){ .t_s = columns[1].number,
						.seq = columns[4].number,
						.source = arena_dup(export->arena, columns[2].text),
						.boot = arena_dup(export->arena, columns[3].text) };
	export->is_stopped = !export->fn(export->arg, columns[0].text);
	return !export->is_stopped;
}

static err_status export_part(struct ledger *ledger, int64_t to_s, struct str tenant,
			      struct export *export, struct err *err)
{
	struct sql_value args[] = { sql_int(export->place.t_s),
				    sql_text(export->place.source),
				    sql_text(export->place.boot),
				    sql_int(export->place.seq),
				    sql_int(to_s),
				    sql_text(tenant),
				    sql_int(EXPORT_PART_ROWS) };
	export->rows = 0;
	return sql_run(ledger->sql,
		       "SELECT content, t_s, source, boot, seq FROM usage_events"
		       " WHERE (t_s, source, boot, seq) > (?1, ?2, ?3, ?4) AND t_s < ?5"
		       " AND disputed = 0 AND (?6 = '' OR tenant = ?6)"
		       " ORDER BY t_s, source, boot, seq LIMIT ?7",
		       args, ARRAY_COUNT(args), pass_line, export, err);
}

// In parts, so that no statement meets the time limit of a database, however long the ledger is.
err_status ledger_export(struct ledger *ledger, int64_t from_s, int64_t to_s, struct str tenant,
			 ledger_line_fn *fn, void *arg, struct err *err)
{
	AUTO(arena_freep) struct arena *arena = arena_new(ARENA_BYTES);
	// A source is never empty: behind this place comes the first event of from_s.
	struct export export = {
		.fn = fn, .arg = arg, .arena = arena, .place = { from_s, 0, STR(""), STR("") }
	};
	if (arena == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the export");
	do {
		err_status status = export_part(ledger, to_s, tenant, &export, err);
		if (status != ERR_OK)
			return status;
		if (export.place.source.data == NULL || export.place.boot.data == NULL)
			return err_set(err, ERR_LIMIT, "no memory for the export");
	} while (!export.is_stopped && export.rows == EXPORT_PART_ROWS);
	return ERR_OK;
}
