// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/agent.h"

#include "daemons/agent/checkpoint.h"
#include "sys/fs.h"
#include "sys/log.h"

#include <malloc.h>
#include <stdio.h>

#define MS UINT64_C(1000000)
#define S (1000 * MS)
static const uint64_t HOUSEKEEPING_NS = 10 * S;
static const uint64_t PROCESSES_NS = 10 * S;
static const uint64_t KEY_MAX_AGE_NS = 30 * S;
enum { KEY_MAX_BYTES = 4096, METRICS_CONNECTIONS_MAX = 64 };

static void on_monitor_change(void *arg)
{
	struct agent *agent = arg;
	if (agent->resources == NULL)
		return; // the start is not over
	agent_offer(agent);
	agent_layout_look(agent->layout);
	agent_layout_step(agent->layout);
	agent_tell_health(agent);
	if (agent->node != NULL)
		node_writer_poke(agent->node);
}

static void on_mig_changed(void *arg, uint32_t slot, int32_t status, const char *text)
{
	struct agent *agent = arg;
	(void)slot; // one change at a time on a node
	agent_layout_changed(agent->layout, status, text);
}

static void on_reading(void *arg, uint32_t slot)
{
	struct agent *agent = arg;
	if (agent->meter != NULL)
		meter_on_reading(agent->meter, slot);
}

static void on_processes(void *arg, uint32_t slot)
{
	struct agent *agent = arg;
	if (agent->meter != NULL)
		meter_on_processes(agent->meter, slot);
	const struct handover *handover = &agent->handovers[slot];
	bool may_change =
		handover->is_dirty ||
		(handover->free_ns != 0 && monitor_gpu(agent->monitor, slot)->processes.count > 0);
	if (agent->resources != NULL && may_change)
		loop_defer(agent->loop, agent_offer_later, agent); // it may be clean, or not
}

static void on_read_wanted(void *arg, uint32_t slot)
{
	struct agent *agent = arg;
	monitor_read_now(agent->monitor, slot);
}

static void on_counter_reset(void *arg, const char *uuid)
{
	struct agent *agent = arg;
	monitor_on_reset(agent->monitor, uuid);
}

static void on_durable(void *arg)
{
	struct agent *agent = arg;
	if (agent->push != NULL)
		push_poke(agent->push);
}

static bool is_listed(void *arg, const char *uid) { return pods_find(arg, uid) != NULL; }

// Joins what the kubelet shows with what the pods say.
static void join_pods(struct agent *agent)
{
	struct usage *usage = meter_usage(agent->meter);
	for (size_t i = 0; agent->pods != NULL && i < usage_count(usage); i++) {
		const struct usage_allocation *allocation = usage_at(usage, i);
		if (allocation->is_released_told)
			continue;
		const struct pods_item *item = pods_find(agent->pods, allocation->pod_uid);
		if (item != NULL)
			usage_pod(usage, &item->facts);
		if (allocation->has_tenant || allocation->namespace_[0] == '\0')
			continue;
		const char *tenant = pods_tenant(agent->pods, allocation->namespace_);
		if (tenant != NULL)
			usage_tenant(usage, allocation->namespace_, tenant);
	}
	if (agent->pods != NULL && pods_is_synced(agent->pods))
		usage_pods_listed(usage, world_wall_s(loop_world(agent->loop)), is_listed,
				  agent->pods);
	meter_step(agent->meter);
}

static void on_look(void *arg)
{
	struct agent *agent = arg;
	agent_dra_show(agent);
	join_pods(agent);
	for (size_t i = 0; i < GPU_MAX; i++) {
		if (agent->held_back[i] == NULL)
			continue;
		agent_offer(agent); // it may be free now
		return;
	}
}

static void on_pods_change(void *arg)
{
	struct agent *agent = arg;
	if (agent->pods == NULL || agent->holders == NULL)
		return; // the start is not over
	join_pods(agent);
	resources_ask_again(agent->resources);
	late_look(agent->late);
}

static void on_pod_deleted(void *arg, const struct pod_facts *last)
{
	struct agent *agent = arg;
	if (agent->holders == NULL)
		return;
	// It may have come and gone between two looks.
	holders_read_checkpoint(agent->holders);
	join_pods(agent);
	usage_pod_deleted(meter_usage(agent->meter), last, world_wall_s(loop_world(agent->loop)));
	meter_step(agent->meter);
}

