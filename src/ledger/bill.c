// SPDX-License-Identifier: Apache-2.0
#include "ledger/bill.h"

#include "sys/zoneinfo.h"

enum { LINE_ARENA_BYTES = 64 * 1024 };

struct documents {
	struct assets assets;
	struct prices prices;
	struct pools pools;
	const struct zone *zone;
};

static err_status load_documents(struct ledger *ledger, struct arena *arena,
				 struct documents *documents, struct err *err)
{
	struct str json;
	err_status status = ledger_document_get(ledger, LEDGER_ASSETS, arena, &json, err);
	if (status == ERR_OK)
		status = book_parse_assets(arena, json, &documents->assets, err);
	if (status == ERR_OK)
		status = ledger_document_get(ledger, LEDGER_PRICES, arena, &json, err);
	if (status == ERR_OK)
		status = book_parse_prices(arena, json, &documents->prices, err);
	if (status == ERR_OK)
		status = ledger_document_get(ledger, LEDGER_POOLS, arena, &json, err);
	if (status == ERR_OK)
		status = book_parse_pools(arena, json, &documents->pools, err);
	if (status == ERR_OK)
		status = zone_load(arena, documents->prices.time_zone, zoneinfo_read,
				   &documents->zone, err);
	return status;
}

struct loading {
	struct arena *arena; // of one line
	struct usage *usage;
	struct err *err;
	err_status status;
};

static bool take_line(void *arg, struct str line)
{
	struct loading *loading = arg;
	struct event event;
	arena_reset(loading->arena);
	loading->status = event_parse(loading->arena, line, &event, loading->err);
	if (loading->status == ERR_OK)
		loading->status = usage_add(loading->usage, &event, loading->err);
	return loading->status == ERR_OK;
}

// All events, also those outside of the period: shares are split from the beginning of their
// stretch of constant cost, and the energy at the end of the period lies between two readings.
static err_status load_usage(struct ledger *ledger, struct usage *usage, struct err *err)
{
	AUTO(arena_freep) struct arena *arena = arena_new(LINE_ARENA_BYTES);
	if (arena == NULL)
		return err_set(err, ERR_LIMIT, "no memory for events");
	struct loading loading = { arena, usage, err, ERR_OK };
	err_status status = ledger_export(ledger, 0, INT64_MAX, (struct str){ NULL, 0 }, take_line,
					  &loading, err);
	if (status == ERR_OK)
		status = loading.status;
	return status == ERR_OK ? usage_finish(usage, err) : status;
}

static err_status rate_period(struct arena *arena, const struct ledger_period *period,
			      const struct documents *documents, const struct usage *usage,
			      struct bill *ret_bill, struct err *err)
{
	struct rate_input input = { .assets = &documents->assets,
				    .prices = &documents->prices,
				    .pools = &documents->pools,
				    .zone = documents->zone,
				    .usage = usage,
				    .from_s = period->from_s,
				    .to_s = period->to_s,
				    .idle = documents->pools.idle };
	if (period->idle.len > 0 && !book_parse_idle_rule(period->idle, &input.idle))
		return err_set(err, ERR_INVALID, "idle must be keep or share-per-gpu");
	struct bill bill;
	err_status status = rate(arena, &input, &bill, err);
	if (status != ERR_OK)
		return status;
	if (bill_difference_nano(&bill) != 0)
		return err_set(err, ERR_INTERNAL,
			       "the lines differ from the total cost of ownership by %lld nano "
			       "units; no bill is given out",
			       (long long)bill_difference_nano(&bill));
	*ret_bill = bill;
	return ERR_OK;
}

err_status ledger_bill(struct ledger *ledger, struct arena *arena,
		       const struct ledger_period *period, struct bill *ret_bill, struct err *err)
{
	AUTO(usage_freep) struct usage *usage = usage_new();
	struct documents documents = { .zone = NULL };
	if (usage == NULL)
		return err_set(err, ERR_LIMIT, "no memory for events");
	if (period->from_s >= period->to_s)
		return err_set(err, ERR_INVALID, "the period must end after it begins");
	usage_set_lenient(usage);
	err_status status = load_documents(ledger, arena, &documents, err);
	if (status == ERR_OK)
		status = load_usage(ledger, usage, err);
	if (status == ERR_OK)
		status = rate_period(arena, period, &documents, usage, ret_bill, err);
	return status;
}
