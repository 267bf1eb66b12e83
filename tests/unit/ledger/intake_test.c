// SPDX-License-Identifier: Apache-2.0
// Intake: exactly once, whole batches, conflicts stated, contradictions set aside, and nothing
// lost or half taken when the process is killed or the disk is full.
#include "ledger/ledger.h"
#include "sql_backend.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#define EVENT(seq, t, type, pod, more)                                                             \
	"{\"source\":\"node1\",\"boot\":\"b1\",\"seq\":" #seq ",\"t\":\"2026-02-10T" t             \
	"Z\",\"type\":\"" type "\",\"gpu\":\"g0\",\"tenant\":\"a\",\"pod_uid\":\"" pod "\"" more   \
	"}\n"

#define WHOLE ",\"share\":{\"num\":1,\"den\":1}"

static const int64_t NOON_S = 1770724800; // 2026-02-10T12:00:00Z

static struct ledger *open_ledger(struct check *c, const char *url, bool is_fresh,
				  struct sql **ret_sql)
{
	struct err err = { 0 };
	struct ledger *ledger = NULL;
	*ret_sql = is_fresh ? backend_open_fresh(c, url) : backend_open(c, url);
	CHECK_INT(c, err.text, ledger_open(*ret_sql, &ledger, &err), ERR_OK);
	return ledger;
}

static bool count_line(void *arg, struct str line)
{
	*(size_t *)arg += line.len > 0;
	return true;
}

static size_t event_count(struct ledger *ledger, const char *tenant)
{
	size_t count = 0;
	struct err err;
	if (ledger_export(ledger, 0, INT64_MAX, str_of(tenant), count_line, &count, &err) != ERR_OK)
		return SIZE_MAX;
	return count;
}

static void test_intake(struct check *c)
{
	struct sql *sql = NULL;
	struct ledger *ledger = open_ledger(c, "sqlite::memory:", true, &sql);
	static const struct {
		const char *name, *lines;
		err_status want;
		size_t events;
		int64_t seq;
	} cases[] = {
		{ "empty", "", ERR_OK, 0, 0 },
		{ "bound and released",
		  EVENT(1, "00:00:00", "bound", "p1", WHOLE)
			  EVENT(2, "00:01:00", "released", "p1", ""),
		  ERR_OK, 2, 2 },
		{ "the same again", EVENT(1, "00:00:00", "bound", "p1", WHOLE), ERR_OK, 2, 1 },
		{ "same identity, other content", EVENT(1, "00:00:01", "bound", "p1", WHOLE),
		  ERR_CONFLICT, 2, 0 },
		{ "a broken line refuses the batch",
		  EVENT(3, "00:02:00", "bound", "p2", WHOLE) "{\"x\":1}", ERR_INVALID, 2, 0 },
		{ "another's source",
		  "{\"source\":\"node2\",\"boot\":\"b\",\"seq\":1,\"t\":\"2026-02-10T00:00:00Z\","
		  "\"type\":\"bound\",\"gpu\":\"g9\",\"tenant\":\"a\",\"pod_uid\":\"p\"" WHOLE "}",
		  ERR_DENIED, 2, 0 },
		{ "a second word on the release is set aside",
		  EVENT(4, "00:01:30", "released", "p1", ""), ERR_OK, 2, 4 },
		{ "told alike again is fine", EVENT(5, "00:01:00", "released", "p1", ""), ERR_OK, 3,
		  5 },
		{ "a release that comes before its binding is kept",
		  EVENT(6, "00:09:00", "released", "p9", ""), ERR_OK, 4, 6 },
		{ "another share is set aside",
		  EVENT(7, "00:00:00", "bound", "p1", ",\"share\":{\"num\":1,\"den\":7}"), ERR_OK,
		  4, 7 },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct err err = { 0 };
		struct ledger_cursor cursor = { .boot = "", .seq = 0 };
		err_status got = ledger_append(ledger, STR("node1"), str_of(cases[i].lines), NOON_S,
					       &cursor, &err);
		CHECK_INT(c, cases[i].name, got, cases[i].want);
		if (got != cases[i].want)
			printf("  %s\n", err.text);
		CHECK_INT(c, cases[i].name, event_count(ledger, ""), cases[i].events);
		CHECK_INT(c, cases[i].name, cursor.seq, cases[i].seq);
		if (got == ERR_INVALID)
			CHECK(c, "names the line", strstr(err.text, "line 2") != NULL);
	}
	struct ledger_counts counts = ledger_counts_get(ledger);
	CHECK_INT(c, "disputed", counts.disputed, 2);
	CHECK_INT(c, "duplicates", counts.duplicates, 1);
	CHECK_INT(c, "own tenant", event_count(ledger, "a"), 4);
	CHECK_INT(c, "other tenant", event_count(ledger, "b"), 0);
	ledger_free(ledger);
	sql_close(sql);
}