struct str agent_plan_key(void *arg)
{
	struct agent *agent = arg;
	struct err err;
	uint64_t now_ns = loop_now_ns(agent->loop);
	if (agent->config.plan_key_file == NULL)
		return STR("");
	bool is_old = agent->plan_key_ns == 0 || now_ns - agent->plan_key_ns > KEY_MAX_AGE_NS;
	if (is_old) {
		agent->plan_key_ns = now_ns;
		if (fs_read(agent->config.plan_key_file, KEY_MAX_BYTES, &agent->plan_key, &err) !=
		    ERR_OK)
			log_err(LOG_WARN, "key of the plans; they are not used", &err);
	}
	return buf_str(&agent->plan_key);
}

static plugin_choice on_prefer(void *arg, const char *resource, const struct dp_preferred *request,
			       bool is_last, struct str *ret_ids)
{
	struct agent *agent = arg;
	return grant_prefer(&agent->grant, resource, request, is_last, ret_ids);
}

static err_status on_allocate(void *arg, const char *resource,
			      const struct dp_allocate_list *request, struct buf *out,
			      struct err *err)
{
	struct agent *agent = arg;
	// With this answer the kubelet forgets whoever held these devices before.
	holders_read_checkpoint(agent->holders);
	share_kind kind;
	err_status status = share_kind_of(str_of(resource), &kind)
				    ? late_allocate(agent->late, kind, request, out, err)
				    : grant_allocate(&agent->grant, resource, request, out, err);
	if (status == ERR_OK)
		holders_expect(agent->holders);
	return status;
}

static void on_kubelet(void *arg)
{
	struct agent *agent = arg;
	log_kv(LOG_INFO, "the kubelet's socket is new", NULL);
	resources_restart(agent->resources);
	if (agent->holders != NULL)
		holders_look(agent->holders);
}

static void on_any(void *arg)
{
	struct agent *agent = arg;
	resources_check_sockets(agent->resources);
	agent_look_at_shares(agent);
}

static void on_checkpoint(void *arg)
{
	struct agent *agent = arg;
	if (agent->holders == NULL)
		return;
	holders_read_checkpoint(agent->holders);
	holders_look(agent->holders);
}

static void fill_layout(struct agent *agent, struct node_view *view)
{
	static const gpu_sharing sharings[] = { [DP_EXCLUSIVE] = GPU_SHARING_NONE,
						[DP_TIME_SLICED] = GPU_SHARING_TIME_SLICING,
						[DP_MPS] = GPU_SHARING_MPS };
	static const gpu_mig_strategy migs[] = { [DP_MIG_NONE] = GPU_MIG_NONE,
						 [DP_MIG_SINGLE] = GPU_MIG_SINGLE,
						 [DP_MIG_MIXED] = GPU_MIG_MIXED };
	const struct offer *offer = &agent->offer;
	view->has_layout = offer->count > 0 && !agent->is_offer_bad;
	view->sharing = sharings[offer->sharing];
	view->mig = migs[agent->dp.mig];
	view->problem = offer->problem;
	view->apply = agent_layout_apply(agent->layout);
	if (agent->dp.has_shares)
		view->memory_limit = dp_limit_name(agent->dp.share_limit);
	if (agent->dp.has_shares && offer->hides_shares)
		view->shares_why = agent_shares_why(agent);
	bool is_dra = agent_is_dra(agent);
	for (uint32_t slot = 0; slot < offer->count; slot++) {
		view->shares[slot] = (struct node_share){
			.resource = is_dra ? DRA_DRIVER : offer->gpus[slot].resource,
			.held_back = agent->handovers[slot].is_dirty ? agent->handovers[slot].reason
								     : NULL,
			.replicas = offer->gpus[slot].replicas,
			.parts = offer->gpus[slot].has_parts ? offer->gpus[slot].parts : NULL,
			.is_renamed = strcmp(offer->gpus[slot].resource, agent->config.resource) !=
				      0,
		};
		if (offer_is_late(&offer->gpus[slot]))
			agent_view_shared(agent, slot, &view->shares[slot]);
	}
}

