// SPDX-License-Identifier: Apache-2.0
#include "billing/bill_format.h"

#include "base/money.h"
#include "base/timefmt.h"

// How amounts are written: whole nano units or decimal text in quotes.
typedef void put_money_fn(struct buf *out, int64_t nano);

static void put_nano(struct buf *out, int64_t nano) { buf_printf(out, "%lld", (long long)nano); }

static void put_decimal(struct buf *out, int64_t nano)
{
	char text[MONEY_TEXT_BYTES];
	buf_printf(out, "\"%s\"", money_format(nano, text));
}

static void put_member(struct buf *out, const char *name, int64_t nano, put_money_fn *put)
{
	buf_printf(out, "\"%s\":", name);
	put(out, nano);
}

static void put_line(struct buf *out, const struct bill_line *line, put_money_fn *put)
{
	buf_put_json(out, line->tenant);
	buf_put_c(out, ":{");
	put_member(out, "capacity", line->capacity_nano, put);
	buf_put_byte(out, ',');
	put_member(out, "energy", line->energy_nano, put);
	buf_put_byte(out, ',');
	// Pools reach the unallocated part only when nobody used anything.
	if (!line->is_unallocated || line->shared_nano != 0) {
		put_member(out, "shared", line->shared_nano, put);
		buf_put_byte(out, ',');
	}
	put_member(out, "total", line->total_nano, put);
	buf_put_byte(out, '}');
}

static void put_head(struct buf *out, const struct bill *bill)
{
	char from[TIME_TEXT_BYTES], to[TIME_TEXT_BYTES];
	buf_printf(out,
		   "{\"from\":\"%s\",\"to\":\"%s\",\"currency\":", time_format(bill->from_s, from),
		   time_format(bill->to_s, to));
	buf_put_json(out, bill->currency);
	buf_printf(out, ",\"idle_rule\":\"%s\"", book_idle_rule_name(bill->idle));
}

static bool is_wanted(const struct bill_line *line, struct str tenant)
{
	return tenant.len == 0 || str_eq(line->tenant, tenant);
}

static void put_lines(struct buf *out, const struct bill *bill, struct str tenant,
		      put_money_fn *put)
{
	const char *before = "";
	for (size_t i = 0; i < bill->line_count; i++) {
		if (!is_wanted(&bill->lines[i], tenant))
			continue;
		buf_put_c(out, before);
		put_line(out, &bill->lines[i], put);
		before = ",";
	}
	if (before[0] == '\0' && tenant.len > 0) // used nothing
		put_line(out, &(struct bill_line){ .tenant = tenant }, put);
}

typedef void put_value_fn(struct buf *out, const struct bill_line *line, put_money_fn *put);

static void put_idle(struct buf *out, const struct bill_line *line, put_money_fn *put)
{
	put(out, line->idle_shared_nano);
}

static void put_cents(struct buf *out, const struct bill_line *line, put_money_fn *put)
{
	(void)put; // always whole
	put_nano(out, line->cents);
}

static void put_seconds(struct buf *out, const struct bill_line *line, put_money_fn *put)
{
	(void)put; // always decimal
	if (line->gpu_seconds_nano < 0)
		buf_put_c(out, "null");
	else
		put_decimal(out, line->gpu_seconds_nano);
}

struct column {
	const char *name;
	put_value_fn *value;
};

// One number a line; idle time that nobody is left with is not listed.
static void put_column(struct buf *out, const struct bill *bill, struct str tenant,
		       const struct column *column, put_money_fn *put)
{
	const char *before = "";
	buf_printf(out, ",\"%s\":{", column->name);
	for (size_t i = 0; i < bill->line_count; i++) {
		const struct bill_line *line = &bill->lines[i];
		if (!is_wanted(line, tenant) ||
		    (column->value == put_idle && line->is_unallocated &&
		     line->idle_shared_nano == 0))
			continue;
		buf_put_c(out, before);
		buf_put_json(out, line->tenant);
		buf_put_byte(out, ':');
		column->value(out, line, put);
		before = ",";
	}
	buf_put_byte(out, '}');
}

// What both forms tell of the tenants.
static void put_tenants(struct buf *out, const struct bill *bill, struct str tenant,
			put_money_fn *put)
{
	static const struct column columns[] = { { "idle_shared_capacity", put_idle },
						 { "invoice_cents", put_cents },
						 { "gpu_seconds", put_seconds } };
	buf_put_c(out, ",\"by_tenant\":{");
	put_lines(out, bill, tenant, put);
	buf_put_byte(out, '}');
	for (size_t i = 0; i < ARRAY_COUNT(columns); i++)
		put_column(out, bill, tenant, &columns[i], put);
}

static void put_proof(struct buf *out, const struct bill *bill, put_money_fn *put)
{
	buf_put_c(out, ",\"conservation\":{");
	put_member(out, "assets", bill->assets_nano, put);
	buf_put_byte(out, ',');
	put_member(out, "energy", bill->energy_nano, put);
	buf_put_byte(out, ',');
	put_member(out, "pools", bill->pools_nano, put);
	buf_put_byte(out, ',');
	put_member(out, "tenants_and_unallocated", bill->tco_nano + bill_difference_nano(bill),
		   put);
	buf_put_byte(out, ',');
	put_member(out, "difference", bill_difference_nano(bill), put);
	buf_put_c(out, "},\"gpus_without_asset\":[");
	for (size_t i = 0; i < bill->gpus_without_asset_count; i++) {
		buf_put_c(out, i == 0 ? "" : ",");
		buf_put_json(out, bill->gpus_without_asset[i]);
	}
	buf_put_c(out, "]");
}

