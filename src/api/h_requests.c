// SPDX-License-Identifier: Apache-2.0
// GPU requests: asked for, listed, cancelled. What becomes of them is the controller's work.
#include "api/handlers.h"
#include "api/page.h"
#include "api/request_steps.h"
#include "api/tenant_queues.h"
#include "base/timefmt.h"
#include "policy/queue_limit.h"
#include "store/history.h"
#include "sys/random.h"

#include <stdlib.h>

json_t *request_find(struct call *call)
{
	return objects_find(call->api->objects, OBJECT_REQUEST, call->tenant, call->object_name);
}

json_t *request_need(struct call *call)
{
	json_t *request = request_find(call);
	if (request == NULL)
		rest_problem(call, 404, "not_found",
			     "there is no such request, or it is not yours");
	return request;
}

static void answer_request(struct call *call, const json_t *request)
{
	json_t *body = view_request(call, request);
	request_put_estimate(call, request, body);
	rest_answer(call, body);
}

// ---- create

// The same name again: the same call repeated after a crash before its answer, or another one.
static void answer_taken(struct call *call)
{
	json_t *request = request_find(call);
	if (call_has_made(call, request)) {
		answer_request(call, request);
		return;
	}
	rest_problem(call, 409, "already_exists",
		     "a request \"" STR_FMT "\" is there already in " STR_FMT "; choose another "
		     "name",
		     STR_ARG(call->object_name), STR_ARG(call->tenant));
}

static void on_created(void *arg, const struct object_result *result)
{
	struct call *call = arg;
	if (result->status == ERR_OK)
		answer_request(call, result->object);
	else if (result->status == ERR_CONFLICT && request_find(call) != NULL)
		answer_taken(call);
	else if (result->status == ERR_CONFLICT)
		rest_problem(call, 409, "already_exists",
			     "a request of this name is just being made; choose another name");
	else if (result->status == ERR_NOT_FOUND)
		rest_problem(call, 503, "tenant_not_ready",
			     "the tenant's namespace is not there yet; repeat the call");
	else
		rest_fail(call, result->err);
}

static bool is_tenant_usable(struct call *call, struct tenant_quota *ret_quota)
{
	json_t *tenant = tenant_need(call, call->tenant);
	if (tenant == NULL)
		return false;
	if (json_at(tenant, "metadata.deletionTimestamp") != NULL) {
		rest_problem(call, 409, "tenant_deleting", "the tenant is being deleted");
		return false;
	}
	view_tenant_quota(tenant, ret_quota);
	return true;
}

// A bound on what one tenant can put into the cluster's store.
static bool is_within_count(struct call *call)
{
	struct tenant_load load = { 0 };
	int64_t max = call->api->limits.open_requests_max;
	if (!view_tenant_load(call->api->objects, call->arena, rest_scope(call), NULL, &load) ||
	    (int64_t)load.count >= max) {
		rest_problem(call, 422, "limit_exceeded",
			     "the tenant has %lld requests that have not ended, as many as it may "
			     "have; cancel some or wait for them to end",
			     (long long)max);
		return false;
	}
	return true;
}

// What the tenant's pods are ended after, or those of the next one above it that says; 0: never.
static int64_t tenant_longest_s(struct call *call)
{
	struct str name = call->tenant;
	for (int depth = 0; depth < TENANT_QUEUE_DEPTH_MAX && name.len > 0; depth++) {
		const json_t *tenant =
			objects_find(call->api->objects, OBJECT_TENANT, STR(""), name);
		int64_t longest_s = json_int(json_at(tenant, "spec.queue"), "maxRunSeconds", 0);
		if (longest_s > 0)
			return longest_s;
		name = json_text(tenant, "spec.queue.parent");
	}
	return 0;
}

void request_fill(struct call *call, struct request_spec *spec)
{
	int64_t longest_s = tenant_longest_s(call);
	if (longest_s > 0 && json_object_get(call->body, "max_duration") == NULL)
		spec->max_duration_s = min_i64(spec->max_duration_s, longest_s);
	struct inventory *inventory = ARENA_NEW(call->arena, struct inventory);
	ASSERT(inventory != NULL);
	if (!view_inventory(call->api->objects, inventory))
		inventory->count = inventory->mig_count = 0;
	request_fill_share(spec, inventory);
}

