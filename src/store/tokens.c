// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include <sodium.h>

#define TOKEN_COLUMNS                                                                              \
	"id, subject, role, tenant, note, created_by, created_s, expires_s, revoked_s, "           \
	"last_used_s, tenant_uid"

void store_hash(struct str text, char out[STORE_HASH_HEX + 1])
{
	unsigned char hash[crypto_hash_sha256_BYTES];
	(void)crypto_hash_sha256(hash, (const unsigned char *)text.data, text.len);
	(void)sodium_bin2hex(out, STORE_HASH_HEX + 1, hash, sizeof hash);
}

err_status store_token_add(struct sql *sql, struct str hash_hex, const struct store_token *token,
			   struct err *err)
{
	ASSERT(hash_hex.len == STORE_HASH_HEX && token->id.len > 0);
	ASSERT((token->tenant.len == 0) == (token->tenant_uid.len == 0));
	const struct sql_value args[] = {
		sql_text(token->id),         sql_text(hash_hex),
		sql_text(token->subject),    sql_text(str_of(authz_role_name(token->role))),
		sql_text(token->tenant),     sql_text(token->note),
		sql_text(token->created_by), sql_int(token->created_s),
		sql_int(token->expires_s),   sql_text(token->tenant_uid),
	};
	return sql_run(sql,
		       "INSERT INTO tokens (id, hash, subject, role, tenant, note, created_by,"
		       " created_s, expires_s, revoked_s, last_used_s, tenant_uid)"
		       " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, 0, ?10)",
		       args, ARRAY_COUNT(args), NULL, NULL, err);
}

struct token_rows {
	struct arena *arena;
	struct store_token *tokens;
	size_t count, max;
	bool failed; // a row that we cannot have written, or no memory
};

static bool take_token(void *arg, const struct sql_value *columns, size_t column_count)
{
	struct token_rows *rows = arg;
	ASSERT(column_count == 11);
	if (rows->count == rows->max)
		return false;
	struct store_token *token = &rows->tokens[rows->count];
	struct str *const texts[] = { &token->id,     &token->subject, NULL,
				      &token->tenant, &token->note,    &token->created_by };
	token->tenant_uid = arena_dup(rows->arena, columns[10].text);
	rows->failed = rows->failed || !authz_role_parse(columns[2].text, &token->role) ||
		       token->tenant_uid.data == NULL;
	for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
		if (texts[i] == NULL)
			continue;
		*texts[i] = arena_dup(rows->arena, columns[i].text);
		rows->failed = rows->failed || texts[i]->data == NULL;
	}
	token->created_s = columns[6].number;
	token->expires_s = columns[7].number;
	token->revoked_s = columns[8].number;
	token->last_used_s = columns[9].number;
	rows->count++;
	return true;
}

static err_status find_one(struct sql *sql, struct arena *arena, const char *statement,
			   struct str key, struct store_token *ret_token, struct err *err)
{
	struct store_token token = { 0 };
	struct token_rows rows = { .arena = arena, .tokens = &token, .max = 1 };
	const struct sql_value args[] = { sql_text(key) };
	err_status status = sql_run(sql, statement, args, 1, take_token, &rows, err);
	if (status != ERR_OK)
		return status;
	if (rows.count == 0)
		return err_set(err, ERR_NOT_FOUND, "no such token");
	if (rows.failed)
		return err_set(err, ERR_INTERNAL, "the row of a token cannot be read");
	*ret_token = token;
	return ERR_OK;
}

err_status store_token_by_hash(struct sql *sql, struct arena *arena, struct str hash_hex,
			       struct store_token *ret_token, struct err *err)
{
	return find_one(sql, arena, "SELECT " TOKEN_COLUMNS " FROM tokens WHERE hash = ?1",
			hash_hex, ret_token, err);
}

