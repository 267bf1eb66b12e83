// SPDX-License-Identifier: Apache-2.0
#include "api/rest_steps.h"

#include "base/timefmt.h"
#include "sys/random.h"

#include <stdio.h>
#include <stdlib.h>

static struct call *rest_new(struct api *api, struct http_exchange *exchange,
			     const struct http_request *request)
{
	struct arena *arena = arena_new(CALL_ARENA_MAX_BYTES);
	struct call *call = arena == NULL ? NULL : ARENA_NEW(arena, struct call);
	ASSERT(call != NULL); // the first 16 KiB of a call; without them nothing can be answered
	*call = (struct call){
		.api = api, .exchange = exchange, .request = request, .arena = arena
	};
	random_base62(call->id, CALL_ID_CHARS);
	call->begun_ns = loop_now_ns(api->loop);
	call->code = "";
	api->counters.in_flight++;
	call->next = api->calls;
	call->link = &api->calls;
	if (call->next != NULL)
		call->next->link = &call->next;
	api->calls = call;
	return call;
}

void rest_free(struct call *call)
{
	struct api *api = call->api;
	ASSERT(api->counters.in_flight > 0);
	api->counters.in_flight--;
	*call->link = call->next;
	if (call->next != NULL)
		call->next->link = call->link;
	json_decref(call->body);
	arena_free(call->arena);
}

static void refuse_unknown(struct call *call)
{
	if (!call->match.is_path_known) {
		rest_problem(call, 404, "not_found", "there is no such path; see /openapi.json");
		return;
	}
	(void)rest_header_add(call, "Allow", str_of(call->match.allow));
	rest_problem(call, 405, "method_not_allowed", "this path takes %s", call->match.allow);
}

void rest_begin(void *arg, struct http_exchange *exchange, const struct http_request *request)
{
	struct call *call = rest_new(arg, exchange, request);
	struct str method = request->method;
	if (str_eq_c(method, "HEAD"))
		method = STR("GET"); // the server leaves the body out
	if (!route_find(method, request->path, &call->match)) {
		refuse_unknown(call);
		return;
	}
	call->route = call->match.route;
	if (call->route->access == ROUTE_PUBLIC)
		call->route->fn(call);
	else
		rest_authenticate(call);
}

// ---- after the caller is known

static bool is_within_rate(struct call *call)
{
	struct api *api = call->api;
	bool is_agent = call->principal.role == AUTHZ_AGENT;
	struct limiter_rate rate = { api->limits.calls_per_s, api->limits.calls_burst };
	if (is_agent)
		rate = (struct limiter_rate){ api->limits.agent_calls_per_s,
					      4 * api->limits.agent_calls_per_s };
	int64_t wait_ms = 0;
	// By the person and not by the token, of which they may make more.
	char key[200];
	(void)snprintf(key, sizeof key, "%s:" STR_FMT "/" STR_FMT, is_agent ? "agent" : "user",
		       STR_ARG(call->principal.tenant), STR_ARG(call->principal.subject));
	if (limiter_take(api->limiter, str_of(key), loop_now_ns(api->loop), call->route->cost, rate,
			 &wait_ms))
		return true;
	rest_limited(call, wait_ms);
	return false;
}

void rest_limited(struct call *call, int64_t wait_ms)
{
	char text[24];
	call->api->counters.limited++;
	(void)snprintf(text, sizeof text, "%lld", (long long)((wait_ms + 999) / 1000));
	(void)rest_header_add(call, "Retry-After", str_of(text));
	rest_problem(call, 429, "rate_limited", "too many calls; wait %s s and repeat", text);
}

static bool find_tenant(struct call *call, struct str *ret_tenant)
{
	struct str first = call->match.params[0];
	struct str asked = { NULL, 0 };
	switch (call->route->tenant_of) {
	case ROUTE_TENANT_NONE:
	case ROUTE_TENANT_HANDLER: *ret_tenant = STR(""); return true;
	case ROUTE_TENANT_PATH: *ret_tenant = first; return str_is_dns_label(first);
	case ROUTE_TENANT_ID: return request_id_parse(first, ret_tenant, &call->object_name);
	case ROUTE_TENANT_QUERY: asked = rest_query(call, "tenant"); break;
	}
	*ret_tenant = asked.len > 0 ? asked : call->principal.tenant;
	return ret_tenant->len == 0 || str_is_dns_label(*ret_tenant);
}

