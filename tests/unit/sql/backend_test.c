// SPDX-License-Identifier: Apache-2.0
// What sql.h promises, on SQLite or PostgreSQL (sql_backend.h): order of placeholders, types,
// violations, order of bytes, transactions, migrations, and a process killed between commits.
#include "sql_backend.h"

#include <signal.h>
#include <sys/wait.h>

static const char *const first[] = { "CREATE TABLE t (k TEXT PRIMARY KEY, n BIGINT NOT NULL)",
				     NULL };
static const char *const second[] = { "ALTER TABLE t ADD COLUMN note TEXT NOT NULL DEFAULT ''",
				      NULL };
static const char *const broken[] = { "CREATE TABLE u (k TEXT)", "CREATE TABLE t (k TEXT)", NULL };
static const char *const typed[] = {
	"CREATE TABLE v (id BIGINT PRIMARY KEY, t TEXT, b BLOB, k TEXT REFERENCES t (k))", NULL
};

struct last {
	size_t rows;
	struct sql_value columns[4];
	char text[64];
};

static bool take_row(void *arg, const struct sql_value *columns, size_t column_count)
{
	struct last *last = arg;
	last->rows++;
	for (size_t i = 0; i < column_count && i < ARRAY_COUNT(last->columns); i++)
		last->columns[i] = columns[i];
	if (columns[0].type == SQL_TEXT)
		(void)snprintf(last->text, sizeof last->text, STR_FMT, STR_ARG(columns[0].text));
	return true;
}

static err_status put(struct sql *sql, const char *key, int64_t n, struct err *err)
{
	struct sql_value args[] = { sql_text(str_of(key)), sql_int(n) };
	return sql_run(sql, "INSERT INTO t (k, n) VALUES (?1, ?2)", args, 2, NULL, NULL, err);
}

static int64_t count_rows(struct sql *sql)
{
	struct last last = { 0 };
	struct err err;
	if (sql_run(sql, "SELECT count(*) FROM t", NULL, 0, take_row, &last, &err) != ERR_OK)
		return -1;
	return last.columns[0].number;
}

static void test_statements(struct check *c)
{
	struct err err = { 0 };
	struct sql *sql = backend_open_fresh(c, "sqlite::memory:");
	struct sql_migration all[] = { { 1, first }, { 2, second } };
	CHECK_INT(c, "migrate", sql_migrate(sql, "t", all, 1, &err), ERR_OK);
	CHECK_INT(c, "again", sql_migrate(sql, "t", all, 1, &err), ERR_OK);
	CHECK_INT(c, "further", sql_migrate(sql, "t", all, 2, &err), ERR_OK);
	CHECK_INT(c, "older program", sql_migrate(sql, "t", all, 1, &err), ERR_UNSUPPORTED);
	struct sql_migration bad[] = { { 1, broken } };
	CHECK_INT(c, "broken", sql_migrate(sql, "u", bad, 1, &err), ERR_INTERNAL);
	CHECK_INT(c, "nothing of it stays",
		  sql_run(sql, "SELECT k FROM u", NULL, 0, NULL, NULL, &err), ERR_INTERNAL);

	struct last last = { 0 };
	struct sql_value args[] = { sql_text(STR("one")), sql_int(2) };
	CHECK_INT(c, "reversed order",
		  sql_run(sql, "SELECT ?2, ?1", args, 2, take_row, &last, &err), ERR_OK);
	CHECK_INT(c, "second first", last.columns[0].number, 2);
	CHECK_INT(c, "insert", put(sql, "a", INT64_MAX, &err), ERR_OK);
	CHECK_INT(c, "conflict", put(sql, "a", 1, &err), ERR_CONFLICT);
	last.rows = 0;
	CHECK_INT(c, "select", sql_run(sql, "SELECT k, n FROM t", NULL, 0, take_row, &last, &err),
		  ERR_OK);
	CHECK_INT(c, "one row", last.rows, 1);
	CHECK_STR(c, "text", str_of(last.text), "a");
	CHECK(c, "whole range", last.columns[1].number == INT64_MAX);
	sql_close(sql);
	sql_close(NULL);
}

static err_status put_typed(struct sql *sql, int64_t id, struct sql_value text,
			    struct sql_value blob, struct sql_value key)
{
	struct sql_value args[] = { sql_int(id), text, blob, key };
	return sql_run(sql, "INSERT INTO v (id, t, b, k) VALUES (?1, ?2, ?3, ?4)", args, 4, NULL,
		       NULL, NULL);
}

struct typed_row {
	char text[64], blob[64];
	size_t text_bytes, blob_bytes;
	int text_type, blob_type;
	int64_t id;
};

