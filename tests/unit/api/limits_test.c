// SPDX-License-Identifier: Apache-2.0
// Rate limits on a clock of the test's own, and what a TokenReview must say.
#include "api/limiter.h"
#include "api/object_kinds.h"
#include "api/refusals.h"
#include "api/reviews.h"
#include "check.h"

#define S UINT64_C(1000000000)

static void check_bucket(struct check *c)
{
	struct limiter *limiter = limiter_new(3);
	struct limiter_rate rate = { 2, 4 };
	int64_t wait_ms = -1;
	for (int i = 0; i < 4; i++)
		CHECK(c, "burst", limiter_take(limiter, STR("a"), 10 * S, 1, rate, &wait_ms));
	CHECK(c, "empty", !limiter_take(limiter, STR("a"), 10 * S, 1, rate, &wait_ms));
	CHECK_INT(c, "half a second", wait_ms, 500);
	CHECK(c, "other key", limiter_take(limiter, STR("b"), 10 * S, 4, rate, &wait_ms));
	CHECK(c, "not yet", !limiter_take(limiter, STR("a"), 10 * S + S / 4, 1, rate, &wait_ms));
	CHECK(c, "refilled", limiter_take(limiter, STR("a"), 10 * S + S / 2, 1, rate, &wait_ms));
	CHECK(c, "a cost above the burst",
	      limiter_take(limiter, STR("a"), 20 * S, 99, rate, &wait_ms));
	CHECK(c, "clock went back", !limiter_take(limiter, STR("a"), 19 * S, 1, rate, &wait_ms));
	for (int i = 0; i < 100; i++) {
		char key[8];
		(void)snprintf(key, sizeof key, "k%d", i);
		(void)limiter_take(limiter, str_of(key), 30 * S, 1, rate, &wait_ms);
	}
	CHECK_INT(c, "bounded", limiter_count(limiter), 3);
	limiter_free(limiter);
}

struct told {
	int calls;
	int64_t count;
	char actor[16];
};

static void on_told(void *arg, const struct refused *who, int64_t count)
{
	struct told *told = arg;
	told->calls++;
	told->count = count;
	(void)snprintf(told->actor, sizeof told->actor, STR_FMT, STR_ARG(who->actor));
}

static int refuse(struct refusals *refusals, const char *actor, int times, uint64_t now_ns)
{
	struct refused who = { str_of(actor), STR("member"), STR("red"), STR("") };
	int recorded = 0;
	for (int i = 0; i < times; i++)
		recorded += refusals_take(refusals, &who, now_ns) ? 1 : 0;
	return recorded;
}

static void check_refusals(struct check *c)
{
	struct refusals *refusals = refusals_new(2, 5);
	struct told told = { 0 };
	CHECK_INT(c, "as many as a minute has", refuse(refusals, "ann", 12, 10 * S), 5);
	CHECK_INT(c, "another caller", refuse(refusals, "bob", 3, 10 * S), 3);
	refusals_sweep(refusals, 69 * S, on_told, &told);
	CHECK_INT(c, "the minute is not over", told.calls, 0);
	CHECK_INT(c, "nor is it told", refuse(refusals, "ann", 1, 75 * S), 0);
	CHECK_INT(c, "nothing was left out", refuse(refusals, "bob", 5, 75 * S), 5);
	refusals_sweep(refusals, 76 * S, on_told, &told);
	CHECK_INT(c, "one record", told.calls, 1);
	CHECK_INT(c, "of so many", told.count, 8);
	CHECK_STR(c, "of whom", str_of(told.actor), "ann");
	CHECK_INT(c, "a new minute", refuse(refusals, "ann", 6, 77 * S), 5);
	refusals_free(refusals);

	refusals = refusals_new(2, 5);
	told = (struct told){ 0 };
	for (int i = 0; i < 100; i++) {
		char name[8];
		(void)snprintf(name, sizeof name, "n%d", i);
		CHECK_INT(c, "beyond the table they share", refuse(refusals, name, 1, 77 * S),
			  i < 7 ? 1 : 0);
	}
	refusals_sweep(refusals, UINT64_MAX, on_told, &told);
	CHECK_INT(c, "all at the end", told.calls, 1);
	CHECK_INT(c, "the others", told.count, 93);
	CHECK_STR(c, "under one name", str_of(told.actor), "others");
	refusals_free(refusals);
}