// A clock that is ahead would bill what has not happened; the same for every type and for imports.
static void test_future(struct check *c)
{
	struct sql *sql = NULL;
	struct ledger *ledger = open_ledger(c, "sqlite::memory:", true, &sql);
	static const struct {
		const char *name, *source, *lines;
		err_status want;
	} cases[] = {
		{ "at the edge", "node1", EVENT(1, "12:05:00", "bound", "p1", WHOLE), ERR_OK },
		{ "beyond", "node1", "\n" EVENT(2, "12:05:01", "released", "p1", ""), ERR_INVALID },
		{ "beyond in an import", "", "\n" EVENT(2, "12:05:01", "released", "p1", ""),
		  ERR_INVALID },
		{ "years beyond", "node1",
		  "\n{\"source\":\"node1\",\"boot\":\"b1\",\"seq\":2,\"t\":"
		  "\"9999-12-31T00:00:00Z\",\"type\":\"energy\",\"gpu\":\"g0\",\"epoch\":"
		  "\"e\",\"energy_mj\":\"5\"}",
		  ERR_INVALID },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct err err = { 0 };
		struct ledger_cursor cursor;
		CHECK_INT(c, cases[i].name,
			  ledger_append(ledger, str_of(cases[i].source), str_of(cases[i].lines),
					NOON_S, &cursor, &err),
			  cases[i].want);
		if (cases[i].want != ERR_OK)
			CHECK(c, "names the line", strstr(err.text, "line 2: t is") != NULL);
		CHECK_INT(c, cases[i].name, event_count(ledger, ""), 1);
	}
	ledger_free(ledger);
	sql_close(sql);
}

// What the node lists: g0 or nothing.
static err_status owner(void *arg, struct str source, struct str gpu, struct err *err)
{
	const err_status *otherwise = arg;
	if (str_eq_c(source, "node1") && str_eq_c(gpu, "g0") && *otherwise != ERR_UNAVAILABLE)
		return ERR_OK;
	return err_set(err, *otherwise, "not of " STR_FMT, STR_ARG(source));
}

#define OF(source, seq, type, gpu, more)                                                           \
	"{\"source\":\"" source "\",\"boot\":\"b1\",\"seq\":" #seq                                 \
	",\"t\":\"2026-02-10T00:00:00Z\",\"type\":\"" type "\",\"gpu\":\"" gpu                     \
	"\",\"tenant\":\"a\",\"pod_uid\":\"p\"" more "}\n"

static void test_owner(struct check *c)
{
	struct sql *sql = NULL;
	struct ledger *ledger = open_ledger(c, "sqlite::memory:", true, &sql);
	err_status otherwise = ERR_NOT_FOUND;
	ledger_owner_set(ledger, owner, &otherwise);
	static const struct {
		const char *name, *source, *lines;
		err_status otherwise, want;
		size_t events;
	} cases[] = {
		{ "nothing known yet", "node1", OF("node1", 1, "bound", "g0", WHOLE),
		  ERR_UNAVAILABLE, ERR_UNAVAILABLE, 0 },
		{ "its own", "node1", OF("node1", 1, "bound", "g0", WHOLE), ERR_NOT_FOUND, ERR_OK,
		  1 },
		{ "another's", "node1", OF("node1", 2, "bound", "g1", WHOLE), ERR_NOT_FOUND,
		  ERR_NOT_FOUND, 1 },
		{ "another's behind its own", "node1",
		  OF("node1", 2, "released", "g0", "") OF("node1", 3, "bound", "g1", WHOLE),
		  ERR_NOT_FOUND, ERR_NOT_FOUND, 1 },
		{ "taken out and released", "node1", OF("node1", 2, "released", "g0", ""),
		  ERR_UNAVAILABLE, ERR_OK, 2 },
		{ "known, but from another node", "node2", OF("node2", 1, "released", "g0", ""),
		  ERR_NOT_FOUND, ERR_NOT_FOUND, 2 },
		{ "an import names any", "", OF("node2", 1, "bound", "g7", WHOLE), ERR_NOT_FOUND,
		  ERR_OK, 3 },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct err err = { 0 };
		struct ledger_cursor cursor;
		otherwise = cases[i].otherwise;
		CHECK_INT(c, cases[i].name,
			  ledger_append(ledger, str_of(cases[i].source), str_of(cases[i].lines),
					NOON_S, &cursor, &err),
			  cases[i].want);
		CHECK_INT(c, cases[i].name, event_count(ledger, ""), cases[i].events);
	}
	ledger_free(ledger);
	sql_close(sql);
}

