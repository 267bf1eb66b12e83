// SPDX-License-Identifier: Apache-2.0
// Bills from the ledger: the worked day through intake gives the bytes of rating its files, and
// bad events of one source never stop a bill.
#include "billing/bill_format.h"
#include "ledger/bill.h"
#include "sql_backend.h"
#include "sys/fs.h"

static const int64_t DAY_FROM_S = 1770681600, DAY_TO_S = 1770768000; // 2026-02-10 and -11

struct store {
	struct sql *sql;
	struct ledger *ledger;
};

static struct store open_store(struct check *c, const char *url)
{
	struct store store = { NULL, NULL };
	struct err err = { 0 };
	store.sql = backend_open_fresh(c, url);
	CHECK_INT(c, err.text, ledger_open(store.sql, &store.ledger, &err), ERR_OK);
	return store;
}

static void close_store(struct store *store)
{
	ledger_free(store->ledger);
	sql_close(store->sql);
}

static struct str read_file(struct arena *arena, const char *folder, const char *name)
{
	AUTO(buf_done) struct buf content = { 0 };
	struct err err;
	if (fs_read(arena_printf(arena, "%s/%s", folder, name), 1 << 20, &content, &err) != ERR_OK)
		return (struct str){ NULL, 0 };
	return arena_dup(arena, buf_str(&content));
}

static void put_documents(struct check *c, struct ledger *ledger, struct arena *arena,
			  const char *folder)
{
	static const struct {
		ledger_document kind;
		const char *file;
	} documents[] = { { LEDGER_ASSETS, "assets.json" },
			  { LEDGER_PRICES, "prices.json" },
			  { LEDGER_POOLS, "pools.json" } };
	struct err err = { 0 };
	for (size_t i = 0; i < ARRAY_COUNT(documents); i++) {
		struct str json = read_file(arena, folder, documents[i].file);
		CHECK_INT(c, documents[i].file,
			  ledger_document_put(ledger, documents[i].kind, json, STR("a"), 1, &err),
			  ERR_OK);
	}
}

static void append(struct check *c, struct ledger *ledger, struct str lines)
{
	struct ledger_cursor cursor;
	struct err err = { 0 };
	CHECK_INT(c, "append",
		  ledger_append(ledger, (struct str){ NULL, 0 }, lines, INT32_MAX, &cursor, &err),
		  ERR_OK);
	if (err.status != ERR_OK)
		printf("  %s\n", err.text);
}

static struct str bill_text(struct check *c, struct ledger *ledger, struct arena *arena,
			    struct buf *out)
{
	struct ledger_period period = { .from_s = DAY_FROM_S, .to_s = DAY_TO_S };
	struct bill bill;
	struct err err = { 0 };
	err_status status = ledger_bill(ledger, arena, &period, &bill, &err);
	CHECK_INT(c, "bill", status, ERR_OK);
	if (status != ERR_OK) {
		printf("  %s\n", err.text);
		return (struct str){ NULL, 0 };
	}
	buf_clear(out);
	bill_format_json(out, &bill);
	return buf_str(out);
}

static void worked_day(struct check *c, const char *folder)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 26);
	AUTO(buf_done) struct buf out = { 0 }, again = { 0 };
	struct store store = open_store(c, "sqlite::memory:");
	put_documents(c, store.ledger, arena, folder);
	append(c, store.ledger, read_file(arena, folder, "events.jsonl"));
	struct str text = bill_text(c, store.ledger, arena, &out);
	CHECK(c, "total",
	      text.data != NULL && strstr(text.data, "\"tco_nano\":170075000000,") != NULL);
	CHECK(c, "a line",
	      text.data != NULL &&
		      strstr(text.data, "\"A\":{\"capacity\":45428571428,\"energy\":1864285715,"
					"\"shared\":11357142857,\"total\":58650000000}") != NULL);
	// A source that contradicts, ends what never began, or ends before the beginning.
#define BAD(seq, t, type, gpu, pod, more)                                                          \
	"{\"source\":\"bad\",\"boot\":\"b\",\"seq\":" #seq ",\"t\":\"2026-02-10T" t                \
	"Z\",\"type\":\"" type "\",\"gpu\":\"" gpu "\",\"pod_uid\":\"" pod "\"" more "}\n"
	append(c, store.ledger,
	       STR(BAD(1, "01:00:00", "released", "g0", "pod-a0", "") BAD(2, "02:00:00", "released",
									  "g0", "ghost", "")
			   BAD(3, "00:00:00", "bound", "g0", "pod-a0",
			       ",\"tenant\":\"X\",\"share\":{\"num\":3,\"den\":7}")
				   BAD(4, "05:00:00", "bound", "g1", "late",
				       ",\"tenant\":\"X\",\"share\":{\"num\":1,\"den\":1}")
					   BAD(5, "04:00:00", "released", "g1", "late", "")));
	struct str after = bill_text(c, store.ledger, arena, &again);
	CHECK_STR(c, "bad events change no byte", after, text.data == NULL ? "" : text.data);
	close_store(&store);
}

static void refusals(struct check *c)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 24);
	struct store store = open_store(c, "sqlite::memory:");
	struct bill bill;
	struct err err = { 0 };
	struct ledger_period period = { .from_s = DAY_FROM_S, .to_s = DAY_TO_S };
	CHECK_INT(c, "no documents", ledger_bill(store.ledger, arena, &period, &bill, &err),
		  ERR_NOT_FOUND);
	period.to_s = period.from_s;
	CHECK_INT(c, "no period", ledger_bill(store.ledger, arena, &period, &bill, &err),
		  ERR_INVALID);
	close_store(&store);
}

int main(int argc, char **argv)
{
	struct check c = { 0 };
	if (argc != 2)
		return 2;
	worked_day(&c, argv[1]);
	refusals(&c);
	return check_done(&c);
}
