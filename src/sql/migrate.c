// SPDX-License-Identifier: Apache-2.0
#include "sql/sql.h"

#include <inttypes.h>

static bool take_version(void *arg, const struct sql_value *columns, size_t column_count)
{
	ASSERT(column_count == 1);
	*(int64_t *)arg = columns[0].number;
	return true;
}

static err_status apply(struct sql *sql, const char *set, const struct sql_migration *migration,
			struct err *err)
{
	err_status status = ERR_OK;
	for (const char *const *s = migration->statements; *s != NULL && status == ERR_OK; s++)
		status = sql_run(sql, *s, NULL, 0, NULL, NULL, err);
	if (status != ERR_OK)
		return status;
	struct sql_value args[] = { sql_text(str_of(set)), sql_int(migration->version) };
	return sql_run(sql, "INSERT INTO schema_version (part, version) VALUES (?1, ?2)", args, 2,
		       NULL, NULL, err);
}

static err_status apply_missing(struct sql *sql, const char *set,
				const struct sql_migration *migrations, size_t count,
				struct err *err)
{
	int64_t current = 0, newest = count == 0 ? 0 : migrations[count - 1].version;
	struct sql_value args[] = { sql_text(str_of(set)) };
	err_status status =
		sql_run(sql, "SELECT coalesce(max(version), 0) FROM schema_version WHERE part = ?1",
			args, 1, take_version, &current, err);
	if (status != ERR_OK)
		return status;
	if (current > newest)
		return err_set(err, ERR_UNSUPPORTED,
			       "the database's %s schema has version %" PRId64
			       ", this program knows %" PRId64 ": run the newer program",
			       set, current, newest);
	for (size_t i = 0; i < count && status == ERR_OK; i++) {
		ASSERT(i == 0 || migrations[i].version > migrations[i - 1].version);
		if (migrations[i].version > current)
			status = apply(sql, set, &migrations[i], err);
	}
	return status;
}

err_status sql_migrate(struct sql *sql, const char *set, const struct sql_migration *migrations,
		       size_t count, struct err *err)
{
	static const char table[] = "CREATE TABLE IF NOT EXISTS schema_version ("
				    " part TEXT NOT NULL, version BIGINT NOT NULL,"
				    " PRIMARY KEY (part, version))";
	err_status status = sql_begin(sql, err);
	if (status != ERR_OK)
		return status;
	status = sql_run(sql, table, NULL, 0, NULL, NULL, err);
	if (status == ERR_OK)
		status = apply_missing(sql, set, migrations, count, err);
	if (status == ERR_OK)
		return sql_commit(sql, err);
	sql_rollback(sql);
	return status;
}
