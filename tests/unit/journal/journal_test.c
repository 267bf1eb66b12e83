// SPDX-License-Identifier: Apache-2.0
// The journal against kills at every step, failing writes and full disks. A child does the work
// and is ended at its n-th step; the parent then opens what is left and compares.
#include "check.h"
#include "journal/journal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EVENTS = 24, SEGMENT_BYTES = 600 };

// In memory where there is such a folder: hundreds of lives sync after each event.
static char dir[] = "/dev/shm/journal-test-XXXXXX";
static const char other_dir[] = "/tmp/journal-test-XXXXXX";

struct kill_at {
	int step, now;
	int fail_errno; // 0: end the process
	int fail_count; // steps that fail from step on
};

static int on_step(void *arg, const char *step)
{
	struct kill_at *k = arg;
	(void)step;
	k->now++;
	if (k->fail_errno == 0 && k->now == k->step)
		_exit(77);
	return k->fail_errno != 0 && k->now >= k->step && k->now < k->step + k->fail_count
		       ? k->fail_errno
		       : 0;
}

static void wipe(void)
{
	char command[100];
	(void)snprintf(command, sizeof command, "rm -rf '%s'/*", dir);
	if (system(command) != 0)
		abort();
}

struct seen {
	uint64_t first, last; // numbers that replay told, in order and without a gap
	bool is_broken;
};

static void on_snapshot(void *arg, struct str line)
{
	struct seen *seen = arg;
	uint64_t upto = 0;
	if (!str_to_u64(str_slice(line, 1, line.len - 1), &upto) || seen->last != 0)
		seen->is_broken = true;
	seen->last = upto;
}

static void on_event(void *arg, const struct usage_event *event)
{
	struct seen *seen = arg;
	if (event->seq != seen->last + 1 || event->util_milli != event->seq * 7 % 1000)
		seen->is_broken = true;
	seen->last = event->seq;
}

static struct journal *open_journal(struct kill_at *k, struct seen *seen)
{
	struct journal_config config = {
		.dir = dir,
		.source = "node-1",
		.boot_id = "b1",
		.segment_bytes = SEGMENT_BYTES,
		.hook = k == NULL ? NULL : on_step,
		.hook_arg = k,
	};
	struct journal_replay replay = { on_snapshot, on_event, seen };
	struct journal *journal = NULL;
	struct err err = { 0 };
	if (journal_open(&config, &replay, &journal, &err) != ERR_OK) {
		printf("journal_open: %s\n", err.text);
		return NULL;
	}
	return journal;
}

static err_status append(struct journal *journal, struct err *err)
{
	struct journal_stats stats;
	journal_stats(journal, &stats);
	struct usage_event event = { .t_s = 1000, .type = EVENT_SAMPLE, .gpu = "GPU-1" };
	event.util_milli = (uint32_t)((stats.last_seq + 1) * 7 % 1000);
	return journal_append(journal, &event, err);
}

static err_status snapshot(struct journal *journal)
{
	char line[32];
	struct journal_stats stats;
	journal_stats(journal, &stats);
	(void)snprintf(line, sizeof line, "[%llu]\n", (unsigned long long)stats.last_seq);
	return journal_snapshot(journal, str_of(line), NULL);
}

// Once, as a daemon does at each turn; a failure is left to the next turn.
static void flush(struct journal *journal, err_status appended)
{
	if (appended != ERR_OK || journal_write(journal, NULL) != ERR_OK ||
	    journal_sync(journal, NULL) != ERR_OK)
		return;
}

// Appends, snapshots and acknowledges; tells the durable number after each step.
static void work(struct journal *journal, int report_fd)
{
	for (int i = 0; i < EVENTS; i++) {
		struct journal_stats stats;
		flush(journal, append(journal, NULL));
		journal_stats(journal, &stats);
		if (write(report_fd, &stats.synced_seq, sizeof stats.synced_seq) < 0)
			abort();
		if (journal_wants_snapshot(journal))
			(void)snapshot(journal);
		if (stats.synced_seq > 3)
			journal_acknowledge(journal, stats.synced_seq - 3);
	}
	for (int i = 0; i < 3; i++)
		flush(journal, ERR_OK);
}

