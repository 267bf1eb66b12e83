// SPDX-License-Identifier: Apache-2.0
#include "base/buf.h"
#include "base/money.h"
#include "base/timefmt.h"
#include "billing/bill_format.h"
#include "cli/offline.h"
#include "cli/verbs.h"

#include <stdio.h>

enum { BILL_MAX_BYTES = 512 * 1024 * 1024 };

// 9999-12-31T00:00:00Z: later instants have no text in UTC.
static const int64_t INSTANT_MAX_S = INT64_C(253402214400);

struct rate_options {
	const char *folder, *from, *to, *idle;
};

static void put_table_row(struct buf *out, const char *name, const int64_t *amounts, size_t count)
{
	char text[MONEY_TEXT_BYTES];
	buf_printf(out, "%-24s", name);
	for (size_t i = 0; i < count; i++)
		buf_printf(out, " %22s", money_format(amounts[i], text));
	buf_put_byte(out, '\n');
}

static void put_table(struct cli *cli, struct buf *out, const struct bill *bill)
{
	enum { COLUMNS = 4 };
	int64_t sums[COLUMNS] = { 0 };
	buf_printf(out, "%-24s %22s %22s %22s %22s\n", "TENANT", "CAPACITY", "ENERGY", "SHARED",
		   "TOTAL");
	for (size_t i = 0; i < bill->line_count; i++) {
		const struct bill_line *line = &bill->lines[i];
		const int64_t row[COLUMNS] = { line->capacity_nano, line->energy_nano,
					       line->shared_nano, line->total_nano };
		for (size_t k = 0; k < COLUMNS; k++)
			sums[k] += row[k];
		put_table_row(out, cli_plain(cli, line->tenant), row, COLUMNS);
	}
	const int64_t owned[COLUMNS] = { bill->assets_nano, bill->energy_nano, bill->pools_nano,
					 bill->tco_nano };
	put_table_row(out, "sum of lines", sums, COLUMNS);
	put_table_row(out, "total cost of ownership", owned, COLUMNS);
	buf_printf(out, "Amounts in %s.\n", cli_plain(cli, bill->currency));
}

static int print_bill(struct cli *cli, const struct bill *bill)
{
	AUTO(buf_done) struct buf out = { .limit = BILL_MAX_BYTES };
	struct err err;
	if (cli->format == CLI_JSON)
		bill_format_json(&out, bill);
	else if (cli->format == CLI_CSV)
		bill_format_csv(&out, bill, (struct str){ NULL, 0 });
	else
		put_table(cli, &out, bill);
	if (!buf_ok(&out)) {
		(void)err_set(&err, ERR_LIMIT, "no memory to write the bill");
		return cli_fail(&err);
	}
	if (fwrite(out.data, 1, out.len, stdout) != out.len)
		return CLI_FAILED;
	for (size_t i = 0; i < bill->gpus_without_asset_count; i++)
		(void)fprintf(stderr,
			      "warning: GPU %s is in no asset, its capacity costs nothing\n",
			      cli_plain(cli, bill->gpus_without_asset[i]));
	int64_t difference = bill_difference_nano(bill);
	if (difference == 0)
		return CLI_OK;
	(void)err_set(&err, ERR_INTERNAL,
		      "the lines differ from the total cost of ownership by %lld nano units",
		      (long long)difference);
	return cli_fail(&err);
}

static err_status parse_instant(const char *name, const char *text, int64_t *ret_s, struct err *err)
{
	uint32_t ns;
	int64_t t_s;
	if (text == NULL || !time_parse(str_of(text), &t_s, &ns) || ns != 0 || t_s < 0 ||
	    t_s > INSTANT_MAX_S)
		return err_set(err, ERR_INVALID,
			       "%s must be an instant in whole seconds, as 2026-02-10T00:00:00Z",
			       name);
	*ret_s = t_s;
	return ERR_OK;
}

static err_status parse_options(const struct rate_options *options, struct rate_input *input,
				struct err *err)
{
	if (options->folder == NULL)
		return err_set(err, ERR_INVALID, "--offline DIR is needed");
	err_status status = parse_instant("--from", options->from, &input->from_s, err);
	if (status == ERR_OK)
		status = parse_instant("--to", options->to, &input->to_s, err);
	if (status == ERR_OK && input->from_s >= input->to_s)
		return err_set(err, ERR_INVALID, "--to must be after --from");
	if (status == ERR_OK && options->idle != NULL &&
	    !book_parse_idle_rule(str_of(options->idle), &input->idle))
		return err_set(err, ERR_INVALID, "--idle must be keep or share-per-gpu");
	return status;
}

static err_status rate_folder(struct cli *cli, const struct rate_options *options,
			      struct rate_input *input, struct offline *offline,
			      struct bill *ret_bill, struct err *err)
{
	err_status status = offline_load(cli->arena, options->folder, offline, err);
	if (status != ERR_OK)
		return status;
	input->assets = &offline->assets;
	input->prices = &offline->prices;
	input->pools = &offline->pools;
	input->zone = offline->zone;
	input->usage = offline->usage;
	if (options->idle == NULL)
		input->idle = offline->pools.idle;
	return rate(cli->arena, input, ret_bill, err);
}

int verb_bill_rate(struct cli *cli, int argc, char **argv)
{
	AUTO(offline_done) struct offline offline = { .usage = NULL };
	struct rate_options values = { NULL, NULL, NULL, NULL };
	struct cli_option options[] = {
		{ "--offline", &values.folder, NULL, 0 },
		{ "--from", &values.from, NULL, 0 },
		{ "--to", &values.to, NULL, 0 },
		{ "--idle", &values.idle, NULL, 0 },
	};
	struct rate_input input = { .from_s = 0 };
	struct bill bill;
	struct err err;
	int count;
	if (!cli_options(cli, argc, argv, options, ARRAY_COUNT(options), &count))
		return CLI_USAGE;
	if (count != 0)
		return cli_usage("bill rate", "unexpected \"%.60s\"", argv[0]);
	if (parse_options(&values, &input, &err) != ERR_OK)
		return cli_usage("bill rate", "%s", err.text);
	if (rate_folder(cli, &values, &input, &offline, &bill, &err) != ERR_OK)
		return cli_fail(&err);
	return print_bill(cli, &bill);
}
