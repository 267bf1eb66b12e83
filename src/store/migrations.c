// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

static const char *const first[] = {
	"CREATE TABLE tokens ("
	" id TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, subject TEXT NOT NULL, role TEXT NOT "
	"NULL,"
	" tenant TEXT NOT NULL, note TEXT NOT NULL, created_by TEXT NOT NULL,"
	" created_s BIGINT NOT NULL, expires_s BIGINT NOT NULL, revoked_s BIGINT NOT NULL,"
	" last_used_s BIGINT NOT NULL)",
	"CREATE INDEX tokens_of_tenant ON tokens (tenant, subject)",
	"CREATE TABLE members ("
	" tenant TEXT NOT NULL, member TEXT NOT NULL, role TEXT NOT NULL, created_s BIGINT NOT "
	"NULL,"
	" PRIMARY KEY (tenant, member))",
	"CREATE TABLE answers ("
	" key_hash TEXT PRIMARY KEY, call_hash TEXT NOT NULL, status BIGINT NOT NULL,"
	" body TEXT NOT NULL, created_s BIGINT NOT NULL)",
	"CREATE INDEX answers_by_age ON answers (created_s)",
	"CREATE TABLE request_history ("
	" uid TEXT PRIMARY KEY, id TEXT NOT NULL, tenant TEXT NOT NULL, created_s BIGINT NOT NULL,"
	" state TEXT NOT NULL, json TEXT NOT NULL)",
	"CREATE INDEX request_history_by_id ON request_history (id, created_s)",
	"CREATE TABLE objects ("
	" kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, json TEXT NOT NULL,"
	" PRIMARY KEY (kind, namespace, name))",
	NULL,
};

// Rows from before have no uid and speak for no tenant any more: what they were made for is not
// known, so members and tokens of tenants are made anew.
static const char *const of_one_tenant[] = {
	"ALTER TABLE tokens ADD COLUMN tenant_uid TEXT NOT NULL DEFAULT ''",
	"ALTER TABLE members ADD COLUMN tenant_uid TEXT NOT NULL DEFAULT ''",
	NULL,
};

const struct sql_migration store_migrations[] = {
	{ 1, first },
	{ 2, of_one_tenant },
};
const size_t store_migration_count = ARRAY_COUNT(store_migrations);