// Returns the child's exit code; *ret_synced gets the last durable number it told.
static int run_child(int step, int fail_errno, uint64_t *ret_synced)
{
	int fds[2];
	uint64_t synced = 0;
	if (pipe(fds) != 0)
		abort();
	(void)fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		struct kill_at k = { .step = step, .fail_errno = fail_errno, .fail_count = 2 };
		struct seen seen = { 0 };
		struct journal *journal = open_journal(&k, &seen);
		if (journal != NULL)
			work(journal, fds[1]);
		journal_close(journal);
		_exit(k.now < step ? 0 : 1);
	}
	(void)close(fds[1]);
	while (read(fds[0], &synced, sizeof synced) == sizeof synced)
		*ret_synced = synced;
	(void)close(fds[0]);
	int status = 0;
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
		abort();
	return WEXITSTATUS(status);
}

static uint64_t check_left(struct check *c, uint64_t synced)
{
	struct seen seen = { 0 };
	struct journal *journal = open_journal(NULL, &seen);
	CHECK(c, "opens", journal != NULL);
	if (journal == NULL)
		return 0;
	CHECK(c, "each number once and in order", !seen.is_broken);
	CHECK(c, "nothing durable is lost", seen.last >= synced);
	struct journal_stats stats;
	journal_stats(journal, &stats);
	CHECK_INT(c, "goes on after the last", stats.last_seq, seen.last);
	CHECK_INT(c, "nothing is damaged", stats.damaged_lines, 0);
	journal_close(journal);
	return seen.last;
}

static void check_kills(struct check *c)
{
	int code = 77, step = 1;
	for (; code == 77; step++) {
		uint64_t synced = 0, again = 0;
		wipe();
		code = run_child(step, 0, &synced);
		uint64_t last = check_left(c, synced);
		// A second life, killed at another step, goes on from there.
		(void)run_child(step / 2 + 1, 0, &again);
		CHECK(c, "second life", check_left(c, again) >= last);
	}
	CHECK(c, "enough steps were tried", step > 100);
}

static void check_failures(struct check *c)
{
	for (int step = 1, code = 1; code != 0; step++) {
		uint64_t synced = 0;
		wipe();
		code = run_child(step, ENOSPC, &synced);
		uint64_t last = check_left(c, synced);
		CHECK(c, "all is written in the end or the journal did not open",
		      last == EVENTS || last == 0);
	}
}

static void check_push(struct check *c)
{
	struct seen seen = { 0 };
	AUTO(buf_done) struct buf lines = { 0 };
	uint64_t last = 0, lines_count = 0;
	wipe();
	struct journal *journal = open_journal(NULL, &seen);
	for (int i = 0; i < EVENTS; i++)
		CHECK_INT(c, "append", append(journal, NULL), ERR_OK);
	CHECK_INT(c, "write", journal_write(journal, NULL), ERR_OK);
	CHECK_INT(c, "read", journal_read(journal, 0, 1000, &lines, &last, NULL), ERR_OK);
	CHECK_INT(c, "what is not durable is not pushed", lines.len, 0);
	CHECK_INT(c, "sync", journal_sync(journal, NULL), ERR_OK);
	for (uint64_t from = 0; from < EVENTS; from = last) {
		// Twice, as if the first push had failed.
		for (int i = 0; i < 2; i++)
			CHECK_INT(c, "read", journal_read(journal, from, 300, &lines, &last, NULL),
				  ERR_OK);
		CHECK(c, "goes forward", last > from && lines.len > 0 && lines.len <= 300);
		struct str rest = buf_str(&lines), line;
		while (str_split_next(&rest, '\n', &line) && line.len > 0) {
			struct usage_event event;
			CHECK_INT(c, "line", usage_event_decode(line, &event, NULL), ERR_OK);
			CHECK_INT(c, "number", event.seq, ++lines_count);
			CHECK_STR(c, "source", str_of(event.source), "node-1");
		}
	}
	CHECK_INT(c, "all", lines_count, EVENTS);
	CHECK_INT(c, "nothing more", journal_read(journal, last, 300, &lines, &last, NULL), ERR_OK);
	CHECK_INT(c, "nothing more", lines.len, 0);
	CHECK_INT(c, "print", journal_print(dir, &lines, NULL), ERR_OK);
	CHECK_INT(c, "print", journal_print("/nonexistent", &lines, NULL), ERR_NOT_FOUND);
	journal_close(journal);
}

