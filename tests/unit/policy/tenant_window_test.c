// SPDX-License-Identifier: Apache-2.0
// Windows of tenants: what is refused with which words, and random ones against a count of every
// second and every set of models.
#include "check.h"

#include "policy/tenant_window.h"

#include "base/timefmt.h"
#include "gpu/model.h"

#include <stdio.h>

enum { NOON = 1796040000 }; // 2026-11-30T12:00:00Z

static const struct inventory CLUSTER = {
	.rows = { { .model = { "H100-80GB", 9 }, .gpus_per_node = 8, .nodes = 2 },
		  { .model = { "A100-80GB", 9 }, .gpus_per_node = 4, .nodes = 2 } },
	.count = 2,
};
static const struct inventory NOTHING = { .count = 0 };

static json_t *parse(const char *text)
{
	json_error_t where;
	json_t *value = json_loads(text, JSON_DECODE_ANY, &where);
	ASSERT(value != NULL);
	return value;
}

#define ONE(name, gpus, from, to)                                                                  \
	"{\"name\": \"" name "\", \"gpus\": " gpus ", \"start\": \"2026-12-01T" from               \
	":00Z\", \"end\": \"2026-12-01T" to ":00Z\"}"
#define H100(name, gpus, from, to)                                                                 \
	"{\"name\": \"" name "\", \"gpus\": " gpus ", \"model\": \"H100\", \"start\": "            \
	"\"2026-12-01T" from ":00Z\", \"end\": \"2026-12-01T" to ":00Z\"}"

static const struct {
	const char *windows, *says, *path; // says: part of it; NULL: good
} cases[] = {
	{ "[]", NULL, NULL },
	{ "[" H100("a", "16", "08:00", "10:00") "]", NULL, NULL },
	{ "[" H100("a", "17", "08:00", "10:00") "]",
	  "window \"a\": at 2026-12-01T08:00:00Z windows reserve 17 GPUs of H100 (lab/a 17), there "
	  "are "
	  "16; ask for fewer, or for another time",
	  "windows.a" },
	{ "[" ONE("a", "24", "08:00", "10:00") "]", NULL, NULL },
	{ "[" ONE("a", "25", "08:00", "10:00") "]", "reserve 25 GPUs (lab/a 25), there are 24",
	  "windows.a" },
	{ "[" H100("a", "16", "08:00", "10:00") "," H100("b", "16", "10:00", "12:00") "]", NULL,
	  NULL },
	{ "[" H100("a", "8", "08:00", "10:00") "," H100("b", "9", "09:59", "12:00") "]",
	  "at 2026-12-01T09:59:00Z windows reserve 17 GPUs of H100 (lab/a 8, lab/b 9)",
	  "windows.a" },
	{ "[" H100("a", "16", "08:00", "10:00") "," ONE("b", "9", "08:00", "12:00") "]",
	  "reserve 25 GPUs (lab/a 16, lab/b 9), there are 24", "windows.a" },
	// The other tenant has 10 H100 from 20:00 to 22:00.
	{ "[" H100("a", "6", "19:00", "23:00") "]", NULL, NULL },
	{ "[" H100("a", "7", "19:00", "23:00") "]",
	  "at 2026-12-01T20:00:00Z windows reserve 17 GPUs of H100 (lab/a 7, other/o 10), there "
	  "are 16",
	  "windows.a" },
	{ "[" H100("a", "16", "22:00", "23:00") "]", NULL, NULL },
	{ "[" ONE("a", "1", "10:00", "10:00") "]", "its end must be after its start", "windows.a" },
	{ "[" ONE("a", "1", "08:00", "10:00") "," ONE("a", "1", "11:00", "12:00") "]",
	  "window \"a\": the name is there twice", "windows.a" },
	{ "[{\"name\": \"a\", \"gpus\": 1, \"start\": \"2026-12-01T08:00:00Z\", \"end\": "
	  "\"2027-12-02T08:00:01Z\"}]",
	  "longer than 366 days", "windows.a" },
	{ "[{\"name\": \"past\", \"gpus\": 99, \"start\": \"2026-11-01T08:00:00Z\", \"end\": "
	  "\"2026-11-30T12:00:00Z\"}]",
	  NULL, NULL },
	{ "[{\"name\": \"now\", \"gpus\": 99, \"start\": \"2026-11-01T08:00:00Z\", \"end\": "
	  "\"2026-11-30T12:00:01Z\"}]",
	  "at 2026-11-30T12:00:00Z windows reserve 99 GPUs", "windows.now" },
	{ "[{\"name\": \"v\", \"gpus\": 1, \"model\": \"V100\", \"start\": "
	  "\"2026-12-01T08:00:00Z\", \"end\": \"2026-12-01T09:00:00Z\"}]",
	  "reserve 1 GPUs of V100 (lab/v 1), there are 0", "windows.v" },
};