static bool node_view(void *arg, struct node_view *ret)
{
	struct agent *agent = arg;
	struct plugin_stats plugin;
	struct nvml_host_stats host;
	if (!monitor_is_ready(agent->monitor))
		return false;
	struct dra_stats dra;
	struct dra_publish_stats slice;
	resources_stats(agent->resources, &plugin);
	agent_dra_stats(agent, &dra, &slice);
	monitor_host_stats(agent->monitor, &host);
	*ret = (struct node_view){ .node = agent->config.node_name,
				   .gpus = monitor_gpus(agent->monitor),
				   .count = monitor_count(agent->monitor),
				   .usage = meter_usage(agent->meter),
				   .driver = monitor_driver(agent->monitor),
				   .resource = agent_is_dra(agent) ? DRA_DRIVER
								   : agent->config.resource,
				   .machine = agent->machine,
				   .is_driver_up = host.driver_up,
				   .is_registered = plugin.is_registered || dra.is_registered };
	fill_layout(agent, ret);
	return true;
}

static void on_housekeeping(void *arg)
{
	struct agent *agent = arg;
	if (agent->pods != NULL)
		pods_prune(agent->pods);
	join_pods(agent);
	exporter_look(&agent->exporter);
	late_refresh(agent->late);
	agent_offer(agent); // also writes the CDI file anew if somebody removed it
	agent_dra_look(agent);
	agent_layout_look(agent->layout);
	agent_layout_step(agent->layout);
	if (agent->node != NULL)
		node_writer_poke(agent->node); // writes only what differs
	if (agent->push != NULL)
		push_poke(agent->push);
	(void)malloc_trim(0);
	loop_timer_set(agent->housekeeping, HOUSEKEEPING_NS);
}

static err_status start_monitor(struct agent *agent, struct err *err)
{
	const struct agent_config *from = &agent->config;
	static char path[4096]; // borrowed by the monitor as long as the agent lives
	(void)snprintf(path, sizeof path, "%.3000s/devices.json", from->state_dir);
	const struct monitor_config config = {
		.host = { .libraries = { from->nvml_library, from->dcgm_library,
					 from->dcgm_address },
			  .deadline_ns = (uint64_t)from->deadline_ms * MS,
			  .start_ns = (uint64_t)from->start_deadline_ms * MS },
		.health = { .strikes_max = (uint32_t)from->strikes,
			    .clean_probes = (uint32_t)from->clean_probes,
			    .hold_off_ns = (uint64_t)from->hold_off_s * S },
		.xids = from->xids,
		.probe_ns = (uint64_t)from->probe_ms * MS,
		.read_ns = (uint64_t)from->read_ms * MS,
		.processes_ns = PROCESSES_NS,
		.state_path = path,
		.sys_root = from->sys_root,
		.arg = agent,
		.on_change = on_monitor_change,
		.on_reading = on_reading,
		.on_processes = on_processes,
		.on_mig_changed = on_mig_changed,
	};
	return monitor_new(agent->loop, &config, &agent->monitor, err);
}

static void read_machine(struct agent *agent)
{
	char path[4096];
	struct err err;
	AUTO(buf_done) struct buf text = { 0 };
	(void)snprintf(path, sizeof path, "%.3000s/class/dmi/id/product_name",
		       agent->config.sys_root);
	if (fs_read(path, sizeof agent->machine - 1, &text, &err) != ERR_OK)
		return; // not there on every machine; the label then says "unknown"
	struct str name = str_trim(buf_str(&text));
	(void)snprintf(agent->machine, sizeof agent->machine, STR_FMT, STR_ARG(name));
}

static err_status start_client(struct agent *agent, struct arena *arena, struct err *err)
{
	const char *where = agent->config.kubeconfig;
	struct k8s_config config = { 0 };
	if (strcmp(where, "none") == 0)
		return ERR_OK;
	err_status status = k8s_config_load(arena, where, &config, err);
	if (status == ERR_OK)
		status = k8s_client_new(agent->loop, &config, "gpuaas-agent/" GPUAAS_VERSION,
					&agent->client, err);
	if (status != ERR_OK)
		return err_wrap(err, "API server");
	read_machine(agent);
	const struct node_writer_config node = {
		.node = agent->config.node_name,
		.period_ns = (uint64_t)agent->config.node_period_s * S,
		.arg = agent,
		.view = node_view,
	};
	status = node_writer_new(agent->client, &node, &agent->node, err);
	if (status != ERR_OK)
		return status;
	agent->events = event_sink_new(agent->client, "gpuaas.io/agent", agent->config.node_name);
	const struct pods_config pods = { .node = agent->config.node_name,
					  .resource = agent->config.resource,
					  .arg = agent,
					  .plan_key = agent_plan_key,
					  .on_change = on_pods_change,
					  .on_deleted = on_pod_deleted };
	return pods_new(agent->client, &pods, &agent->pods, err);
}

