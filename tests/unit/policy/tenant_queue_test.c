// SPDX-License-Identifier: Apache-2.0
// Settings of queues as people give them: what is refused with which field, and that none can
// hang below itself.
#include "check.h"

#include "policy/tenant.h"
#include "policy/tenant_queue.h"

static json_t *parse(const char *text)
{
	json_t *value = NULL;
	struct err err;
	err_status status = json_parse(str_of(text), &value, &err);
	ASSERT(status == ERR_OK);
	return value;
}

static void test_bodies(struct check *c)
{
	static const struct {
		const char *body, *path; // NULL: good
	} CASES[] = {
		{ "{\"name\":\"t\",\"queue\":{}}", NULL },
		{ "{\"name\":\"t\",\"queue\":null}", NULL },
		{ "{\"name\":\"t\",\"queue\":{\"parent\":\"lab\",\"guaranteed\":0,\"limit\":100000,"
		  "\"user_limit\":1,\"weight\":0,\"priority_ceiling\":-5,\"half_life\":\"12h\"}}",
		  NULL },
		{ "{\"name\":\"t\",\"queue\":{\"limit\":null,\"parent\":null,\"half_life\":null}}",
		  NULL },
		{ "{\"name\":\"t\",\"queue\":{\"limit\":-1}}", "queue.limit" },
		{ "{\"name\":\"t\",\"queue\":{\"guaranteed\":100001}}", "queue.guaranteed" },
		{ "{\"name\":\"t\",\"queue\":{\"guaranteed\":9223372036854775807}}",
		  "queue.guaranteed" },
		{ "{\"name\":\"t\",\"queue\":{\"weight\":1.5}}", "queue.weight" },
		{ "{\"name\":\"t\",\"queue\":{\"weight\":\"NaN\"}}", "queue.weight" },
		{ "{\"name\":\"t\",\"queue\":{\"priority_ceiling\":2147483648}}",
		  "queue.priority_ceiling" },
		{ "{\"name\":\"t\",\"queue\":{\"half_life\":\"-1s\"}}", "queue.half_life" },
		{ "{\"name\":\"t\",\"queue\":{\"by_model\":[{\"model\":\"H100\",\"guaranteed\":1,"
		  "\"limit\":4}]}}",
		  NULL },
		{ "{\"name\":\"t\",\"queue\":{\"by_model\":null}}", NULL },
		{ "{\"name\":\"t\",\"queue\":{\"by_model\":[{\"limit\":4}]}}",
		  "queue.by_model.model" },
		{ "{\"name\":\"t\",\"queue\":{\"by_model\":[{\"model\":\"\"}]}}",
		  "queue.by_model.model" },
		{ "{\"name\":\"t\",\"queue\":{\"by_model\":[{\"model\":\"H100\",\"limit\":-1}]}}",
		  "queue.by_model.limit" },
		{ "{\"name\":\"t\",\"queue\":{\"parent\":\"Lab\"}}", "queue.parent" },
		{ "{\"name\":\"t\",\"queue\":{\"luck\":1}}", "queue.luck" },
		{ "{\"name\":\"t\",\"queue\":[]}", "queue" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
		AUTO(json_decrefp) json_t *body = parse(CASES[i].body);
		struct tenant_spec spec;
		struct schema_fault fault = { .code = "" };
		struct err err;
		bool good = tenant_parse(body, &spec, &fault, &err) == ERR_OK;
		CHECK(c, CASES[i].body, good == (CASES[i].path == NULL));
		if (!good && CASES[i].path != NULL)
			CHECK_STR(c, CASES[i].body, str_of(fault.path), CASES[i].path);
	}
}

static void test_words(struct check *c)
{
	AUTO(json_decrefp)
	json_t *queue =
		parse("{\"user_limit\":2,\"half_life\":\"2h\",\"parent\":null,\"weight\":3}");
	AUTO(json_decrefp) json_t *spec = tenant_queue_to_spec(queue);
	AUTO(json_decrefp)
	json_t *want =
		parse("{\"userLimit\":2,\"halfLifeSeconds\":7200,\"parent\":null,\"weight\":3}");
	CHECK(c, "in the words of the resource", json_equal(spec, want));
	AUTO(json_decrefp) json_t *back = tenant_queue_from_spec(spec);
	CHECK_INT(c, "and back", json_int(back, "half_life", 0), 7200);
	CHECK_INT(c, "all of them", (long long)json_object_size(back), 4);
}

static const json_t *find(const void *arg, struct str tenant)
{
	const json_t *queues = arg;
	char name[64];
	ASSERT(tenant.len < sizeof name);
	memcpy(name, tenant.data, tenant.len);
	name[tenant.len] = '\0';
	return json_object_get(queues, name);
}

static void test_tree(struct check *c)
{
	AUTO(json_decrefp)
	json_t *queues = parse("{\"a\":{},\"b\":{\"parent\":\"a\"},\"c\":{\"parent\":\"b\"},"
			       "\"x\":{\"parent\":\"y\"},\"y\":{\"parent\":\"x\"},"
			       "\"d3\":{\"parent\":\"c\"},\"d4\":{\"parent\":\"d3\"},"
			       "\"d5\":{\"parent\":\"d4\"},\"d6\":{\"parent\":\"d5\"},"
			       "\"d7\":{\"parent\":\"d6\"},\"d8\":{\"parent\":\"d7\"}}");
	static const struct {
		const char *tenant, *queue, *path, *says; // says NULL: good
	} CASES[] = {
		{ "new", "{}", NULL, NULL },
		{ "new", "{\"parent\":\"c\",\"guaranteed\":4,\"limit\":4}", NULL, NULL },
		{ "new", "{\"parent\":\"d6\"}", NULL, NULL },
		{ "new", "{\"guaranteed\":5,\"limit\":4}", "queue.guaranteed",
		  "queue.guaranteed: it is above the limit; raise the limit or guarantee less" },
		{ "new", "{\"parent\":\"nobody\"}", "queue.parent",
		  "queue.parent: tenant \"nobody\" is not there or has no queue; give it one first "
		  "or "
		  "name another parent" },
		{ "new",
		  "{\"byModel\":[{\"model\":\"H100\",\"guaranteed\":2,\"limit\":2},{\"model\":"
		  "\"A100\"}],\"guaranteed\":2}",
		  NULL, NULL },
		{ "new", "{\"byModel\":[{\"model\":\"H100\"},{\"model\":\"H100\"}]}",
		  "queue.by_model", "queue.by_model: a model is named twice; leave one out" },
		{ "new", "{\"byModel\":[{\"model\":\"H100\",\"guaranteed\":2,\"limit\":1}]}",
		  "queue.by_model",
		  "queue.by_model: a model's guaranteed is above its limit; raise the limit or "
		  "guarantee less" },
		{ "new", "{\"guaranteed\":1,\"byModel\":[{\"model\":\"H100\",\"guaranteed\":2}]}",
		  "queue.by_model",
		  "queue.by_model: the models' guarantees are more than guaranteed; raise that or "
		  "guarantee less of them" },
		{ "new", "{\"limit\":1,\"byModel\":[{\"model\":\"H100\",\"guaranteed\":2}]}",
		  "queue.by_model",
		  "queue.by_model: the models' guarantees are more than the limit; raise the limit "
		  "or guarantee less of them" },
		{ "a", "{\"parent\":\"c\"}", "queue.parent",
		  "queue.parent: the tenant would be below itself; name another parent" },
		{ "a", "{\"parent\":\"a\"}", "queue.parent",
		  "queue.parent: the tenant would be below itself; name another parent" },
		{ "new", "{\"parent\":\"x\"}", "queue.parent",
		  "queue.parent: more than 8 levels, or a circle; name another parent" },
		{ "new", "{\"parent\":\"d8\"}", "queue.parent",
		  "queue.parent: more than 8 levels, or a circle; name another parent" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
		AUTO(json_decrefp) json_t *queue = parse(CASES[i].queue);
		struct schema_fault fault = { .code = "" };
		struct err err = { .text = "" };
		err_status status = tenant_queue_check(str_of(CASES[i].tenant), queue, find, queues,
						       &fault, &err);
		CHECK(c, CASES[i].queue, (status == ERR_OK) == (CASES[i].says == NULL));
		if (CASES[i].says == NULL)
			continue;
		CHECK_STR(c, CASES[i].queue, str_of(err.text), CASES[i].says);
		CHECK_STR(c, CASES[i].queue, str_of(fault.path), CASES[i].path);
	}
}

int main(void)
{
	struct check c = { 0, 0 };
	test_bodies(&c);
	test_words(&c);
	test_tree(&c);
	return check_done(&c);
}
