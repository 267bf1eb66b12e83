// SPDX-License-Identifier: Apache-2.0
// The writer on a real folder: durability before the callback, rotation, re-opening, torn ends,
// damage, and a disk that is full.
#include "audit/audit.h"
#include "audit/verify.h"
#include "check.h"
#include "sys/fs.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

struct count {
	int durable, refused;
};

static void on_done(void *arg, const struct err *err)
{
	struct count *count = arg;
	if (err == NULL)
		count->durable++;
	else
		count->refused++;
}

static struct audit *open_log(struct check *c, struct loop *loop, const char *dir, size_t rotate)
{
	struct audit_config config = { .dir = dir, .rotate_bytes = rotate };
	struct audit *audit = NULL;
	struct err err = { 0 };
	CHECK_INT(c, "open", audit_open(loop, &config, &audit, &err), ERR_OK);
	if (audit == NULL)
		printf("%s\n", err.text);
	return audit;
}

static void put(struct audit *audit, const char *stage, struct count *count)
{
	struct audit_record record = { .stage = stage,
				       .request_id = STR("req"),
				       .actor = STR("ann"),
				       .resource = "tenant",
				       .verb = "create" };
	audit_put(audit, &record, on_done, count);
}

static void verify(struct check *c, const char *name, const char *dir, int64_t records)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
	const char *const *paths = NULL;
	size_t count = 0;
	struct audit_report report = { 0 };
	struct err err = { 0 };
	CHECK_INT(c, name, audit_list_files(arena, dir, &paths, &count, &err), ERR_OK);
	struct audit_trust trust = { arena_printf(arena, "%s/checkpoint.json", dir), NULL };
	err_status status = audit_verify(paths, count, &trust, &report, &err);
	CHECK_INT(c, name, status, ERR_OK);
	CHECK_INT(c, name, report.records, records);
	CHECK(c, name, report.is_covered);
	if (status != ERR_OK)
		printf("%s: %s\n", name, err.text);
}

// Only the key itself is trusted, not one that differs in a bit; without one it is told.
static void check_pinned_key(struct check *c, const char *dir)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
	AUTO(audit_key_wipe) struct audit_key own = { 0 };
	const char *const *paths = NULL;
	size_t count = 0;
	struct audit_report report = { 0 };
	struct err err = { 0 };
	unsigned char key[AUDIT_KEY_BYTES];
	CHECK_INT(c, "files", audit_list_files(arena, dir, &paths, &count, &err), ERR_OK);
	CHECK_INT(c, "key", audit_key_load(arena_printf(arena, "%s/signing.key", dir), &own, &err),
		  ERR_OK);
	struct audit_trust trust = { arena_printf(arena, "%s/checkpoint.json", dir), NULL };
	CHECK_INT(c, "not pinned", audit_verify(paths, count, &trust, &report, &err), ERR_OK);
	CHECK(c, "names the key", memcmp(report.key, own.public_, sizeof report.key) == 0);
	trust.key = key;
	memcpy(key, own.public_, sizeof key);
	CHECK_INT(c, "pinned", audit_verify(paths, count, &trust, &report, &err), ERR_OK);
	for (size_t bit = 0; bit < 8 * sizeof key; bit += 51) {
		memcpy(key, own.public_, sizeof key);
		key[bit / 8] ^= (unsigned char)(1u << (bit % 8));
		CHECK_INT(c, "another key", audit_verify(paths, count, &trust, &report, &err),
			  ERR_INTERNAL);
		CHECK_INT(c, "another key", report.fault, AUDIT_CHECKPOINT);
		CHECK(c, "is not covered", !report.is_covered);
	}
}

static void check_rotation(struct check *c, struct loop *loop, const char *dir)
{
	struct count count = { 0, 0 };
	struct audit *audit = open_log(c, loop, dir, 2000);
	for (int i = 0; i < 50; i++) {
		put(audit, i % 2 == 0 ? "begin" : "end", &count);
		CHECK_INT(c, "not before the sync", count.durable, i);
		loop_run_once(loop, 0);
		CHECK_INT(c, "after the sync", count.durable, i + 1);
	}
	audit_close(audit);
	verify(c, "rotated", dir, 50);
	check_pinned_key(c, dir);
	audit = open_log(c, loop, dir, 2000);
	CHECK_INT(c, "found again", audit_stats(audit).records, 50);
	for (int i = 0; i < 100; i++)
		put(audit, "end", &count);
	loop_run_once(loop, 0);
	CHECK_INT(c, "one sync for a batch", audit_stats(audit).syncs, 1);
	CHECK_INT(c, "all", count.durable, 150);
	audit_close(audit);
	verify(c, "after re-opening", dir, 150);
}