static err_status start_meter(struct agent *agent, struct err *err)
{
	const struct agent_config *from = &agent->config;
	char dir[4096], pending[4096];
	AUTO(buf_done) struct buf boot = { 0 };
	(void)snprintf(dir, sizeof dir, "%.3000s/journal", from->state_dir);
	(void)snprintf(pending, sizeof pending, "%.3000s/pending", from->state_dir);
	if (fs_read("/proc/sys/kernel/random/boot_id", 64, &boot, err) != ERR_OK)
		return err_wrap(err, "boot id");
	char *end = strchr(boot.data, '\n');
	if (end != NULL)
		*end = '\0';
	const struct meter_config config = {
		.dir = dir,
		.pending_path = pending,
		.source = from->node_name,
		.boot_id = boot.data,
		.segment_bytes = (size_t)from->journal_segment_bytes,
		.limit_bytes = (size_t)from->journal_limit_bytes,
		.sample_s = from->sample_s,
		.has_pods = agent->pods != NULL,
		.proc_root = from->proc_root,
		.arg = agent,
		.on_durable = on_durable,
		.on_read_wanted = on_read_wanted,
		.on_counter_reset = on_counter_reset,
	};
	return meter_new(agent->loop, &config, agent->monitor, &agent->meter, err);
}

static err_status start_push(struct agent *agent, struct err *err)
{
	const struct agent_config *from = &agent->config;
	const struct push_config config = { .url = from->push_url,
					    .ca_file = from->push_ca_file,
					    .token_file = from->push_token_file,
					    .batch_bytes = (size_t)from->push_batch_bytes,
					    .period_ns = (uint64_t)from->push_period_ms * MS };
	if (from->push_url == NULL)
		return ERR_OK;
	return push_new(agent->loop, &config, meter_journal(agent->meter), &agent->push, err);
}

static err_status start_kubelet(struct agent *agent, struct err *err)
{
	const struct agent_config *from = &agent->config;
	char checkpoint[4096];
	(void)snprintf(checkpoint, sizeof checkpoint, "%.3000s/%s", from->device_plugin_dir,
		       CHECKPOINT_FILE);
	const struct holders_config holders = { .pod_resources_socket = from->pod_resources_socket,
						.checkpoint_path = checkpoint,
						.resource = from->resource,
						.pods = agent->pods,
						.usage = meter_usage(agent->meter),
						.arg = agent,
						.resolve = agent_resolve,
						.is_ready = agent_knows_devices,
						.show_more = agent_show_shares,
						.on_look = on_look };
	const struct plugin_config plugin = { .dir = from->device_plugin_dir,
					      .wait_ns = (uint64_t)from->plan_wait_ms * MS,
					      .arg = agent,
					      .prefer = on_prefer,
					      .allocate = on_allocate,
					      .is_late = agent_is_late,
					      .pre_start = agent_pre_start };
	const struct kubelet_dir_config dir = { .dir = from->device_plugin_dir,
						.arg = agent,
						.on_kubelet = on_kubelet,
						.on_any = on_any,
						.on_checkpoint = on_checkpoint };
	agent->grant =
		(struct grant){ .monitor = agent->monitor,
				.pods = agent->pods,
				.usage = meter_usage(agent->meter),
				.offer = &agent->offer,
				.held_back = agent->held_back,
				.inject = { &agent->dp, from->driver_root, from->proc_driver },
				.expects_plans = agent->pods != NULL && from->plan_key_file != NULL,
				.world = loop_world(agent->loop) };
	err_status status = holders_new(agent->loop, &holders, &agent->holders, err);
	if (status == ERR_OK)
		status = agent_start_late(agent, err);
	if (status == ERR_OK)
		status = resources_new(agent->loop, &plugin, &agent->resources, err);
	if (status == ERR_OK)
		status = agent_start_dra(agent, err);
	if (status == ERR_OK)
		status = kubelet_dir_new(agent->loop, &dir, &agent->dir, err);
	return status;
}