static void test_documents(struct check *c)
{
	struct sql *sql = NULL;
	struct ledger *ledger = open_ledger(c, "sqlite::memory:", true, &sql);
	struct err err = { 0 };
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
	struct str json;
	CHECK_INT(c, "none yet", ledger_document_get(ledger, LEDGER_POOLS, arena, &json, &err),
		  ERR_NOT_FOUND);
	struct str pools = STR("{\"pools\": [], \"idle_rule\": \"keep\"}");
	CHECK_INT(c, "put", ledger_document_put(ledger, LEDGER_POOLS, pools, STR("admin"), 1, &err),
		  ERR_OK);
	CHECK_INT(c, "bad",
		  ledger_document_put(ledger, LEDGER_POOLS, STR("{\"pool\":1}"), STR("x"), 2, &err),
		  ERR_INVALID);
	struct str newer = STR("{\"pools\": [], \"idle_rule\": \"share-per-gpu\"}");
	CHECK_INT(c, "newer",
		  ledger_document_put(ledger, LEDGER_POOLS, newer, STR("admin"), 3, &err), ERR_OK);
	CHECK_INT(c, "get", ledger_document_get(ledger, LEDGER_POOLS, arena, &json, &err), ERR_OK);
	CHECK(c, "the newest", str_eq(json, newer));
	ledger_free(ledger);
	sql_close(sql);
}

static struct str energy_lines(struct buf *out, int64_t from, int64_t count)
{
	buf_clear(out);
	for (int64_t i = from; i < from + count; i++)
		buf_printf(out,
			   "{\"source\":\"n\",\"boot\":\"b\",\"seq\":%lld,\"t\":\"2026-02-10T00:00:"
			   "00Z\","
			   "\"type\":\"energy\",\"gpu\":\"g\",\"energy_mj\":\"%lld\"}\n",
			   (long long)i, (long long)i);
	return buf_str(out);
}

struct order {
	size_t count, stop_at;
	bool is_sorted;
};

// All of one instant: only their numbers tell them apart.
static bool check_order(void *arg, struct str line)
{
	struct order *order = arg;
	char want[40];
	(void)snprintf(want, sizeof want, "\"seq\":%zu,", order->count);
	char text[512];
	(void)snprintf(text, sizeof text, STR_FMT, STR_ARG(line));
	order->is_sorted = order->is_sorted && strstr(text, want) != NULL;
	return ++order->count != order->stop_at;
}

// An export is read in parts; where one ends, nothing is lost and nothing comes twice.
static void test_long_export(struct check *c)
{
	enum { EVENTS = 12001 };
	struct sql *sql = NULL;
	struct err err = { 0 };
	struct ledger *ledger = open_ledger(c, "sqlite::memory:", true, &sql);
	struct ledger_cursor cursor;
	AUTO(buf_done) struct buf lines = { 0 };
	CHECK_INT(c, "taken",
		  ledger_append(ledger, STR("n"), energy_lines(&lines, 0, EVENTS), NOON_S, &cursor,
				&err),
		  ERR_OK);
	struct order order = { 0, 0, true };
	struct str all = STR("");
	CHECK_INT(c, "export", ledger_export(ledger, 0, INT64_MAX, all, check_order, &order, &err),
		  ERR_OK);
	CHECK_INT(c, "each", order.count, EVENTS);
	CHECK(c, "once, in order", order.is_sorted);
	order = (struct order){ 0, 5000, true };
	CHECK_INT(c, "export", ledger_export(ledger, 0, INT64_MAX, all, check_order, &order, &err),
		  ERR_OK);
	CHECK_INT(c, "stopped where a part ends", order.count, 5000);
	order = (struct order){ 0, 0, true };
	CHECK_INT(c, "of nobody",
		  ledger_export(ledger, 0, INT64_MAX, STR("x"), check_order, &order, &err), ERR_OK);
	CHECK_INT(c, "of nobody", order.count, 0);
	ledger_free(ledger);
	sql_close(sql);
}