static bool take_typed(void *arg, const struct sql_value *columns, size_t column_count)
{
	struct typed_row *row = arg;
	ASSERT(column_count == 3);
	row->id = columns[0].number;
	row->text_type = (int)columns[1].type;
	row->blob_type = (int)columns[2].type;
	row->text_bytes = min_size(columns[1].text.len, sizeof row->text);
	row->blob_bytes = min_size(columns[2].text.len, sizeof row->blob);
	if (row->text_bytes > 0)
		memcpy(row->text, columns[1].text.data, row->text_bytes);
	if (row->blob_bytes > 0)
		memcpy(row->blob, columns[2].text.data, row->blob_bytes);
	return true;
}

static void test_types(struct check *c)
{
	struct sql *sql = backend_open_fresh(c, "sqlite::memory:");
	struct sql_migration all[] = { { 1, first }, { 2, typed } };
	const struct sql_value null = { SQL_NULL, 0, { NULL, 0 } };
	const struct str odd = STR("it's \"?1\" $1 \\ \n \xc3\xa4"), bytes = STR("a\0\xff\n'");
	const struct sql_value blob = { SQL_BLOB, 0, bytes };
	struct typed_row row = { .id = 0 };
	CHECK_INT(c, "migrate", sql_migrate(sql, "t", all, 2, NULL), ERR_OK);
	CHECK_INT(c, "nulls first", put_typed(sql, 1, null, null, null), ERR_OK);
	CHECK_INT(c, "values", put_typed(sql, INT64_MIN, sql_text(odd), blob, null), ERR_OK);
	CHECK_INT(c, "empty", put_typed(sql, 2, sql_text(STR("")), null, null), ERR_OK);
	CHECK_INT(c, "same id", put_typed(sql, 1, null, null, null), ERR_CONFLICT);
	CHECK_INT(c, "no such row of t", put_typed(sql, 3, null, null, sql_text(STR("x"))),
		  ERR_CONFLICT);
	static const char select[] = "SELECT id, t, b FROM v WHERE id = ?1";
	struct sql_value id = sql_int(INT64_MIN);
	CHECK_INT(c, "read", sql_run(sql, select, &id, 1, take_typed, &row, NULL), ERR_OK);
	CHECK(c, "whole range", row.id == INT64_MIN);
	CHECK(c, "text", str_eq((struct str){ row.text, row.text_bytes }, odd));
	CHECK_INT(c, "text", row.text_type, SQL_TEXT);
	CHECK(c, "blob", str_eq((struct str){ row.blob, row.blob_bytes }, bytes));
	CHECK_INT(c, "blob", row.blob_type, SQL_BLOB);
	id = sql_int(2);
	CHECK_INT(c, "read", sql_run(sql, select, &id, 1, take_typed, &row, NULL), ERR_OK);
	CHECK_INT(c, "an empty text is no null", row.text_type, SQL_TEXT);
	CHECK_INT(c, "empty", row.text_bytes, 0);
	CHECK_INT(c, "null", row.blob_type, SQL_NULL);
	sql_close(sql);
}

static void test_changes_and_order(struct check *c)
{
	static const char *const keys[] = { "b", "B", "a b", "a", "\xc3\xa4", "_", "ab" };
	static const char *const sorted[] = { "B", "_", "a", "a b", "ab", "b", "\xc3\xa4" };
	struct err err = { 0 };
	struct sql *sql = backend_open_fresh(c, "sqlite::memory:");
	struct sql_migration all[] = { { 1, first } };
	CHECK_INT(c, "migrate", sql_migrate(sql, "t", all, 1, &err), ERR_OK);
	for (size_t i = 0; i < ARRAY_COUNT(keys); i++)
		CHECK_INT(c, keys[i], put(sql, keys[i], 1, &err), ERR_OK);
	CHECK_INT(c, "one", sql_changes(sql), 1);
	char after[8] = "";
	for (size_t i = 0; i < ARRAY_COUNT(sorted); i++) {
		struct last last = { 0 };
		struct sql_value args[] = { sql_text(str_of(after)) };
		CHECK_INT(c, "next",
			  sql_run(sql, "SELECT k FROM t WHERE k > ?1 ORDER BY k LIMIT 1", args, 1,
				  take_row, &last, &err),
			  ERR_OK);
		CHECK_STR(c, "order of bytes", str_of(last.text), sorted[i]);
		(void)snprintf(after, sizeof after, "%.7s", last.text);
	}
	struct sql_value args[] = { sql_text(STR("a")), sql_int(5) };
	struct last last = { 0 };
	CHECK_INT(c, "nothing to do",
		  sql_run(sql, "INSERT INTO t (k, n) VALUES (?1, ?2) ON CONFLICT (k) DO NOTHING",
			  args, 2, NULL, NULL, &err),
		  ERR_OK);
	CHECK_INT(c, "none", sql_changes(sql), 0);
	CHECK_INT(c, "all but one",
		  sql_run(sql, "UPDATE t SET n = ?2 WHERE k <> ?1 RETURNING k, n", args, 2,
			  take_row, &last, &err),
		  ERR_OK);
	CHECK_INT(c, "changed", sql_changes(sql), 6);
	CHECK_INT(c, "returned", last.rows, 6);
	CHECK_INT(c, "new value", last.columns[1].number, 5);
	sql_close(sql);
}

