// SPDX-License-Identifier: Apache-2.0
// Health, metrics, the API's own description, and who the caller is.
#include "api/handlers.h"
#include "api/views.h"
#include "ledger/ledger.h"

#include <inttypes.h>

static void answer_health(struct call *call, const char *trouble)
{
	json_t *body = json_object();
	put_text(body, "status", str_of(trouble == NULL ? "ok" : trouble));
	rest_answer_status(call, trouble == NULL ? 200 : 503, body);
}

void handle_healthz(struct call *call) { answer_health(call, NULL); }

void handle_readyz(struct call *call)
{
	struct api *api = call->api;
	const char *trouble = api->not_ready == NULL ? NULL : api->not_ready(api->arg);
	if (trouble == NULL && !objects_are_synced(api->objects))
		trouble = "the caches of Kubernetes objects are not filled yet";
	answer_health(call, trouble);
}

void handle_openapi(struct call *call)
{
	rest_answer_text(call, "application/json", call->api->openapi);
}

void handle_whoami(struct call *call)
{
	json_t *body = json_object();
	put_text(body, "user", call->principal.subject);
	put_text(body, "role", str_of(authz_role_name(call->principal.role)));
	put_text(body, "tenant", call->principal.tenant);
	put_text(body, "token_id", call->token_id);
	put_time(body, "expires", call->token_expires_s);
	put_text(body, "server_version", STR(GPUAAS_VERSION));
	rest_answer(call, body);
}

static void put_counter(struct buf *out, const char *name, const char *help, uint64_t value)
{
	metric_family(out, name, "counter", help);
	metric_int(out, name, NULL, 0, (int64_t)value);
}

static void put_gauge(struct buf *out, const char *name, const char *help, int64_t value)
{
	metric_family(out, name, "gauge", help);
	metric_int(out, name, NULL, 0, value);
}

static void put_routes(struct buf *out, const struct api *api)
{
	metric_family(out, "gpuaas_server_calls_total", "counter",
		      "Calls by operation and class of status.");
	for (size_t r = 0; r < route_count; r++) {
		for (unsigned class_ = 1; class_ <= 5; class_++) {
			char code[4] = { (char)('0' + class_), 'x', 'x', '\0' };
			struct metric_label labels[] = {
				{ "operation", str_of(route_table[r].operation) },
				{ "code", str_of(code) },
			};
			if (api->seconds_by_code[r][class_] > 0)
				metric_int(out, "gpuaas_server_calls_total", labels, 2,
					   (int64_t)api->seconds_by_code[r][class_]);
		}
	}
	metric_family(out, "gpuaas_server_call_seconds", "histogram",
		      "Time from the request to the answer.");
	for (size_t r = 0; r < route_count; r++) {
		struct metric_label label = { "operation", str_of(route_table[r].operation) };
		if (api->seconds[r].count > 0)
			metric_histogram_put(out, "gpuaas_server_call_seconds", &label, 1,
					     &api->seconds[r]);
	}
}

static void put_audit(struct buf *out, const struct api *api)
{
	struct audit_stats stats = audit_stats(api->audit);
	put_gauge(out, "gpuaas_server_audit_available",
		  "1 when the audit log takes records; 0: calls that change something are refused.",
		  stats.is_available ? 1 : 0);
	put_gauge(out, "gpuaas_server_audit_records", "Records of the audit chain.", stats.records);
	put_gauge(out, "gpuaas_server_audit_covered_records",
		  "Records under the newest signed checkpoint.", stats.covered);
	put_counter(out, "gpuaas_server_audit_refused_total", "Records that could not be written.",
		    stats.refused);
	put_counter(out, "gpuaas_server_audit_syncs_total", "Group commits of the audit log.",
		    stats.syncs);
	put_counter(out, "gpuaas_server_audit_checkpoint_failures_total",
		    "Checkpoints that could not be written.", stats.checkpoint_failures);
}

static void put_requests(struct buf *out, const struct api *api)
{
	int64_t by_phase[PHASE_CANCELLED + 1] = { 0 };
	json_t *request;
	for (size_t i = 0; objects_next(api->objects, OBJECT_REQUEST, &i, &request);)
		by_phase[view_request_phase(request)]++;
	metric_family(out, "gpuaas_server_requests", "gauge", "GPU requests by state.");
	for (unsigned i = 0; i <= PHASE_CANCELLED; i++) {
		struct metric_label label = { "state", str_of(view_phase_name((request_phase)i)) };
		metric_int(out, "gpuaas_server_requests", &label, 1, by_phase[i]);
	}
	put_gauge(out, "gpuaas_server_tenants", "Tenants.",
		  (int64_t)objects_count(api->objects, OBJECT_TENANT));
	put_gauge(out, "gpuaas_server_gpu_nodes", "Nodes that reported GPUs.",
		  (int64_t)objects_count(api->objects, OBJECT_NODE));
	put_gauge(out, "gpuaas_server_cache_age_seconds",
		  "Age of the quietest watch on Kubernetes.", (int64_t)objects_age_s(api->objects));
}

static void put_usage(struct buf *out, const struct api *api)
{
	struct ledger_counts counts = ledger_counts_get(api->ledger);
	put_counter(out, "gpuaas_server_usage_events_total", "Usage events taken into the ledger.",
		    counts.events);
	put_counter(out, "gpuaas_server_usage_duplicates_total",
		    "Usage events that were there already.", counts.duplicates);
	put_counter(out, "gpuaas_server_usage_disputed_total",
		    "Usage events set aside because they contradict earlier ones.",
		    counts.disputed);
}

void handle_metrics(struct call *call)
{
	struct api *api = call->api;
	const struct api_counters *counters = &api->counters;
	struct buf out = { .limit = 8 * 1024 * 1024 };
	struct metric_label version = { "version", STR(GPUAAS_VERSION) };
	metric_family(&out, "gpuaas_server_build_info", "gauge", "Version of the server.");
	metric_int(&out, "gpuaas_server_build_info", &version, 1, 1);
	put_gauge(&out, "gpuaas_server_calls_in_flight", "Calls being answered.",
		  (int64_t)counters->in_flight);
	put_counter(&out, "gpuaas_server_bad_tokens_total", "Calls refused with token_invalid.",
		    counters->bad_tokens);
	put_counter(&out, "gpuaas_server_rate_limited_total", "Calls refused with rate_limited.",
		    counters->limited);
	put_counter(&out, "gpuaas_server_denied_total", "Calls refused by authorization.",
		    counters->denied);
	put_counter(&out, "gpuaas_server_replayed_total",
		    "Calls answered from a kept idempotent answer.", counters->replayed);
	put_requests(&out, api);
	put_audit(&out, api);
	put_usage(&out, api);
	put_routes(&out, api);
	if (api->put_metrics != NULL)
		api->put_metrics(api->arg, &out);
	struct str text = buf_ok(&out) ? arena_dup(call->arena, buf_str(&out)) : STR("");
	buf_done(&out);
	rest_answer_text(call, "text/plain; version=0.0.4; charset=utf-8", text);
}
