// SPDX-License-Identifier: Apache-2.0
// What exists against what is asked for, and who is let through under a quota.
#include "check.h"
#include "policy/quota.h"

static const struct inventory fleet = { .count = 2,
					.rows = { { { "A100-SXM4-80GB", 14 }, 8, 81920, 2, 0 },
						  { { "L40S", 4 }, 4, 46068, 1, 0 } } };

static const struct {
	const char *name, *model; // model NULL: any
	int64_t gpus, gpu_memory_mib;
	const char *text; // part of the refusal; NULL: possible
} asks[] = {
	{ "any eight", NULL, 8, 0, NULL },
	{ "nine", NULL, 9, 0, "at most 8 are on one" },
	{ "five of the small", "L40S", 5, 0, "at most 4 are on one" },
	{ "four of the small", "L40S", 4, 0, NULL },
	{ "no such model", "H100", 1, 0, "no node has GPUs of model \"H100\"" },
	{ "without case", "l40s", 5, 0, "at most 4 are on one" },
	{ "part of a name", "A100-80", 8, 0, NULL },
	{ "other memory", "A100-40", 1, 0, "no node has GPUs" },
	{ "memory of one", "L40S", 1, 81920, "the largest has 46068" },
	{ "memory fits the other", NULL, 8, 81920, NULL },
};

static const struct inventory shared_fleet = { .count = 3,
					       .rows = {
						       { { "A100-SXM4-80GB", 14 }, 7, 81920, 2, 1 },
						       { { "L40S", 4 }, 0, 46068, 1, 4 },
						       { { "H100", 4 }, 8, 81559, 1, 0 } } };

static const struct {
	const char *name, *model; // model NULL: any
	int64_t milli, memory_mib, want_milli;
	const char *text; // part of the refusal; NULL: possible
} shares[] = {
	{ "a quarter", NULL, 250, 0, 250, NULL },
	{ "by memory, of the smallest", NULL, 0, 23034, 500, NULL },
	{ "by memory, of what suits", "A100", 0, 40960, 500, NULL },
	{ "more than the small have", NULL, 0, 61440, 750, NULL },
	{ "by both", NULL, 100, 46068, 100, NULL },
	{ "more than any has", NULL, 100, 90000, 100, "the largest has 81920" },
	{ "a model that is given whole", "H100", 100, 0, 100, "no node gives such GPUs in shares" },
	{ "counts as a whole one", "H100", 0, 1024, 1000, "no node gives such GPUs in shares" },
};

static void check_shares(struct check *c)
{
	for (size_t i = 0; i < ARRAY_COUNT(shares); i++) {
		struct request_spec spec = { .gpu_milli = shares[i].milli,
					     .gpu_memory_mib = shares[i].memory_mib };
		struct err err = { 0 };
		if (shares[i].model != NULL)
			spec.models[spec.model_count++] = str_of(shares[i].model);
		request_fill_share(&spec, &shared_fleet);
		CHECK_INT(c, shares[i].name, spec.gpu_milli, shares[i].want_milli);
		err_status status = request_check_possible(&spec, &shared_fleet, &err);
		CHECK_INT(c, shares[i].name, status,
			  shares[i].text == NULL ? ERR_OK : ERR_UNSUPPORTED);
		CHECK(c, shares[i].name,
		      shares[i].text == NULL || strstr(err.text, shares[i].text) != NULL);
	}
	const struct tenant_quota quota = { 2, 100, 100, 10 };
	const struct quota_amount used = { 1, 0, 0, 1, 700 };
	CHECK(c, "the rest of a GPU",
	      quota_fits(&quota, &used, &(struct quota_amount){ 0, 1, 1, 1, 300 }));
	CHECK(c, "more than that",
	      !quota_fits(&quota, &used, &(struct quota_amount){ 0, 1, 1, 1, 301 }));
	CHECK(c, "a whole one",
	      !quota_fits(&quota, &used, &(struct quota_amount){ 1, 1, 1, 1, 0 }));
	CHECK_INT(c, "as whole ones", quota_gpus(&used), 2);
}

static const struct {
	const char *name, *model;
	int64_t gang, gpus, milli, memory_mib;
	const char *text; // part of the refusal; NULL: possible
} gangs[] = {
	{ "whole nodes", "A100", 2, 8, 0, 0, NULL },
	{ "more than there are", "A100", 3, 8, 0, 0, "hold 2 such pods at once, the gang has 3" },
	{ "of any kind", NULL, 5, 4, 0, 0, NULL },
	{ "six of four", NULL, 6, 4, 0, 0, "hold 5 such pods" },
	{ "three of five, one a node", NULL, 3, 5, 0, 0, "hold 2 such pods" },
	{ "shares", "L40S", 8, 0, 500, 0, NULL },
	{ "more shares", "L40S", 9, 0, 500, 0, "hold 8 such pods" },
	{ "by memory, too", "L40S", 8, 0, 300, 23034, NULL },
	{ "one of them is too much", "L40S", 2, 5, 0, 0, "ask for fewer or split the work" },
};

