// SPDX-License-Identifier: Apache-2.0
#include "ledger/ledger_priv.h"

// content is the event as it came; digest finds the same identity with another content.
static const char *const first[] = {
	"CREATE TABLE usage_events ("
	" source TEXT NOT NULL, boot TEXT NOT NULL, seq BIGINT NOT NULL, t_s BIGINT NOT NULL,"
	" type TEXT NOT NULL, gpu TEXT NOT NULL, tenant TEXT NOT NULL, pod_uid TEXT NOT NULL,"
	" container TEXT NOT NULL, disputed BIGINT NOT NULL, digest_high BIGINT NOT NULL,"
	" digest_low BIGINT NOT NULL, content TEXT NOT NULL, received_s BIGINT NOT NULL,"
	" PRIMARY KEY (source, boot, seq))",
	"CREATE INDEX usage_events_by_time ON usage_events (t_s, source, boot, seq)",
	"CREATE INDEX usage_events_by_allocation ON usage_events (gpu, pod_uid, container)",
	"CREATE TABLE usage_cursors ("
	" source TEXT PRIMARY KEY, boot TEXT NOT NULL, seq BIGINT NOT NULL,"
	" updated_s BIGINT NOT NULL)",
	"CREATE TABLE documents ("
	" kind TEXT NOT NULL, version BIGINT NOT NULL, content TEXT NOT NULL,"
	" created_s BIGINT NOT NULL, created_by TEXT NOT NULL, PRIMARY KEY (kind, version))",
	NULL,
};

const struct sql_migration ledger_migrations[] = {
	{ 1, first },
};
const size_t ledger_migration_count = ARRAY_COUNT(ledger_migrations);