static void check_limit(struct check *c)
{
	struct journal_config config = { .dir = dir,
					 .source = "node-1",
					 .boot_id = "b1",
					 .segment_bytes = SEGMENT_BYTES,
					 .limit_bytes = 10000 };
	struct journal *journal = NULL;
	struct usage_event sample = { .type = EVENT_SAMPLE, .gpu = "GPU-1" };
	struct usage_event bound = { .type = EVENT_BOUND,
				     .gpu = "GPU-1",
				     .share_num = 1,
				     .share_den = 1,
				     .tenant = "a",
				     .pod_uid = "u" };
	struct journal_stats stats;
	wipe();
	CHECK_INT(c, "open", journal_open(&config, NULL, &journal, NULL), ERR_OK);
	int taken = 0;
	while (taken < 1000 && journal_append(journal, &sample, NULL) == ERR_OK) {
		taken++;
		CHECK_INT(c, "write", journal_write(journal, NULL), ERR_OK);
		CHECK_INT(c, "sync", journal_sync(journal, NULL), ERR_OK);
	}
	CHECK(c, "samples end first", taken > 10 && taken < 1000);
	CHECK_INT(c, "bound goes on", journal_append(journal, &bound, NULL), ERR_OK);
	int more = 0;
	while (more < 1000 && journal_append(journal, &bound, NULL) == ERR_OK)
		more++;
	CHECK(c, "and ends at the limit", more > 3 && more < 1000);
	journal_stats(journal, &stats);
	CHECK_INT(c, "counted", stats.refused[EVENT_BOUND], 1);
	CHECK_INT(c, "write", journal_write(journal, NULL), ERR_OK);
	CHECK_INT(c, "sync", journal_sync(journal, NULL), ERR_OK);
	CHECK_INT(c, "snapshot", journal_snapshot(journal, STR("[1]\n"), NULL), ERR_OK);
	journal_stats(journal, &stats);
	journal_acknowledge(journal, stats.synced_seq);
	CHECK_INT(c, "room again", journal_append(journal, &sample, NULL), ERR_OK);
	journal_close(journal);
}

static void check_wiped(struct check *c)
{
	struct seen seen = { 0 };
	char boot[64];
	wipe();
	struct journal *journal = open_journal(NULL, &seen);
	(void)snprintf(boot, sizeof boot, "%s", journal_boot(journal));
	journal_close(journal);
	journal = open_journal(NULL, &seen);
	CHECK_STR(c, "the same folder", str_of(journal_boot(journal)), boot);
	journal_close(journal);
	wipe();
	journal = open_journal(NULL, &seen);
	CHECK(c, "a wiped folder has another identity", strcmp(journal_boot(journal), boot) != 0);
	journal_close(journal);
}

int main(void)
{
	struct check c = { 0 };
	if (mkdtemp(dir) == NULL) {
		memcpy(dir, other_dir, sizeof other_dir);
		if (mkdtemp(dir) == NULL)
			return 1;
	}
	check_kills(&c);
	check_failures(&c);
	check_push(&c);
	check_limit(&c);
	check_wiped(&c);
	wipe();
	(void)rmdir(dir);
	return check_done(&c);
}