static void test_cases(struct check *c)
{
	json_t *tenants =
		parse("{\"other\": [" H100("o", "10", "20:00", "22:00") "], \"lab\": [" H100(
			"old", "16", "00:00", "23:59") "]}");
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		json_t *windows = parse(cases[i].windows);
		struct tenant_windows_input in = { .tenant = STR("lab"),
						   .windows = windows,
						   .tenants = tenants,
						   .inventory = &CLUSTER,
						   .now_s = NOON };
		struct schema_fault fault = { 0 };
		struct err err = { 0 };
		bool good = tenant_windows_check(&in, &fault, &err) == ERR_OK;
		bool fits = cases[i].says == NULL ? good : !good && strstr(err.text, cases[i].says);
		CHECK(c, cases[i].windows, fits);
		if (!fits)
			fprintf(stderr, "said: %s\n", err.text);
		if (cases[i].path != NULL)
			CHECK_STR(c, "path", str_of(fault.path), cases[i].path);
		in.inventory = &NOTHING;
		bool is_size = cases[i].says == NULL || strstr(cases[i].says, "reserve") != NULL;
		CHECK(c, "as long as no GPU is known",
		      (tenant_windows_check(&in, NULL, &err) == ERR_OK) == is_size);
		json_decref(windows);
	}
	json_decref(tenants);
}

// ---- one by one

static const struct {
	const char *windows, *window, *says; // says: part of it; NULL: good
	err_status status;
} adds[] = {
	{ "[]", ONE("a", "1", "08:00", "10:00"), NULL, ERR_OK },
	{ "null", ONE("a", "1", "08:00", "10:00"), NULL, ERR_OK },
	{ "[" ONE("a", "1", "08:00", "10:00") "]", ONE("b", "1", "08:00", "10:00"), NULL, ERR_OK },
	{ "[" ONE("a", "1", "08:00", "10:00") "]", ONE("a", "2", "11:00", "12:00"),
	  "another window \"a\"", ERR_CONFLICT },
	{ "[]",
	  "{\"name\": \"past\", \"gpus\": 1, \"start\": \"2026-11-01T08:00:00Z\", \"end\": "
	  "\"2026-11-30T12:00:00Z\"}",
	  "its end is past", ERR_INVALID },
	{ "[]",
	  "{\"name\": \"now\", \"gpus\": 1, \"start\": \"2026-11-01T08:00:00Z\", \"end\": "
	  "\"2026-11-30T12:00:01Z\"}",
	  NULL, ERR_OK },
};

static void test_add(struct check *c)
{
	for (size_t i = 0; i < ARRAY_COUNT(adds); i++) {
		json_t *windows = parse(adds[i].windows), *window = parse(adds[i].window);
		json_t *all = NULL;
		struct err err = { 0 };
		size_t before = json_array_size(windows);
		CHECK_INT(c, adds[i].window, tenant_windows_add(windows, window, NOON, &all, &err),
			  adds[i].status);
		CHECK(c, adds[i].window,
		      adds[i].says == NULL || strstr(err.text, adds[i].says) != NULL);
		CHECK_INT(c, "the list itself stays", json_array_size(windows), before);
		CHECK_INT(c, "one more", json_array_size(all),
			  adds[i].status == ERR_OK ? before + 1 : 0);
		json_decref(all);
		json_decref(window);
		json_decref(windows);
	}
}

static void test_add_too_many(struct check *c)
{
	json_t *windows = json_array(), *window = parse(ONE("last", "1", "08:00", "10:00"));
	json_t *all = NULL;
	struct err err = { 0 };
	for (int i = 0; i < TENANT_WINDOWS_MAX; i++) {
		char name[16];
		(void)snprintf(name, sizeof name, "w%d", i);
		(void)json_array_append_new(windows, json_pack("{s:s}", "name", name));
	}
	CHECK_INT(c, "one too many", tenant_windows_add(windows, window, NOON, &all, &err),
		  ERR_LIMIT);
	CHECK(c, "says how many", strstr(err.text, "32") != NULL && all == NULL);
	json_decref(window);
	json_decref(windows);
}

static void test_remove(struct check *c)
{
	json_t *windows =
		parse("[" ONE("a", "1", "08:00", "10:00") "," ONE("b", "2", "08:00", "10:00") "]");
	json_t *rest = NULL;
	struct err err = { 0 };
	CHECK_INT(c, "none", tenant_windows_remove(windows, STR("c"), &rest, &err), ERR_NOT_FOUND);
	CHECK_INT(c, "no list", tenant_windows_remove(NULL, STR("a"), &rest, &err), ERR_NOT_FOUND);
	CHECK_INT(c, "a", tenant_windows_remove(windows, STR("a"), &rest, &err), ERR_OK);
	CHECK_INT(c, "one is left", json_array_size(rest), 1);
	CHECK(c, "the other", tenant_windows_find(rest, STR("b")) != NULL);
	json_decref(rest);
	json_decref(windows);
}

