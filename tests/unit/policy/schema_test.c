// SPDX-License-Identifier: Apache-2.0
// Bodies of tenants and requests: what is refused, with which code and at which path.
#include "check.h"
#include "policy/request.h"
#include "policy/tenant.h"

static const struct {
	const char *name, *body, *code, *path; // code NULL: accepted
} tenants[] = {
	{ "smallest", "{\"name\":\"red\"}", NULL, NULL },
	{ "whole",
	  "{\"name\":\"red\",\"display_name\":\"R\",\"quota\":{\"gpus\":4,\"cpu\":\"500m\","
	  "\"memory\":\"16Gi\",\"pods\":3}}",
	  NULL, NULL },
	{ "not an object", "[]", "invalid_field", "" },
	{ "no name", "{}", "missing_field", "name" },
	{ "unknown member", "{\"name\":\"red\",\"color\":\"x\"}", "unknown_field", "color" },
	{ "unknown member inside", "{\"name\":\"red\",\"quota\":{\"gpu\":1}}", "unknown_field",
	  "quota.gpu" },
	{ "name is no label", "{\"name\":\"Red_Team\"}", "invalid_field", "name" },
	{ "name is a number", "{\"name\":5}", "invalid_field", "name" },
	{ "name is null", "{\"name\":null}", "invalid_field", "name" },
	{ "name ends with a dash", "{\"name\":\"red-\"}", "invalid_field", "name" },
	{ "name has a dot", "{\"name\":\"red.blue\"}", "invalid_field", "name" },
	{ "name empty", "{\"name\":\"\"}", "invalid_field", "name" },
	{ "name too long", "{\"name\":\"a23456789012345678901234567890x\"}", "invalid_field",
	  "name" },
	{ "reserved", "{\"name\":\"default\"}", "invalid_field", "name" },
	{ "reserved prefix", "{\"name\":\"kube-public\"}", "invalid_field", "name" },
	{ "our own prefix", "{\"name\":\"gpuaas-system\"}", "invalid_field", "name" },
	{ "negative quota", "{\"name\":\"red\",\"quota\":{\"gpus\":-1}}", "invalid_field",
	  "quota.gpus" },
	{ "quota as text", "{\"name\":\"red\",\"quota\":{\"gpus\":\"4\"}}", "invalid_field",
	  "quota.gpus" },
	{ "quota is real", "{\"name\":\"red\",\"quota\":{\"gpus\":4.5}}", "invalid_field",
	  "quota.gpus" },
	{ "bad quantity", "{\"name\":\"red\",\"quota\":{\"memory\":\"16Gb\"}}", "invalid_field",
	  "quota.memory" },
	{ "umlauts, dashes, emoji",
	  "{\"name\":\"red\",\"display_name\":\"\xc3\xa4 \xe2\x80\x93 \xf0\x9f\x98\x80\"}", NULL,
	  NULL },
	{ "two lines", "{\"name\":\"red\",\"display_name\":\"a\\nb\"}", "invalid_field",
	  "display_name" },
	{ "escape", "{\"name\":\"red\",\"display_name\":\"\\u001b[2J\"}", "invalid_field",
	  "display_name" },
	{ "delete", "{\"name\":\"red\",\"display_name\":\"\\u007f\"}", "invalid_field",
	  "display_name" },
	{ "C1", "{\"name\":\"red\",\"display_name\":\"\\u009b\"}", "invalid_field",
	  "display_name" },
	{ "right to left", "{\"name\":\"red\",\"display_name\":\"a\\u202eb\"}", "invalid_field",
	  "display_name" },
	{ "isolate", "{\"name\":\"red\",\"display_name\":\"a\\u2066b\"}", "invalid_field",
	  "display_name" },
	{ "Arabic letter mark", "{\"name\":\"red\",\"display_name\":\"a\\u061cb\"}",
	  "invalid_field", "display_name" },
	{ "quota is text", "{\"name\":\"red\",\"quota\":\"4\"}", "invalid_field", "quota" },
};

#define OK_BODY "\"gpus\":1,\"image\":\"x.y/z:1\""

