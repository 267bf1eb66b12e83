// SPDX-License-Identifier: Apache-2.0
// Why something waits: for quota by our own count, for nodes by the scheduler, which is asked
// itself where it can be reached and otherwise read from the pod's condition.
#include "api/ask.h"
#include "api/handlers.h"
#include "api/request_steps.h"
#include "api/tenant_queues.h"
#include "k8s/condition.h"
#include "policy/queue_limit.h"

#include <inttypes.h>

static json_t *explain_new(const char *state)
{
	json_t *body = json_object();
	put_text(body, "state", str_of(state));
	(void)json_object_set_new(body, "reasons", json_array());
	return body;
}

struct reason {
	const char *code;
	int64_t need, have; // both 0: left out
	const char *next;
};

static void add_reason(json_t *body, const struct reason *reason)
{
	json_t *out = json_object();
	put_text(out, "code", str_of(reason->code));
	if (reason->need != 0 || reason->have != 0) {
		put_int(out, "need", reason->need);
		put_int(out, "have", reason->have);
	}
	put_text(out, "next", str_of(reason->next));
	(void)json_array_append_new(json_object_get(body, "reasons"), out);
}

// ---- waiting for quota

// GPUs are named when it is GPUs that are lacking; the text says what in any case.
static void add_too_small(json_t *body, const struct tenant_quota *quota,
			  const struct quota_amount *need, const char *text)
{
	bool is_gpus = quota_gpus(need) > quota->gpus;
	add_reason(body, &(struct reason){ "QuotaTooSmall", is_gpus ? quota_gpus(need) : 0,
					   is_gpus ? quota->gpus : 0, text });
}

static void explain_quota(struct call *call, const json_t *request)
{
	struct tenant_load load = { 0 };
	struct tenant_quota quota;
	struct request_spec spec;
	struct err err;
	json_t *body = explain_new("waits");
	(void)view_request_spec(request, &spec);
	struct quota_amount need = quota_need_of(&spec);
	view_tenant_quota(objects_find(call->api->objects, OBJECT_TENANT, STR(""), call->tenant),
			  &quota);
	if (!view_tenant_load(call->api->objects, call->arena, call->tenant, NULL, &load))
		ASSERT(false); // the arena of a call takes thousands of entries
	view_put_position(&load, call->object_name, body);
	bool is_too_large = quota_check_alone(&quota, &need, &err) != ERR_OK;
	if (is_too_large)
		add_too_small(body, &quota, &need, err.text);
	if (objects_are_local(call->api->objects)) {
		add_reason(body, &(struct reason){ "NoCluster", 0, 0,
						   "connect the server to a Kubernetes cluster" });
	} else if (!is_too_large) {
		const char *next = arena_printf(
			call->arena,
			"wait until %" PRId64 " GPUs of the tenant are released, or "
			"have the quota raised",
			max_i64(1, quota_gpus(&load.used) + quota_gpus(&need) - quota.gpus));
		add_reason(body, &(struct reason){ "QuotaExceeded", quota_gpus(&need),
						   max_i64(0, quota.gpus - quota_gpus(&load.used)),
						   next });
	}
	rest_answer(call, body);
}

// ---- waiting for a node

static const json_t *condition_of(const json_t *pod, const char *type)
{
	return k8s_condition_find(json_at(pod, "status.conditions"), type);
}

// Why it is there, as the scheduler wrote it down at the bind.
static void put_why(json_t *body, const json_t *pod)
{
	const json_t *notes = json_at(pod, "metadata.annotations");
	const json_t *text = json_object_get(notes, "gpuaas.io/why");
	struct str content = { json_string_value(text), json_string_length(text) };
	AUTO(json_decrefp) json_t *why = NULL;
	if (content.len > 0 && json_parse(content, &why, NULL) == ERR_OK && json_is_object(why))
		(void)json_object_set(body, "why", why);
}

