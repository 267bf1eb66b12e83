// SPDX-License-Identifier: Apache-2.0
#include "api/handlers.h"
#include "api/request_steps.h"
#include "api/tenant_queues.h"
#include "sys/log.h"

#include <stdlib.h>

json_t *tenant_need(struct call *call, struct str name)
{
	json_t *tenant = objects_find(call->api->objects, OBJECT_TENANT, STR(""), name);
	if (tenant == NULL)
		rest_problem(call, 404, "not_found", "there is no such tenant, or it is not yours");
	return tenant;
}

void call_sign_object(const struct call *call, json_t *object)
{
	json_t *notes = json_object_get(json_object_get(object, "metadata"), "annotations");
	put_text(notes, ANNOTATION_IDEMPOTENCY, str_of(call->key_hash));
	put_text(notes, ANNOTATION_USER, call->principal.subject);
}

bool call_has_made(const struct call *call, const json_t *object)
{
	const json_t *notes = json_at(object, "metadata.annotations");
	const json_t *key = json_object_get(notes, ANNOTATION_IDEMPOTENCY);
	return call->key_hash[0] != '\0' && json_is_string(key) &&
	       strcmp(json_string_value(key), call->key_hash) == 0;
}

// ---- create

// The name is taken; by this very call, when it is repeated after a crash before the answer.
static void answer_taken(struct call *call)
{
	json_t *tenant = objects_find(call->api->objects, OBJECT_TENANT, STR(""), call->tenant);
	if (call_has_made(call, tenant)) {
		rest_answer(call, view_tenant(call, tenant));
		return;
	}
	rest_problem(call, 409, "already_exists",
		     "a tenant \"" STR_FMT "\" is there already; choose another name or change it "
		     "with PATCH",
		     STR_ARG(call->tenant));
}

static void on_created(void *arg, const struct object_result *result)
{
	struct call *call = arg;
	if (result->status == ERR_OK)
		rest_answer(call, view_tenant(call, result->object));
	else if (result->status == ERR_CONFLICT)
		answer_taken(call);
	else
		rest_fail(call, result->err);
}

void handle_tenant_create(struct call *call)
{
	struct tenant_spec spec;
	struct schema_fault fault = { 0 };
	struct err err;
	if (tenant_parse(call->body, &spec, &fault, &err) != ERR_OK) {
		call->fault_path = arena_dup(call->arena, str_of(fault.path));
		rest_problem(call, 400, fault.code, "%s", err.text);
		return;
	}
	call->tenant = spec.name;
	if (objects_find(call->api->objects, OBJECT_TENANT, STR(""), spec.name) != NULL) {
		answer_taken(call);
		return;
	}
	AUTO(json_decrefp) json_t *object = view_tenant_object(&spec, call->body);
	if (!tenant_queue_take(call, NULL, object))
		return;
	tenant_queue_drop_nulls(object);
	call_sign_object(call, object);
	struct object_write write = { .kind = OBJECT_TENANT,
				      .name = spec.name,
				      .body = object,
				      .on_done = on_created,
				      .arg = call };
	objects_create(call->api->objects, &write);
}

// ---- read

void handle_tenant_get(struct call *call)
{
	json_t *tenant = tenant_need(call, call->tenant);
	if (tenant == NULL)
		return;
	(void)rest_header_add(call, "ETag",
			      str_of(arena_printf(call->arena, "\"%s\"",
						  json_cstr(tenant, "metadata.resourceVersion"))));
	rest_answer(call, view_tenant(call, tenant));
}

static int by_name(const void *left, const void *right)
{
	const json_t *a = *(json_t *const *)left, *b = *(json_t *const *)right;
	return str_cmp(json_text(a, "metadata.name"), json_text(b, "metadata.name"));
}

void handle_tenant_list(struct call *call)
{
	struct rest_page page;
	struct objects *objects = call->api->objects;
	size_t count = 0, max = objects_count(objects, OBJECT_TENANT);
	json_t **found = ARENA_ARRAY(call->arena, json_t *, max + 1), *tenant;
	if (!rest_page(call, &page))
		return;
	ASSERT(found != NULL);
	struct str own = call->principal.tenant;
	for (size_t i = 0; objects_next(objects, OBJECT_TENANT, &i, &tenant);) {
		struct str name = json_text(tenant, "metadata.name");
		if ((own.len == 0 || str_eq(name, own)) && str_cmp(name, page.after) > 0)
			found[count++] = tenant;
	}
	qsort(found, count, sizeof found[0], by_name);
	json_t *items = json_array();
	for (size_t i = 0; i < count && i < page.limit; i++)
		(void)json_array_append_new(items, view_tenant(call, found[i]));
	bool has_more = count > page.limit;
	rest_answer_list(call, items,
			 has_more ? json_text(found[page.limit - 1], "metadata.name") : STR(""));
}

// ---- change

static void on_changed(void *arg, const struct object_result *result)
{
	struct call *call = arg;
	if (result->status == ERR_OK)
		rest_answer(call, view_tenant(call, result->object));
	else if (result->status == ERR_CONFLICT)
		rest_problem(call, 412, "changed_meanwhile",
			     "the tenant was changed meanwhile; read it again and repeat");
	else
		rest_fail(call, result->err);
}

void handle_tenant_update(struct call *call)
{
	json_t *tenant = tenant_need(call, call->tenant);
	struct str match = http_header_find(&call->request->headers, "If-Match");
	if (tenant == NULL)
		return;
	AUTO(json_decrefp) json_t *patch = view_tenant_patch(call->body);
	if (!tenant_queue_take(call, tenant, patch) || !tenant_windows_take(call, patch))
		return;
	if (match.len > 2 && match.data[0] == '"') {
		json_t *meta = json_object();
		put_text(meta, "resourceVersion", str_slice(match, 1, match.len - 1));
		(void)json_object_set_new(patch, "metadata", meta);
	}
	struct object_write write = { .kind = OBJECT_TENANT,
				      .name = call->tenant,
				      .body = patch,
				      .on_done = on_changed,
				      .arg = call };
	objects_patch(call->api->objects, &write);
}

// ---- delete

static void on_deleted(void *arg, const struct object_result *result)
{
	struct call *call = arg;
	struct err err;
	int64_t revoked = 0;
	if (result->status != ERR_OK && result->status != ERR_NOT_FOUND) {
		rest_fail(call, result->err);
		return;
	}
	// Members and tokens go after the object: a crash in between leaves tokens that find no
	// tenant any more, and the call can be repeated.
	if (store_token_revoke_all(call->api->sql, call->tenant, STR(""), api_now_s(call->api),
				   &revoked, &err) != ERR_OK ||
	    store_member_remove_all(call->api->sql, call->tenant, &err) != ERR_OK) {
		rest_fail(call, &err);
		return;
	}
	json_t *body = json_object();
	put_text(body, "name", call->tenant);
	put_text(body, "state", STR("Deleting"));
	call->audit_detail =
		str_of(arena_printf(call->arena, "%lld tokens revoked", (long long)revoked));
	rest_answer(call, body);
}

void handle_tenant_delete(struct call *call)
{
	if (tenant_need(call, call->tenant) == NULL)
		return;
	struct object_write write = {
		.kind = OBJECT_TENANT, .name = call->tenant, .on_done = on_deleted, .arg = call
	};
	objects_delete(call->api->objects, &write);
}
