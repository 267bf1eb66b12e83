// SPDX-License-Identifier: Apache-2.0
#include "store/history.h"

err_status history_put(struct sql *sql, const struct history_row *row, struct err *err)
{
	ASSERT(row->uid.len > 0 && row->id.len > 0);
	const struct sql_value args[] = { sql_text(row->uid),    sql_text(row->id),
					  sql_text(row->tenant), sql_int(row->created_s),
					  sql_text(row->state),  sql_text(row->json) };
	return sql_run(sql,
		       "INSERT INTO request_history (uid, id, tenant, created_s, state, json)"
		       " VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (uid) DO UPDATE SET"
		       " state = excluded.state, json = excluded.json",
		       args, ARRAY_COUNT(args), NULL, NULL, err);
}

struct found_row {
	struct arena *arena;
	struct history_row row;
	bool found;
};

static bool take_history(void *arg, const struct sql_value *columns, size_t column_count)
{
	struct found_row *found = arg;
	ASSERT(column_count == 6);
	found->found = true;
	found->row = (struct history_row){
		.uid = arena_dup(found->arena, columns[0].text),
		.id = arena_dup(found->arena, columns[1].text),
		.tenant = arena_dup(found->arena, columns[2].text),
		.created_s = columns[3].number,
		.state = arena_dup(found->arena, columns[4].text),
		.json = arena_dup(found->arena, columns[5].text),
	};
	return false;
}

err_status history_find(struct sql *sql, struct arena *arena, struct str id,
			struct history_row *ret_row, struct err *err)
{
	struct found_row found = { .arena = arena };
	const struct sql_value args[] = { sql_text(id) };
	err_status status = sql_run(sql,
				    "SELECT uid, id, tenant, created_s, state, json"
				    " FROM request_history WHERE id = ?1"
				    " ORDER BY created_s DESC LIMIT 1",
				    args, ARRAY_COUNT(args), take_history, &found, err);
	if (status != ERR_OK)
		return status;
	if (!found.found)
		return err_set(err, ERR_NOT_FOUND, "no request " STR_FMT, STR_ARG(id));
	if (found.row.json.data == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the request");
	*ret_row = found.row;
	return ERR_OK;
}

err_status object_put(struct sql *sql, const struct object_row *row, bool must_be_new,
		      struct err *err)
{
	const struct sql_value args[] = { sql_text(row->kind), sql_text(row->namespace_),
					  sql_text(row->name), sql_text(row->json) };
	return sql_run(sql,
		       must_be_new ? "INSERT INTO objects (kind, namespace, name, json)"
				     " VALUES (?1, ?2, ?3, ?4)"
				   : "INSERT INTO objects (kind, namespace, name, json)"
				     " VALUES (?1, ?2, ?3, ?4) ON CONFLICT (kind, namespace, name)"
				     " DO UPDATE SET json = excluded.json",
		       args, ARRAY_COUNT(args), NULL, NULL, err);
}

err_status object_remove(struct sql *sql, struct str kind, struct str namespace_, struct str name,
			 struct err *err)
{
	const struct sql_value args[] = { sql_text(kind), sql_text(namespace_), sql_text(name) };
	return sql_run(sql, "DELETE FROM objects WHERE kind = ?1 AND namespace = ?2 AND name = ?3",
		       args, ARRAY_COUNT(args), NULL, NULL, err);
}

struct each {
	object_row_fn *fn;
	void *arg;
};

static bool give_object(void *arg, const struct sql_value *columns, size_t column_count)
{
	struct each *each = arg;
	ASSERT(column_count == 4);
	struct object_row row = { columns[0].text, columns[1].text, columns[2].text,
				  columns[3].text };
	each->fn(each->arg, &row);
	return true;
}

err_status object_each(struct sql *sql, object_row_fn *fn, void *arg, struct err *err)
{
	struct each each = { fn, arg };
	return sql_run(sql,
		       "SELECT kind, namespace, name, json FROM objects"
		       " ORDER BY kind, namespace, name",
		       NULL, 0, give_object, &each, err);
}