static const struct {
	const char *name, *body, *code, *path;
} requests[] = {
	{ "smallest", "{" OK_BODY "}", NULL, NULL },
	{ "whole",
	  "{\"name\":\"t-1\",\"class\":\"training\",\"gpus\":2,\"gpu_models\":[\"A\",\"B\"],"
	  "\"gpu_memory\":\"40Gi\",\"cpu\":\"4\",\"memory\":\"16Gi\",\"duration\":\"1h\","
	  "\"max_duration\":7200,\"image\":\"x.y/z:1\",\"command\":[\"/a\"],"
	  "\"args\":[\"-x\"],\"env\":{\"A_B\":\"c\"}}",
	  NULL, NULL },
	{ "unknown member", "{" OK_BODY ",\"gpu\":1}", "unknown_field", "gpu" },
	{ "no GPU", "{\"gpus\":0,\"image\":\"x.y/z:1\"}", "invalid_field", "gpus" },
	{ "half a GPU", "{\"gpus\":0.5,\"image\":\"x.y/z:1\"}", "invalid_field", "gpus" },
	{ "a share", "{\"gpu_milli\":250,\"image\":\"x.y/z:1\"}", NULL, NULL },
	{ "a share by memory", "{\"gpu_memory\":\"10Gi\",\"image\":\"x.y/z:1\"}", NULL, NULL },
	{ "more than a GPU", "{\"gpu_milli\":1001,\"image\":\"x.y/z:1\"}", "invalid_field",
	  "gpu_milli" },
	{ "whole and a share", "{" OK_BODY ",\"gpu_milli\":250}", "invalid_field", "gpu_milli" },
	{ "a gang", "{" OK_BODY ",\"gang\":8}", NULL, NULL },
	{ "a gang of one", "{" OK_BODY ",\"gang\":1}", "invalid_field", "gang" },
	{ "a gang of too many", "{" OK_BODY ",\"gang\":1025}", "invalid_field", "gang" },
	{ "neither", "{\"image\":\"x.y/z:1\"}", "invalid_field", "gpus" },
	{ "no image", "{\"gpus\":1}", "missing_field", "image" },
	{ "image with a blank", "{\"gpus\":1,\"image\":\"x y\"}", "invalid_field", "image" },
	{ "class", "{" OK_BODY ",\"class\":\"batch\"}", "invalid_field", "class" },
	{ "models empty", "{" OK_BODY ",\"gpu_models\":[]}", "invalid_field", "gpu_models" },
	{ "models of numbers", "{" OK_BODY ",\"gpu_models\":[1]}", "invalid_field", "gpu_models" },
	{ "model with a comma", "{" OK_BODY ",\"gpu_models\":[\"a,b\"]}", "invalid_field",
	  "gpu_models" },
	{ "duration", "{" OK_BODY ",\"duration\":\"soon\"}", "invalid_field", "duration" },
	{ "duration zero", "{" OK_BODY ",\"duration\":0}", "invalid_field", "duration" },
	{ "duration huge", "{" OK_BODY ",\"duration\":99999999999}", "invalid_field", "duration" },
	{ "ends before it is done", "{" OK_BODY ",\"duration\":100,\"max_duration\":50}",
	  "invalid_field", "max_duration" },
	{ "devices by environment", "{" OK_BODY ",\"env\":{\"NVIDIA_VISIBLE_DEVICES\":\"all\"}}",
	  "invalid_field", "env" },
	{ "environment of numbers", "{" OK_BODY ",\"env\":{\"A\":1}}", "invalid_field", "env" },
	{ "environment's name", "{" OK_BODY ",\"env\":{\"A B\":\"1\"}}", "invalid_field", "env" },
	{ "name", "{" OK_BODY ",\"name\":\"A\"}", "invalid_field", "name" },
	{ "name too long", "{" OK_BODY ",\"name\":\"a23456789012345678901234567890123\"}",
	  "invalid_field", "name" },
	{ "cpu", "{" OK_BODY ",\"cpu\":4}", "invalid_field", "cpu" },
};

static json_t *parse(const char *text)
{
	json_t *value = NULL;
	struct err err;
	if (json_parse(str_of(text), &value, &err) != ERR_OK)
		printf("the test's own JSON: %s: %s\n", text, err.text);
	return value;
}

