// SPDX-License-Identifier: Apache-2.0
// What a bill is made with besides usage: the assets that cost money, the prices of energy, the
// shared pools. Each is parsed from one JSON document whose members are named in the error when
// they are wrong; unknown members are refused, so that a misspelt price never counts as absent.
// Everything lives in the arena given.
#pragma once

#include "base/arena.h"

struct asset_gpu {
	struct str id;
	struct str model; // may be empty
};

struct asset {
	struct str id;
	struct asset_gpu *gpus; // by id, ascending
	size_t gpu_count;
	int64_t cost_nano, salvage_nano, support_per_year_nano;
	int64_t in_service_s, end_of_life_s;
};

struct assets {
	struct str currency;
	struct asset *items; // by id, ascending
	size_t count;
};

struct pue {
	int64_t from_s;
	int64_t value_nano; // 1.5 is 1500000000
};

struct tariff_rule {
	int from_minute, to_minute; // of the local day; to <= from: over midnight
	int64_t per_kwh_nano;
};

struct tariff {
	int64_t from_s;
	struct tariff_rule *rules;
	size_t rule_count;
};

struct prices {
	struct str time_zone;
	struct pue *pues; // by from_s, ascending
	size_t pue_count;
	struct tariff *tariffs; // by from_s, ascending
	size_t tariff_count;
};

typedef enum pool_rule {
	POOL_NONE,
	POOL_EVEN,
	POOL_DIRECT_COST,
	POOL_GPU_SECONDS,
	POOL_QUOTA,
	POOL_FIXED,
} pool_rule;

struct pool_weight {
	struct str tenant;
	int64_t weight_nano;
};

struct pool {
	struct str id;
	int64_t cost_nano;
	int64_t from_s, to_s;
	pool_rule rule;
	struct pool_weight *weights; // of quota and fixed
	size_t weight_count;
};

typedef enum idle_rule { IDLE_KEEP, IDLE_SHARE_PER_GPU } idle_rule;

struct pools {
	struct pool *items; // by id, ascending
	size_t count;
	idle_rule idle;
};

MUST_USE err_status book_parse_assets(struct arena *arena, struct str json,
				      struct assets *ret_assets, struct err *err);
MUST_USE err_status book_parse_prices(struct arena *arena, struct str json,
				      struct prices *ret_prices, struct err *err);
MUST_USE err_status book_parse_pools(struct arena *arena, struct str json, struct pools *ret_pools,
				     struct err *err);
MUST_USE bool book_parse_idle_rule(struct str text, idle_rule *ret_rule);
const char *book_idle_rule_name(idle_rule rule);