// Bound: it runs, has run, or its node has still to start it, for which the kubelet has a reason.
static json_t *explain_bound(const json_t *pod)
{
	struct str phase = json_text(pod, "status.phase");
	const json_t *first = json_array_get(json_at(pod, "status.containerStatuses"), 0);
	const json_t *waiting = json_at(first, "state.waiting");
	bool is_over = str_eq_c(phase, "Succeeded") || str_eq_c(phase, "Failed");
	bool is_starting = !is_over && json_at(first, "state.running") == NULL;
	json_t *body = explain_new(is_over ? "ended" : is_starting ? "starting" : "running");
	put_text(body, "node", json_text(pod, "spec.nodeName"));
	put_why(body, pod);
	if (is_starting) {
		const char *code = json_cstr(waiting, "reason");
		const char *next = json_cstr(waiting, "message");
		add_reason(body,
			   &(struct reason){
				   code[0] != '\0' ? code : "Starting", 0, 0,
				   next[0] != '\0' ? next : "its node is starting the container" });
	}
	return body;
}

static void explain_from_pod(struct call *call, const json_t *pod)
{
	const json_t *scheduled = condition_of(pod, "PodScheduled");
	if (str_eq_c(json_text(scheduled, "status"), "True")) {
		rest_answer(call, explain_bound(pod));
		return;
	}
	json_t *body = explain_new("waits");
	const char *code = scheduled == NULL ? "NotSeenYet" : json_cstr(scheduled, "reason");
	const char *next = scheduled == NULL ? "the scheduler has not looked at it yet; ask again"
					     : json_cstr(scheduled, "message");
	add_reason(body, &(struct reason){ code, 0, 0, next });
	rest_answer(call, body);
}

struct asked {
	struct call *call;
	json_t *pod; // our own reference: the cache moves on
};

static void on_explained(void *arg, const struct http_call_result *result)
{
	struct asked *asked = arg;
	struct call *call = asked->call; // an answer ends the call and asked with it
	json_t *body = NULL, *pod = asked->pod;
	bool is_good = result->status == ERR_OK && result->code == 200 &&
		       json_parse(result->body, &body, NULL) == ERR_OK &&
		       json_text(body, "state").len > 0 && json_is_array(json_at(body, "reasons"));
	if (is_good) {
		rest_answer(call, body);
	} else {
		json_decref(body);
		explain_from_pod(call, pod);
	}
	json_decref(pod);
}

static void explain_pod(struct call *call, json_t *pod)
{
	struct asked *asked = ARENA_NEW(call->arena, struct asked);
	ASSERT(asked != NULL);
	bool is_waiting = !str_eq_c(json_text(condition_of(pod, "PodScheduled"), "status"), "True");
	if (call->api->scheduler == NULL || !is_waiting) {
		explain_from_pod(call, pod);
		return;
	}
	*asked = (struct asked){ call, json_incref(pod) };
	struct http_call_request request = {
		.path = str_of(arena_printf(call->arena, "/explain/%s/%s",
					    json_cstr(pod, "metadata.namespace"),
					    json_cstr(pod, "metadata.name"))),
		.body_max_bytes = 1 << 20,
		.on_done = on_explained,
		.arg = asked,
	};
	scheduler_ask(call->api, &request);
}

// Where it runs or ran.
static void put_place(json_t *body, const json_t *request, const json_t *pod)
{
	json_t *devices = json_at(request, "status.devices");
	put_text(body, "node", json_text(request, "status.nodeName"));
	if (devices != NULL)
		(void)json_object_set(body, "devices", devices);
	put_why(body, pod);
}

// What its controller says of it, unless that is about the quota, which is counted here.
static bool has_own_reason(const json_t *request)
{
	struct str reason = json_text(request, "status.reason");
	return reason.len > 0 && !str_eq_c(reason, "QuotaExceeded") &&
	       !str_eq_c(reason, "QuotaTooSmall");
}

