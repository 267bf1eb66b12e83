// SPDX-License-Identifier: Apache-2.0
// Status, paths and conditions: the small pure helpers.
#include "check.h"
#include "k8s/condition.h"
#include "k8s/path.h"
#include "k8s/status.h"

#include <stdlib.h>

// "k8s\0", Unknown{2: Status{3: "gone", 4: "Expired", 5: {5: 7}, 6: 410}}
#define PROTOBUF_STATUS                                                                            \
	"k8s\0\x12\x16\x1a\x04gone\x22\x07"                                                        \
	"Expired\x2a\x02\x28\x07\x30\x9a\x03"

#define BODY(text)                                                                                 \
	{                                                                                          \
		text, sizeof(text) - 1                                                             \
	}

static void test_status(struct check *c)
{
	static const struct {
		const char *name;
		int http;
		struct str body;
		int code;
		const char *reason, *message;
		int64_t retry_after_s;
		err_status status;
	} cases[] = {
		{ "json", 409,
		  BODY("{\"kind\":\"Status\",\"code\":409,\"reason\":\"Conflict\",\"message\":"
		       "\"changed\"}"),
		  409, "Conflict", "changed", 0, ERR_CONFLICT },
		{ "retry", 429,
		  BODY("{\"kind\":\"Status\",\"code\":429,\"details\":{\"retryAfterSeconds\":3}}"),
		  429, "", "", 3, ERR_UNAVAILABLE },
		{ "protobuf", 410, BODY(PROTOBUF_STATUS), 410, "Expired", "gone", 7, ERR_CONFLICT },
		{ "page of a proxy", 502, BODY("<html>\nbad</html>\n"), 502, "",
		  "<html> bad</html>", 0, ERR_UNAVAILABLE },
		{ "other object", 404, BODY("{\"kind\":\"Pod\"}"), 404, "", "{\"kind\":\"Pod\"}", 0,
		  ERR_NOT_FOUND },
		{ "empty", 403, { "", 0 }, 403, "", "", 0, ERR_DENIED },
		{ "bytes", 500, BODY("\xff\xfe\x01"), 500, "", "not a text", 0, ERR_UNAVAILABLE },
		{ "unprocessable", 422, BODY("x"), 422, "", "x", 0, ERR_INVALID },
		{ "a success is no failure", 200, { "", 0 }, 200, "", "", 0, ERR_PROTOCOL },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct k8s_status s = k8s_status_parse(cases[i].http, cases[i].body);
		CHECK_INT(c, cases[i].name, s.code, cases[i].code);
		CHECK_STR(c, cases[i].name, str_of(s.reason), cases[i].reason);
		CHECK_STR(c, cases[i].name, str_of(s.message), cases[i].message);
		CHECK_INT(c, cases[i].name, s.retry_after_s, cases[i].retry_after_s);
		CHECK_INT(c, cases[i].name, k8s_status_fail(&s, NULL), cases[i].status);
	}
	struct err err;
	struct k8s_status s = k8s_status_parse(409, cases[0].body);
	(void)k8s_status_fail(&s, &err);
	CHECK_STR(c, "text", str_of(err.text), "changed (409 Conflict)");
	char big[1000];
	for (size_t i = 0; i < sizeof big; i += 2)
		memcpy(big + i, "\xc3\xa4", 2);
	s = k8s_status_parse(500, (struct str){ big, sizeof big });
	CHECK_INT(c, "a cut keeps characters whole", strlen(s.message), 298);
}

static void test_path(struct check *c)
{
	static const struct {
		struct k8s_object_path path;
		const char *want; // NULL: refused
	} cases[] = {
		{ { "v1", "pods", NULL, NULL, NULL }, "/api/v1/pods" },
		{ { "v1", "pods", "a", "b", "binding" }, "/api/v1/namespaces/a/pods/b/binding" },
		{ { "gpuaas.io/v1alpha1", "gpunodes", NULL, "node1", "status" },
		  "/apis/gpuaas.io/v1alpha1/gpunodes/node1/status" },
		{ { "rbac.authorization.k8s.io/v1", "clusterroles", NULL, "system:node", NULL },
		  "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode" },
		{ { "v1", "pods", "a", "../secrets", NULL }, NULL },
		{ { "v1", "pods", "a", "..", NULL }, NULL },
		{ { "v1", "pods", "a", "x%2fy", NULL }, NULL },
		{ { "v1", "pods", "a/b", "c", NULL }, NULL },
		{ { "v1", "pods", "", "c", NULL }, NULL },
		{ { "v1", "pods", "a", "", NULL }, NULL },
		{ { "v1", "pods", "a", NULL, "status" }, NULL },
		{ { "v1", "Pods", "a", "b", NULL }, NULL },
		{ { "a/b/c", "pods", "a", "b", NULL }, NULL },
		{ { "v1", "pods", "a", "b?x=1", NULL }, "/api/v1/namespaces/a/pods/b%3Fx%3D1" },
	};
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 16);
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct str got = k8s_path(arena, &cases[i].path);
		if (cases[i].want == NULL)
			CHECK(c, cases[i].path.group_version, got.data == NULL);
		else
			CHECK_STR(c, cases[i].want, got, cases[i].want);
	}
	CHECK_STR(c, "apply", k8s_apply_path(arena, &cases[2].path, "gpuaas agent", true),
		  "/apis/gpuaas.io/v1alpha1/gpunodes/node1/status?fieldManager=gpuaas%20agent"
		  "&force=true");
}

static void test_condition(struct check *c)
{
	AUTO(json_decrefp) json_t *list = NULL;
	struct err err;
	CHECK_INT(c, "list",
		  json_parse(STR("[{\"type\":\"Other\",\"status\":\"False\"},"
				 "{\"type\":\"Ready\",\"status\":\"True\"}]"),
			     &list, &err),
		  ERR_OK);
	CHECK_STR(c, "by type", json_text(k8s_condition_find(list, "Ready"), "status"), "True");
	CHECK(c, "none of that type", k8s_condition_find(list, "Read") == NULL);
	CHECK(c, "no conditions", k8s_condition_find(NULL, "Ready") == NULL);
}

int main(void)
{
	struct check c = { 0 };
	test_status(&c);
	test_path(&c);
	test_condition(&c);
	return check_done(&c);
}
