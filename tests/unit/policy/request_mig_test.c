// SPDX-License-Identifier: Apache-2.0
// Requests for one MIG device: what may stand beside the profile, what exists against it, what it
// counts for a quota and what part of a GPU it costs.
#include "check.h"
#include "policy/quota.h"

static const struct inventory fleet = {
	.count = 2,
	.rows = { { { "A100-SXM4-80GB", 14 }, 6, 81920, 1, 0 }, { { "A30", 3 }, 0, 24576, 1, 0 } },
	.mig_count = 5,
	.migs = { { { "1g.10gb", 7 }, { "A100-SXM4-80GB", 14 }, 3, 8, 1, 7 },
		  { { "3g.40gb", 7 }, { "A100-SXM4-80GB", 14 }, 0, 8, 3, 7 },
		  { { "1g.10gb", 7 }, { "H100-80GB", 9 }, 2, 8, 1, 7 },
		  { { "2g.12gb", 7 }, { "A30", 3 }, 2, 1, 2, 4 },
		  { { "1g.10gb", 7 }, { "HALF", 4 }, 0, 1, 1, 2 } },
};

static const struct {
	const char *name, *profile, *model; // model NULL: any
	int64_t gang;
	const char *text; // part of the refusal; NULL: possible
} asks[] = {
	{ "there are some", "1g.10gb", NULL, 0, NULL },
	{ "of a model", "1g.10gb", "h100", 0, NULL },
	{ "of a model without", "2g.12gb", "A100", 0, "no such GPU has a MIG profile 2g.12gb" },
	{ "a layout could make it", "3g.40gb", NULL, 0, "8 GPUs (A100-SXM4-80GB) could have" },
	{ "and says what there is", "3g.40gb", NULL, 0, "what there is: 1g.10gb, 2g.12gb" },
	{ "no board has it", "1g.5gb", NULL, 0, "ask for a profile that there is (1g.10gb, 2g" },
	{ "a gang of all", "1g.10gb", NULL, 5, NULL },
	{ "a gang of more", "1g.10gb", NULL, 6, "all nodes together have 5 MIG devices 1g.10gb" },
};

static void check_possible(struct check *c)
{
	static const struct inventory none,
		whole = { .count = 1, .rows = { { { "L4", 2 }, 8, 24576, 1, 0 } } };
	struct err err = { 0 };
	for (size_t i = 0; i < ARRAY_COUNT(asks); i++) {
		struct request_spec spec = { .mig_profile = str_of(asks[i].profile),
					     .gang = asks[i].gang };
		if (asks[i].model != NULL)
			spec.models[spec.model_count++] = str_of(asks[i].model);
		err_status status = request_check_possible(&spec, &fleet, &err);
		CHECK_INT(c, asks[i].name, status, asks[i].text == NULL ? ERR_OK : ERR_UNSUPPORTED);
		CHECK(c, asks[i].name,
		      asks[i].text == NULL || strstr(err.text, asks[i].text) != NULL);
	}
	struct request_spec spec = { .mig_profile = STR("1g.10gb") };
	CHECK_INT(c, "nothing reported yet", request_check_possible(&spec, &none, NULL), ERR_OK);
	CHECK_INT(c, "no MIG at all", request_check_possible(&spec, &whole, &err), ERR_UNSUPPORTED);
	CHECK(c, "no MIG at all", strstr(err.text, "(none)") != NULL);
}

static const struct {
	const char *name, *body;
	const char *field; // that is wrong; NULL: good
} bodies[] = {
	{ "alone", "{\"mig_profile\":\"1g.10gb\",\"image\":\"i\"}", NULL },
	{ "more of it", "{\"mig_profile\":\"1g.10gb+me\",\"image\":\"i\"}", NULL },
	{ "less of it", "{\"mig_profile\":\"1g.10gb-me\",\"image\":\"i\"}", NULL },
	{ "of models", "{\"mig_profile\":\"1g.10gb\",\"gpu_models\":[\"A100\"],\"image\":\"i\"}",
	  NULL },
	{ "no name", "{\"mig_profile\":\"small\",\"image\":\"i\"}", "mig_profile" },
	{ "name of the resource", "{\"mig_profile\":\"1g.10gb.me\",\"image\":\"i\"}",
	  "mig_profile" },
	{ "too wide", "{\"mig_profile\":\"8g.80gb\",\"image\":\"i\"}", "mig_profile" },
	{ "empty", "{\"mig_profile\":\"\",\"gpus\":1,\"image\":\"i\"}", "mig_profile" },
	{ "and GPUs", "{\"mig_profile\":\"1g.10gb\",\"gpus\":1,\"image\":\"i\"}", "mig_profile" },
	{ "and a share", "{\"mig_profile\":\"1g.10gb\",\"gpu_milli\":1,\"image\":\"i\"}",
	  "mig_profile" },
	{ "and memory", "{\"mig_profile\":\"1g.10gb\",\"gpu_memory\":\"1Gi\",\"image\":\"i\"}",
	  "gpu_memory" },
};