bool rest_authorize(struct call *call, struct str tenant)
{
	call->tenant = tenant;
	switch (authz_decide(&call->principal, call->route->resource, call->route->verb, tenant)) {
	case AUTHZ_ALLOWED: return true;
	case AUTHZ_FORBIDDEN:
		call->api->counters.denied++;
		call->is_denied = true;
		rest_problem(call, 403, "forbidden", "the role %s may not %s a %s%s",
			     authz_role_name(call->principal.role),
			     authz_verb_name(call->route->verb),
			     authz_resource_name(call->route->resource),
			     "; ask an admin, or use a token with more rights");
		return false;
	case AUTHZ_HIDDEN: break;
	}
	call->api->counters.denied++;
	call->is_denied = true;
	rest_problem(call, 404, "not_found", "there is no such %s, or it is not yours",
		     authz_resource_name(call->route->resource));
	return false;
}

void rest_authenticated(struct call *call)
{
	struct err err;
	struct str tenant;
	if (!is_within_rate(call))
		return;
	bool is_named = find_tenant(call, &tenant);
	if (!is_named && call->route->tenant_of == ROUTE_TENANT_QUERY) {
		rest_problem(
			call, 400, "invalid_parameter",
			"tenant must be a DNS label: small letters, digits and '-', at most 63");
		return;
	}
	if (!is_named) {
		rest_problem(call, 404, "not_found", "there is no such %s, or it is not yours",
			     authz_resource_name(call->route->resource));
		return;
	}
	if (!rest_authorize(call, tenant))
		return;
	if (route_check_query(call->route, call->request->query, &err) != ERR_OK) {
		rest_problem(call, 400, "unknown_parameter", "%s", err.text);
		return;
	}
	if (!rest_read_body(call) || !rest_check_repetition(call))
		return;
	rest_audit_begin(call);
}

// ---- small helpers of handlers

struct str rest_scope(const struct call *call)
{
	struct str asked = call->tenant;
	return asked.len > 0 ? asked : call->principal.tenant;
}

struct str rest_query(const struct call *call, const char *name)
{
	struct str value = http_query_get(call->arena, call->request->query, name);
	return value.data == NULL ? STR("") : value;
}

bool rest_query_int(struct call *call, const char *name, int64_t absent, int64_t max, int64_t *ret)
{
	struct str text = rest_query(call, name);
	int64_t value = absent;
	if (text.len > 0 && (!str_to_i64(text, &value) || value < 1 || value > max)) {
		rest_problem(call, 400, "invalid_parameter", "%s must be 1 to %lld", name,
			     (long long)max);
		return false;
	}
	*ret = value;
	return true;
}

bool rest_query_time(struct call *call, const char *name, int64_t absent, int64_t *ret)
{
	struct str text = rest_query(call, name);
	int64_t value = absent;
	if (text.len > 0 && !time_parse(text, &value, NULL)) {
		rest_problem(call, 400, "invalid_parameter",
			     "%s must be an RFC 3339 instant like 2026-02-10T00:00:00Z", name);
		return false;
	}
	*ret = value;
	return true;
}

bool rest_page(struct call *call, struct rest_page *ret_page)
{
	int64_t limit = 0;
	if (!rest_query_int(call, "limit", 100, STORE_PAGE_MAX, &limit))
		return false;
	*ret_page = (struct rest_page){ (size_t)limit, rest_query(call, "page_token") };
	return true;
}

void put_text(json_t *object, const char *key, struct str text)
{
	if (text.len > 0)
		(void)json_object_set_new(object, key, json_stringn(text.data, text.len));
}

void put_int(json_t *object, const char *key, int64_t value)
{
	(void)json_object_set_new(object, key, json_integer((json_int_t)value));
}

void put_time(json_t *object, const char *key, int64_t unix_s)
{
	char text[TIME_TEXT_BYTES];
	if (unix_s != 0)
		(void)json_object_set_new(object, key, json_string(time_format(unix_s, text)));
}
