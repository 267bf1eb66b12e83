// SPDX-License-Identifier: Apache-2.0
// What the scheduler shows: /metrics, /healthz, /readyz, /explain/NAMESPACE/POD, /queues; by POST
// /dry-run and /places. The first three are open inside the cluster; what names pods, nodes and
// reasons is for the server alone, by a token that both derive from the plan's key. People ask the
// server, which checks their rights first.
#include "base/timefmt.h"
#include "daemons/scheduler/dryrun.h"
#include "daemons/scheduler/evict.h"
#include "daemons/scheduler/lengths.h"
#include "daemons/scheduler/load.h"
#include "daemons/scheduler/places.h"
#include "daemons/scheduler/tenants.h"

#include "net/http_server.h"
#include "sched/pool.h"
#include "sys/mac.h"

#include <stdlib.h>

static const char METRICS_TYPE[] = "text/plain; version=0.0.4; charset=utf-8";
static const double WAIT_BOUNDS[] = { 0.1, 0.5, 1,    2,    5,    10,    30,    60,   120,
				      300, 600, 1800, 3600, 7200, 14400, 43200, 86400 };

static char *wait_key(struct scheduler *s, struct arena *arena, const struct record *record)
{
	struct str pool = sched_pod_pool(s->core, str_of(record->uid));
	return arena_printf(arena, "%s\n" STR_FMT "\n%s", record->namespace_, STR_ARG(pool),
			    record->class_);
}

void serve_observe_wait(struct scheduler *s, const struct record *record)
{
	AUTO(arena_freep) struct arena *arena = arena_new(16 * 1024);
	char *key = arena == NULL ? NULL : wait_key(s, arena, record);
	if (key == NULL)
		return;
	struct metric_histogram *waits = map_find(s->waits, str_of(key));
	if (waits == NULL) {
		waits = calloc(1, sizeof *waits);
		ASSERT(waits != NULL);
		waits->bounds = WAIT_BOUNDS;
		waits->bounds_count = ARRAY_COUNT(WAIT_BOUNDS);
		(void)map_set(s->waits, str_of(key), waits);
	}
	// Kubernetes tells creation in whole seconds; of a pod seen at once our own clock is finer.
	double wait_s = (double)(scheduler_wall_s(s) - record->created_s);
	if (record->arrived_s - record->created_s <= 1)
		wait_s = (double)(scheduler_now_ms(s) - record->arrived_ms) / 1e3;
	metric_observe(waits, wait_s > 0 ? wait_s : 0);
}

static void put_waits(const struct scheduler *s, struct buf *out)
{
	struct str key;
	void *waits;
	metric_family(out, "gpuaas_scheduler_queue_wait_seconds", "histogram",
		      "Time from the pod's creation to its bind.");
	for (size_t i = 0; map_next(s->waits, &i, &key, &waits);) {
		struct str tenant, pool;
		(void)str_split_next(&key, '\n', &tenant);
		(void)str_split_next(&key, '\n', &pool);
		struct metric_label labels[3] = { { "tenant", tenant },
						  { "pool", pool },
						  { "class", key } };
		metric_histogram_put(out, "gpuaas_scheduler_queue_wait_seconds", labels, 3, waits);
	}
}

static void put_states(const struct sched_counts *counts, struct buf *out)
{
	const struct {
		const char *name;
		size_t count;
	} states[] = { { "waiting", counts->waiting },
		       { "gated", counts->gated },
		       { "refused", counts->refused },
		       { "assumed", counts->assumed },
		       { "bound", counts->bound } };
	metric_family(out, "gpuaas_scheduler_pods", "gauge", "Pods known, by state.");
	for (size_t i = 0; i < ARRAY_COUNT(states); i++) {
		struct metric_label label = { "state", str_of(states[i].name) };
		metric_int(out, "gpuaas_scheduler_pods", &label, 1, (int64_t)states[i].count);
	}
	metric_family(out, "gpuaas_scheduler_gang_held_pods", "gauge",
		      "Waiting pods that start with their gang or not at all.");
	metric_int(out, "gpuaas_scheduler_gang_held_pods", NULL, 0, (int64_t)counts->gang_held);
	metric_family(out, "gpuaas_scheduler_pending_pods", "gauge",
		      "Waiting pods that a reason holds for.");
	for (int code = 0; code < SCHED_CODES; code++) {
		struct metric_label label = { "reason", str_of(sched_code_name((sched_code)code)) };
		metric_int(out, "gpuaas_scheduler_pending_pods", &label, 1,
			   (int64_t)counts->waiting_by_code[code]);
	}
	metric_family(out, "gpuaas_scheduler_nodes", "gauge", "Nodes known.");
	metric_int(out, "gpuaas_scheduler_nodes", NULL, 0, (int64_t)counts->nodes);
	metric_family(out, "gpuaas_scheduler_shapes", "gauge", "Distinct pod specs known.");
	metric_int(out, "gpuaas_scheduler_shapes", NULL, 0, (int64_t)counts->shapes);
}

