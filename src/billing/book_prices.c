// SPDX-License-Identifier: Apache-2.0
#include "billing/book.h"

#include "base/money.h"
#include "billing/book_read.h"
#include "billing/zone.h"

#include <stdlib.h>

enum { DAY_MINUTES = 1440, TEXT_BYTES = 11 }; // "06:00-22:00"

// "24:00" is allowed as an end.
static bool parse_clock(struct str text, int *ret_minute)
{
	uint64_t hours, minutes;
	if (text.len != 5 || text.data[2] != ':' || !str_to_u64(str_slice(text, 0, 2), &hours) ||
	    !str_to_u64(str_slice(text, 3, 5), &minutes) || minutes > 59 ||
	    hours * 60 + minutes > DAY_MINUTES)
		return false;
	*ret_minute = (int)(hours * 60 + minutes);
	return true;
}

static err_status parse_rule(const json_t *object, struct tariff_rule *rule, struct err *err)
{
	static const char *const keys[] = { "hours", "per_kwh", NULL };
	struct str hours;
	err_status status = json_only_keys(object, keys, err);
	if (status == ERR_OK)
		status = json_need_text(object, "hours", &hours, err);
	if (status != ERR_OK)
		return status;
	if (hours.len != TEXT_BYTES || hours.data[5] != '-' ||
	    !parse_clock(str_slice(hours, 0, 5), &rule->from_minute) ||
	    !parse_clock(str_slice(hours, 6, TEXT_BYTES), &rule->to_minute) ||
	    rule->from_minute == DAY_MINUTES || rule->from_minute == rule->to_minute)
		return err_set(err, ERR_INVALID,
			       "hours must be as 06:00-22:00 or 22:00-06:00, the whole day "
			       "00:00-24:00");
	return book_decimal(object, "per_kwh", NULL, &rule->per_kwh_nano, err);
}

// Marks the minutes of the day that the rule holds; false when one was marked before.
static bool mark_minutes(bool marks[DAY_MINUTES], const struct tariff_rule *rule)
{
	int minute = rule->from_minute;
	do {
		if (marks[minute])
			return false;
		marks[minute] = true;
		minute = (minute + 1) % DAY_MINUTES;
	} while (minute != rule->to_minute % DAY_MINUTES);
	return true;
}

static err_status check_day(const struct tariff *tariff, struct err *err)
{
	bool marks[DAY_MINUTES] = { false };
	for (size_t i = 0; i < tariff->rule_count; i++)
		if (!mark_minutes(marks, &tariff->rules[i]))
			return err_set(err, ERR_INVALID, "rules[%zu] overlaps an earlier rule", i);
	for (int i = 0; i < DAY_MINUTES; i++)
		if (!marks[i])
			return err_set(err, ERR_INVALID,
				       "no rule covers %02d:%02d; the rules "
				       "must cover 24 hours",
				       i / 60, i % 60);
	return ERR_OK;
}

static err_status parse_tariff(struct arena *arena, const json_t *object, struct tariff *tariff,
			       struct err *err)
{
	static const char *const keys[] = { "from", "rules", NULL };
	err_status status = json_only_keys(object, keys, err);
	if (status == ERR_OK)
		status = book_instant(object, "from", &tariff->from_s, err);
	if (status == ERR_OK)
		status = book_array(arena, object, "rules", sizeof(struct tariff_rule),
				    &tariff->rules, &tariff->rule_count, err);
	for (size_t i = 0; status == ERR_OK && i < tariff->rule_count; i++) {
		const json_t *rule = json_array_get(json_at(object, "rules"), i);
		if (parse_rule(rule, &tariff->rules[i], err) != ERR_OK)
			return err_wrap(err, "rules[%zu]", i);
	}
	return status == ERR_OK ? check_day(tariff, err) : status;
}

static err_status parse_pue(const json_t *object, struct pue *pue, struct err *err)
{
	static const char *const keys[] = { "from", "value", NULL };
	err_status status = json_only_keys(object, keys, err);
	if (status == ERR_OK)
		status = book_instant(object, "from", &pue->from_s, err);
	if (status == ERR_OK)
		status = book_decimal(object, "value", NULL, &pue->value_nano, err);
	if (status == ERR_OK && pue->value_nano < MONEY_NANO_PER_UNIT)
		return err_set(err, ERR_INVALID, "value must be 1 or more");
	return status;
}

