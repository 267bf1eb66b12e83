// SPDX-License-Identifier: Apache-2.0
#include "base/metric.h"
#include "daemons/agent/agent.h"
#include "daemons/agent/load_view.h"
#include "sys/mac.h"

enum { LOAD_VIEW_MAX_BYTES = 1024 * 1024 };
static const uint64_t READING_MAX_AGE_NS = 30 * UINT64_C(1000000000);

static void fill_view(const struct agent *agent, struct metrics_view *view)
{
	*view = (struct metrics_view){
		.node = agent->config.node_name,
		.counters = &agent->exporter.counters,
		.is_counters_bad = agent->exporter.is_counters_bad,
		.is_tokens_bad = agent->exporter.is_tokens_bad,
		.gpus = monitor_gpus(agent->monitor),
		.count = monitor_count(agent->monitor),
		.driver = monitor_driver(agent->monitor),
		.handovers = agent->handovers,
		.monitor = agent->monitor,
		.usage = meter_usage(agent->meter),
		.now_ns = world_mono_ns(loop_world(agent->loop)),
		.reading_max_age_ns = READING_MAX_AGE_NS,
		.planned = agent->grant.planned,
		.unplanned = agent->grant.unplanned,
		.has_push = agent->push != NULL,
		.has_pods = agent->pods != NULL,
		.has_inotify = kubelet_dir_has_inotify(agent->dir),
		.is_offer_bad = agent->is_offer_bad,
	};
	resources_stats(agent->resources, &view->plugin);
	agent_dra_stats(agent, &view->dra, &view->slice);
	view->is_dra = agent_is_dra(agent);
	dp_source_stats(agent->source, &view->source);
	holders_stats(agent->holders, &view->holders);
	late_stats(agent->late, &view->late);
	journal_stats(meter_journal(agent->meter), &view->journal);
	meter_stats(agent->meter, &view->meter);
	if (agent->push != NULL)
		push_stats(agent->push, &view->push);
	if (agent->pods != NULL)
		pods_stats(agent->pods, &view->pods);
	if (agent->node != NULL)
		node_writer_stats(agent->node, &view->node_writer);
}

static bool is_ready(const struct agent *agent, const char **ret_why)
{
	struct plugin_stats plugin;
	struct dp_source_stats source;
	struct dra_stats dra;
	struct dra_publish_stats slice;
	resources_stats(agent->resources, &plugin);
	agent_dra_stats(agent, &dra, &slice);
	dp_source_stats(agent->source, &source);
	*ret_why = "";
	if (!monitor_is_ready(agent->monitor))
		*ret_why = "the driver has not told its devices yet\n";
	else if (!source.is_loaded)
		*ret_why = "the configuration of the device plugin is not known yet\n";
	else if (agent->is_offer_bad)
		*ret_why = "these GPUs cannot be offered as configured; the log says why\n";
	else if (agent_is_dra(agent) && !slice.is_published)
		*ret_why = "the ResourceSlice of this node is not written yet\n";
	else if (agent_is_dra(agent) ? !dra.is_registered : !plugin.is_registered)
		*ret_why = "not registered with the kubelet yet\n";
	return **ret_why == '\0';
}

static void respond_text(struct http_exchange *exchange, int status, const char *text)
{
	http_respond(exchange, status, "text/plain; charset=utf-8", NULL, str_of(text));
}

// "application/openmetrics-text" among what is accepted, not excluded by q=0.
static bool wants_openmetrics(const struct http_request *request)
{
	struct str rest = http_header_find(&request->headers, "accept"), item;
	while (str_split_next(&rest, ',', &item)) {
		struct str type, parameter;
		bool is_good = str_split_next(&item, ';', &type) &&
			       str_eq_nocase(str_trim(type), STR("application/openmetrics-text"));
		while (is_good && str_split_next(&item, ';', &parameter))
			is_good = !str_eq_c(str_trim(parameter), "q=0");
		if (is_good)
			return true;
	}
	return false;
}

static void respond_metrics(const struct agent *agent, struct http_exchange *exchange,
			    const struct http_request *request)
{
	static const char plain[] = "text/plain; version=0.0.4; charset=utf-8";
	static const char open[] = "application/openmetrics-text; version=1.0.0; charset=utf-8";
	AUTO(buf_done) struct buf page = { 0 };
	AUTO(buf_done) struct buf changed = { 0 };
	struct metrics_view view;
	struct http_headers challenge = { 0 };
	const char *tenant = NULL;
	if (!exporter_allows(&agent->exporter, http_header_find(&request->headers, "authorization"),
			     &tenant)) {
		if (http_header_add(&challenge, STR("WWW-Authenticate"), STR("Bearer")))
			http_respond(exchange, 401, "text/plain; charset=utf-8", &challenge,
				     STR("a token is needed\n"));
		return;
	}
	fill_view(agent, &view);
	view.tenant = tenant;
	metrics_put(&page, &view);
	if (!wants_openmetrics(request)) {
		http_respond(exchange, 200, plain, NULL, buf_str(&page));
		return;
	}
	metric_to_openmetrics(buf_str(&page), &changed);
	http_respond(exchange, 200, open, NULL, buf_str(&changed));
}

void agent_http(void *arg, struct http_exchange *exchange, const struct http_request *request)
{
	const struct agent *agent = arg;
	const char *why = "";
	if (!str_eq_c(request->method, "GET") && !str_eq_c(request->method, "HEAD")) {
		respond_text(exchange, 405, "only GET is answered here\n");
	} else if (str_eq_c(request->path, "/metrics")) {
		respond_metrics(agent, exchange, request);
	} else if (str_eq_c(request->path, "/healthz") || str_eq_c(request->path, "/health")) {
		respond_text(exchange, 200, "ok\n");
	} else if (str_eq_c(request->path, "/readyz")) {
		bool is_good = is_ready(agent, &why);
		respond_text(exchange, is_good ? 200 : 503, is_good ? "ok\n" : why);
	} else {
		respond_text(exchange, 404, "there are /metrics, /healthz and /readyz\n");
	}
}

void agent_http_load(void *arg, struct http_exchange *exchange, const struct http_request *request)
{
	struct agent *agent = arg;
	AUTO(buf_done) struct buf body = { .limit = LOAD_VIEW_MAX_BYTES };
	if (!mac_load_check(agent_plan_key(agent),
			    http_header_find(&request->headers, "authorization"))) {
		respond_text(exchange, 401, "only gpuaas-scheduler asks here\n");
		return;
	}
	if (!str_eq_c(request->method, "GET") || !str_eq_c(request->path, "/load")) {
		respond_text(exchange, 404, "there is GET /load\n");
		return;
	}
	const struct load_view view = { .node = agent->config.node_name,
					.gpus = monitor_gpus(agent->monitor),
					.count = monitor_count(agent->monitor),
					.usage = meter_usage(agent->meter),
					.now_ns = world_mono_ns(loop_world(agent->loop)) };
	load_view_put(&view, &body);
	http_respond(exchange, buf_ok(&body) ? 200 : 500, "application/json", NULL, buf_str(&body));
}