static const struct {
	const char *name, *answer, *node; // node NULL: refused
} reviews[] = {
	{ "good",
	  "{\"status\":{\"authenticated\":true,\"audiences\":[\"gpuaas\"],\"user\":{\"username\":"
	  "\"system:serviceaccount:s:a\",\"extra\":{\"authentication.kubernetes.io/node-name\":"
	  "[\"n1\"]}}}}",
	  "n1" },
	{ "authenticated false and no error", "{\"status\":{\"authenticated\":false}}", NULL },
	{ "no status", "{}", NULL },
	{ "authenticated as text",
	  "{\"status\":{\"authenticated\":\"true\",\"audiences\":[\"gpuaas\"],\"user\":{"
	  "\"username\":"
	  "\"system:serviceaccount:s:a\",\"extra\":{\"authentication.kubernetes.io/node-name\":"
	  "[\"n1\"]}}}}",
	  NULL },
	{ "same name in another namespace",
	  "{\"status\":{\"authenticated\":true,\"audiences\":[\"gpuaas\"],\"user\":{\"username\":"
	  "\"system:serviceaccount:t:a\",\"extra\":{\"authentication.kubernetes.io/node-name\":"
	  "[\"n1\"]}}}}",
	  NULL },
	{ "another audience",
	  "{\"status\":{\"authenticated\":true,\"audiences\":[\"other\"],\"user\":{\"username\":"
	  "\"system:serviceaccount:s:a\",\"extra\":{\"authentication.kubernetes.io/node-name\":"
	  "[\"n1\"]}}}}",
	  NULL },
	{ "no node",
	  "{\"status\":{\"authenticated\":true,\"audiences\":[\"gpuaas\"],\"user\":{\"username\":"
	  "\"system:serviceaccount:s:a\",\"extra\":{}}}}",
	  NULL },
	{ "two nodes",
	  "{\"status\":{\"authenticated\":true,\"audiences\":[\"gpuaas\"],\"user\":{\"username\":"
	  "\"system:serviceaccount:s:a\",\"extra\":{\"authentication.kubernetes.io/node-name\":"
	  "[\"n1\",\"n2\"]}}}}",
	  NULL },
	{ "node is no name",
	  "{\"status\":{\"authenticated\":true,\"audiences\":[\"gpuaas\"],\"user\":{\"username\":"
	  "\"system:serviceaccount:s:a\",\"extra\":{\"authentication.kubernetes.io/node-name\":"
	  "[\"n1/x\"]}}}}",
	  NULL },
};

static void check_reviews(struct check *c)
{
	for (size_t i = 0; i < ARRAY_COUNT(reviews); i++) {
		AUTO(json_decrefp) json_t *answer = NULL;
		struct str node = STR("untouched");
		struct err err = { 0 };
		CHECK_INT(c, reviews[i].name, json_parse(str_of(reviews[i].answer), &answer, NULL),
			  ERR_OK);
		err_status status =
			review_read(answer, "system:serviceaccount:s:a", "gpuaas", &node, &err);
		CHECK_INT(c, reviews[i].name, status,
			  reviews[i].node == NULL ? ERR_UNAUTHENTICATED : ERR_OK);
		CHECK_STR(c, reviews[i].name, node,
			  reviews[i].node == NULL ? "untouched" : reviews[i].node);
	}
}

static void check_merge(struct check *c)
{
	AUTO(json_decrefp)
	json_t *target =
		json_pack("{s:i, s:{s:i, s:i}, s:s}", "a", 1, "b", "x", 1, "y", 2, "l", "t");
	AUTO(json_decrefp)
	json_t *patch = json_pack("{s:n, s:{s:n, s:i}, s:{s:i}, s:{s:n}}", "a", "b", "x", "z", 3,
				  "l", "deep", 4, "new", "gone");
	object_merge(target, patch);
	CHECK(c, "null removes", json_object_get(target, "a") == NULL);
	CHECK(c, "inside too", json_at(target, "b.x") == NULL);
	CHECK_INT(c, "kept", json_int(target, "b.y", 0), 2);
	CHECK_INT(c, "added", json_int(target, "b.z", 0), 3);
	CHECK_INT(c, "object over text", json_int(target, "l.deep", 0), 4);
	CHECK(c, "no nulls are stored", json_object_size(json_object_get(target, "new")) == 0);
}

static void check_paths(struct check *c)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 16);
	CHECK_STR(c, "cluster-wide", str_of(object_path(arena, OBJECT_TENANT, STR(""), STR("red"))),
		  "/apis/gpuaas.io/v1alpha1/tenants/red");
	CHECK_STR(c, "in a namespace", str_of(object_path(arena, OBJECT_JOB, STR("red"), STR("j"))),
		  "/apis/batch/v1/namespaces/red/jobs/j");
	CHECK_STR(c, "all namespaces", str_of(object_path(arena, OBJECT_POD, STR(""), STR(""))),
		  "/api/v1/pods");
}

int main(void)
{
	struct check c = { 0, 0 };
	check_bucket(&c);
	check_refusals(&c);
	check_reviews(&c);
	check_merge(&c);
	check_paths(&c);
	return check_done(&c);
}