void handle_request_explain(struct call *call)
{
	json_t *request = request_need(call);
	if (request == NULL)
		return;
	request_phase phase = view_request_phase(request);
	json_t *pod = view_request_pod(call->api->objects, request);
	if (view_phase_is_end(phase)) {
		json_t *body = explain_new("ended");
		put_place(body, request, pod);
		add_reason(body, &(struct reason){ json_cstr(request, "status.reason"), 0, 0,
						   json_cstr(request, "status.message") });
		rest_answer(call, body);
	} else if (phase == PHASE_RUNNING) {
		json_t *body = explain_new("running");
		put_place(body, request, pod);
		rest_answer(call, body);
	} else if (pod != NULL) {
		explain_pod(call, pod);
	} else if (has_own_reason(request)) {
		json_t *body = explain_new("waits");
		add_reason(body, &(struct reason){ json_cstr(request, "status.reason"), 0, 0,
						   json_cstr(request, "status.message") });
		rest_answer(call, body);
	} else if (view_request_holds(call->api->objects, request)) {
		json_t *body = explain_new("waits");
		add_reason(body, &(struct reason){ "WaitingForPod", 0, 0,
						   "Kubernetes is making the pod; ask again" });
		rest_answer(call, body);
	} else {
		explain_quota(call, request);
	}
}

// ---- any pod of a tenant

static void on_pod(void *arg, const struct k8s_result *result)
{
	struct call *call = arg;
	AUTO(json_decrefp) json_t *pod = NULL;
	struct err err;
	if (result->status == ERR_NOT_FOUND)
		rest_problem(call, 404, "not_found", "there is no such pod in the tenant");
	else if (result->status != ERR_OK)
		rest_fail(call, result->err);
	else if (json_parse(result->body, &pod, &err) != ERR_OK)
		rest_fail(call, &err);
	else
		explain_pod(call, pod);
}

void handle_pod_explain(struct call *call)
{
	struct str name = rest_query(call, "pod"), tenant = rest_scope(call);
	if (!str_is_dns_name(name) || tenant.len == 0) {
		rest_problem(call, 400, "missing_parameter",
			     "name a tenant and a pod: "
			     "/v1/explain?tenant=NAMESPACE&pod=NAME");
		return;
	}
	// Only tenants' namespaces: the server can read more than its callers may.
	if (objects_find(call->api->objects, OBJECT_TENANT, STR(""), tenant) == NULL ||
	    call->api->k8s == NULL) {
		rest_problem(call, 404, "not_found", "there is no such tenant, or it is not yours");
		return;
	}
	struct k8s_request request = {
		.method = "GET",
		.path = str_of(arena_printf(call->arena,
					    "/api/v1/namespaces/" STR_FMT "/pods/" STR_FMT,
					    STR_ARG(tenant), STR_ARG(name))),
		.on_done = on_pod,
		.arg = call,
	};
	(void)k8s_call_start(call->api->k8s, &request);
}

// ---- quota:check

// It among those that are there, let through by the same count as when it comes.
static void put_quota(struct call *call, const struct tenant_quota *quota,
		      const struct request_spec *spec, json_t *body)
{
	struct tenant_load load = { 0 };
	struct quota_amount need = quota_need_of(spec);
	const struct str nobody = STR("~"); // no request is called so, and it comes last
	struct err err;
	if (!view_tenant_load(call->api->objects, call->arena, rest_scope(call), NULL, &load))
		ASSERT(false); // the arena of a call takes thousands of entries
	int64_t free_gpus = max_i64(0, quota->gpus - quota_gpus(&load.used));
	if (quota_check_alone(quota, &need, &err) != ERR_OK) {
		put_text(body, "state", STR("refused"));
		add_too_small(body, quota, &need, err.text);
		return;
	}
	// There is room for one more entry, see view_tenant_load.
	load.entries[load.count++] = (struct quota_entry){ .name = nobody,
							   .class_ = spec->class_,
							   .created_s = api_now_s(call->api),
							   .need = need };
	quota_admit(quota, load.entries, load.count, NULL);
	for (size_t i = 0; i < load.count; i++) {
		const struct quota_entry *entry = &load.entries[i];
		if (!str_eq(entry->name, nobody) || entry->is_admitted)
			continue;
		if (str_eq_c(json_text(body, "state"), "fits"))
			put_text(body, "state", STR("waits"));
		put_int(body, "position", entry->position);
		add_reason(body, &(struct reason){ "QuotaExceeded", quota_gpus(&need), free_gpus,
						   "wait until the tenant releases GPUs, or have "
						   "the quota raised" });
	}
}

