// SPDX-License-Identifier: Apache-2.0
// Windows of tenants: checked against the GPUs that there are and the windows of all tenants.
#include "api/handlers.h"
#include "api/request_steps.h"
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

// Whether all of them, or only the one, can be held.
static err_status check_windows(struct call *call, const json_t *windows, struct str only,
				struct schema_fault *ret_fault, struct err *err)
{
	struct inventory *inventory = ARENA_NEW(call->arena, struct inventory);
	ASSERT(inventory != NULL);
	if (!view_inventory(call->api->objects, inventory))
		inventory->count = 0;
	AUTO(json_decrefp) json_t *tenants = all_windows(call->api->objects);
	const struct tenant_windows_input in = { .tenant = call->tenant,
						 .windows = windows,
						 .tenants = tenants,
						 .inventory = inventory,
						 .now_s = api_now_s(call->api),
						 .only = only };
	return tenant_windows_check(&in, ret_fault, err);
}

static void refuse_windows(struct call *call, const char *path, const struct err *err)
{
	bool is_large = err->status == ERR_LIMIT;
	call->fault_path = arena_dup(call->arena, str_of(path));
	rest_problem(call, is_large ? 422 : 400, is_large ? "window_too_large" : "invalid_field",
		     "%s", err->text);
}

bool tenant_windows_take(struct call *call, json_t *object)
{
	json_t *given = json_object_get(call->body, "windows");
	struct schema_fault fault;
	struct err err;
	if (given == NULL)
		return true;
	if (check_windows(call, given, STR(""), &fault, &err) == ERR_OK) {
		(void)json_object_set(json_object_get(object, "spec"), "windows", given);
		return true;
	}
	refuse_windows(call, fault.path, &err);
	return false;
}

void tenant_windows_put(json_t *out, const json_t *tenant)
{
	json_t *windows = json_at(tenant, "spec.windows");
	if (windows != NULL)
		(void)json_object_set(out, "windows", windows);
}

// ---- one by one

void handle_window_list(struct call *call)
{
	json_t *tenant = tenant_need(call, call->tenant);
	if (tenant == NULL)
		return;
	json_t *windows = json_at(tenant, "spec.windows");
	rest_answer_list(call, windows == NULL ? json_array() : json_copy(windows), STR(""));
}

struct change {
	struct call *call; // in whose arena it lies
	json_t *window;    // owned: the answer
};

static void on_written(void *arg, const struct object_result *result)
{
	struct change *change = arg;
	if (result->status == ERR_OK) {
		rest_answer(change->call, change->window);
		return;
	}
	json_decref(change->window);
	if (result->status == ERR_CONFLICT)
		rest_problem(change->call, 409, "changed_meanwhile",
			     "the tenant was changed meanwhile; repeat the call");
	else
		rest_fail(change->call, result->err);
}

// Only over what was read, so that nobody else's change of the list is lost.
static void write_windows(struct call *call, const json_t *tenant, json_t *windows, json_t *window)
{
	struct change *change = ARENA_NEW(call->arena, struct change);
	ASSERT(change != NULL);
	*change = (struct change){ call, json_incref(window) };
	call->audit_detail = str_of(arena_printf(
		call->arena, "window %s: %lld GPUs of %s, %s to %s", json_cstr(window, "name"),
		(long long)json_int(window, "gpus", 0),
		json_text(window, "model").len > 0 ? json_cstr(window, "model") : "any model",
		json_cstr(window, "start"), json_cstr(window, "end")));
	AUTO(json_decrefp)
	json_t *patch = json_pack("{s:{s:s}, s:{s:O}}", "metadata", "resourceVersion",
				  json_cstr(tenant, "metadata.resourceVersion"), "spec", "windows",
				  windows);
	struct object_write write = { .kind = OBJECT_TENANT,
				      .name = call->tenant,
				      .body = patch,
				      .on_done = on_written,
				      .arg = change };
	objects_patch(call->api->objects, &write);
}

void handle_window_create(struct call *call)
{
	json_t *tenant = tenant_need(call, call->tenant);
	if (tenant == NULL)
		return;
	const json_t *before = json_at(tenant, "spec.windows");
	struct str name = json_text(call->body, "name");
	json_t *same = tenant_windows_find(before, name);
	AUTO(json_decrefp) json_t *windows = NULL;
	struct schema_fault fault;
	struct err err;
	if (same != NULL &&
	    json_equal(same, call->body)) { // repeated after a crash, or by a person
		rest_answer(call, json_incref(same));
		return;
	}
	err_status status =
		tenant_windows_add(before, call->body, api_now_s(call->api), &windows, &err);
	if (status == ERR_CONFLICT) {
		rest_problem(call, 409, "already_exists", "%s", err.text);
		return;
	}
	if (status == ERR_LIMIT) {
		rest_fail(call, &err);
		return;
	}
	if (status == ERR_OK)
		status = check_windows(call, windows, name, &fault, &err);
	if (status == ERR_OK)
		write_windows(call, tenant, windows, call->body);
	else
		refuse_windows(call, status == ERR_LIMIT ? "gpus" : "end", &err);
}

void handle_window_delete(struct call *call)
{
	json_t *tenant = tenant_need(call, call->tenant);
	if (tenant == NULL)
		return;
	const json_t *before = json_at(tenant, "spec.windows");
	struct str name = call->match.params[1];
	AUTO(json_decrefp) json_t *windows = NULL;
	struct err err;
	if (tenant_windows_remove(before, name, &windows, &err) != ERR_OK)
		rest_fail(call, &err);
	else
		write_windows(call, tenant, windows, tenant_windows_find(before, name));
}
