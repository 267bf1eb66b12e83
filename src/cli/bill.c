// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs.h"

#include "base/buf.h"
#include "sys/fs.h"

#include <stdio.h>

enum { DOCUMENT_MAX_BYTES = 16 * 1024 * 1024 };

static const struct cli_column bill_columns[] = {
	{ "TENANT", "tenant" }, { "GPU SECONDS", "gpu_seconds" }, { "CAPACITY", "capacity" },
	{ "ENERGY", "energy" }, { "SHARED", "shared" },           { "TOTAL", "total" },
};

// Money with all nine decimals, so that a column can be added up by eye.
static void pad_money(struct cli *cli, json_t *row)
{
	static const char *const keys[] = { "capacity", "energy", "shared", "total" };
	static const char zeros[] = "000000000";
	for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
		struct str amount = json_text(row, keys[i]);
		size_t point = str_find_byte(amount, '.', 0);
		size_t had = point < amount.len ? amount.len - point - 1 : 0;
		if (amount.len == 0 || had >= sizeof zeros - 1)
			continue;
		const char *text = arena_printf(cli->arena, STR_FMT "%s%s", STR_ARG(amount),
						point < amount.len ? "" : ".", zeros + had);
		(void)json_object_set_new(row, keys[i], json_string(text));
	}
}

// The tenants of an answer as rows.
static json_t *tenant_rows(struct cli *cli, const json_t *answer)
{
	json_t *rows = json_array(), *row;
	const char *name;
	json_object_foreach(json_at(answer, "by_tenant"), name, row)
	{
		json_t *copy = json_copy(row);
		(void)json_object_set_new(copy, "tenant", json_string(name));
		(void)json_object_set(copy, "gpu_seconds",
				      json_object_get(json_at(answer, "gpu_seconds"), name));
		if (cli->format == CLI_TABLE)
			pad_money(cli, copy);
		(void)json_array_append_new(rows, copy);
	}
	return rows;
}

static void print_table(struct cli *cli, const json_t *answer)
{
	AUTO(json_decrefp) json_t *rows = tenant_rows(cli, answer);
	cli_print(cli, rows, bill_columns, ARRAY_COUNT(bill_columns));
	struct str tco = json_text(answer, "tco");
	if (cli->format != CLI_TABLE || tco.len == 0)
		return;
	printf("\ntotal cost of ownership: %s %s\n", cli_plain(cli, tco),
	       cli_plain(cli, json_text(answer, "currency")));
	printf("tenants + unallocated:   %s, difference %s\n",
	       cli_plain(cli, json_text(answer, "conservation.tenants_and_unallocated")),
	       cli_plain(cli, json_text(answer, "conservation.difference")));
	const json_t *stray = json_at(answer, "gpus_without_asset");
	for (size_t i = 0; i < json_array_size(stray); i++)
		(void)fprintf(stderr,
			      "warning: GPU %s is in no asset, its capacity costs nothing\n",
			      cli_plain(cli, str_of(json_string_value(json_array_get(stray, i)))));
}

int verb_bill_show(struct cli *cli, int argc, char **argv)
{
	const char *tenant = NULL, *from = NULL, *to = NULL, *idle = NULL;
	struct cli_option options[] = {
		{ "--tenant", &tenant, NULL, 0 },
		{ "--from", &from, NULL, 0 },
		{ "--to", &to, NULL, 0 },
		{ "--idle", &idle, NULL, 0 },
	};
	int count;
	if (!cli_options(cli, argc, argv, options, ARRAY_COUNT(options), &count))
		return CLI_USAGE;
	if (from == NULL || to == NULL || count != 0)
		return cli_usage("bill show", "--from and --to are needed, for example "
					      "2026-02-10T00:00:00Z");
	const char *path = cli_path(cli, "/v1/bills?from=", from, "&to=");
	path = cli_path(cli, path, to, "");
	if (tenant != NULL)
		path = cli_path(cli, arena_printf(cli->arena, "%s&tenant=", path), tenant, "");
	if (idle != NULL)
		path = cli_path(cli, arena_printf(cli->arena, "%s&idle=", path), idle, "");
	if (cli->format == CLI_CSV) // with the proof, as the server writes it
		return cli_show_text(cli, arena_printf(cli->arena, "%s&format=csv", path),
				     "text/csv");
	json_t *answer = NULL;
	int code = cli_call(cli, "GET", path, NULL, &answer);
	if (code != CLI_OK)
		return code;
	if (cli->format == CLI_JSON)
		cli_print_json(answer);
	else
		print_table(cli, answer);
	json_decref(answer);
	return CLI_OK;
}

// assets, prices or pools: shows the current document, or with -f makes a new version.
int verb_bill_documents(struct cli *cli, int argc, char **argv)
{
	const char *file = NULL;
	struct cli_option options[] = { { "-f", &file, NULL, 0 } };
	int count;
	if (!cli_options(cli, argc, argv, options, ARRAY_COUNT(options), &count))
		return CLI_USAGE;
	static const char *const kinds[] = { "assets", "prices", "pools" };
	size_t kind = 0;
	while (kind < ARRAY_COUNT(kinds) && (count != 1 || strcmp(kinds[kind], argv[0]) != 0))
		kind++;
	if (kind == ARRAY_COUNT(kinds))
		return cli_usage("bill document", "want assets, prices or pools");
	const char *path = arena_printf(cli->arena, "/v1/%s", kinds[kind]);
	AUTO(buf_done) struct buf text = { 0 };
	AUTO(json_decrefp) json_t *body = NULL;
	struct err err = { 0 };
	if (file != NULL && (fs_read(file, DOCUMENT_MAX_BYTES, &text, &err) != ERR_OK ||
			     json_parse(buf_str(&text), &body, &err) != ERR_OK))
		return cli_usage("bill document", "%s: %s", file, err.text);
	json_t *answer = NULL;
	int code = cli_call(cli, file == NULL ? "GET" : "POST", path, body, &answer);
	if (code == CLI_OK && file == NULL)
		cli_print_json(answer);
	json_decref(answer);
	return code;
}