static struct str resource_of(cache_kind kind)
{
	return str_of(strrchr(cache_path(kind), '/') + 1);
}

static void put_caches(const struct scheduler *s, struct buf *out)
{
	metric_family(out, "gpuaas_scheduler_cache_age_seconds", "gauge",
		      "Since the API server was last heard of for a resource.");
	for (int kind = 0; kind < CACHE_KINDS; kind++) {
		struct metric_label label = { "resource", resource_of((cache_kind)kind) };
		metric_float(out, "gpuaas_scheduler_cache_age_seconds", &label, 1,
			     (double)cache_age_ns(s, (cache_kind)kind) / 1e9);
	}
	metric_family(out, "gpuaas_scheduler_watch_failures_total", "counter",
		      "Failed attempts to list or watch.");
	for (int kind = 0; kind < CACHE_KINDS; kind++) {
		struct metric_label label = { "resource", resource_of((cache_kind)kind) };
		metric_int(out, "gpuaas_scheduler_watch_failures_total", &label, 1,
			   (int64_t)s->caches[kind].failures);
	}
}

static void put_counter(struct buf *out, const char *name, const char *help, uint64_t value)
{
	metric_family(out, name, "counter", help);
	metric_int(out, name, NULL, 0, (int64_t)value);
}

static void put_work(const struct scheduler *s, struct buf *out)
{
	static const char *const VERBS[] = { "bind", "wait", "refuse", "nominate", "evict" };
	const struct counters *c = &s->counters;
	const struct {
		const char *result;
		uint64_t count;
	} binds[] = { { "ok", c->binds_ok },
		      { "failed", c->binds_failed },
		      { "unknown", c->binds_unknown } };
	metric_family(out, "gpuaas_scheduler_decisions_total", "counter", "Decisions by kind.");
	for (size_t i = 0; i < ARRAY_COUNT(VERBS); i++) {
		struct metric_label label = { "verb", str_of(VERBS[i]) };
		metric_int(out, "gpuaas_scheduler_decisions_total", &label, 1,
			   (int64_t)c->decisions[i]);
	}
	metric_family(out, "gpuaas_scheduler_decision_seconds", "histogram",
		      "Time to take one decision.");
	metric_histogram_put(out, "gpuaas_scheduler_decision_seconds", NULL, 0, &c->decide_s);
	metric_family(out, "gpuaas_scheduler_binds_total", "counter", "Bindings by result.");
	for (size_t i = 0; i < ARRAY_COUNT(binds); i++) {
		struct metric_label label = { "result", str_of(binds[i].result) };
		metric_int(out, "gpuaas_scheduler_binds_total", &label, 1, (int64_t)binds[i].count);
	}
	metric_family(out, "gpuaas_scheduler_bind_seconds", "histogram",
		      "Time from decision to the API server's answer.");
	metric_histogram_put(out, "gpuaas_scheduler_bind_seconds", NULL, 0, &c->bind_s);
	metric_family(out, "gpuaas_scheduler_binds_in_flight", "gauge",
		      "Bindings not answered yet.");
	metric_int(out, "gpuaas_scheduler_binds_in_flight", NULL, 0, (int64_t)s->binds_in_flight);
	put_counter(out, "gpuaas_scheduler_condition_patches_total", "Pod conditions written.",
		    c->patches);
	put_counter(out, "gpuaas_scheduler_condition_patch_failures_total",
		    "Pod conditions that could not be written.", c->patch_failures);
	put_counter(out, "gpuaas_scheduler_undecodable_objects_total",
		    "Objects that could not be read.", c->undecodable);
	put_counter(out, "gpuaas_scheduler_events_dropped_total", "Events that were not written.",
		    event_dropped_count(s->events));
}

