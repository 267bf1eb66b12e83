// SPDX-License-Identifier: Apache-2.0
// A folder with what a bill is made from: events.jsonl or several events*.jsonl, assets.json,
// prices.json, pools.json. Events are read line by line, so that a month of them needs no more
// memory than what the rater keeps.
#pragma once

#include "billing/rate.h"

struct offline {
	struct assets assets;
	struct prices prices;
	struct pools pools;
	const struct zone *zone;
	struct usage *usage; // finished; offline_done frees it
};

MUST_USE err_status offline_load(struct arena *arena, const char *folder,
				 struct offline *ret_offline, struct err *err);
void offline_done(struct offline *offline); // for AUTO