static bool take_one(void *arg, const struct sql_value *columns, size_t column_count)
{
	(void)columns;
	ASSERT(column_count == 1);
	++*(int *)arg;
	return false;
}

// Rows that nobody wants do not come up in the next statement.
static void test_early_stop(struct check *c)
{
	static const char many[] = "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r"
				   " WHERE n < 50000) SELECT n FROM r";
	struct sql *sql = backend_open(c, "sqlite::memory:");
	struct last last = { 0 };
	int seen = 0;
	CHECK_INT(c, "stop", sql_run(sql, many, NULL, 0, take_one, &seen, NULL), ERR_OK);
	CHECK_INT(c, "one was enough", seen, 1);
	CHECK_INT(c, "whole", sql_run(sql, many, NULL, 0, take_row, &last, NULL), ERR_OK);
	CHECK_INT(c, "whole", last.rows, 50000);
	CHECK_INT(c, "the last", last.columns[0].number, 50000);
	sql_close(sql);
}

static void test_transactions(struct check *c)
{
	struct err err = { 0 };
	struct sql *sql = backend_open_fresh(c, "sqlite::memory:");
	struct sql_migration all[] = { { 1, first } };
	CHECK_INT(c, "migrate", sql_migrate(sql, "t", all, 1, &err), ERR_OK);
	CHECK_INT(c, "begin", sql_begin(sql, &err), ERR_OK);
	CHECK_INT(c, "put", put(sql, "a", 1, &err), ERR_OK);
	sql_rollback(sql);
	CHECK_INT(c, "rolled back", count_rows(sql), 0);
	CHECK_INT(c, "begin", sql_begin(sql, &err), ERR_OK);
	CHECK_INT(c, "put", put(sql, "a", 1, &err), ERR_OK);
	CHECK_INT(c, "commit", sql_commit(sql, &err), ERR_OK);
	CHECK_INT(c, "committed", count_rows(sql), 1);
	CHECK_INT(c, "begin", sql_begin(sql, &err), ERR_OK);
	CHECK_INT(c, "put", put(sql, "b", 1, &err), ERR_OK);
	CHECK_INT(c, "a conflict inside", put(sql, "a", 1, &err), ERR_CONFLICT);
	CHECK_INT(c, "leaves only the end", put(sql, "c", 1, &err), ERR_IO);
	CHECK_INT(c, "no commit", sql_commit(sql, &err), ERR_IO);
	CHECK_INT(c, "nothing of it", count_rows(sql), 1);
	CHECK_INT(c, "goes on", put(sql, "b", 1, &err), ERR_OK);
	CHECK_INT(c, "ready", sql_tend(sql, &err), SQL_READY);
	sql_close(sql);
}

// A child inserts and reports each committed key through a pipe; it is killed at some point, and
// everything it reported must be there.
static void test_kill(struct check *c, const char *folder)
{
	char url[256];
	(void)snprintf(url, sizeof url, "sqlite:%s/kill.db", folder);
	struct err err = { 0 };
	struct sql_migration all[] = { { 1, first } };
	int64_t reported = -1;
	int ends[2];
	sql_close(backend_open_fresh(c, url));
	CHECK_INT(c, "pipe", pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		struct sql *sql = NULL;
		char key[32];
		if (backend_try(url, &sql, &err) != ERR_OK ||
		    sql_migrate(sql, "t", all, 1, &err) != ERR_OK)
			_exit(1);
		for (int64_t n = 0;; n++) {
			(void)snprintf(key, sizeof key, "%lld", (long long)n);
			if (put(sql, key, n, &err) != ERR_OK || write(ends[1], &n, sizeof n) < 0)
				_exit(1);
		}
	}
	(void)close(ends[1]);
	int64_t n;
	while (read(ends[0], &n, sizeof n) == (ssize_t)sizeof n) {
		reported = n;
		if (n == 30)
			(void)kill(child, SIGKILL);
	}
	(void)waitpid(child, NULL, 0);
	(void)close(ends[0]);
	struct sql *sql = backend_open(c, url);
	CHECK(c, "nothing reported is lost", reported >= 30 && count_rows(sql) >= reported + 1);
	CHECK(c, "nothing is half done", count_rows(sql) <= reported + 2);
	sql_close(sql);
}

int main(void)
{
	struct check c = { 0 };
	char folder[] = "/tmp/sql-test-XXXXXX", command[64];
	if (mkdtemp(folder) == NULL)
		return 1;
	test_statements(&c);
	test_types(&c);
	test_changes_and_order(&c);
	test_early_stop(&c);
	test_transactions(&c);
	test_kill(&c, folder);
	(void)snprintf(command, sizeof command, "rm -rf %s", folder);
	CHECK_INT(&c, "cleaned up", system(command), 0);
	return check_done(&c);
}
