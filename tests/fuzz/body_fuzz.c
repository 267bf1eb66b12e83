// SPDX-License-Identifier: Apache-2.0
// Bytes as the body of a new tenant or request. What is accepted must be within the bounds that
// the rest of the server relies on; what is refused must say so.
#include "policy/quota.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_tenant(const json_t *body)
{
	struct tenant_spec spec;
	struct schema_fault fault = { 0 };
	struct err err = { 0 };
	if (tenant_parse(body, &spec, &fault, &err) != ERR_OK) {
		ASSERT(fault.code != NULL && err.text[0] != '\0');
		return;
	}
	ASSERT(str_is_dns_label(spec.name) && spec.name.len <= TENANT_NAME_MAX);
	ASSERT(spec.quota.gpus >= 0 && spec.quota.cpu_milli >= 0 && spec.quota.memory_bytes >= 0);
}

static void check_request(const json_t *body)
{
	struct request_spec spec;
	struct schema_fault fault = { 0 };
	struct err err = { 0 };
	char id[REQUEST_ID_BYTES];
	if (request_parse(body, &spec, &fault, &err) != ERR_OK) {
		ASSERT(fault.code != NULL && err.text[0] != '\0');
		return;
	}
	ASSERT(spec.gpu_count >= 1 && spec.model_count <= REQUEST_MODELS_MAX);
	ASSERT(spec.max_duration_s >= spec.duration_s && spec.image.len > 0);
	if (spec.name.len > 0)
		request_id_format(STR("red"), spec.name, id);
	struct tenant_quota quota = tenant_quota_default();
	struct quota_amount need = quota_need_of(&spec);
	struct quota_amount used = { 0 };
	bool fits = quota_fits(&quota, &used, &need);
	ASSERT(fits == (quota_check_alone(&quota, &need, &err) == ERR_OK));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *body = NULL;
	struct str tenant, name;
	if (request_id_parse((struct str){ (const char *)data, size }, &tenant, &name))
		ASSERT(str_is_dns_label(tenant) && str_is_dns_label(name));
	if (json_parse((struct str){ (const char *)data, size }, &body, NULL) != ERR_OK)
		return 0;
	check_tenant(body);
	check_request(body);
	json_decref(body);
	return 0;
}
