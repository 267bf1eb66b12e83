// SPDX-License-Identifier: Apache-2.0
// Windows of tenants: checked against the GPUs that there are and the windows of all tenants.
#include "api/handlers.h"
#include "api/tenant_queues.h"
#include "api/views.h"
#include "policy/tenant_window.h"

// Name of each tenant to its windows.
static json_t *all_windows(const struct objects *objects)
{
	json_t *out = json_object(), *tenant;
	for (size_t i = 0; objects_next(objects, OBJECT_TENANT, &i, &tenant);) {
		json_t *windows = json_at(tenant, "spec.windows");
		if (windows != NULL)
			(void)json_object_set(out, json_cstr(tenant, "metadata.name"), windows);
	}
	return out;
}

bool tenant_windows_take(struct call *call, json_t *object)
{
	json_t *given = json_object_get(call->body, "windows");
	struct schema_fault fault;
	struct err err;
	if (given == NULL)
		return true;
	struct inventory *inventory = ARENA_NEW(call->arena, struct inventory);
	ASSERT(inventory != NULL);
	if (!view_inventory(call->api->objects, inventory))
		inventory->count = 0;
	AUTO(json_decrefp) json_t *tenants = all_windows(call->api->objects);
	const struct tenant_windows_input in = { .tenant = call->tenant,
						 .windows = given,
						 .tenants = tenants,
						 .inventory = inventory,
						 .now_s = api_now_s(call->api) };
	if (tenant_windows_check(&in, &fault, &err) == ERR_OK) {
		(void)json_object_set(json_object_get(object, "spec"), "windows", given);
		return true;
	}
	call->fault_path = arena_dup(call->arena, str_of(fault.path));
	rest_problem(call, err.status == ERR_LIMIT ? 422 : 400, fault.code, "%s", err.text);
	return false;
}

void tenant_windows_put(json_t *out, const json_t *tenant)
{
	json_t *windows = json_at(tenant, "spec.windows");
	if (windows != NULL)
		(void)json_object_set(out, "windows", windows);
}