static void check_gangs(struct check *c)
{
	for (size_t i = 0; i < ARRAY_COUNT(gangs); i++) {
		struct request_spec spec = { .gang = gangs[i].gang,
					     .gpu_count = gangs[i].gpus,
					     .gpu_milli = gangs[i].milli,
					     .gpu_memory_mib = gangs[i].memory_mib };
		struct err err = { 0 };
		if (gangs[i].model != NULL)
			spec.models[spec.model_count++] = str_of(gangs[i].model);
		bool is_share = gangs[i].gpus == 0;
		err_status status =
			request_check_possible(&spec, is_share ? &shared_fleet : &fleet, &err);
		CHECK_INT(c, gangs[i].name, status,
			  gangs[i].text == NULL ? ERR_OK : ERR_UNSUPPORTED);
		CHECK(c, gangs[i].name,
		      gangs[i].text == NULL || strstr(err.text, gangs[i].text) != NULL);
	}
	const struct request_spec spec = {
		.gang = 3, .gpu_count = 2, .cpu_milli = 500, .memory_bytes = 100
	};
	struct quota_amount need = quota_need_of(&spec);
	CHECK_INT(c, "all GPUs", need.gpus, 6);
	CHECK_INT(c, "all CPUs", need.cpu_milli, 1500);
	CHECK_INT(c, "all memory", need.memory_bytes, 300);
	CHECK_INT(c, "all pods", need.pods, 3);
	struct tenant_quota quota = { 8, 8000, 1000, 2 };
	struct err err = { 0 };
	CHECK_INT(c, "pods", quota_check_alone(&quota, &need, &err), ERR_LIMIT);
	CHECK(c, err.text,
	      strncmp(err.text, "3 pods are asked for, the tenant's quota is 2", 45) == 0);
}

static void check_possible(struct check *c)
{
	for (size_t i = 0; i < ARRAY_COUNT(asks); i++) {
		struct request_spec spec = { .gpu_count = asks[i].gpus,
					     .gpu_memory_mib = asks[i].gpu_memory_mib };
		if (asks[i].model != NULL)
			spec.models[spec.model_count++] = str_of(asks[i].model);
		struct err err = { 0 };
		err_status status = request_check_possible(&spec, &fleet, &err);
		CHECK_INT(c, asks[i].name, status, asks[i].text == NULL ? ERR_OK : ERR_UNSUPPORTED);
		if (asks[i].text != NULL) {
			CHECK(c, asks[i].name, strstr(err.text, asks[i].text) != NULL);
			CHECK(c, asks[i].name, strstr(err.text, "A100-SXM4-80GB") != NULL);
		}
	}
	check_shares(c);
	struct inventory none = { .count = 0 };
	struct request_spec spec = { .gpu_count = 1000 };
	CHECK_INT(c, "nothing reported yet", request_check_possible(&spec, &none, NULL), ERR_OK);
}

static void check_alone(struct check *c)
{
	struct tenant_quota quota = { 4, 8000, 1000, 10 };
	struct quota_amount fits = { 4, 8000, 1000, 1, 0 };
	CHECK_INT(c, "exactly", quota_check_alone(&quota, &fits, NULL), ERR_OK);
	struct quota_amount more[] = { { 5, 1, 1, 1, 0 },    { 1, 8001, 1, 1, 0 },
				       { 1, 1, 1001, 1, 0 }, { 1, 1, 1, 11, 0 },
				       { 4, 1, 1, 1, 1 },    { 0, 1, 1, 1, 4001 } };
	for (size_t i = 0; i < ARRAY_COUNT(more); i++)
		CHECK_INT(c, "too much", quota_check_alone(&quota, &more[i], NULL), ERR_LIMIT);
	struct err err;
	struct quota_amount cpu = { 1, 100500, 1, 1, 0 }, memory = { 1, 1, 3 << 20, 1, 0 };
	CHECK_INT(c, "too many CPUs", quota_check_alone(&quota, &cpu, &err), ERR_LIMIT);
	CHECK(c, "CPUs",
	      strncmp(err.text, "100.500 CPUs are asked for, the tenant's quota is 8.000",
		      strlen("100.500 CPUs are asked for, the tenant's quota is 8.000")) == 0);
	CHECK_INT(c, "too much memory", quota_check_alone(&quota, &memory, &err), ERR_LIMIT);
	CHECK(c, "memory", strncmp(err.text, "3 MiB", strlen("3 MiB")) == 0);
	struct quota_amount used = { INT64_MAX, 0, 0, 0, 0 }, one = { 1, 0, 0, 0, 0 };
	CHECK(c, "no overflow", !quota_fits(&quota, &used, &one));
}

static struct quota_entry entry(const char *name, request_class class_, int64_t created_s,
				int64_t gpus)
{
	return (struct quota_entry){ str_of(name), class_, created_s, { gpus, 0, 0, 1, 0 },
				     false,        false,  false,     0 };
}

