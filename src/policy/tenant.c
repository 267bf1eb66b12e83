// SPDX-License-Identifier: Apache-2.0
#include "policy/tenant.h"

#include "policy/tenant_queue.h"

static const struct schema_field quota_fields[] = {
	{ "gpus", SCHEMA_INT, .min = 0, .max = 100000, .doc = "GPUs held at once." },
	{ "cpu", SCHEMA_CPU, .min = 0, .max = INT64_C(1000000000),
	  .doc = "CPUs requested at once." },
	{ "memory", SCHEMA_BYTES, .min = 0, .max = INT64_C(1) << 55,
	  .doc = "Memory requested at once." },
	{ "pods", SCHEMA_INT, .min = 0, .max = 100000, .doc = "Pods at once." },
};
const struct schema tenant_quota_schema = { .name = "TenantQuota",
					    .doc = "What a tenant may hold at once.",
					    SCHEMA_FIELDS(quota_fields) };

static const struct schema_field tenant_fields[] = {
	{ "name", SCHEMA_LABEL, .required = true, .min = 1, .max = TENANT_NAME_MAX,
	  .doc = "Name, also of the namespace." },
	{ "display_name", SCHEMA_TEXT, .max = 100, .doc = "Name for people." },
	{ "quota", SCHEMA_OBJECT, .object = &tenant_quota_schema,
	  .doc = "Limits; absent ones are 8 GPUs, 64 CPUs, 256Gi, 200 pods." },
	{ "queue", SCHEMA_OBJECT, .nullable = true, .object = &tenant_queue_schema,
	  .doc = "Its queue; absent, it shares one with all tenants that have none." },
};
const struct schema tenant_schema = { .name = "TenantCreate",
				      .doc = "A new tenant.",
				      SCHEMA_FIELDS(tenant_fields) };

// Names and beginnings of names that belong to Kubernetes and to us.
static const char *const reserved_names[] = { "default", "kubernetes", "system", "admin",
					      "all",     "gpuaas",     "kube",   "none" };
static const char *const reserved_prefixes[] = { "kube-", "gpuaas-", "openshift-" };

struct tenant_quota tenant_quota_default(void)
{
	return (struct tenant_quota){
		.gpus = 8, .cpu_milli = 64000, .memory_bytes = INT64_C(256) << 30, .pods = 200
	};
}

err_status tenant_check_name(struct str name, struct err *err)
{
	if (!str_is_dns_label(name))
		return err_set(err, ERR_INVALID,
			       "name must be a DNS label: 1 to %d of a-z, 0-9 and '-', starting "
			       "and ending with a letter or digit",
			       TENANT_NAME_MAX);
	if (name.len > TENANT_NAME_MAX)
		return err_set(err, ERR_INVALID, "name has %zu characters, at most %d are allowed",
			       name.len, TENANT_NAME_MAX);
	bool is_reserved = false;
	for (size_t i = 0; i < ARRAY_COUNT(reserved_names); i++)
		is_reserved = is_reserved || str_eq_c(name, reserved_names[i]);
	for (size_t i = 0; i < ARRAY_COUNT(reserved_prefixes); i++)
		is_reserved = is_reserved || str_starts(name, str_of(reserved_prefixes[i]));
	if (is_reserved)
		return err_set(err, ERR_INVALID,
			       "name \"" STR_FMT "\" is reserved for the platform; choose one that "
			       "is not default, kube-..., gpuaas-... or the like",
			       STR_ARG(name));
	return ERR_OK;
}

void tenant_quota_merge(const json_t *object, struct tenant_quota *ret_quota)
{
	ASSERT(ret_quota != NULL);
	ret_quota->gpus = json_int(object, "gpus", ret_quota->gpus);
	ret_quota->cpu_milli = schema_get_cpu_milli(object, "cpu", ret_quota->cpu_milli);
	ret_quota->memory_bytes = schema_get_bytes(object, "memory", ret_quota->memory_bytes);
	ret_quota->pods = json_int(object, "pods", ret_quota->pods);
}

err_status tenant_parse(const json_t *body, struct tenant_spec *ret_spec,
			struct schema_fault *ret_fault, struct err *err)
{
	err_status status = schema_check(&tenant_schema, body, ret_fault, err);
	if (status != ERR_OK)
		return status;
	struct tenant_spec spec = { .name = json_text(body, "name"),
				    .display_name = json_text(body, "display_name"),
				    .quota = tenant_quota_default() };
	status = tenant_check_name(spec.name, err);
	if (status != ERR_OK) {
		if (ret_fault != NULL)
			*ret_fault = (struct schema_fault){ "invalid_field", "name" };
		return status;
	}
	const json_t *quota = json_at(body, "quota");
	if (quota != NULL)
		tenant_quota_merge(quota, &spec.quota);
	*ret_spec = spec;
	return ERR_OK;
}
