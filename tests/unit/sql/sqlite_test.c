// SPDX-License-Identifier: Apache-2.0
// What is SQLite's alone: its URLs and a full disk.
#include "check.h"
#include "sql/sql.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

static const char *const first[] = { "CREATE TABLE t (k TEXT PRIMARY KEY, n BIGINT NOT NULL)",
				     NULL };

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

static bool take_count(void *arg, const struct sql_value *columns, size_t column_count)
{
	ASSERT(column_count == 1);
	*(int64_t *)arg = columns[0].number;
	return true;
}

static int64_t count_rows(struct sql *sql)
{
	int64_t count = -1;
	return sql_run(sql, "SELECT count(*) FROM t", NULL, 0, take_count, &count, NULL) == ERR_OK
		       ? count
		       : -1;
}

static void test_urls(struct check *c)
{
	struct sql *sql = NULL;
	struct err err = { 0 };
	CHECK_INT(c, "other engine", sql_open("mysql://x", &sql, &err), ERR_INVALID);
	CHECK_INT(c, "no path", sql_open("sqlite:", &sql, &err), ERR_INVALID);
	CHECK_INT(c, "no such folder", sql_open("sqlite:/nowhere/x.db", &sql, &err), ERR_IO);
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

int main(void)
{
	struct check c = { 0 };
	char folder[] = "/tmp/sql-test-XXXXXX";
	if (mkdtemp(folder) == NULL)
		return 1;
	test_urls(&c);
	test_full_disk(&c, folder);
	CHECK_INT(&c, "cleaned up", rmdir(folder), 0);
	return check_done(&c);
}
