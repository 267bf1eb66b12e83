// SPDX-License-Identifier: Apache-2.0
#include "base/money.h"
#include "billing/bill_format.h"
#include "cli/cli.h"
#include "cli/offline.h"

enum { BILL_MAX_BYTES = 512 * 1024 * 1024 };

enum { OPTION_OFFLINE, OPTION_FROM, OPTION_TO, OPTION_IDLE };

static const struct option options[] = {
	[OPTION_OFFLINE] = { .name = "offline",
			     .value = "DIR",
			     .is_needed = true,
			     .help = "Folder with events*.jsonl, assets.json, prices.json, "
				     "pools.json" },
	[OPTION_FROM] = { .name = "from",
			  .value = "TIME",
			  .is_needed = true,
			  .help = "Begin of the period, UTC, as 2026-02-10T00:00:00Z" },
	[OPTION_TO] = { .name = "to",
			.value = "TIME",
			.is_needed = true,
			.help = "Its end, which is not in it" },
	[OPTION_IDLE] = { .name = "idle",
			  .value = "keep|share-per-gpu",
			  .help = "Idle rule, instead of that of pools.json" },
};

static void put_table_row(struct buf *out, struct str name, const int64_t *amounts, size_t count)
{
	char text[MONEY_TEXT_BYTES];
	buf_printf(out, "%-24.*s", STR_ARG(name));
	for (size_t i = 0; i < count; i++)
		buf_printf(out, " %22s", money_format(amounts[i], text));
	buf_put_byte(out, '\n');
}

static void put_table(struct buf *out, const struct bill *bill)
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
		put_table_row(out, line->tenant, row, COLUMNS);
	}
	const int64_t owned[COLUMNS] = { bill->assets_nano, bill->energy_nano, bill->pools_nano,
					 bill->tco_nano };
	put_table_row(out, STR("sum of lines"), sums, COLUMNS);
	put_table_row(out, STR("total cost of ownership"), owned, COLUMNS);
	buf_printf(out, "Amounts in " STR_FMT ".\n", STR_ARG(bill->currency));
}

static int print_bill(const struct cli *cli, const struct bill *bill)
{
	AUTO(buf_done) struct buf out = { .limit = BILL_MAX_BYTES };
	switch (cli->format) {
	case CLI_TABLE: put_table(&out, bill); break;
	case CLI_JSON: bill_format_json(&out, bill); break;
	case CLI_CSV: bill_format_csv(&out, bill, (struct str){ NULL, 0 }); break;
	}
	struct err err;
	if (!buf_ok(&out)) {
		(void)err_set(&err, ERR_LIMIT, "no memory to write the bill");
		return cli_fail(&err);
	}
	int code = cli_print(buf_str(&out));
	for (size_t i = 0; i < bill->gpus_without_asset_count; i++)
		cli_warn("GPU " STR_FMT " is in no asset: its capacity costs nothing",
			 STR_ARG(bill->gpus_without_asset[i]));
	int64_t difference = bill_difference_nano(bill);
	if (code != 0 || difference == 0)
		return code;
	(void)err_set(&err, ERR_INTERNAL,
		      "the lines differ from the total cost of ownership by "
		      "%lld nano units",
		      (long long)difference);
	return cli_fail(&err);
}

static err_status parse_period(const struct cli *cli, struct rate_input *input, struct err *err)
{
	const char *const *values = cli->args->values;
	err_status status = cli_parse_instant("from", values[OPTION_FROM], &input->from_s, err);
	if (status == ERR_OK)
		status = cli_parse_instant("to", values[OPTION_TO], &input->to_s, err);
	if (status == ERR_OK && input->from_s >= input->to_s)
		return err_set(err, ERR_INVALID, "--to must be after --from");
	if (status == ERR_OK && values[OPTION_IDLE] != NULL &&
	    !book_parse_idle_rule(str_of(values[OPTION_IDLE]), &input->idle))
		return err_set(err, ERR_INVALID, "--idle must be keep or share-per-gpu");
	return status;
}

static err_status rate_folder(struct cli *cli, struct rate_input *input, struct offline *offline,
			      struct bill *ret_bill, struct err *err)
{
	err_status status =
		offline_load(cli->arena, cli->args->values[OPTION_OFFLINE], offline, err);
	if (status != ERR_OK)
		return status;
	input->assets = &offline->assets;
	input->prices = &offline->prices;
	input->pools = &offline->pools;
	input->zone = offline->zone;
	input->usage = offline->usage;
	if (cli->args->values[OPTION_IDLE] == NULL)
		input->idle = offline->pools.idle;
	return rate(cli->arena, input, ret_bill, err);
}

static int run(struct cli *cli)
{
	AUTO(offline_done) struct offline offline = { .usage = NULL };
	struct rate_input input = { .from_s = 0 };
	struct bill bill;
	struct err err;
	if (parse_period(cli, &input, &err) != ERR_OK)
		return cli_fail_usage("%s", err.text);
	if (rate_folder(cli, &input, &offline, &bill, &err) != ERR_OK)
		return cli_fail(&err);
	return print_bill(cli, &bill);
}

const struct verb verb_bill_rate = {
	.words = "bill rate",
	.operands = "",
	.summary = "Rate usage from files, without a server",
	.details = "Prints what every tenant costs over the period. JSON has whole nano units "
		   "(1e-9 of the\ncurrency). Exit code 9 when tenants and unallocated do not add "
		   "up to the total cost\nof ownership.",
	.is_offline = true,
	.options = options,
	.option_count = ARRAY_COUNT(options),
	.run = run,
};