static void check_fault(struct check *c, const char *name, err_status status,
			const struct schema_fault *fault, const char *const want[2])
{
	CHECK_INT(c, name, status, want[0] == NULL ? ERR_OK : ERR_INVALID);
	if (want[0] == NULL || status == ERR_OK)
		return;
	CHECK_STR(c, name, str_of(fault->code), want[0]);
	CHECK_STR(c, name, str_of(fault->path), want[1]);
}

static void check_tenants(struct check *c)
{
	for (size_t i = 0; i < ARRAY_COUNT(tenants); i++) {
		AUTO(json_decrefp) json_t *body = parse(tenants[i].body);
		struct tenant_spec spec = { .quota.gpus = -7 };
		struct schema_fault fault = { 0 };
		struct err err = { 0 };
		err_status status = tenant_parse(body, &spec, &fault, &err);
		check_fault(c, tenants[i].name, status, &fault,
			    (const char *const[]){ tenants[i].code, tenants[i].path });
		if (status != ERR_OK) {
			CHECK_INT(c, tenants[i].name, spec.quota.gpus, -7);
			CHECK(c, tenants[i].name, err.text[0] != '\0');
		}
	}
}

static void check_requests(struct check *c)
{
	for (size_t i = 0; i < ARRAY_COUNT(requests); i++) {
		AUTO(json_decrefp) json_t *body = parse(requests[i].body);
		struct request_spec spec = { .gpu_count = -7 };
		struct schema_fault fault = { 0 };
		struct err err = { 0 };
		err_status status = request_parse(body, &spec, &fault, &err);
		check_fault(c, requests[i].name, status, &fault,
			    (const char *const[]){ requests[i].code, requests[i].path });
		if (status != ERR_OK)
			CHECK_INT(c, requests[i].name, spec.gpu_count, -7);
	}
}

static void check_values(struct check *c)
{
	AUTO(json_decrefp) json_t *body = parse(requests[1].body);
	struct request_spec spec;
	CHECK_INT(c, "whole", request_parse(body, &spec, NULL, NULL), ERR_OK);
	CHECK_INT(c, "gpus", spec.gpu_count, 2);
	CHECK_INT(c, "models", spec.model_count, 2);
	CHECK_INT(c, "gpu memory", spec.gpu_memory_mib, 40 * 1024);
	CHECK_INT(c, "cpu", spec.cpu_milli, 4000);
	CHECK_INT(c, "memory", spec.memory_bytes, INT64_C(16) << 30);
	CHECK_INT(c, "duration", spec.duration_s, 3600);
	CHECK_INT(c, "max duration", spec.max_duration_s, 7200);
	CHECK_INT(c, "class", spec.class_, REQUEST_TRAINING);
	AUTO(json_decrefp) json_t *small = parse(requests[0].body);
	CHECK_INT(c, "smallest", request_parse(small, &spec, NULL, NULL), ERR_OK);
	CHECK_INT(c, "default class", spec.class_, REQUEST_EXPERIMENT);
	CHECK_INT(c, "default end", spec.max_duration_s, 86400);
	AUTO(json_decrefp) json_t *tenant = parse(tenants[1].body);
	struct tenant_spec red;
	CHECK_INT(c, "tenant", tenant_parse(tenant, &red, NULL, NULL), ERR_OK);
	CHECK_INT(c, "tenant cpu", red.quota.cpu_milli, 500);
	CHECK_INT(c, "tenant pods", red.quota.pods, 3);
}

#define OK_SPEC "\"gpus\":1,\"image\":\"x.y/z:1\""

