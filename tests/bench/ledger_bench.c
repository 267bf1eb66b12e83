// SPDX-License-Identifier: Apache-2.0
// CPU of taking events into the ledger, in batches as agents push them, each one transaction on
// disk; then the same batches again, which must change nothing.
//   ledger-bench --store URL --events FILE --batch LINES
#include "ledger/ledger.h"
#include "measure.h"
#include "sys/fs.h"

#include <stdio.h>

enum { EVENTS_MAX_BYTES = 1 << 30 };

struct source {
	struct buf text;
	int64_t batch_lines;
	struct samples wall;
};

static struct str cut_batch(struct str *rest, int64_t lines)
{
	size_t end = 0;
	for (int64_t i = 0; i < lines && end < rest->len; i++) {
		const size_t newline = str_find_byte(*rest, '\n', end);
		end = newline == SIZE_MAX ? rest->len : newline + 1;
	}
	const struct str batch = str_slice(*rest, 0, end);
	*rest = str_slice(*rest, end, rest->len);
	return batch;
}

// CPU nanoseconds for all of it.
static uint64_t take_in(struct ledger *ledger, struct source *source)
{
	struct str rest = buf_str(&source->text);
	const uint64_t start_ns = clock_cpu_ns();
	while (rest.len > 0) {
		struct ledger_cursor cursor;
		struct err err = { 0 };
		const uint64_t batch_ns = clock_mono_ns();
		const struct str batch = cut_batch(&rest, source->batch_lines);
		if (ledger_append(ledger, STR(""), batch, INT32_MAX, &cursor, &err) != ERR_OK)
			measure_fail("ledger: %s", err.text);
		samples_add(&source->wall, clock_mono_ns() - batch_ns);
	}
	return clock_cpu_ns() - start_ns;
}

int main(int argc, char **argv)
{
	const char *store = NULL, *events = NULL;
	struct source source = { .text = { .limit = EVENTS_MAX_BYTES }, .batch_lines = 500 };
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--store") == 0)
			store = measure_value(argc, argv, &i);
		else if (strcmp(argv[i], "--events") == 0)
			events = measure_value(argc, argv, &i);
		else if (strcmp(argv[i], "--batch") == 0)
			source.batch_lines = measure_number(argc, argv, &i);
		else
			measure_fail("%s: no such option", argv[i]);
	}
	if (store == NULL || events == NULL)
		measure_fail("use: ledger-bench --store URL --events FILE [--batch LINES]");
	struct err err = { 0 };
	struct sql *sql = NULL;
	struct ledger *ledger = NULL;
	if (fs_read(events, EVENTS_MAX_BYTES, &source.text, &err) != ERR_OK ||
	    sql_open(store, &sql, &err) != ERR_OK || ledger_open(sql, &ledger, &err) != ERR_OK)
		measure_fail("%s", err.text);
	const uint64_t first_ns = take_in(ledger, &source);
	const struct ledger_counts first = ledger_counts_get(ledger);
	AUTO(buf_done) struct buf out = { 0 };
	buf_printf(&out, "{\"events\":%llu,\"cpu_ns\":%llu", (unsigned long long)first.events,
		   (unsigned long long)first_ns);
	samples_put(&source.wall, "batch", &out);
	const uint64_t again_ns = take_in(ledger, &source);
	const struct ledger_counts again = ledger_counts_get(ledger);
	if (again.events != first.events || again.duplicates != first.events)
		measure_fail("repeated events changed the ledger");
	buf_printf(&out, ",\"again_cpu_ns\":%llu}", (unsigned long long)again_ns);
	measure_print(&out);
	samples_done(&source.wall);
	buf_done(&source.text);
	ledger_free(ledger);
	sql_close(sql);
	return 0;
}
