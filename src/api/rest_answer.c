// SPDX-License-Identifier: Apache-2.0
#include "api/rest_steps.h"

#include "sys/log.h"

#include <stdarg.h>
#include <stdio.h>

enum { PROBLEM_DETAIL_BYTES = 1000 };

bool rest_header_add(struct call *call, const char *name, struct str value)
{
	struct str copy = arena_dup(call->arena, value);
	return copy.data != NULL && http_header_add(&call->headers, str_of(name), copy);
}

static void count(struct call *call)
{
	struct api *api = call->api;
	unsigned class_ = (unsigned)call->status / 100;
	uint64_t took_ns = loop_now_ns(api->loop) - call->begun_ns;
	ASSERT(class_ >= 1 && class_ <= 5);
	api->counters.by_status[class_]++;
	if (call->route == NULL)
		return;
	size_t route_i = (size_t)(call->route - route_table);
	ASSERT(route_i < API_ROUTES_MAX);
	metric_observe(&api->seconds[route_i], (double)took_ns / 1e9);
	api->seconds_by_code[route_i][class_]++;
}

static void log_call(const struct call *call)
{
	char status[8], tenant[64], user[140], path[200];
	log_level level = LOG_DEBUG;
	if (call->route != NULL && call->route->access == ROUTE_TOKEN && route_mutates(call->route))
		level = LOG_INFO;
	// Probes ask each second; what is not ready is said by what makes it so.
	if (call->status >= 500 && (call->route == NULL || call->route->access != ROUTE_PUBLIC))
		level = LOG_WARN;
	(void)snprintf(status, sizeof status, "%d", call->status);
	(void)snprintf(tenant, sizeof tenant, STR_FMT, STR_ARG(call->tenant));
	(void)snprintf(user, sizeof user, STR_FMT, STR_ARG(call->principal.subject));
	(void)snprintf(path, sizeof path, STR_FMT " " STR_FMT, STR_ARG(call->request->method),
		       STR_ARG(call->request->path));
	log_kv(level, "call", "request_id", call->id, "call", path, "status", status, "code",
	       call->code, "user", user, "tenant", tenant, NULL);
}

// Keeps a success for repetitions, forgets everything else: it may be repeated in earnest. Only
// after the audit record is durable, or a repetition would acknowledge what is not recorded.
static void keep_answer(struct call *call)
{
	struct err err;
	struct str key = str_of(call->key_hash);
	if (key.len == 0)
		return;
	err_status status = call->status < 300
				    ? answers_finish(call->api->sql, key, call->status,
						     call->is_secret ? STR("") : call->answer, &err)
				    : answers_forget(call->api->sql, key, &err);
	if (status != ERR_OK)
		log_err(LOG_WARN, "answer for an idempotency key is not kept", &err);
}

static void send_now(struct call *call)
{
	keep_answer(call);
	count(call);
	log_call(call);
	(void)rest_header_add(call, "X-Request-Id", str_of(call->id));
	(void)rest_header_add(call, "Cache-Control", STR("no-store"));
	(void)rest_header_add(call, "X-Content-Type-Options", STR("nosniff"));
	http_respond(call->exchange, call->status, call->content_type, &call->headers,
		     call->answer);
	rest_free(call);
}

// The record could not be made durable although room was reserved: what was done stays done, and
// the caller is not told that it is recorded.
static void on_end_recorded(void *arg, const struct err *err)
{
	struct call *call = arg;
	if (err != NULL) {
		log_err(LOG_ERROR, "audit record of a finished call is lost", err);
		call->status = 503;
		call->code = "audit_unavailable";
		call->content_type = "application/problem+json";
		call->answer =
			STR("{\"type\":\"urn:gpuaas:problem:audit_unavailable\","
			    "\"title\":\"Service Unavailable\",\"status\":503,"
			    "\"code\":\"audit_unavailable\",\"detail\":\"the call was carried "
			    "out but its end could not be recorded; look whether it took "
			    "effect before repeating it\"}");
	}
	send_now(call);
}