static void respond_metrics(struct scheduler *s, struct http_exchange *exchange)
{
	AUTO(buf_done) struct buf out = { .limit = 16 * 1024 * 1024 };
	struct sched_counts counts = { 0 };
	if (s->core != NULL)
		counts = sched_counts_get(s->core);
	metric_family(&out, "gpuaas_scheduler_leader", "gauge", "1 while this replica decides.");
	metric_int(&out, "gpuaas_scheduler_leader", NULL, 0, s->core != NULL);
	put_counter(&out, "gpuaas_scheduler_terms_total", "Times this replica became leader.",
		    s->counters.terms);
	put_states(&counts, &out);
	put_waits(s, &out);
	put_work(s, &out);
	evict_put_metrics(s, &out);
	put_caches(s, &out);
	tenants_put_metrics(s, &out);
	load_put_metrics(s, &out);
	lengths_put_metrics(s, &out);
	metric_family(&out, "gpuaas_build_info", "gauge", "Version of the program.");
	struct metric_label labels[2] = { { "part", STR("scheduler") },
					  { "version", STR(GPUAAS_VERSION) } };
	metric_int(&out, "gpuaas_build_info", labels, 2, 1);
	http_respond(exchange, buf_ok(&out) ? 200 : 500, METRICS_TYPE, NULL, buf_str(&out));
}

static const char *state_name(sched_state state)
{
	switch (state) {
	case SCHED_STATE_GATED:
	case SCHED_STATE_WAITING: return "waits";
	case SCHED_STATE_REFUSED: return "refused";
	case SCHED_STATE_ASSUMED:
	case SCHED_STATE_BOUND: return "running";
	}
	ASSERT(false && "a state is missing");
	return "";
}

static void put_reservation(const struct scheduler *s, const struct sched_explanation *explanation,
			    struct buf *out)
{
	char from[TIME_TEXT_BYTES];
	buf_put_c(out, ",\"reserved\":{\"node\":");
	buf_put_json(out, explanation->reserved_node);
	if (explanation->reserved_ms != SCHED_NEVER_MS) {
		int64_t in_s = (explanation->reserved_ms - scheduler_now_ms(s) + 999) / 1000;
		(void)time_format(scheduler_wall_s(s) + max_i64(in_s, 0), from);
		buf_printf(out, ",\"from\":\"%s\"", from);
	}
	buf_put_byte(out, '}');
}

static void explain_put(struct scheduler *s, struct str namespace_, struct str name,
			const struct sched_explanation *explanation, struct arena *arena,
			struct buf *out)
{
	buf_printf(out, "{\"state\":\"%s\"", state_name(explanation->state));
	if (explanation->position > 0)
		buf_printf(out, ",\"position\":%zu", explanation->position);
	if (explanation->node.len > 0) {
		buf_put_c(out, ",\"node\":");
		buf_put_json(out, explanation->node);
	}
	if (explanation->reserved_node.len > 0)
		put_reservation(s, explanation, out);
	tenants_put_place(s, namespace_, name, out);
	evict_put_view(s, namespace_, name, out);
	load_put_view(s, namespace_, name, out);
	lengths_put_view(s, namespace_, name, out);
	buf_put_c(out, ",\"reasons\":[");
	for (size_t i = 0; i < explanation->facts.count; i++) {
		struct sched_reason reason = sched_fact_text(s->core, namespace_, name,
							     &explanation->facts.items[i], arena);
		if (i > 0)
			buf_put_byte(out, ',');
		sched_reason_put(&reason, out);
	}
	buf_put_c(out, "]}\n");
}

static void respond_error(struct http_exchange *exchange, int status, const char *text)
{
	AUTO(buf_done) struct buf out = { .limit = 4096 };
	buf_put_c(&out, "{\"error\":");
	buf_put_json(&out, str_of(text));
	buf_put_c(&out, "}\n");
	http_respond(exchange, status, "application/json", NULL, buf_str(&out));
}

// False: answered already. Only the server, and only while this replica leads.
static bool may_ask(struct scheduler *s, struct http_exchange *exchange,
		    const struct http_request *request)
{
	if (!mac_explain_check(buf_str(&s->plan_key),
			       http_header_find(&request->headers, "authorization"))) {
		respond_error(exchange, 401, "only gpuaas-server asks here; ask it");
		return false;
	}
	if (s->core == NULL) {
		respond_error(exchange, 503, "this replica is not the leader; ask again");
		return false;
	}
	return true;
}