static int by_pue_from(const void *left, const void *right)
{
	const struct pue *a = left, *b = right;
	return a->from_s < b->from_s ? -1 : a->from_s > b->from_s;
}

static int by_tariff_from(const void *left, const void *right)
{
	const struct tariff *a = left, *b = right;
	return a->from_s < b->from_s ? -1 : a->from_s > b->from_s;
}

static err_status parse_pues(struct arena *arena, const json_t *document, struct prices *prices,
			     struct err *err)
{
	if (json_at(document, "pue") == NULL)
		return ERR_OK;
	err_status status = book_array(arena, document, "pue", sizeof(struct pue), &prices->pues,
				       &prices->pue_count, err);
	for (size_t i = 0; status == ERR_OK && i < prices->pue_count; i++) {
		const json_t *item = json_array_get(json_at(document, "pue"), i);
		if (parse_pue(item, &prices->pues[i], err) != ERR_OK)
			return err_wrap(err, "pue[%zu]", i);
	}
	if (status != ERR_OK)
		return status;
	qsort(prices->pues, prices->pue_count, sizeof *prices->pues, by_pue_from);
	for (size_t i = 1; i < prices->pue_count; i++)
		if (prices->pues[i - 1].from_s == prices->pues[i].from_s)
			return err_set(err, ERR_INVALID, "two members of pue have the same from");
	return ERR_OK;
}

static err_status parse_tariffs(struct arena *arena, const json_t *document, struct prices *prices,
				struct err *err)
{
	err_status status = book_array(arena, document, "energy_tariff", sizeof(struct tariff),
				       &prices->tariffs, &prices->tariff_count, err);
	for (size_t i = 0; status == ERR_OK && i < prices->tariff_count; i++) {
		const json_t *item = json_array_get(json_at(document, "energy_tariff"), i);
		if (parse_tariff(arena, item, &prices->tariffs[i], err) != ERR_OK)
			return err_wrap(err, "energy_tariff[%zu]", i);
	}
	if (status != ERR_OK)
		return status;
	qsort(prices->tariffs, prices->tariff_count, sizeof *prices->tariffs, by_tariff_from);
	for (size_t i = 1; i < prices->tariff_count; i++)
		if (prices->tariffs[i - 1].from_s == prices->tariffs[i].from_s)
			return err_set(err, ERR_INVALID,
				       "two members of energy_tariff have the same from");
	return ERR_OK;
}

// The rater gets shares that are already by this basis; the name is checked so that a misspelt
// one is not believed.
static err_status check_basis(const json_t *document, struct err *err)
{
	struct str basis = json_text(document, "share_basis");
	if (json_at(document, "share_basis") == NULL || str_eq_c(basis, "compute") ||
	    str_eq_c(basis, "memory") || str_eq_c(basis, "dominant"))
		return ERR_OK;
	return err_set(err, ERR_INVALID, "share_basis must be compute, memory or dominant");
}

static err_status parse_document(struct arena *arena, const json_t *document, struct prices *prices,
				 struct err *err)
{
	static const char *const keys[] = { "time_zone",    "pue",         "energy_tariff",
					    "energy_split", "share_basis", NULL };
	err_status status = json_only_keys(document, keys, err);
	if (status != ERR_OK)
		return status;
	prices->time_zone = STR("UTC");
	if (json_at(document, "time_zone") != NULL)
		status = book_text(arena, document, "time_zone", &prices->time_zone, err);
	if (status == ERR_OK && !zone_is_name(prices->time_zone))
		return err_set(err, ERR_INVALID, "time_zone must be a name as Europe/Berlin");
	if (status == ERR_OK)
		status = parse_pues(arena, document, prices, err);
	if (status == ERR_OK)
		status = parse_tariffs(arena, document, prices, err);
	if (status == ERR_OK)
		status = book_only(document, "energy_split", "allocation", err);
	return status == ERR_OK ? check_basis(document, err) : status;
}

err_status book_parse_prices(struct arena *arena, struct str json, struct prices *ret_prices,
			     struct err *err)
{
	AUTO(json_decrefp) json_t *document = NULL;
	struct prices prices = { 0 };
	err_status status = json_parse(json, &document, err);
	if (status == ERR_OK)
		status = parse_document(arena, document, &prices, err);
	if (status == ERR_OK)
		*ret_prices = prices;
	return status;
}