static void check_bodies(struct check *c)
{
	for (size_t i = 0; i < ARRAY_COUNT(bodies); i++) {
		AUTO(json_decrefp) json_t *body = NULL;
		struct request_spec spec;
		struct schema_fault fault = { 0 };
		struct err err = { 0 };
		CHECK_INT(c, bodies[i].name, json_parse(str_of(bodies[i].body), &body, &err),
			  ERR_OK);
		err_status status = request_parse(body, &spec, &fault, &err);
		CHECK_INT(c, bodies[i].name, status,
			  bodies[i].field == NULL ? ERR_OK : ERR_INVALID);
		CHECK(c, bodies[i].name, bodies[i].field == NULL || err.text[0] != '\0');
		CHECK_STR(c, bodies[i].name, str_of(fault.path),
			  bodies[i].field == NULL ? "" : bodies[i].field);
	}
}

static const struct {
	const char *name, *spec;
	bool good;
} objects[] = {
	{ "slice", "{\"migProfile\":\"1g.10gb\",\"image\":\"i\"}", true },
	{ "both", "{\"migProfile\":\"1g.10gb\",\"gpuMilli\":1,\"image\":\"i\"}", false },
	{ "all", "{\"migProfile\":\"1g.10gb\",\"gpuMilli\":1,\"gpus\":1,\"image\":\"i\"}", false },
	{ "none", "{\"image\":\"i\"}", false },
	{ "no name", "{\"migProfile\":\"g.gb\",\"image\":\"i\"}", false },
};

// What fits a board is within the quota of one GPU, and no more than that is.
static void check_quota(struct check *c)
{
	static const char *const fills[][8] = {
		{ "1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb" },
		{ "3g.40gb", "4g.40gb" },
		{ "2g.20gb", "2g.20gb", "3g.40gb" },
		{ "7g.80gb" },
	};
	const struct tenant_quota quota = { 1, 1000, 1000, 10 };
	for (size_t i = 0; i < ARRAY_COUNT(fills); i++) {
		struct quota_amount used = { 0 };
		for (size_t k = 0; fills[i][k] != NULL; k++) {
			struct request_spec spec = { .mig_profile = str_of(fills[i][k]) };
			struct quota_amount need = quota_need_of(&spec);
			CHECK(c, fills[i][k], quota_fits(&quota, &used, &need));
			used.gpu_milli += need.gpu_milli;
			used.pods += need.pods;
		}
		struct request_spec more = { .mig_profile = STR("1g.10gb") };
		struct quota_amount need = quota_need_of(&more);
		CHECK(c, "one more", !quota_fits(&quota, &used, &need));
	}
	struct request_spec pair = { .mig_profile = STR("3g.40gb"), .gang = 2 };
	CHECK_INT(c, "a gang", quota_need_of(&pair).gpu_milli, 856);
}

static void check_part(struct check *c)
{
	struct str models[REQUEST_MODELS_MAX];
	int64_t part[2] = { 0, 0 };
	struct request_spec spec = { .mig_profile = STR("1g.10gb") };
	CHECK_INT(c, "of three models", inventory_mig_part(&fleet, &spec, models, part), 3);
	CHECK(c, "the dearest part", part[0] == 1 && part[1] == 2);
	spec.models[spec.model_count++] = STR("A100");
	CHECK_INT(c, "of one", inventory_mig_part(&fleet, &spec, models, part), 1);
	CHECK(c, "a seventh", part[0] == 1 && part[1] == 7);
	CHECK_STR(c, "whose", models[0], "A100-SXM4-80GB");
	spec = (struct request_spec){ .mig_profile = STR("4g.40gb") };
	CHECK_INT(c, "of none", inventory_mig_part(&fleet, &spec, models, part), 0);
	struct inventory full = fleet;
	CHECK(c, "known", inventory_add_mig(&full, &fleet.migs[0]));
	CHECK_INT(c, "summed", full.migs[0].offered, 6);
	for (size_t i = full.mig_count; i < INVENTORY_MIGS_MAX; i++) {
		char name[32];
		(void)snprintf(name, sizeof name, "M%zu", i);
		struct inventory_mig mig = { .profile = STR("1g.10gb"), .model = str_of(name) };
		CHECK(c, "room", inventory_add_mig(&full, &mig));
		full.migs[i].model = STR("M");
		full.migs[i].profile = STR("taken");
	}
	struct inventory_mig other = { .profile = STR("1g.1gb"), .model = STR("A") };
	CHECK(c, "full", !inventory_add_mig(&full, &other));
}

int main(void)
{
	struct check c = { 0, 0 };
	check_possible(&c);
	check_bodies(&c);
	for (size_t i = 0; i < ARRAY_COUNT(objects); i++) {
		AUTO(json_decrefp) json_t *spec = NULL;
		struct err err;
		CHECK_INT(&c, objects[i].name, json_parse(str_of(objects[i].spec), &spec, &err),
			  ERR_OK);
		CHECK(&c, objects[i].name,
		      (request_check_object(spec, &err) == ERR_OK) == objects[i].good);
	}
	check_quota(&c);
	check_part(&c);
	return check_done(&c);
}