static void respond_queues(struct scheduler *s, struct http_exchange *exchange,
			   const struct http_request *request)
{
	AUTO(buf_done) struct buf out = { .limit = 16 * 1024 * 1024 };
	if (!may_ask(s, exchange, request))
		return;
	tenants_put_table(s, &out);
	http_respond(exchange, buf_ok(&out) ? 200 : 500, "application/json", NULL, buf_str(&out));
}

static void respond_places(struct scheduler *s, struct http_exchange *exchange,
			   const struct http_request *request)
{
	AUTO(buf_done) struct buf out = { .limit = 16 * 1024 * 1024 };
	if (!may_ask(s, exchange, request))
		return;
	if (places_put(s, request->body, &out))
		http_respond(exchange, 200, "application/json", NULL, buf_str(&out));
	else
		respond_error(exchange, 400, "name the pods: {\"pods\":[\"NAMESPACE/NAME\"]}");
}

static void respond_explain(struct scheduler *s, struct http_exchange *exchange,
			    const struct http_request *request, struct str pod)
{
	struct str namespace_, name = pod;
	struct sched_explanation explanation;
	AUTO(buf_done) struct buf out = { .limit = 1024 * 1024 };
	if (!may_ask(s, exchange, request))
		return;
	if (!str_split_next(&name, '/', &namespace_) || name.len == 0) {
		respond_error(exchange, 400, "name the pod: /explain/NAMESPACE/POD");
		return;
	}
	if (!sched_explain(s->core, namespace_, name, &explanation)) {
		respond_error(exchange, 404, "no such pod of this scheduler");
		return;
	}
	explain_put(s, namespace_, name, &explanation, request->arena, &out);
	http_respond(exchange, buf_ok(&out) ? 200 : 500, "application/json", NULL, buf_str(&out));
}

static void respond_ready(struct scheduler *s, struct http_exchange *exchange)
{
	if (s->core != NULL && !cache_is_synced(s))
		http_respond(exchange, 503, "text/plain", NULL,
			     STR("lists are not complete yet\n"));
	else
		http_respond(exchange, 200, "text/plain", NULL, STR("ok\n"));
}

static void on_request(void *arg, struct http_exchange *exchange,
		       const struct http_request *request)
{
	static const struct str EXPLAIN = { "/explain/", 9 };
	struct scheduler *s = arg;
	if (str_eq_c(request->method, "POST") && str_eq_c(request->path, "/dry-run")) {
		if (may_ask(s, exchange, request))
			dryrun_begin(s, exchange, request);
	} else if (str_eq_c(request->method, "POST") && str_eq_c(request->path, "/places")) {
		respond_places(s, exchange, request);
	} else if (!str_eq_c(request->method, "GET")) {
		respond_error(exchange, 405, "only GET is served here");
	} else if (str_eq_c(request->path, "/metrics")) {
		respond_metrics(s, exchange);
	} else if (str_eq_c(request->path, "/healthz")) {
		http_respond(exchange, 200, "text/plain", NULL, STR("ok\n"));
	} else if (str_eq_c(request->path, "/readyz")) {
		respond_ready(s, exchange);
	} else if (str_eq_c(request->path, "/queues")) {
		respond_queues(s, exchange, request);
	} else if (str_eq_c(request->path, "/explain")) {
		respond_explain(s, exchange, request,
				http_query_get(request->arena, request->query, "pod"));
	} else if (str_starts(request->path, EXPLAIN)) {
		respond_explain(s, exchange, request,
				str_slice(request->path, EXPLAIN.len, request->path.len));
	} else {
		respond_error(exchange, 404,
			      "there is /metrics, /healthz, /readyz, /explain and /queues");
	}
}

err_status serve_start(struct scheduler *s, struct err *err)
{
	struct http_server_config config = { .listen = s->options->listen,
					     .handler = on_request,
					     .arg = s };
	return http_server_new(s->loop, &config, &s->server, err);
}

void serve_done(struct scheduler *s)
{
	struct str key;
	void *waits;
	http_server_free(s->server);
	for (size_t i = 0; map_next(s->waits, &i, &key, &waits);)
		free(waits);
	map_free(s->waits);
}
