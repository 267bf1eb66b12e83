// SPDX-License-Identifier: Apache-2.0
#include "api/refusals.h"

#include "base/map.h"

#include <stdio.h>
#include <stdlib.h>

enum { TEXT_BYTES = 140, KEY_BYTES = 4 * TEXT_BYTES };
#define WINDOW_NS UINT64_C(60000000000)

struct caller {
	char actor[TEXT_BYTES], role[TEXT_BYTES], tenant[TEXT_BYTES], peer[TEXT_BYTES];
	uint64_t begun_ns;
	int64_t recorded, left_out;
};

struct refusals {
	struct map *callers;
	size_t keys_max;
	int64_t per_minute;
};

struct refusals *refusals_new(size_t keys_max, int64_t per_minute)
{
	ASSERT(keys_max > 0 && per_minute > 0);
	struct refusals *refusals = calloc(1, sizeof *refusals);
	if (refusals == NULL)
		return NULL;
	refusals->callers = map_new(0x9e3779b97f4a7c15u);
	refusals->keys_max = keys_max;
	refusals->per_minute = per_minute;
	return refusals;
}

void refusals_free(struct refusals *refusals)
{
	if (refusals == NULL)
		return;
	struct str key;
	void *value;
	for (size_t i = 0; map_next(refusals->callers, &i, &key, &value);)
		free(value);
	map_free(refusals->callers);
	free(refusals);
}

static void keep(char out[TEXT_BYTES], struct str text)
{
	(void)snprintf(out, TEXT_BYTES, STR_FMT, STR_ARG(text));
}

// Neither names nor addresses hold blanks.
static struct str key_of(const struct refused *who, char out[KEY_BYTES])
{
	(void)snprintf(out, KEY_BYTES, STR_FMT " " STR_FMT " " STR_FMT " " STR_FMT,
		       STR_ARG(who->actor), STR_ARG(who->role), STR_ARG(who->tenant),
		       STR_ARG(who->peer));
	return str_of(out);
}

static struct caller *find_or_add(struct refusals *refusals, const struct refused *who,
				  uint64_t now_ns)
{
	char text[KEY_BYTES];
	static const struct refused others = { { "others", 6 }, { "", 0 }, { "", 0 }, { "", 0 } };
	struct caller *caller = map_find(refusals->callers, key_of(who, text));
	if (caller != NULL)
		return caller;
	if (map_count(refusals->callers) >= refusals->keys_max) {
		who = &others;
		caller = map_find(refusals->callers, key_of(who, text));
		if (caller != NULL)
			return caller;
	}
	caller = calloc(1, sizeof *caller);
	ASSERT(caller != NULL);
	keep(caller->actor, who->actor);
	keep(caller->role, who->role);
	keep(caller->tenant, who->tenant);
	keep(caller->peer, who->peer);
	caller->begun_ns = now_ns;
	(void)map_set(refusals->callers, key_of(who, text), caller);
	return caller;
}

bool refusals_take(struct refusals *refusals, const struct refused *who, uint64_t now_ns)
{
	struct caller *caller = find_or_add(refusals, who, now_ns);
	// A new minute begins only when the count of the last one has been told.
	if (caller->left_out == 0 && now_ns - caller->begun_ns >= WINDOW_NS) {
		caller->begun_ns = now_ns;
		caller->recorded = 0;
	}
	if (caller->recorded < refusals->per_minute) {
		caller->recorded++;
		return true;
	}
	caller->left_out++;
	return false;
}

void refusals_sweep(struct refusals *refusals, uint64_t now_ns, refusals_fn *fn, void *arg)
{
	struct str key;
	void *value;
	for (size_t i = 0; map_next(refusals->callers, &i, &key, &value);) {
		struct caller *caller = value;
		if (now_ns - caller->begun_ns < WINDOW_NS)
			continue;
		struct refused who = { str_of(caller->actor), str_of(caller->role),
				       str_of(caller->tenant), str_of(caller->peer) };
		if (caller->left_out > 0)
			fn(arg, &who, caller->left_out);
		free(map_remove(refusals->callers, key));
	}
}