// A refusal stands whether or not it could be recorded.
static void on_denial_recorded(void *arg, const struct err *err)
{
	if (err != NULL)
		log_err(LOG_ERROR, "audit record of a refused call is lost", err);
	send_now(arg);
}

static void record(struct call *call, const char *stage, audit_done_fn *on_done)
{
	struct audit_record record = {
		.stage = stage,
		.request_id = str_of(call->id),
		.actor = call->principal.subject,
		.role = call->principal.subject.len > 0
				? str_of(authz_role_name(call->principal.role))
				: STR(""),
		.token_id = call->token_id,
		.tenant = call->tenant,
		.resource = authz_resource_name(call->route->resource),
		.verb = authz_verb_name(call->route->verb),
		.object = call->request->path,
		.peer = call->request->peer_address,
		.status = call->status,
		.code = str_of(call->code),
		.detail = call->audit_detail,
	};
	audit_put(call->api->audit, &record, on_done, call);
}

static bool is_recorded_refusal(const struct call *call)
{
	const struct authz_principal *principal = &call->principal;
	struct refused who = { .peer = call->request->peer_address };
	if (principal->subject.len > 0)
		who = (struct refused){ .actor = principal->subject,
					.role = str_of(authz_role_name(principal->role)),
					.tenant = principal->tenant };
	return refusals_take(call->api->refusals, &who, loop_now_ns(call->api->loop));
}

static void on_count_recorded(void *arg, const struct err *err)
{
	(void)arg;
	if (err != NULL)
		log_err(LOG_ERROR, "audit record of refused calls is lost", err);
}

static void record_count(void *arg, const struct refused *who, int64_t count)
{
	struct api *api = arg;
	char detail[64];
	(void)snprintf(detail, sizeof detail, "%lld more refused", (long long)count);
	struct audit_record record = { .stage = "denied",
				       .request_id = STR(""),
				       .actor = who->actor,
				       .role = who->role,
				       .token_id = STR(""),
				       .tenant = who->tenant,
				       .resource = "",
				       .verb = "",
				       .object = STR(""),
				       .peer = who->peer,
				       .code = STR(""),
				       .detail = str_of(detail) };
	audit_put(api->audit, &record, on_count_recorded, api);
}

void rest_sweep_refusals(struct api *api, uint64_t now_ns)
{
	refusals_sweep(api->refusals, now_ns, record_count, api);
}

static void finish(struct call *call)
{
	ASSERT(!call->is_answered);
	call->is_answered = true;
	if (call->is_audited || (call->route != NULL && call->route->access == ROUTE_AGENT &&
				 call->status == 200 && call->audit_detail.len > 0)) {
		record(call, call->is_audited ? "end" : "act", on_end_recorded);
		return;
	}
	if (call->is_denied && is_recorded_refusal(call))
		record(call, "denied", on_denial_recorded);
	else
		send_now(call);
}

static void on_begin_recorded(void *arg, const struct err *err)
{
	struct call *call = arg;
	if (err == NULL) {
		call->is_audited = true;
		call->route->fn(call);
		return;
	}
	log_err(LOG_ERROR, "audit log takes no records; calls that change something are refused",
		err);
	(void)rest_header_add(call, "Retry-After", STR("5"));
	rest_problem(call, 503, "audit_unavailable",
		     "the audit log cannot be written, so nothing is changed; the operator has to "
		     "make room, then repeat the call");
}

void rest_audit_begin(struct call *call)
{
	if (route_mutates(call->route) && call->route->access != ROUTE_AGENT)
		record(call, "begin", on_begin_recorded);
	else
		call->route->fn(call);
}