// A deadline that cannot be met even if it starts now is the caller's mistake, not the queue's.
static bool can_be_in_time(struct call *call, const struct request_spec *spec)
{
	int64_t deadline_s, now_s = api_now_s(call->api);
	if (!time_parse(spec->deadline, &deadline_s, NULL) ||
	    now_s + spec->duration_s <= deadline_s)
		return true;
	rest_problem(call, 422, "deadline_unreachable",
		     "it cannot have ended by " STR_FMT " if it runs for %lld s; choose a later "
		     "deadline or a shorter duration",
		     STR_ARG(spec->deadline), (long long)spec->duration_s);
	return false;
}

static bool is_short_enough(struct call *call, const struct request_spec *spec)
{
	int64_t longest_s = tenant_longest_s(call);
	if (longest_s == 0 || max_i64(spec->max_duration_s, spec->duration_s) <= longest_s)
		return true;
	rest_problem(call, 422, "too_long",
		     "the tenant's work is ended after %lld s; ask for a duration and a "
		     "max_duration of at most that",
		     (long long)longest_s);
	return false;
}

bool request_check(struct call *call, const struct request_spec *spec)
{
	struct tenant_quota quota;
	struct inventory *inventory = ARENA_NEW(call->arena, struct inventory);
	struct quota_amount need = quota_need_of(spec);
	struct err err;
	ASSERT(inventory != NULL);
	if (!is_tenant_usable(call, &quota) || !is_within_count(call) ||
	    !can_be_in_time(call, spec) || !is_short_enough(call, spec))
		return false;
	if (view_inventory(call->api->objects, inventory) &&
	    request_check_possible(spec, inventory, &err) != ERR_OK) {
		rest_problem(call, 422, "impossible", "%s", err.text);
		return false;
	}
	if (quota_check_alone(&quota, &need, &err) != ERR_OK) {
		rest_problem(call, 422, "quota_exceeded", "%s", err.text);
		return false;
	}
	if (queue_limit_check(call->tenant, spec, tenant_queue_find, call, &err) != ERR_OK) {
		rest_problem(call, 422, "queue_limit_exceeded", "%s", err.text);
		return false;
	}
	return true;
}

// Without a name: from the idempotency key, so that a repeated call finds what the first made.
static struct str name_of(struct call *call, const struct request_spec *spec)
{
	char random[11];
	if (spec->name.len > 0)
		return spec->name;
	if (call->key_hash[0] != '\0')
		return str_of(arena_printf(call->arena, "r-%.12s", call->key_hash));
	random_base62(random, 10);
	for (size_t i = 0; i < 10; i++) {
		if (random[i] >= 'A' && random[i] <= 'Z')
			random[i] = (char)(random[i] - 'A' + 'a');
	}
	return str_of(arena_printf(call->arena, "r-%s", random));
}

static void create(struct call *call, const struct request_spec *spec)
{
	AUTO(json_decrefp)
	json_t *object = view_request_object(spec, call->body, call->tenant, call->object_name);
	call_sign_object(call, object);
	struct object_write write = { .kind = OBJECT_REQUEST,
				      .namespace_ = call->tenant,
				      .name = call->object_name,
				      .body = object,
				      .on_done = on_created,
				      .arg = call };
	objects_create(call->api->objects, &write);
}

void handle_request_create(struct call *call)
{
	struct request_spec spec;
	struct schema_fault fault = { 0 };
	struct err err;
	if (request_parse(call->body, &spec, &fault, &err) != ERR_OK) {
		call->fault_path = arena_dup(call->arena, str_of(fault.path));
		rest_problem(call, 400, fault.code, "%s", err.text);
		return;
	}
	request_fill(call, &spec);
	call->object_name = name_of(call, &spec);
	call->audit_detail = str_of(arena_printf(
		call->arena,
		"name " STR_FMT " gpus %lld gpu_milli %lld pods %lld mig \"" STR_FMT "\"",
		STR_ARG(call->object_name), (long long)spec.gpu_count, (long long)spec.gpu_milli,
		(long long)request_pod_count(&spec), STR_ARG(spec.mig_profile)));
	if (request_find(call) != NULL) {
		answer_taken(call);
		return;
	}
	if (request_check(call, &spec))
		create(call, &spec);
}

// ---- read

void handle_request_get(struct call *call)
{
	struct history_row row;
	struct err err;
	json_t *request = request_find(call), *body = NULL;
	if (request != NULL) {
		answer_request(call, request);
		return;
	}
	if (history_find(call->api->sql, call->arena, call->match.params[0], &row, &err) !=
		    ERR_OK ||
	    json_parse(row.json, &body, &err) != ERR_OK)
		rest_fail(call, &err);
	else
		rest_answer(call, body);
}

