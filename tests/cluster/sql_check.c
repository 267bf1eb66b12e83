// SPDX-License-Identifier: Apache-2.0
// Runs each statement that comes on standard input, one a line, against a migrated database with
// NULL for every placeholder, inside a transaction that is rolled back: what is wrong with a
// statement's text is found, whatever its rows. Prints those that fail.
//   sql-check URL < STATEMENTS
#include "ledger/ledger.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>

enum { LINE_MAX_BYTES = 8192, ARGS_MAX = 32 };

static size_t highest_placeholder(const char *text)
{
	size_t highest = 0;
	for (const char *at = strchr(text, '?'); at != NULL; at = strchr(at + 1, '?'))
		highest = max_size(highest, (size_t)strtoul(at + 1, NULL, 10));
	return highest;
}

static err_status try_one(struct sql *sql, const char *text, struct err *err)
{
	const struct sql_value args[ARGS_MAX] = { 0 };
	err_status status = sql_begin(sql, err);
	if (status != ERR_OK)
		return status;
	status = sql_run(sql, text, args, highest_placeholder(text), NULL, NULL, err);
	sql_rollback(sql);
	// NULL where the table wants a value: the text was good.
	return status == ERR_CONFLICT ? ERR_OK : status;
}

int main(int argc, char **argv)
{
	struct sql *sql = NULL;
	struct ledger *ledger = NULL;
	struct err err = { 0 };
	char line[LINE_MAX_BYTES];
	int passed = 0, failed = 0;
	if (argc != 2)
		return 2;
	if (sql_open(argv[1], &sql, &err) != ERR_OK ||
	    sql_migrate(sql, "store", store_migrations, store_migration_count, &err) != ERR_OK ||
	    ledger_open(sql, &ledger, &err) != ERR_OK) {
		printf("%s\n", err.text);
		return 1;
	}
	while (fgets(line, sizeof line, stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		const bool good = try_one(sql, line, &err) == ERR_OK;
		passed += good ? 1 : 0;
		failed += good ? 0 : 1;
		if (!good)
			printf("%s\n  %s\n", line, err.text);
	}
	printf("%d passed, %d failed\n", passed, failed);
	ledger_free(ledger);
	sql_close(sql);
	return failed == 0 ? 0 : 1;
}
