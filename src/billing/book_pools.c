// SPDX-License-Identifier: Apache-2.0
#include "billing/book.h"

#include "base/money.h"
#include "billing/book_read.h"

#include <stdlib.h>

static const struct {
	const char *name;
	bool weighted; // the weights come with the pool
} pool_rules[] = {
	[POOL_NONE] = { "none", false },
	[POOL_EVEN] = { "even", false },
	[POOL_DIRECT_COST] = { "direct-cost", false },
	[POOL_GPU_SECONDS] = { "gpu-seconds", false },
	[POOL_QUOTA] = { "quota", true },
	[POOL_FIXED] = { "fixed", true },
};

static const char *const idle_rules[] = {
	[IDLE_KEEP] = "keep",
	[IDLE_SHARE_PER_GPU] = "share-per-gpu",
};

bool book_parse_idle_rule(struct str text, idle_rule *ret_rule)
{
	for (size_t i = 0; i < ARRAY_COUNT(idle_rules); i++) {
		if (!str_eq_c(text, idle_rules[i]))
			continue;
		*ret_rule = (idle_rule)i;
		return true;
	}
	return false;
}

const char *book_idle_rule_name(idle_rule rule)
{
	ASSERT((size_t)rule < ARRAY_COUNT(idle_rules));
	return idle_rules[rule];
}

static err_status parse_rule(const json_t *object, pool_rule *ret_rule, struct err *err)
{
	struct str text;
	if (json_need_text(object, "rule", &text, err) != ERR_OK)
		return err->status;
	for (size_t i = 0; i < ARRAY_COUNT(pool_rules); i++) {
		if (!str_eq_c(text, pool_rules[i].name))
			continue;
		*ret_rule = (pool_rule)i;
		return ERR_OK;
	}
	return err_set(err, ERR_INVALID,
		       "rule must be none, even, direct-cost, gpu-seconds, quota or fixed");
}

static err_status check_percent(const struct pool *pool, struct err *err)
{
	wide sum = 0;
	for (size_t i = 0; i < pool->weight_count; i++)
		sum += pool->weights[i].weight_nano;
	if (pool->rule == POOL_FIXED && sum != (wide)100 * MONEY_NANO_PER_UNIT)
		return err_set(err, ERR_INVALID,
			       "weights of rule fixed are per cent and must sum to 100");
	return ERR_OK;
}

static err_status parse_weights(struct arena *arena, const json_t *object, struct pool *pool,
				struct err *err)
{
	const json_t *weights = json_at(object, "weights");
	if (!pool_rules[pool->rule].weighted)
		return weights == NULL ? ERR_OK
				       : err_set(err, ERR_INVALID,
						 "weights go with rule quota or "
						 "fixed only");
	if (!json_is_object(weights))
		return err_set(err, ERR_INVALID,
			       "weights must be an object of tenant and decimal in quotes");
	size_t count = json_object_size(weights);
	pool->weights = ARENA_ARRAY(arena, struct pool_weight, max_size(count, 1));
	if (pool->weights == NULL)
		return err_set(err, ERR_LIMIT, "no memory for %zu weights", count);
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)weights, key, value)
	{
		struct pool_weight *weight = &pool->weights[pool->weight_count++];
		weight->tenant = arena_dup(arena, str_of(key));
		if (weight->tenant.len == 0 || key[0] == '~' || !json_is_string(value) ||
		    !money_parse(str_of(json_string_value(value)), &weight->weight_nano) ||
		    weight->weight_nano < 0)
			return err_set(err, ERR_INVALID,
				       "weights.%.80s must be a tenant with a "
				       "decimal in quotes, 0 or more",
				       key);
	}
	return check_percent(pool, err);
}

static err_status parse_pool(struct arena *arena, const json_t *object, struct pool *pool,
			     struct err *err)
{
	static const char *const keys[] = { "id", "cost", "from", "to", "rule", "weights", NULL };
	err_status status = json_only_keys(object, keys, err);
	if (status == ERR_OK)
		status = book_text(arena, object, "id", &pool->id, err);
	if (status == ERR_OK)
		status = book_decimal(object, "cost", NULL, &pool->cost_nano, err);
	if (status == ERR_OK)
		status = book_instant(object, "from", &pool->from_s, err);
	if (status == ERR_OK)
		status = book_instant(object, "to", &pool->to_s, err);
	if (status == ERR_OK && pool->to_s <= pool->from_s)
		return err_set(err, ERR_INVALID, "to must be after from");
	if (status == ERR_OK)
		status = parse_rule(object, &pool->rule, err);
	return status == ERR_OK ? parse_weights(arena, object, pool, err) : status;
}

static int by_id(const void *left, const void *right)
{
	return str_cmp(((const struct pool *)left)->id, ((const struct pool *)right)->id);
}

static err_status parse_document(struct arena *arena, const json_t *document, struct pools *pools,
				 struct err *err)
{
	static const char *const keys[] = { "pools", "idle_rule", NULL };
	err_status status = json_only_keys(document, keys, err);
	if (status == ERR_OK)
		status = book_array(arena, document, "pools", sizeof(struct pool), &pools->items,
				    &pools->count, err);
	for (size_t i = 0; status == ERR_OK && i < pools->count; i++) {
		const json_t *item = json_array_get(json_at(document, "pools"), i);
		if (parse_pool(arena, item, &pools->items[i], err) != ERR_OK)
			return err_wrap(err, "pools[%zu]", i);
	}
	if (status == ERR_OK && json_at(document, "idle_rule") != NULL &&
	    !book_parse_idle_rule(json_text(document, "idle_rule"), &pools->idle))
		return err_set(err, ERR_INVALID, "idle_rule must be keep or share-per-gpu");
	if (status != ERR_OK)
		return status;
	qsort(pools->items, pools->count, sizeof *pools->items, by_id);
	for (size_t i = 1; i < pools->count; i++)
		if (str_eq(pools->items[i - 1].id, pools->items[i].id))
			return err_set(err, ERR_INVALID, "pool \"%.100s\" is listed twice",
				       pools->items[i].id.data);
	return ERR_OK;
}

err_status book_parse_pools(struct arena *arena, struct str json, struct pools *ret_pools,
			    struct err *err)
{
	AUTO(json_decrefp) json_t *document = NULL;
	struct pools pools = { 0 };
	err_status status = json_parse(json, &document, err);
	if (status == ERR_OK)
		status = parse_document(arena, document, &pools, err);
	if (status == ERR_OK)
		*ret_pools = pools;
	return status;
}