void bill_format_json(struct buf *out, const struct bill *bill)
{
	put_head(out, bill);
	buf_put_byte(out, ',');
	put_member(out, "tco_nano", bill->tco_nano, put_nano);
	put_tenants(out, bill, (struct str){ NULL, 0 }, put_nano);
	buf_printf(out, ",\"energy_mj\":\"%lld\"", (long long)bill->energy_mj);
	put_proof(out, bill, put_nano);
	buf_put_c(out, "}\n");
}

void bill_format_json_decimal(struct buf *out, const struct bill *bill, struct str tenant)
{
	put_head(out, bill);
	if (tenant.len == 0) {
		buf_put_byte(out, ',');
		put_member(out, "tco", bill->tco_nano, put_decimal);
	}
	put_tenants(out, bill, tenant, put_decimal);
	if (tenant.len == 0)
		put_proof(out, bill, put_decimal);
	buf_put_c(out, "}\n");
}

// A field that spreadsheets would take as a formula, or that holds a separator, is quoted, the
// first kind with an apostrophe before it.
static void put_csv_text(struct buf *out, struct str text)
{
	bool formula = text.len > 0 && strchr("=+-@\t\r", text.data[0]) != NULL;
	buf_put_byte(out, '"');
	if (formula)
		buf_put_byte(out, '\'');
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] == '"')
			buf_put_byte(out, '"');
		buf_put_byte(out, text.data[i]);
	}
	buf_put_byte(out, '"');
}

static void put_csv_row(struct buf *out, struct str name, const struct bill *bill,
			const struct bill_line *line)
{
	char text[MONEY_TEXT_BYTES], from[TIME_TEXT_BYTES], to[TIME_TEXT_BYTES];
	buf_printf(out, "%s,%s,", time_format(bill->from_s, from), time_format(bill->to_s, to));
	put_csv_text(out, name);
	buf_put_byte(out, ',');
	put_csv_text(out, bill->currency);
	const int64_t amounts[] = { line->capacity_nano, line->energy_nano, line->shared_nano,
				    line->total_nano, line->idle_shared_nano };
	for (size_t i = 0; i < ARRAY_COUNT(amounts); i++)
		buf_printf(out, ",%s", money_format(amounts[i], text));
	buf_printf(out, ",%lld,%s\r\n", (long long)line->cents,
		   line->gpu_seconds_nano < 0 ? "" : money_format(line->gpu_seconds_nano, text));
}

// The sum is unknown when a line is, or when it does not fit: about 292 GPUs for a year.
static void add_seconds(struct bill_line *sum, const struct bill_line *line)
{
	if (sum->gpu_seconds_nano < 0 || line->gpu_seconds_nano < 0 ||
	    __builtin_add_overflow(sum->gpu_seconds_nano, line->gpu_seconds_nano,
				   &sum->gpu_seconds_nano))
		sum->gpu_seconds_nano = -1;
}

void bill_format_csv(struct buf *out, const struct bill *bill, struct str tenant)
{
	struct bill_line sum = { 0 }, total = { 0 }, difference = { 0 };
	buf_put_c(out, "from,to,tenant,currency,capacity,energy,shared,total,"
		       "idle_shared_capacity,invoice_cents,gpu_seconds\r\n");
	bool any = false;
	for (size_t i = 0; i < bill->line_count; i++) {
		const struct bill_line *line = &bill->lines[i];
		if (is_wanted(line, tenant))
			put_csv_row(out, line->tenant, bill, line);
		any = any || is_wanted(line, tenant);
		sum.capacity_nano += line->capacity_nano;
		sum.energy_nano += line->energy_nano;
		sum.shared_nano += line->shared_nano;
		sum.total_nano += line->total_nano;
		sum.idle_shared_nano += line->idle_shared_nano;
		sum.cents += line->cents;
		add_seconds(&sum, line);
	}
	if (!any && tenant.len > 0)
		put_csv_row(out, tenant, bill, &(struct bill_line){ .tenant = tenant });
	if (tenant.len > 0)
		return;
	total = (struct bill_line){ .capacity_nano = bill->assets_nano,
				    .energy_nano = bill->energy_nano,
				    .shared_nano = bill->pools_nano,
				    .total_nano = bill->tco_nano,
				    .idle_shared_nano = bill->assets_nano,
				    .cents = money_to_cents(bill->tco_nano),
				    .gpu_seconds_nano = sum.gpu_seconds_nano };
	difference.capacity_nano = sum.capacity_nano - total.capacity_nano;
	difference.energy_nano = sum.energy_nano - total.energy_nano;
	difference.shared_nano = sum.shared_nano - total.shared_nano;
	difference.total_nano = sum.total_nano - total.total_nano;
	difference.idle_shared_nano = sum.idle_shared_nano - total.idle_shared_nano;
	difference.cents = sum.cents - total.cents;
	put_csv_row(out, STR("~sum of lines"), bill, &sum);
	put_csv_row(out, STR("~total cost of ownership"), bill, &total);
	put_csv_row(out, STR("~difference"), bill, &difference);
}