// What another window of the tenant lacks is not the new one's fault.
static void test_only(struct check *c)
{
	json_t *windows = parse("[" ONE("old", "99", "08:00", "10:00") "," ONE(
		"new", "24", "10:00", "12:00") "," ONE("late", "1", "09:59", "12:00") "]");
	json_t *tenants = json_object();
	struct tenant_windows_input in = { .tenant = STR("lab"),
					   .windows = windows,
					   .tenants = tenants,
					   .inventory = &CLUSTER,
					   .now_s = NOON };
	struct err err = { 0 };
	CHECK_INT(c, "all", tenant_windows_check(&in, NULL, &err), ERR_LIMIT);
	in.only = STR("new");
	CHECK_INT(c, "25 from 10:00", tenant_windows_check(&in, NULL, &err), ERR_LIMIT);
	CHECK(c, "which", strstr(err.text, "window \"new\": at 2026-12-01T10:00:00Z") != NULL);
	(void)json_array_remove(windows, 2);
	CHECK_INT(c, "24 from 10:00", tenant_windows_check(&in, NULL, &err), ERR_OK);
	json_decref(tenants);
	json_decref(windows);
}

// ---- every second

enum { SECONDS = 12, TENANTS = 3, EACH = 3, KINDS = 4 };
static const char *const KIND[KINDS] = { "", "H100", "A100", "H100-80GB" };

static uint32_t draw(uint64_t *seed, uint32_t below)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*seed >> 33) % below;
}

struct plain {
	uint32_t models; // bits of the cluster's rows
	int64_t start, end, gpus;
};

static json_t *random_window(uint64_t *seed, int i, struct plain *ret)
{
	char name[8], from[TIME_TEXT_BYTES], to[TIME_TEXT_BYTES];
	const char *model = KIND[draw(seed, KINDS)];
	ret->start = draw(seed, SECONDS);
	ret->end = ret->start + 1 + draw(seed, 5);
	ret->gpus = 1 + draw(seed, 14);
	ret->models = 0;
	for (size_t k = 0; k < CLUSTER.count; k++) {
		bool is_one = model[0] == '\0' ||
			      gpu_model_matches(str_of(model), CLUSTER.rows[k].model);
		ret->models |= is_one ? 1U << k : 0;
	}
	(void)snprintf(name, sizeof name, "w%d", i);
	json_t *out = json_pack("{s:s, s:I, s:s, s:s}", "name", name, "gpus", (json_int_t)ret->gpus,
				"start", time_format(NOON + ret->start, from), "end",
				time_format(NOON + ret->end, to));
	if (model[0] != '\0')
		(void)json_object_set_new(out, "model", json_string(model));
	return out;
}

// Whether for this set of models more is asked for at the second than there is.
static bool is_short(const struct plain *all, size_t count, int64_t at, uint32_t set)
{
	int64_t asked = 0, there = 0;
	for (size_t k = 0; k < CLUSTER.count; k++)
		there += (set >> k & 1) != 0 ? CLUSTER.rows[k].gpus_per_node * CLUSTER.rows[k].nodes
					     : 0;
	for (size_t i = 0; i < count; i++) {
		bool is_then = all[i].start <= at && at < all[i].end;
		asked += is_then && (all[i].models & ~set) == 0 ? all[i].gpus : 0;
	}
	return asked > there;
}

// Own windows come first. A shortage that none of them is in is not theirs.
static bool is_held(const struct plain *all, size_t count, size_t own_count)
{
	for (size_t i = 0; i < own_count; i++)
		for (int64_t at = all[i].start; at < all[i].end; at++)
			for (uint32_t set = 1; set < 1U << CLUSTER.count; set++)
				if ((all[i].models & ~set) == 0 && is_short(all, count, at, set))
					return false;
	return true;
}

static void test_random(struct check *c)
{
	uint64_t seed = 11;
	int wrong = 0, held = 0;
	for (int round = 0; round < 3000; round++) {
		struct plain all[TENANTS * EACH];
		size_t count = 0, own_count = 0;
		json_t *tenants = json_object();
		for (int t = 0; t < TENANTS; t++) {
			char name[8];
			json_t *list = json_array();
			uint32_t many = t == 0 ? 1 + draw(&seed, EACH) : draw(&seed, EACH);
			for (uint32_t i = 0; i < many; i++)
				(void)json_array_append_new(
					list, random_window(&seed, (int)i, &all[count++]));
			own_count = t == 0 ? count : own_count;
			(void)snprintf(name, sizeof name, "t%d", t);
			(void)json_object_set_new(tenants, name, list);
		}
		struct tenant_windows_input in = { .tenant = STR("t0"),
						   .windows = json_object_get(tenants, "t0"),
						   .tenants = tenants,
						   .inventory = &CLUSTER,
						   .now_s = NOON };
		struct err err;
		bool good = tenant_windows_check(&in, NULL, &err) == ERR_OK;
		wrong += good != is_held(all, count, own_count);
		held += good;
		json_decref(tenants);
	}
	CHECK_INT(c, "as counted", wrong, 0);
	CHECK(c, "some and not all", held > 300 && held < 2700);
}

int main(void)
{
	struct check c = { 0, 0 };
	test_cases(&c);
	test_add(&c);
	test_add_too_many(&c);
	test_remove(&c);
	test_only(&c);
	test_random(&c);
	return check_done(&c);
}
