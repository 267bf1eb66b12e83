// SPDX-License-Identifier: Apache-2.0
// What the server keeps in SQL beside the ledger: access tokens (only their SHA-256), members of
// tenants, answers kept for idempotency keys, an index of requests that outlives their objects,
// and, where there is no Kubernetes, the objects themselves. The connection is the caller's, one
// thread uses it; rows found are copied to the caller's arena. ERR_NOT_FOUND is no such row.
#pragma once

#include "policy/authz.h"
#include "sql/sql.h"

// The tables; the caller applies them to its connection (sql_migrate, set "store").
extern const struct sql_migration store_migrations[];
extern const size_t store_migration_count;

enum { STORE_HASH_HEX = 64, STORE_TOKEN_ID_CHARS = 12, STORE_PAGE_MAX = 500 };

// SHA-256 in lower-case hex, terminated.
void store_hash(struct str text, char out[STORE_HASH_HEX + 1]);

struct store_token {
	struct str id;
	struct str subject;
	authz_role role;
	struct str tenant; // empty: none
	struct str note;
	struct str created_by;
	int64_t created_s, expires_s;
	int64_t revoked_s;   // 0: not
	int64_t last_used_s; // 0: never
	// Of the tenant's object: a later tenant of the same name is another one.
	struct str tenant_uid;
};

// ERR_CONFLICT when the hash or the id is there already.
MUST_USE err_status store_token_add(struct sql *sql, struct str hash_hex,
				    const struct store_token *token, struct err *err);
MUST_USE err_status store_token_by_hash(struct sql *sql, struct arena *arena, struct str hash_hex,
					struct store_token *ret_token, struct err *err);
MUST_USE err_status store_token_by_id(struct sql *sql, struct arena *arena, struct str id,
				      struct store_token *ret_token, struct err *err);

struct store_page {
	struct str tenant;     // empty: all
	struct str after;      // key of the last row of the page before; empty: begin
	size_t limit;          // <= STORE_PAGE_MAX
	struct str tenant_uid; // of tokens, empty: whatever the uid
};

// Ordered by id.
MUST_USE err_status store_token_list(struct sql *sql, struct arena *arena,
				     const struct store_page *page, struct store_token **ret_tokens,
				     size_t *ret_count, struct err *err);
MUST_USE err_status store_token_revoke(struct sql *sql, struct str id, int64_t now_s,
				       struct err *err);
// All tokens of a tenant, or of one subject in it; ret_count may be NULL.
MUST_USE err_status store_token_revoke_all(struct sql *sql, struct str tenant, struct str subject,
					   int64_t now_s, int64_t *ret_count, struct err *err);
// Tokens of one subject that are good now; of its tenant, or of the platform when that is empty.
MUST_USE err_status store_token_count(struct sql *sql, const struct store_token *like,
				      int64_t now_s, int64_t *ret_count, struct err *err);
MUST_USE err_status store_token_touch(struct sql *sql, struct str id, int64_t now_s,
				      struct err *err);

struct store_member {
	struct str tenant, user;
	authz_role role;
	int64_t created_s;
	struct str tenant_uid;
};

// One row a user and tenant's name; what a tenant of another uid left is written over.
MUST_USE err_status store_member_put(struct sql *sql, const struct store_member *member,
				     struct err *err);
MUST_USE err_status store_member_find(struct sql *sql, struct arena *arena, struct str tenant,
				      struct str tenant_uid, struct str user,
				      struct store_member *ret_member, struct err *err);
MUST_USE err_status store_member_remove(struct sql *sql, struct str tenant, struct str user,
					struct err *err);
MUST_USE err_status store_member_remove_all(struct sql *sql, struct str tenant, struct err *err);
// Ordered by user.
MUST_USE err_status store_member_list(struct sql *sql, struct arena *arena,
				      const struct store_page *page,
				      struct store_member **ret_members, size_t *ret_count,
				      struct err *err);