static const char *newest(struct check *c, struct arena *arena, const char *dir)
{
	const char *const *paths = NULL;
	size_t count = 0;
	CHECK_INT(c, "list", audit_list_files(arena, dir, &paths, &count, NULL), ERR_OK);
	return count == 0 ? "" : paths[count - 1];
}

static void check_torn(struct check *c, struct loop *loop, const char *dir)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
	AUTO(fs_closep) int fd = open(newest(c, arena, dir), O_WRONLY | O_APPEND);
	CHECK(c, "append", write(fd, "{\"v\":1,\"chain\":\"01", 18) == 18);
	struct audit *audit = open_log(c, loop, dir, 0);
	loop_run_once(loop, 0);
	CHECK_INT(c, "the repair is a record", audit_stats(audit).records, 151);
	audit_close(audit);
	verify(c, "repaired", dir, 151);
}

static void check_full(struct check *c, struct loop *loop, const char *dir)
{
	struct count count = { 0, 0 };
	struct audit *audit = open_log(c, loop, dir, 0);
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
	AUTO(buf_done) struct buf content = { 0 };
	CHECK_INT(c, "read", fs_read(newest(c, arena, dir), 1 << 20, &content, NULL), ERR_OK);
	struct rlimit before, full = { content.len + 100, RLIM_INFINITY };
	CHECK(c, "limit", getrlimit(RLIMIT_FSIZE, &before) == 0);
	full.rlim_max = before.rlim_max;
	CHECK(c, "limit", setrlimit(RLIMIT_FSIZE, &full) == 0);
	put(audit, "begin", &count);
	loop_run_once(loop, 0);
	CHECK_INT(c, "refused", count.refused, 1);
	CHECK_INT(c, "not acknowledged", count.durable, 0);
	CHECK(c, "said so", !audit_stats(audit).is_available);
	CHECK(c, "limit", setrlimit(RLIMIT_FSIZE, &before) == 0);
	put(audit, "begin", &count);
	loop_run_once(loop, 0);
	CHECK_INT(c, "resumed", count.durable, 1);
	CHECK(c, "said so", audit_stats(audit).is_available);
	audit_close(audit);
	verify(c, "after a full disk", dir, 152);
}

// The next file cannot be made: the old one is written on until it can.
static void check_no_next_file(struct check *c, struct loop *loop, const char *parent)
{
	struct count count = { 0, 0 };
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
	const char *dir = arena_printf(arena, "%s/own", parent);
	struct audit *audit = open_log(c, loop, dir, 1);
	put(audit, "begin", &count);
	loop_run_once(loop, 0);
	const char *first = newest(c, arena, dir);
	const char *taken = arena_printf(arena, "%s/audit-%015d.jsonl", dir, 2);
	AUTO(fs_closep) int fd = open(taken, O_WRONLY | O_CREAT | O_EXCL, 0600);
	CHECK(c, "in the way", fd >= 0);
	put(audit, "end", &count);
	loop_run_once(loop, 0);
	CHECK_INT(c, "the end is recorded all the same", count.durable, 2);
	CHECK(c, "said so", audit_stats(audit).is_available);
	CHECK(c, "out of the way", unlink(taken) == 0);
	CHECK_STR(c, "in the old file", str_of(newest(c, arena, dir)), first);
	put(audit, "begin", &count);
	loop_run_once(loop, 0);
	CHECK_INT(c, "goes on", count.durable, 3);
	CHECK(c, "in a new file", strcmp(newest(c, arena, dir), first) != 0);
	audit_close(audit);
	verify(c, "whole", dir, 3);
}

static void check_damaged(struct check *c, struct loop *loop, const char *dir)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
	AUTO(fs_closep) int fd = open(newest(c, arena, dir), O_WRONLY);
	CHECK(c, "edit", pwrite(fd, "X", 1, 120) == 1);
	struct audit_config config = { .dir = dir };
	struct audit *audit = NULL;
	struct err err = { 0 };
	CHECK_INT(c, "damage is not repaired", audit_open(loop, &config, &audit, &err),
		  ERR_INTERNAL);
	CHECK(c, "untouched", audit == NULL);
	CHECK(c, "says what to do", strstr(err.text, "audit verify") != NULL);
}

int main(void)
{
	struct check c = { 0, 0 };
	struct loop *loop = NULL;
	char dir[] = "/tmp/audit-test-XXXXXX";
	if (mkdtemp(dir) == NULL || loop_new(&loop, NULL) != ERR_OK)
		return 1;
	(void)signal(SIGXFSZ, SIG_IGN);
	check_rotation(&c, loop, dir);
	check_torn(&c, loop, dir);
	check_full(&c, loop, dir);
	check_no_next_file(&c, loop, dir);
	check_damaged(&c, loop, dir);
	loop_free(loop);
	char command[64];
	(void)snprintf(command, sizeof command, "rm -r %s", dir);
	CHECK_INT(&c, "clean up", system(command), 0);
	return check_done(&c);
}
