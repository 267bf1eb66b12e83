// SPDX-License-Identifier: Apache-2.0
#include "billing/book.h"

#include "base/timefmt.h"
#include "billing/book_read.h"

#include <stdlib.h>

enum { LIFE_YEARS_MAX = 100 };

// The same date and time of day, years later; 29 February becomes the 28th.
static int64_t years_later(int64_t t_s, int64_t years)
{
	struct civil civil = time_to_civil(t_s);
	civil.year += (int)years;
	if (civil.month == 2 && civil.day == 29 && !time_is_leap_year(civil.year))
		civil.day = 28;
	return time_from_civil(civil);
}

static int by_text(const void *left, const void *right)
{
	return str_cmp(*(const struct str *)left, *(const struct str *)right);
}

static int by_gpu_id(const void *left, const void *right)
{
	return str_cmp(((const struct asset_gpu *)left)->id, ((const struct asset_gpu *)right)->id);
}

static int by_id(const void *left, const void *right)
{
	return str_cmp(((const struct asset *)left)->id, ((const struct asset *)right)->id);
}

static err_status parse_gpus(struct arena *arena, const json_t *object, struct asset *asset,
			     struct err *err)
{
	static const char *const keys[] = { "id", "model", "slices", NULL };
	err_status status = book_array(arena, object, "gpus", sizeof(struct asset_gpu),
				       &asset->gpus, &asset->gpu_count, err);
	if (status == ERR_OK && asset->gpu_count == 0)
		return err_set(err, ERR_INVALID,
			       "gpus is empty; what has no GPU belongs in a pool of pools.json");
	const json_t *gpus = json_at(object, "gpus");
	for (size_t i = 0; status == ERR_OK && i < asset->gpu_count; i++) {
		const json_t *gpu = json_array_get(gpus, i);
		status = json_only_keys(gpu, keys, err);
		if (status == ERR_OK)
			status = book_text(arena, gpu, "id", &asset->gpus[i].id, err);
		if (status == ERR_OK && json_at(gpu, "model") != NULL)
			status = book_text(arena, gpu, "model", &asset->gpus[i].model, err);
		if (status != ERR_OK)
			return err_wrap(err, "gpus[%zu]", i);
	}
	if (status == ERR_OK)
		qsort(asset->gpus, asset->gpu_count, sizeof *asset->gpus, by_gpu_id);
	return status;
}

static err_status parse_money(const json_t *object, struct asset *asset, struct err *err)
{
	err_status status = book_decimal(object, "cost", NULL, &asset->cost_nano, err);
	if (status == ERR_OK)
		status = book_decimal(object, "salvage", "0", &asset->salvage_nano, err);
	if (status == ERR_OK)
		status = book_decimal(object, "support_per_year", "0",
				      &asset->support_per_year_nano, err);
	if (status == ERR_OK && asset->salvage_nano > asset->cost_nano)
		return err_set(err, ERR_INVALID, "salvage is more than cost");
	return status;
}

static err_status parse_asset(struct arena *arena, const json_t *object, struct asset *asset,
			      struct err *err)
{
	static const char *const keys[] = { "id",           "gpus",
					    "cost",         "salvage",
					    "in_service",   "life_years",
					    "amortization", "support_per_year",
					    "node_to_gpu",  NULL };
	int64_t years = 0;
	err_status status = json_only_keys(object, keys, err);
	if (status == ERR_OK)
		status = book_text(arena, object, "id", &asset->id, err);
	if (status == ERR_OK)
		status = parse_gpus(arena, object, asset, err);
	if (status == ERR_OK)
		status = parse_money(object, asset, err);
	if (status == ERR_OK)
		status = book_instant(object, "in_service", &asset->in_service_s, err);
	if (status == ERR_OK)
		status = json_need_int(object, "life_years", &years, err);
	if (status == ERR_OK && (years < 1 || years > LIFE_YEARS_MAX))
		return err_set(err, ERR_INVALID, "life_years must be 1 to %d", LIFE_YEARS_MAX);
	if (status == ERR_OK)
		status = book_only(object, "amortization", "straight-line", err);
	if (status == ERR_OK)
		status = book_only(object, "node_to_gpu", "equal", err);
	if (status == ERR_OK)
		asset->end_of_life_s = years_later(asset->in_service_s, years);
	return status;
}

// A GPU in two assets would be paid twice.
static err_status check_gpus_once(struct arena *arena, const struct assets *assets, struct err *err)
{
	size_t count = 0, at = 0;
	for (size_t i = 0; i < assets->count; i++)
		count += assets->items[i].gpu_count;
	struct str *all = ARENA_ARRAY(arena, struct str, max_size(count, 1));
	if (all == NULL)
		return err_set(err, ERR_LIMIT, "no memory for %zu GPUs", count);
	for (size_t i = 0; i < assets->count; i++)
		for (size_t k = 0; k < assets->items[i].gpu_count; k++)
			all[at++] = assets->items[i].gpus[k].id;
	qsort(all, count, sizeof *all, by_text);
	for (size_t i = 1; i < count; i++)
		if (str_eq(all[i - 1], all[i]))
			return err_set(err, ERR_INVALID, "GPU \"%.100s\" is listed twice",
				       all[i].data);
	return ERR_OK;
}

static err_status parse_document(struct arena *arena, const json_t *document, struct assets *assets,
				 struct err *err)
{
	static const char *const keys[] = { "currency", "assets", NULL };
	err_status status = json_only_keys(document, keys, err);
	if (status == ERR_OK)
		status = book_text(arena, document, "currency", &assets->currency, err);
	if (status == ERR_OK)
		status = book_array(arena, document, "assets", sizeof(struct asset), &assets->items,
				    &assets->count, err);
	for (size_t i = 0; status == ERR_OK && i < assets->count; i++) {
		const json_t *item = json_array_get(json_at(document, "assets"), i);
		if (parse_asset(arena, item, &assets->items[i], err) != ERR_OK)
			return err_wrap(err, "assets[%zu]", i);
	}
	if (status != ERR_OK)
		return status;
	qsort(assets->items, assets->count, sizeof *assets->items, by_id);
	for (size_t i = 1; i < assets->count; i++)
		if (str_eq(assets->items[i - 1].id, assets->items[i].id))
			return err_set(err, ERR_INVALID, "asset \"%.100s\" is listed twice",
				       assets->items[i].id.data);
	return check_gpus_once(arena, assets, err);
}

err_status book_parse_assets(struct arena *arena, struct str json, struct assets *ret_assets,
			     struct err *err)
{
	AUTO(json_decrefp) json_t *document = NULL;
	struct assets assets = { 0 };
	err_status status = json_parse(json, &document, err);
	if (status == ERR_OK)
		status = parse_document(arena, document, &assets, err);
	if (status == ERR_OK)
		*ret_assets = assets;
	return status;
}