err_status store_token_by_id(struct sql *sql, struct arena *arena, struct str id,
			     struct store_token *ret_token, struct err *err)
{
	return find_one(sql, arena, "SELECT " TOKEN_COLUMNS " FROM tokens WHERE id = ?1", id,
			ret_token, err);
}

err_status store_token_list(struct sql *sql, struct arena *arena, const struct store_page *page,
			    struct store_token **ret_tokens, size_t *ret_count, struct err *err)
{
	ASSERT(page->limit > 0 && page->limit <= STORE_PAGE_MAX);
	struct token_rows rows = { .arena = arena, .max = page->limit };
	rows.tokens = ARENA_ARRAY(arena, struct store_token, page->limit);
	if (rows.tokens == NULL)
		return err_set(err, ERR_LIMIT, "no memory for a page of tokens");
	const struct sql_value args[] = { sql_text(page->after), sql_text(page->tenant),
					  sql_int((int64_t)page->limit),
					  sql_text(page->tenant_uid) };
	err_status status = sql_run(sql,
				    "SELECT " TOKEN_COLUMNS " FROM tokens WHERE id > ?1"
				    " AND (?2 = '' OR tenant = ?2)"
				    " AND (?4 = '' OR tenant_uid = ?4) ORDER BY id LIMIT ?3",
				    args, ARRAY_COUNT(args), take_token, &rows, err);
	if (status != ERR_OK)
		return status;
	if (rows.failed)
		return err_set(err, ERR_INTERNAL, "the row of a token cannot be read");
	*ret_tokens = rows.tokens;
	*ret_count = rows.count;
	return ERR_OK;
}

err_status store_token_revoke(struct sql *sql, struct str id, int64_t now_s, struct err *err)
{
	const struct sql_value args[] = { sql_text(id), sql_int(now_s) };
	return sql_run(sql, "UPDATE tokens SET revoked_s = ?2 WHERE id = ?1 AND revoked_s = 0",
		       args, ARRAY_COUNT(args), NULL, NULL, err);
}

err_status store_token_revoke_all(struct sql *sql, struct str tenant, struct str subject,
				  int64_t now_s, int64_t *ret_count, struct err *err)
{
	ASSERT(tenant.len > 0);
	const struct sql_value args[] = { sql_text(tenant), sql_text(subject), sql_int(now_s) };
	err_status status = sql_run(sql,
				    "UPDATE tokens SET revoked_s = ?3 WHERE tenant = ?1"
				    " AND (?2 = '' OR subject = ?2) AND revoked_s = 0",
				    args, ARRAY_COUNT(args), NULL, NULL, err);
	if (status == ERR_OK && ret_count != NULL)
		*ret_count = sql_changes(sql);
	return status;
}

static bool take_count(void *arg, const struct sql_value *columns, size_t column_count)
{
	int64_t *count = arg;
	ASSERT(column_count == 1);
	*count = columns[0].number;
	return false;
}

err_status store_token_count(struct sql *sql, const struct store_token *like, int64_t now_s,
			     int64_t *ret_count, struct err *err)
{
	int64_t count = 0;
	const struct sql_value args[] = { sql_text(like->tenant), sql_text(like->tenant_uid),
					  sql_text(like->subject), sql_int(now_s) };
	err_status status = sql_run(sql,
				    "SELECT COUNT(*) FROM tokens WHERE tenant = ?1"
				    " AND tenant_uid = ?2 AND subject = ?3 AND revoked_s = 0"
				    " AND expires_s > ?4",
				    args, ARRAY_COUNT(args), take_count, &count, err);
	if (status == ERR_OK)
		*ret_count = count;
	return status;
}

err_status store_token_touch(struct sql *sql, struct str id, int64_t now_s, struct err *err)
{
	const struct sql_value args[] = { sql_text(id), sql_int(now_s) };
	return sql_run(sql, "UPDATE tokens SET last_used_s = ?2 WHERE id = ?1", args,
		       ARRAY_COUNT(args), NULL, NULL, err);
}