// Batches of ten; the child is killed at some point: what it reported is there, and no batch is
// there in part.
static void test_kill(struct check *c, const char *folder)
{
	char url[256];
	(void)snprintf(url, sizeof url, "sqlite:%s/kill.db", folder);
	int ends[2];
	sql_close(backend_open_fresh(c, url));
	CHECK_INT(c, "pipe", pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		struct sql *sql = NULL;
		struct err err;
		struct ledger *ledger = NULL;
		if (backend_try(url, &sql, &err) != ERR_OK ||
		    ledger_open(sql, &ledger, &err) != ERR_OK)
			_exit(1);
		for (long batch = 0;; batch++) {
			AUTO(buf_done) struct buf lines = { 0 };
			struct ledger_cursor cursor;
			if (ledger_append(ledger, STR("n"), energy_lines(&lines, batch * 10, 10),
					  NOON_S, &cursor, &err) != ERR_OK ||
			    write(ends[1], &batch, sizeof batch) < 0)
				_exit(1);
		}
	}
	(void)close(ends[1]);
	long batch, reported = -1;
	while (read(ends[0], &batch, sizeof batch) == (ssize_t)sizeof batch) {
		reported = batch;
		if (batch == 12)
			(void)kill(child, SIGKILL);
	}
	(void)close(ends[0]);
	(void)waitpid(child, NULL, 0);
	struct sql *sql = NULL;
	struct ledger *ledger = open_ledger(c, url, false, &sql);
	size_t events = event_count(ledger, "");
	CHECK(c, "nothing reported is lost",
	      reported >= 12 && events >= (size_t)(reported + 1) * 10);
	CHECK_INT(c, "no batch in part", events % 10, 0);
	ledger_free(ledger);
	sql_close(sql);
}

// On a file system of 2 MiB: batches are taken until one is refused; after room was made the same
// batch is taken, and nothing is there in part.
static void test_full_disk(struct check *c, const char *folder)
{
	enum { BATCH = 500, BATCHES_MAX = 200 };
	AUTO(buf_done) struct buf lines = { 0 };
	if (backend_is_postgres())
		return; // its disk is filled from outside
	if (mount("none", folder, "tmpfs", 0, "size=2m") != 0) {
		printf("full disk: not tried, tmpfs cannot be mounted here\n");
		return;
	}
	char url[256];
	(void)snprintf(url, sizeof url, "sqlite:%s/l.db", folder);
	struct sql *sql = NULL;
	struct ledger *ledger = open_ledger(c, url, false, &sql);
	struct ledger_cursor cursor = { .seq = -1 };
	struct err err = { 0 };
	err_status status = ERR_OK;
	int64_t taken = 0;
	for (int i = 0; status == ERR_OK && i < BATCHES_MAX; i++) {
		status = ledger_append(ledger, STR("n"), energy_lines(&lines, taken, BATCH),
				       INT32_MAX, &cursor, &err);
		taken += status == ERR_OK ? BATCH : 0;
	}
	CHECK_INT(c, "refused", status, ERR_IO);
	CHECK_INT(c, "the cursor stays", cursor.seq, taken - 1);
	CHECK_INT(c, "more room", mount("none", folder, "tmpfs", MS_REMOUNT, "size=16m"), 0);
	CHECK_INT(c, "resumed",
		  ledger_append(ledger, STR("n"), energy_lines(&lines, taken, BATCH), INT32_MAX,
				&cursor, &err),
		  ERR_OK);
	CHECK_INT(c, "nothing twice", (int64_t)ledger_counts_get(ledger).duplicates, 0);
	CHECK_INT(c, "all counted", (int64_t)ledger_counts_get(ledger).events, taken + BATCH);
	ledger_free(ledger);
	sql_close(sql);
	CHECK_INT(c, "unmounted", umount(folder), 0);
}

int main(void)
{
	struct check c = { 0 };
	char folder[] = "/tmp/ledger-test-XXXXXX", command[64];
	if (mkdtemp(folder) == NULL)
		return 1;
	test_intake(&c);
	test_future(&c);
	test_owner(&c);
	test_documents(&c);
	test_long_export(&c);
	test_kill(&c, folder);
	test_full_disk(&c, folder);
	(void)snprintf(command, sizeof command, "rm -rf %s", folder);
	CHECK_INT(&c, "cleaned up", system(command), 0);
	return check_done(&c);
}
