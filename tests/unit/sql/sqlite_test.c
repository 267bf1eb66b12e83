// SPDX-License-Identifier: Apache-2.0
// SQLite behind sql.h: order of placeholders, conflicts, transactions, migrations, a full disk,
// and a process that is killed between commits.
#include "check.h"
#include "sql/sql.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const first[] = { "CREATE TABLE t (k TEXT PRIMARY KEY, n BIGINT NOT NULL)",
				     NULL };
static const char *const second[] = { "ALTER TABLE t ADD COLUMN note TEXT NOT NULL DEFAULT ''",
				      NULL };
static const char *const broken[] = { "CREATE TABLE u (k TEXT)", "CREATE TABLE t (k TEXT)", NULL };

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

static struct sql *open_db(struct check *c, const char *url)
{
	struct sql *sql = NULL;
	struct err err = { 0 };
	CHECK_INT(c, err.text, sql_open(url, &sql, &err), ERR_OK);
	return sql;
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
	struct sql *sql = open_db(c, "sqlite::memory:");
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
	CHECK_INT(c, "other engine", sql_open("postgres:x", &sql, &err), ERR_INVALID);
	CHECK_INT(c, "no such folder", sql_open("sqlite:/nowhere/x.db", &sql, &err), ERR_IO);
	sql_close(NULL);
}

static void test_transactions(struct check *c)
{
	struct err err = { 0 };
	struct sql *sql = open_db(c, "sqlite::memory:");
	struct sql_migration all[] = { { 1, first } };
	CHECK_INT(c, "migrate", sql_migrate(sql, "t", all, 1, &err), ERR_OK);
	CHECK_INT(c, "begin", sql_begin(sql, &err), ERR_OK);
	CHECK_INT(c, "put", put(sql, "a", 1, &err), ERR_OK);
	sql_rollback(sql);
	CHECK_INT(c, "rolled back", count_rows(sql), 0);
	CHECK_INT(c, "begin", sql_begin(sql, &err), ERR_OK);
	CHECK_INT(c, "put", put(sql, "a", 1, &err), ERR_OK);
	CHECK_INT(c, "a conflict inside", put(sql, "a", 1, &err), ERR_CONFLICT);
	CHECK_INT(c, "commit", sql_commit(sql, &err), ERR_OK);
	CHECK_INT(c, "committed", count_rows(sql), 1);
	sql_close(sql);
}

// On a file system of 512 KiB: refused with a word about the disk, the committed rows stay, and
// it goes on when there is room again. In a mount namespace of its own, so that nothing stays
// whatever happens; without root nothing is claimed.
static void test_full_disk(struct check *c, const char *folder)
{
	char url[256], filler[256];
	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("tmpfs", folder, "tmpfs", 0, "size=512k") != 0) {
		printf("full disk: not allowed to mount, left out\n");
		return;
	}
	(void)snprintf(url, sizeof url, "sqlite:%s/t.db", folder);
	(void)snprintf(filler, sizeof filler, "%s/filler", folder);
	struct err err = { 0 };
	struct sql *sql = open_db(c, url);
	struct sql_migration all[] = { { 1, first } };
	CHECK_INT(c, "migrate", sql_migrate(sql, "t", all, 1, &err), ERR_OK);
	int64_t committed = 0;
	char key[300];
	for (; committed < 20000; committed++) {
		(void)snprintf(key, sizeof key, "%0256lld", (long long)committed);
		if (put(sql, key, committed, &err) != ERR_OK)
			break;
	}
	CHECK_INT(c, "full", err.status, ERR_IO);
	CHECK(c, "says the disk", strstr(err.text, "disk") != NULL);
	CHECK_INT(c, "all that was committed is there", count_rows(sql), committed);
	CHECK_INT(c, "more room", mount("tmpfs", folder, "tmpfs", MS_REMOUNT, "size=4m"), 0);
	CHECK_INT(c, "goes on", put(sql, "after", 1, &err), ERR_OK);
	sql_close(sql);
	CHECK_INT(c, "unmount", umount(folder), 0);
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
	CHECK_INT(c, "pipe", pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		struct sql *sql = NULL;
		char key[32];
		if (sql_open(url, &sql, &err) != ERR_OK ||
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
	struct sql *sql = open_db(c, url);
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
	test_transactions(&c);
	test_full_disk(&c, folder);
	test_kill(&c, folder);
	(void)snprintf(command, sizeof command, "rm -rf %s", folder);
	CHECK_INT(&c, "cleaned up", system(command), 0);
	return check_done(&c);
}