static json_t *check_fit(struct call *call, const struct request_spec *spec, struct str tenant)
{
	struct tenant_quota quota;
	struct inventory *inventory = ARENA_NEW(call->arena, struct inventory);
	struct err err;
	ASSERT(inventory != NULL);
	view_tenant_quota(objects_find(call->api->objects, OBJECT_TENANT, STR(""), tenant), &quota);
	json_t *body = explain_new("fits");
	if (view_inventory(call->api->objects, inventory) &&
	    request_check_possible(spec, inventory, &err) != ERR_OK) {
		put_text(body, "state", STR("refused"));
		add_reason(body, &(struct reason){ "Impossible", 0, 0, err.text });
	}
	if (queue_limit_check(tenant, spec, tenant_queue_find, call, &err) != ERR_OK) {
		put_text(body, "state", STR("refused"));
		add_reason(body, &(struct reason){ "QueueLimitTooSmall", 0, 0, err.text });
	}
	put_quota(call, &quota, spec, body);
	return body;
}

struct checked {
	struct call *call;
	json_t *body; // what the quota says; ours
};

// The scheduler's reasons after the quota's: all that apply.
static void add_told(json_t *body, const json_t *told)
{
	bool fits = str_eq_c(json_text(body, "state"), "fits");
	bool is_refused = str_eq_c(json_text(told, "state"), "refused");
	if (fits || is_refused)
		put_text(body, "state", json_text(told, "state"));
	if (fits && json_at(told, "node") != NULL)
		(void)json_object_set(body, "node", json_at(told, "node"));
	if (fits && json_at(told, "position") != NULL)
		(void)json_object_set(body, "position", json_at(told, "position"));
	(void)json_array_extend(json_object_get(body, "reasons"), json_at(told, "reasons"));
}

static void on_dry_run(void *arg, const struct http_call_result *result)
{
	struct checked *checked = arg;
	struct call *call = checked->call;
	json_t *body = checked->body;
	AUTO(json_decrefp) json_t *told = NULL;
	bool is_good = result->status == ERR_OK && result->code == 200 &&
		       json_parse(result->body, &told, NULL) == ERR_OK &&
		       json_text(told, "state").len > 0 && json_is_array(json_at(told, "reasons"));
	bool is_gang = result->status == ERR_OK && result->code == 422;
	if (is_good)
		add_told(body, told);
	else if (!str_eq_c(json_text(body, "state"), "refused"))
		add_reason(body,
			   &(struct reason){
				   "NotForetold", 0, 0,
				   is_gang ? "gangs are not foretold: create it and ask again"
					   : "the scheduler did not answer; only the quota was "
					     "counted" });
	rest_answer(call, body);
}

static void ask_dry_run(struct call *call, const struct request_spec *spec, json_t *body)
{
	struct checked *checked = ARENA_NEW(call->arena, struct checked);
	AUTO(json_decrefp)
	json_t *request = view_request_object(spec, call->body, rest_scope(call), STR("dry-run"));
	call_sign_object(call, request); // whose it is
	AUTO(json_decrefp) json_t *pod = call->api->pod_of(request);
	ASSERT(checked != NULL && pod != NULL);
	*checked = (struct checked){ call, body };
	struct http_call_request question = {
		.method = "POST",
		.path = STR("/dry-run"),
		.body = json_dump(call->arena, pod),
		.body_max_bytes = 1 << 20,
		.on_done = on_dry_run,
		.arg = checked,
	};
	scheduler_ask(call->api, &question);
}

void handle_quota_check(struct call *call)
{
	struct request_spec spec;
	struct schema_fault fault = { 0 };
	struct err err;
	struct str tenant = rest_scope(call);
	if (objects_find(call->api->objects, OBJECT_TENANT, STR(""), tenant) == NULL) {
		rest_problem(call, 404, "not_found",
			     "there is no such tenant, or it is not yours; name one with ?tenant=");
		return;
	}
	if (request_parse(call->body, &spec, &fault, &err) != ERR_OK) {
		call->fault_path = arena_dup(call->arena, str_of(fault.path));
		rest_problem(call, 400, fault.code, "%s", err.text);
		return;
	}
	request_fill(call, &spec);
	json_t *body = check_fit(call, &spec, tenant);
	if (call->api->scheduler == NULL || call->api->pod_of == NULL)
		rest_answer(call, body);
	else
		ask_dry_run(call, &spec, body);
}