static const struct {
	const char *name, *spec, *field; // field NULL: accepted
} objects[] = {
	{ "smallest", "{" OK_SPEC "}", NULL },
	{ "whole",
	  "{" OK_SPEC ",\"class\":\"training\",\"gpuModels\":[\"A\"],\"gpuMemory\":\"40Gi\","
	  "\"cpu\":\"500m\",\"memory\":\"16Gi\",\"durationSeconds\":60,"
	  "\"maxDurationSeconds\":61,\"command\":[\"/a\"],\"args\":[\"b\"],"
	  "\"env\":[{\"name\":\"A\",\"value\":\"b\"},{\"name\":\"C\"}],\"cancel\":false}",
	  NULL },
	{ "every model", "{" OK_SPEC ",\"gpuModels\":[]}", NULL },
	{ "no GPU", "{\"gpus\":0,\"image\":\"x\"}", "gpus" },
	{ "a share", "{\"gpuMilli\":250,\"gpuMemory\":\"10Gi\",\"image\":\"x\"}", NULL },
	{ "whole and a share", "{" OK_SPEC ",\"gpuMilli\":250}", "gpuMilli" },
	{ "neither", "{\"image\":\"x\"}", "gpuMilli" },
	{ "no image", "{\"gpus\":1}", "image" },
	{ "blank in image", "{\"gpus\":1,\"image\":\"x y\"}", "image" },
	{ "class", "{" OK_SPEC ",\"class\":\"batch\"}", "class" },
	{ "cpu negative", "{" OK_SPEC ",\"cpu\":\"-1\"}", "cpu" },
	{ "cpu nothing", "{" OK_SPEC ",\"cpu\":\"0\"}", "cpu" },
	{ "cpu a number", "{" OK_SPEC ",\"cpu\":4}", "cpu" },
	{ "cpu too much", "{" OK_SPEC ",\"cpu\":\"5k\"}", "cpu" },
	{ "memory beyond 64 bits", "{" OK_SPEC ",\"memory\":\"100Ei\"}", "memory" },
	{ "memory too little", "{" OK_SPEC ",\"memory\":\"1\"}", "memory" },
	{ "memory in thousandths", "{" OK_SPEC ",\"memory\":\"1m\"}", "memory" },
	{ "memory negative", "{" OK_SPEC ",\"memory\":\"-1Gi\"}", "memory" },
	{ "GPU memory", "{" OK_SPEC ",\"gpuMemory\":\"2Pi\"}", "gpuMemory" },
	{ "GPU memory unreadable", "{" OK_SPEC ",\"gpuMemory\":\"much\"}", "gpuMemory" },
	{ "duration", "{" OK_SPEC ",\"durationSeconds\":0}", "durationSeconds" },
	{ "longest", "{" OK_SPEC ",\"maxDurationSeconds\":99999999999}", "maxDurationSeconds" },
	{ "longest is shorter", "{" OK_SPEC ",\"durationSeconds\":9,\"maxDurationSeconds\":8}",
	  "maxDurationSeconds" },
	{ "model with a comma", "{" OK_SPEC ",\"gpuModels\":[\"a,b\"]}", "gpuModels" },
	{ "the platform's variable",
	  "{" OK_SPEC ",\"env\":[{\"name\":\"NVIDIA_VISIBLE_DEVICES\"}]}", "env" },
	{ "no variable's name", "{" OK_SPEC ",\"env\":[{\"name\":\"a b\"}]}", "env" },
	{ "unknown member", "{" OK_SPEC ",\"nodes\":2}", "nodes" },
	{ "value of two lines", "{" OK_SPEC ",\"env\":[{\"name\":\"A\",\"value\":\"a\\nb\"}]}",
	  NULL },
	{ "value is a number", "{" OK_SPEC ",\"env\":[{\"name\":\"A\",\"value\":1}]}", "env" },
};

static void check_objects(struct check *c)
{
	for (size_t i = 0; i < ARRAY_COUNT(objects); i++) {
		AUTO(json_decrefp) json_t *spec = NULL;
		struct err err = { 0 };
		CHECK_INT(c, objects[i].name, json_parse(str_of(objects[i].spec), &spec, &err),
			  ERR_OK);
		err_status status = request_check_object(spec, &err);
		CHECK_INT(c, objects[i].name, status,
			  objects[i].field == NULL ? ERR_OK : ERR_INVALID);
		if (objects[i].field != NULL)
			CHECK(c, err.text, strstr(err.text, objects[i].field) != NULL);
	}
	CHECK_INT(c, "no spec", request_check_object(NULL, NULL), ERR_INVALID);
}

int main(void)
{
	struct check c = { 0, 0 };
	check_tenants(&c);
	check_requests(&c);
	check_values(&c);
	AUTO(json_decrefp) json_t *shape = schema_to_openapi(&request_schema);
	CHECK_STR(&c, "openapi", json_text(shape, "properties.gpus.type"), "integer");
	CHECK_INT(&c, "openapi", json_int(shape, "properties.gpus.minimum", 0), 1);
	CHECK(&c, "openapi", !json_bool(shape, "additionalProperties", true));
	check_objects(&c);
	return check_done(&c);
}