static void check_admit(struct check *c)
{
	struct tenant_quota quota = { 8, 1000, 1000, 100 };
	struct quota_entry entries[] = {
		entry("late", REQUEST_EXPERIMENT, 30, 1),
		entry("large", REQUEST_EXPERIMENT, 20, 6),
		entry("held", REQUEST_EXPERIMENT, 99, 3),
		entry("urgent", REQUEST_INFERENCE, 40, 1),
	};
	entries[2].holds = true;
	struct quota_amount used;
	quota_admit(&quota, entries, ARRAY_COUNT(entries), &used);
	CHECK_STR(c, "first", entries[0].name, "held");
	CHECK_STR(c, "by class", entries[1].name, "urgent");
	CHECK(c, "urgent is let through", entries[1].is_admitted);
	CHECK_STR(c, "by age", entries[2].name, "large");
	CHECK(c, "6 of 4 free wait", !entries[2].is_admitted);
	CHECK_INT(c, "next", entries[2].position, 1);
	CHECK(c, "a small one does not pass a large one", !entries[3].is_admitted);
	CHECK_INT(c, "after it", entries[3].position, 2);
	CHECK_INT(c, "used", used.gpus, 4);
	// What was let through stays so, also when the quota is lowered.
	quota.gpus = 0;
	quota_admit(&quota, entries, ARRAY_COUNT(entries), &used);
	CHECK_INT(c, "nothing to wait for", entries[1].position, 0);
	CHECK(c, "kept", entries[0].is_admitted && !entries[1].is_admitted);
	quota_admit(&quota, NULL, 0, &used);
	CHECK_INT(c, "none", used.gpus, 0);
}

static const struct {
	const char *name;
	struct quota_amount need;
	bool is_too_large;
} sizes[] = {
	{ "GPUs", { 5, 1, 1, 1, 0 }, true },
	{ "cpu", { 1, 101, 1, 1, 0 }, true },
	{ "memory", { 1, 1, 101, 1, 0 }, true },
	{ "the most of everything", { 4, 100, 100, 1, 0 }, false },
};

// What can never fit is passed over; what only has to wait blocks as before.
static void check_too_large(struct check *c)
{
	struct tenant_quota quota = { 4, 100, 100, 10 };
	for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
		struct quota_entry entries[] = {
			entry("held", REQUEST_TRAINING, 0, 1),
			entry("first", REQUEST_TRAINING, 10, 0),
			entry("second", REQUEST_TRAINING, 20, 1),
			entry("third", REQUEST_TRAINING, 30, 4),
		};
		entries[0].holds = true;
		entries[1].need = sizes[i].need;
		quota_admit(&quota, entries, ARRAY_COUNT(entries), NULL);
		bool is_too_large = sizes[i].is_too_large;
		CHECK(c, sizes[i].name, entries[1].is_too_large == is_too_large);
		CHECK(c, sizes[i].name, !entries[1].is_admitted);
		CHECK_INT(c, sizes[i].name, entries[1].position, is_too_large ? 0 : 1);
		CHECK(c, sizes[i].name, entries[2].is_admitted == is_too_large);
		CHECK_INT(c, sizes[i].name, entries[3].position, is_too_large ? 1 : 3);
	}
	quota.gpus = 0;
	struct quota_entry held = entry("held", REQUEST_TRAINING, 0, 1);
	held.holds = true;
	quota_admit(&quota, &held, 1, NULL);
	CHECK(c, "what holds stays", held.is_admitted && !held.is_too_large);
}

static void check_ids(struct check *c)
{
	char id[REQUEST_ID_BYTES];
	struct str tenant, name;
	request_id_format(STR("red"), STR("train-1"), id);
	CHECK_STR(c, "format", str_of(id), "red.train-1");
	CHECK(c, "parse", request_id_parse(STR("red.train-1"), &tenant, &name));
	CHECK_STR(c, "tenant", tenant, "red");
	CHECK_STR(c, "name", name, "train-1");
	static const char *const bad[] = { "", "red", "red.", ".a", "red.a.b", "Red.a", "red.a/b" };
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
		CHECK(c, bad[i], !request_id_parse(str_of(bad[i]), &tenant, &name));
}

static void check_inventory(struct check *c)
{
	struct inventory inventory = { .count = 0 };
	struct inventory_row row = { STR("A"), 8, 100, 1, 0 };
	CHECK(c, "add", inventory_add(&inventory, &row) && inventory_add(&inventory, &row));
	CHECK_INT(c, "summed", inventory.count, 1);
	CHECK_INT(c, "summed", inventory.rows[0].nodes, 2);
	for (int i = 1; i < INVENTORY_MAX; i++) {
		row.gpus_per_node = 8 + i;
		CHECK(c, "room", inventory_add(&inventory, &row));
	}
	row.gpus_per_node = 1;
	CHECK(c, "full", !inventory_add(&inventory, &row));
}

int main(void)
{
	struct check c = { 0, 0 };
	check_possible(&c);
	check_gangs(&c);
	check_alone(&c);
	check_admit(&c);
	check_too_large(&c);
	check_ids(&c);
	check_inventory(&c);
	return check_done(&c);
}