static err_status start_http(struct agent *agent, struct err *err)
{
	const struct agent_config *from = &agent->config;
	const struct tls_server_config tls = { .cert_file = from->tls_cert_file,
					       .key_file = from->tls_key_file };
	err_status status =
		exporter_init(&agent->exporter, from->counters_file, from->tokens_file, err);
	if (status == ERR_OK && from->tls_cert_file != NULL)
		status = tls_server_new(&tls, &agent->tls, err);
	const struct http_server_config config = { .listen = from->listen,
						   .tls = agent->tls,
						   .body_max_bytes = 1,
						   .connections_max = METRICS_CONNECTIONS_MAX,
						   .handler = agent_http,
						   .arg = agent };
	if (status == ERR_OK)
		status = http_server_new(agent->loop, &config, &agent->http, err);
	return status == ERR_OK ? ERR_OK : err_wrap(err, "metrics at %s", from->listen);
}

static err_status start_load(struct agent *agent, struct err *err)
{
	const struct agent_config *from = &agent->config;
	const struct tls_server_config tls = { .cert_file = from->load_cert_file,
					       .key_file = from->load_key_file };
	if (from->load_listen == NULL)
		return ERR_OK;
	err_status status = tls_server_new(&tls, &agent->load_tls, err);
	const struct http_server_config config = { .listen = from->load_listen,
						   .tls = agent->load_tls,
						   .body_max_bytes = 1,
						   .connections_max = METRICS_CONNECTIONS_MAX,
						   .handler = agent_http_load,
						   .arg = agent };
	if (status == ERR_OK)
		status = http_server_new(agent->loop, &config, &agent->load_http, err);
	return status == ERR_OK ? ERR_OK : err_wrap(err, "load view at %s", from->load_listen);
}

static void on_hup(void *arg)
{
	struct agent *agent = arg;
	struct err err;
	agent->plan_key_ns = 0;
	dp_source_look(agent->source);
	exporter_look(&agent->exporter);
	agent_layout_reload(agent->layout);
	if (agent->tls != NULL && tls_server_reload(agent->tls, &err) != ERR_OK)
		log_err(LOG_ERROR, "certificate is not reloaded, the old one stays", &err);
	if (agent->load_tls != NULL && tls_server_reload(agent->load_tls, &err) != ERR_OK)
		log_err(LOG_ERROR, "certificate of the load view is not reloaded", &err);
}

err_status agent_start(struct agent *agent, const struct agent_config *config, struct arena *arena,
		       struct err *err)
{
	*agent = (struct agent){ .config = *config };
	err_status status = loop_new(&agent->loop, err);
	if (status == ERR_OK)
		status = loop_handle_signals(agent->loop, on_hup, agent, err);
	if (status == ERR_OK)
		status = fs_mkdirs(config->state_dir, 0700, err);
	if (status == ERR_OK)
		status = start_monitor(agent, err);
	if (status == ERR_OK)
		status = start_client(agent, arena, err);
	if (status == ERR_OK)
		status = agent_start_source(agent, err);
	if (status == ERR_OK)
		status = start_meter(agent, err);
	if (status == ERR_OK)
		status = start_push(agent, err);
	if (status == ERR_OK)
		status = start_kubelet(agent, err);
	if (status == ERR_OK)
		status = agent_layout_new(agent, &agent->layout, err);
	if (status == ERR_OK)
		status = start_http(agent, err);
	if (status == ERR_OK)
		status = start_load(agent, err);
	if (status != ERR_OK) {
		agent_stop(agent);
		return status;
	}
	agent->housekeeping = loop_timer_new(agent->loop, on_housekeeping, agent);
	loop_timer_set(agent->housekeeping, HOUSEKEEPING_NS);
	return ERR_OK;
}

void agent_stop(struct agent *agent)
{
	http_server_free(agent->http);
	tls_ctx_free(agent->tls);
	http_server_free(agent->load_http);
	tls_ctx_free(agent->load_tls);
	kubelet_dir_free(agent->dir);
	agent->dir = NULL;
	agent_stop_dra(agent);
	resources_free(agent->resources);
	dp_source_free(agent->source);
	node_label_free(agent->label);
	agent_layout_free(agent->layout);
	agent->layout = NULL;
	loop_timer_free(agent->settle);
	loop_timer_free(agent->mps_look);
	late_free(agent->late);
	holders_free(agent->holders);
	push_free(agent->push);
	node_writer_free(agent->node);
	event_sink_free(agent->events);
	pods_free(agent->pods);
	meter_free(agent->meter);
	monitor_free(agent->monitor);
	k8s_client_free(agent->client);
	loop_timer_free(agent->housekeeping);
	buf_done(&agent->plan_key);
	exporter_done(&agent->exporter);
	loop_free(agent->loop);
}
