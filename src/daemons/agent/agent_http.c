// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/agent.h"

static const uint64_t READING_MAX_AGE_NS = 30 * UINT64_C(1000000000);

static void fill_view(const struct agent *agent, struct metrics_view *view)
{
	*view = (struct metrics_view){
		.node = agent->config.node_name,
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
	dp_source_stats(agent->source, &view->source);
	holders_stats(agent->holders, &view->holders);
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
	resources_stats(agent->resources, &plugin);
	dp_source_stats(agent->source, &source);
	*ret_why = "";
	if (!monitor_is_ready(agent->monitor))
		*ret_why = "the driver has not told its devices yet\n";
	else if (!source.is_loaded)
		*ret_why = "the configuration of the device plugin is not known yet\n";
	else if (agent->is_offer_bad)
		*ret_why = "these GPUs cannot be offered as configured; the log says why\n";
	else if (!plugin.is_registered)
		*ret_why = "not registered with the kubelet yet\n";
	return **ret_why == '\0';
}

static void respond_text(struct http_exchange *exchange, int status, const char *text)
{
	http_respond(exchange, status, "text/plain; charset=utf-8", NULL, str_of(text));
}

void agent_http(void *arg, struct http_exchange *exchange, const struct http_request *request)
{
	const struct agent *agent = arg;
	const char *why = "";
	if (!str_eq_c(request->method, "GET") && !str_eq_c(request->method, "HEAD")) {
		respond_text(exchange, 405, "only GET is answered here\n");
	} else if (str_eq_c(request->path, "/metrics")) {
		AUTO(buf_done) struct buf page = { 0 };
		struct metrics_view view;
		fill_view(agent, &view);
		metrics_put(&page, &view);
		http_respond(exchange, 200, "text/plain; version=0.0.4; charset=utf-8", NULL,
			     buf_str(&page));
	} else if (str_eq_c(request->path, "/healthz") || str_eq_c(request->path, "/health")) {
		respond_text(exchange, 200, "ok\n");
	} else if (str_eq_c(request->path, "/readyz")) {
		bool is_good = is_ready(agent, &why);
		respond_text(exchange, is_good ? 200 : 503, is_good ? "ok\n" : why);
	} else {
		respond_text(exchange, 404, "there are /metrics, /healthz and /readyz\n");
	}
}