struct listed {
	const json_t *request;
	struct page_row row;
};

static int by_id(const void *left, const void *right)
{
	const struct listed *a = left, *b = right;
	return page_row_cmp(&a->row, &b->row);
}

static size_t collect(struct call *call, const struct rest_page *page, struct listed *rows)
{
	size_t count = 0;
	json_t *request;
	struct str scope = rest_scope(call), state = rest_query(call, "state");
	for (size_t i = 0; objects_next(call->api->objects, OBJECT_REQUEST, &i, &request);) {
		struct page_row row = { json_text(request, "metadata.namespace"),
					json_text(request, "metadata.name") };
		bool is_wanted = (scope.len == 0 || str_eq(row.tenant, scope)) &&
				 (state.len == 0 ||
				  str_eq_c(state, view_phase_name(view_request_phase(request)))) &&
				 page_row_is_after(&row, page->after);
		if (is_wanted)
			rows[count++] = (struct listed){ request, row };
	}
	return count;
}

// Places in the line for the tenant's quota, counted once for each tenant of the page. rows are in
// order, items are views of the first of them.
static void put_positions(struct call *call, const struct listed *rows, json_t *items)
{
	struct tenant_load load = { 0 };
	struct str tenant = { NULL, 0 };
	json_t *item;
	size_t i;
	json_array_foreach(items, i, item)
	{
		if (view_request_phase(rows[i].request) != PHASE_PENDING ||
		    view_request_holds(call->api->objects, rows[i].request))
			continue;
		if (tenant.data == NULL || !str_eq(rows[i].row.tenant, tenant)) {
			tenant = rows[i].row.tenant;
			if (!view_tenant_load(call->api->objects, call->arena, tenant, NULL, &load))
				return; // a column less, where there is no memory for it
		}
		view_put_position(&load, rows[i].row.name, item);
	}
}

void handle_request_list(struct call *call)
{
	struct rest_page page;
	if (!rest_page(call, &page))
		return;
	if (call->tenant.len > 0 && tenant_need(call, call->tenant) == NULL)
		return;
	struct str state = rest_query(call, "state");
	if (state.len > 0 && !view_phase_is_name(state)) {
		rest_problem(call, 400, "invalid_parameter",
			     "state must be Pending, Running, Succeeded, Failed or Cancelled");
		return;
	}
	size_t max = objects_count(call->api->objects, OBJECT_REQUEST);
	struct listed *rows = ARENA_ARRAY(call->arena, struct listed, max + 1);
	if (rows == NULL) {
		rest_problem(call, 422, "too_large", "there are too many requests; name a tenant");
		return;
	}
	size_t count = collect(call, &page, rows);
	qsort(rows, count, sizeof rows[0], by_id);
	json_t *items = json_array();
	for (size_t i = 0; i < count && i < page.limit; i++)
		(void)json_array_append_new(items, view_request_plain(rows[i].request));
	put_positions(call, rows, items);
	struct str next = STR("");
	if (count > page.limit)
		next = page_row_token(call->arena, &rows[page.limit - 1].row);
	request_answer_page(call, items, next);
}

// ---- cancel

static void on_cancelled(void *arg, const struct object_result *result)
{
	struct call *call = arg;
	if (result->status == ERR_OK)
		rest_answer(call, view_request(call, result->object));
	else
		rest_fail(call, result->err);
}

void handle_request_cancel(struct call *call)
{
	json_t *request = request_need(call);
	if (request == NULL)
		return;
	request_phase phase = view_request_phase(request);
	if (view_phase_is_end(phase)) {
		if (phase == PHASE_CANCELLED)
			rest_answer(call, view_request(call, request));
		else
			rest_problem(call, 409, "already_ended",
				     "the request has ended as %s; "
				     "there is nothing to cancel",
				     view_phase_name(phase));
		return;
	}
	AUTO(json_decrefp) json_t *patch = NULL;
	bool is_local = objects_are_local(call->api->objects);
	if (json_parse(is_local ? STR("{\"spec\":{\"cancel\":true},\"status\":{\"phase\":"
				      "\"Cancelled\"}}")
				: STR("{\"spec\":{\"cancel\":true}}"),
		       &patch, NULL) != ERR_OK)
		ASSERT(false); // a constant
	struct object_write write = { .kind = OBJECT_REQUEST,
				      .namespace_ = call->tenant,
				      .name = call->object_name,
				      .body = patch,
				      .on_done = on_cancelled,
				      .arg = call };
	objects_patch(call->api->objects, &write);
}