void rest_answer_status(struct call *call, int status, json_t *owned_body)
{
	ASSERT(owned_body != NULL);
	call->status = status;
	call->content_type = "application/json";
	call->answer = json_dump(call->arena, owned_body);
	json_decref(owned_body);
	if (call->answer.len == 0) {
		rest_problem(call, 500, "too_large", "the answer is too large; ask for less");
		return;
	}
	finish(call);
}

void rest_answer(struct call *call, json_t *owned_body)
{
	rest_answer_status(call, call->route->success, owned_body);
}

void rest_answer_text(struct call *call, const char *content_type, struct str body)
{
	call->status = call->route->success;
	call->content_type = content_type;
	call->answer = body;
	finish(call);
}

void rest_answer_list(struct call *call, json_t *owned_items, struct str next)
{
	json_t *body = json_object();
	(void)json_object_set_new(body, "items", owned_items);
	put_text(body, "next_page_token", next);
	rest_answer(call, body);
}

static json_t *problem_of(const struct call *call, int status, const char *code, const char *detail)
{
	char type[80];
	(void)snprintf(type, sizeof type, "urn:gpuaas:problem:%s", code);
	json_t *body = json_object();
	put_text(body, "type", str_of(type));
	put_text(body, "title", str_of(http_status_text(status)));
	put_int(body, "status", status);
	put_text(body, "code", str_of(code));
	// Text of the caller's own input may be cut inside a character.
	json_t *text = json_string(detail);
	(void)json_object_set_new(body, "detail", text != NULL ? text : json_string("see code"));
	put_text(body, "field", call->fault_path);
	put_text(body, "request_id", str_of(call->id));
	return body;
}

void rest_problem(struct call *call, int status, const char *code, const char *fmt, ...)
{
	char detail[PROBLEM_DETAIL_BYTES];
	va_list args;
	ASSERT(status >= 400);
	va_start(args, fmt);
	(void)vsnprintf(detail, sizeof detail, fmt, args);
	va_end(args);
	json_t *body = problem_of(call, status, code, detail);
	call->status = status;
	call->code = code;
	call->content_type = "application/problem+json";
	call->answer = json_dump(call->arena, body);
	json_decref(body);
	finish(call);
}

void rest_fail(struct call *call, const struct err *err)
{
	switch (err->status) {
	case ERR_OK:
	case ERR_INTERNAL:
	case ERR_IO:
		log_err(LOG_ERROR, "call failed", err);
		rest_problem(call, 500, "internal",
			     "the server failed; its log has the cause "
			     "under this request_id");
		return;
	case ERR_INVALID: rest_problem(call, 400, "invalid_request", "%s", err->text); return;
	case ERR_NOT_FOUND: rest_problem(call, 404, "not_found", "%s", err->text); return;
	case ERR_CONFLICT: rest_problem(call, 409, "conflict", "%s", err->text); return;
	case ERR_LIMIT: rest_problem(call, 422, "limit_exceeded", "%s", err->text); return;
	case ERR_UNSUPPORTED: rest_problem(call, 422, "unsupported", "%s", err->text); return;
	case ERR_UNAUTHENTICATED:
	case ERR_DENIED:
	case ERR_UNAVAILABLE:
	case ERR_TIMEOUT:
	case ERR_PROTOCOL: break;
	}
	// What Kubernetes or a peer refuses to us is our trouble, not the caller's.
	log_err(LOG_WARN, "call failed at a peer", err);
	(void)rest_header_add(call, "Retry-After", STR("2"));
	rest_problem(call, 503, "unavailable", "%s; repeat the call", err->text);
}

void rest_stream_begin(struct call *call)
{
	ASSERT(!call->is_answered);
	call->is_answered = true;
	call->status = call->route->success;
}

void rest_stream_end(struct call *call, bool is_client_gone)
{
	ASSERT(call->is_answered);
	count(call);
	log_call(call);
	if (!is_client_gone)
		http_respond_end(call->exchange); // the request is gone with it
	rest_free(call);
}
