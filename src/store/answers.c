// SPDX-License-Identifier: Apache-2.0
#include "store/answers.h"

struct answer_row {
	struct arena *arena;
	struct str call_hash;
	struct kept_answer answer;
	bool found;
};

static bool take_answer(void *arg, const struct sql_value *columns, size_t column_count)
{
	struct answer_row *row = arg;
	ASSERT(column_count == 3);
	row->found = true;
	row->answer.status = (int)columns[1].number;
	row->answer.body = arena_dup(row->arena, columns[2].text);
	if (!str_eq(columns[0].text, row->call_hash))
		row->answer.state = ANSWER_MISMATCH;
	else
		row->answer.state = columns[1].number == 0 ? ANSWER_RUNNING : ANSWER_KEPT;
	return false;
}

err_status answers_begin(struct sql *sql, struct arena *arena, struct str key_hash,
			 struct str call_hash, int64_t now_s, struct kept_answer *ret_answer,
			 struct err *err)
{
	struct answer_row row = { .arena = arena, .call_hash = call_hash };
	const struct sql_value args[] = { sql_text(key_hash), sql_text(call_hash), sql_int(now_s) };
	err_status status =
		sql_run(sql,
			"INSERT INTO answers (key_hash, call_hash, status, body, created_s)"
			" VALUES (?1, ?2, 0, '', ?3) ON CONFLICT (key_hash) DO NOTHING",
			args, ARRAY_COUNT(args), NULL, NULL, err);
	if (status != ERR_OK)
		return status;
	if (sql_changes(sql) == 1) {
		*ret_answer = (struct kept_answer){ .state = ANSWER_NEW };
		return ERR_OK;
	}
	status = sql_run(sql, "SELECT call_hash, status, body FROM answers WHERE key_hash = ?1",
			 args, 1, take_answer, &row, err);
	if (status != ERR_OK)
		return status;
	if (!row.found)
		return err_set(err, ERR_UNAVAILABLE,
			       "the kept answer is just gone; repeat the call");
	*ret_answer = row.answer;
	return ERR_OK;
}

err_status answers_finish(struct sql *sql, struct str key_hash, int status, struct str body,
			  struct err *err)
{
	ASSERT(status > 0);
	const struct sql_value args[] = { sql_text(key_hash), sql_int(status), sql_text(body) };
	return sql_run(sql, "UPDATE answers SET status = ?2, body = ?3 WHERE key_hash = ?1", args,
		       ARRAY_COUNT(args), NULL, NULL, err);
}

err_status answers_forget(struct sql *sql, struct str key_hash, struct err *err)
{
	const struct sql_value args[] = { sql_text(key_hash) };
	return sql_run(sql, "DELETE FROM answers WHERE key_hash = ?1", args, ARRAY_COUNT(args),
		       NULL, NULL, err);
}

struct running_rows {
	struct arena *arena;
	struct str *hashes;
	size_t count, max_count;
};

static bool take_running(void *arg, const struct sql_value *columns, size_t column_count)
{
	struct running_rows *rows = arg;
	ASSERT(column_count == 1 && rows->count < rows->max_count);
	rows->hashes[rows->count] = arena_dup(rows->arena, columns[0].text);
	if (rows->hashes[rows->count].data != NULL)
		rows->count++;
	return true;
}

err_status answers_running(struct sql *sql, struct arena *arena, size_t max_count,
			   struct str **ret_hashes, size_t *ret_count, struct err *err)
{
	struct running_rows rows = { arena, ARENA_ARRAY(arena, struct str, max_count), 0,
				     max_count };
	const struct sql_value args[] = { sql_int((int64_t)max_count) };
	if (rows.hashes == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the calls under way");
	err_status status = sql_run(sql, "SELECT key_hash FROM answers WHERE status = 0 LIMIT ?1",
				    args, ARRAY_COUNT(args), take_running, &rows, err);
	if (status != ERR_OK)
		return status;
	*ret_hashes = rows.hashes;
	*ret_count = rows.count;
	return ERR_OK;
}

err_status answers_sweep(struct sql *sql, int64_t older_than_s, bool is_start, struct err *err)
{
	const struct sql_value args[] = { sql_int(older_than_s), sql_int(is_start ? 1 : 0) };
	return sql_run(sql, "DELETE FROM answers WHERE created_s < ?1 OR (status = 0 AND ?2 = 1)",
		       args, ARRAY_COUNT(args), NULL, NULL, err);
}
