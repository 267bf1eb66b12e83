// SPDX-License-Identifier: Apache-2.0
// The agent's own figures, gpuaas_agent_*.
#include "base/metric.h"
#include "daemons/agent/metrics.h"

#include <inttypes.h>
#include <stdio.h>

static void put_one(struct buf *out, const char *name, const char *type, const char *help,
		    uint64_t value)
{
	char full[96];
	(void)snprintf(full, sizeof full, "gpuaas_agent_%s", name);
	metric_family(out, full, type, help);
	metric_int(out, full, NULL, 0, (int64_t)value);
}

static void put_health(struct buf *out, const struct metrics_view *view)
{
	metric_family(out, "gpuaas_agent_gpu_healthy", "gauge",
		      "Whether the GPU is offered to the kubelet.");
	for (uint32_t slot = 0; slot < view->count; slot++) {
		const struct monitor_gpu *gpu = &view->gpus[slot];
		const struct metric_label labels[] = {
			{ "UUID", str_of(gpu->info.uuid) },
			{ "state", str_of(health_state_name(gpu->health.state)) },
			{ "reason", str_of(gpu->health.reason) },
		};
		if (gpu->is_known)
			metric_int(out, "gpuaas_agent_gpu_healthy", labels, ARRAY_COUNT(labels),
				   health_is_offered(&gpu->health) ? 1 : 0);
	}
	metric_family(out, "gpuaas_agent_gpu_unclean", "gauge",
		      "Whether something is left on the GPU though nobody holds it.");
	for (uint32_t slot = 0; slot < view->count; slot++) {
		const struct metric_label label = { "UUID", str_of(view->gpus[slot].info.uuid) };
		if (view->gpus[slot].is_known)
			metric_int(out, "gpuaas_agent_gpu_unclean", &label, 1,
				   view->handovers[slot].is_dirty ? 1 : 0);
	}
	metric_family(out, "gpuaas_agent_gpu_up", "gauge",
		      "Whether the GPU answers and its values are not too old to be shown.");
	for (uint32_t slot = 0; slot < view->count; slot++) {
		const struct monitor_gpu *gpu = &view->gpus[slot];
		const struct metric_label label = { "UUID", str_of(gpu->info.uuid) };
		if (gpu->is_known)
			metric_int(out, "gpuaas_agent_gpu_up", &label, 1,
				   metrics_is_fresh(view, gpu) &&
						   gpu->health.state == HEALTH_HEALTHY
					   ? 1
					   : 0);
	}
	metric_family(out, "gpuaas_agent_gpu_reading_age_seconds", "gauge",
		      "Age of the GPU's last reading; absent before the first.");
	for (uint32_t slot = 0; slot < view->count; slot++) {
		const struct monitor_gpu *gpu = &view->gpus[slot];
		const struct metric_label label = { "UUID", str_of(gpu->info.uuid) };
		if (gpu->is_known && gpu->reading_ns != 0)
			metric_float(out, "gpuaas_agent_gpu_reading_age_seconds", &label, 1,
				     (double)(view->now_ns - gpu->reading_ns) / 1e9);
	}
}

static void put_xids(struct buf *out, const struct metrics_view *view)
{
	metric_family(out, "gpuaas_agent_xids_total", "counter",
		      "XIDs seen since the start; xid 0 gathers rare ones.");
	for (uint32_t slot = 0; slot < view->count; slot++) {
		const struct monitor_gpu *gpu = &view->gpus[slot];
		for (size_t i = 0; i < MONITOR_XIDS; i++) {
			char xid[16];
			(void)snprintf(xid, sizeof xid, "%" PRIu32, gpu->xids[i].xid);
			const struct metric_label labels[] = {
				{ "UUID", str_of(gpu->info.uuid) },
				{ "xid", str_of(xid) },
			};
			if (gpu->xids[i].count > 0)
				metric_int(out, "gpuaas_agent_xids_total", labels, 2,
					   (int64_t)gpu->xids[i].count);
		}
	}
}

enum allocation_value { VALUE_SHARE, VALUE_UTIL, VALUE_MEMORY };

static void put_allocation(struct buf *out, const struct metrics_view *view,
			   const struct usage_allocation *item, const char *name,
			   enum allocation_value value)
{
	const struct metric_label labels[] = {
		{ "UUID", str_of(item->gpu) },
		{ "namespace", str_of(item->namespace_) },
		{ "pod", str_of(item->pod) },
		{ "container", str_of(item->container) },
	};
	bool is_seen = view->tenant == NULL || strcmp(item->tenant, view->tenant) == 0;
	if (!is_seen || item->is_ended || item->pod[0] == '\0' ||
	    (value != VALUE_SHARE && !item->has_sample))
		return;
	if (value == VALUE_SHARE)
		metric_float(out, name, labels, ARRAY_COUNT(labels),
			     (double)item->share_num / (double)item->share_den);
	else if (value == VALUE_UTIL)
		metric_float(out, name, labels, ARRAY_COUNT(labels),
			     (double)item->util_milli / 1000);
	else
		metric_int(out, name, labels, ARRAY_COUNT(labels),
			   (int64_t)(item->memory_mib << 20));
}

// Several pods may hold one GPU; their parts never exceed it.
void metrics_put_allocations(struct buf *out, const struct metrics_view *view)
{
	static const char *const names[] = { "gpuaas_agent_allocation_share_ratio",
					     "gpuaas_agent_allocation_utilization_ratio",
					     "gpuaas_agent_allocation_memory_bytes" };
	static const char *const help[] = { "Share of the GPU that the pod holds.",
					    "Part of the GPU's time that is the pod's.",
					    "Part of the GPU's used memory that is the pod's." };
	for (size_t value = 0; value < ARRAY_COUNT(names); value++) {
		metric_family(out, names[value], "gauge", help[value]);
		for (size_t i = 0; i < usage_count(view->usage); i++)
			put_allocation(out, view, usage_at(view->usage, i), names[value],
				       (enum allocation_value)value);
	}
}

static void put_counters(struct buf *out, const struct metrics_view *view)
{
	put_one(out, "counters", "gauge", "Counters shown of each GPU.", view->counters->count);
	put_one(out, "counters_unserved", "gauge",
		"Counters of the file that are known and not served here.",
		view->counters->unserved);
	put_one(out, "counters_failing", "gauge",
		"Whether the file of counters was refused; those before stay.",
		view->is_counters_bad ? 1 : 0);
	put_one(out, "metrics_tokens_failing", "gauge",
		"Whether the file of tokens was refused; those before stay.",
		view->is_tokens_bad ? 1 : 0);
}

static void put_driver(struct buf *out, const struct metrics_view *view)
{
	struct nvml_host_stats stats;
	monitor_host_stats(view->monitor, &stats);
	put_one(out, "nvml_up", "gauge", "Whether the driver answers.", stats.driver_up ? 1 : 0);
	put_one(out, "nvml_events_up", "gauge", "Whether XID events are watched.",
		monitor_events_status(view->monitor) == 0 ? 1 : 0);
	put_one(out, "nvml_child_starts_total", "counter",
		"Starts of processes that call the driver.", stats.starts);
	put_one(out, "nvml_hangs_total", "counter", "Driver calls that did not return in time.",
		stats.hangs);
	put_one(out, "nvml_crashes_total", "counter",
		"Processes that ended while calling the driver.", stats.crashes);
	put_one(out, "nvml_stuck_children", "gauge",
		"Ended processes that the kernel still holds in the driver.", stats.stuck);
	put_one(out, "nvml_gpus_alone", "gauge",
		"GPUs that got a process of their own after a fault.", stats.alone);
}

static void put_plugin(struct buf *out, const struct metrics_view *view)
{
	const struct plugin_stats *plugin = &view->plugin;
	put_one(out, "kubelet_registered", "gauge", "Whether the kubelet knows this device plugin.",
		plugin->is_registered ? 1 : 0);
	put_one(out, "kubelet_stream_open", "gauge", "Whether the kubelet reads the device list.",
		plugin->has_stream ? 1 : 0);
	put_one(out, "kubelet_inotify", "gauge",
		"Whether the kubelet's folder is watched by inotify (else polled).",
		view->has_inotify ? 1 : 0);
	put_one(out, "registrations_total", "counter", "Registrations with the kubelet.",
		plugin->registrations);
	put_one(out, "registration_failures_total", "counter", "Failed registrations.",
		plugin->failures);
	put_one(out, "device_lists_total", "counter", "Device lists sent.", plugin->lists);
	put_one(out, "allocations_total", "counter", "Allocations answered.", plugin->allocations);
	put_one(out, "allocation_refusals_total", "counter", "Allocations refused.",
		plugin->refusals);
	put_one(out, "preferences_total", "counter", "Preferred allocations answered.",
		plugin->preferred);
	put_one(out, "preferences_planned_total", "counter",
		"Preferred allocations that followed the scheduler's plan.", view->planned);
	put_one(out, "preferences_unplanned_total", "counter",
		"Preferred allocations without a plan.", view->unplanned);
	put_one(out, "pod_resources_failures_total", "counter",
		"PodResources calls without an answer.", view->holders.list_failures);
	put_one(out, "holder_disagreements_total", "counter",
		"Times PodResources and the checkpoint named different pods.",
		view->holders.disagreements);
}

static void put_late(struct buf *out, const struct metrics_view *view)
{
	put_one(out, "shares_bound", "gauge", "Containers' shares that hold a part of a GPU.",
		view->late.bound);
	put_one(out, "shares_waiting", "gauge",
		"Containers whose start waits for the plan of their share.", view->late.waiting);
	put_one(out, "share_allocations_total", "counter", "Allocations of shares answered.",
		view->late.allocations);
	put_one(out, "share_binds_total", "counter", "Shares bound to the planned GPU.",
		view->late.binds);
	put_one(out, "share_refusals_total", "counter",
		"Starts refused because the share could not be resolved.", view->late.refusals);
}

static void put_config(struct buf *out, const struct metrics_view *view)
{
	put_one(out, "plugin_config_failing", "gauge",
		"Whether the newest configuration of the device plugin is refused, the one before "
		"it runs.",
		view->source.is_failing || view->is_offer_bad ? 1 : 0);
	put_one(out, "plugin_config_failures_total", "counter", "Configurations refused.",
		view->source.failures);
	put_one(out, "plugin_config_loads_total", "counter", "Configurations put in force.",
		view->source.loads);
	metric_family(out, "gpuaas_agent_plugin_config_info", "gauge",
		      "Name of the configuration in force; empty: a file, or none.");
	const struct metric_label name = { "name", str_of(view->source.name) };
	metric_int(out, "gpuaas_agent_plugin_config_info", &name, 1, 1);
}

static void put_journal(struct buf *out, const struct metrics_view *view)
{
	const struct journal_stats *journal = &view->journal;
	static const event_type types[] = { EVENT_BOUND, EVENT_RELEASED, EVENT_ENERGY, EVENT_SAMPLE,
					    EVENT_UNEXPLAINED };
	put_one(out, "journal_failing", "gauge",
		"Whether the journal cannot be written (disk full, I/O error).",
		journal->is_failing ? 1 : 0);
	put_one(out, "journal_failures_total", "counter", "Failed writes and syncs.",
		journal->failures);
	put_one(out, "journal_bytes", "gauge", "Bytes of the journal's files.", journal->bytes);
	put_one(out, "journal_limit_bytes", "gauge", "Most bytes they may have.",
		journal->limit_bytes);
	put_one(out, "journal_queued_bytes", "gauge", "Bytes that wait to be written.",
		journal->queued_bytes);
	put_one(out, "journal_last_seq", "gauge", "Number of the last event.", journal->last_seq);
	put_one(out, "journal_synced_seq", "gauge", "Number of the last event that is on disk.",
		journal->synced_seq);
	put_one(out, "journal_torn_bytes", "gauge", "Bytes of a torn end cut at the last start.",
		journal->torn_bytes);
	put_one(out, "journal_damaged_lines", "gauge", "Damaged lines skipped at the last start.",
		journal->damaged_lines);
	metric_family(out, "gpuaas_agent_events_total", "counter", "Events told to the journal.");
	for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
		const struct metric_label label = { "type", str_of(event_type_name(types[i])) };
		metric_int(out, "gpuaas_agent_events_total", &label, 1,
			   (int64_t)view->meter.told[types[i]]);
	}
	metric_family(out, "gpuaas_agent_events_refused_total", "counter",
		      "Events that found no room in the journal.");
	for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
		const struct metric_label label = { "type", str_of(event_type_name(types[i])) };
		metric_int(out, "gpuaas_agent_events_refused_total", &label, 1,
			   (int64_t)journal->refused[types[i]]);
	}
	put_one(out, "allocations_guessed_total", "counter",
		"Allocations told with a time that was the best that was known.",
		usage_guessed(view->usage));
}

static void put_push(struct buf *out, const struct metrics_view *view)
{
	if (!view->has_push)
		return;
	put_one(out, "push_failing", "gauge", "Whether the server takes no usage.",
		view->push.is_failing ? 1 : 0);
	put_one(out, "push_failures_total", "counter", "Batches that were not taken.",
		view->push.failures);
	put_one(out, "push_batches_total", "counter", "Batches that were taken.",
		view->push.batches);
	put_one(out, "push_acknowledged_seq", "gauge",
		"Number of the last event that is durable at the server.",
		view->push.acknowledged_seq);
	put_one(out, "push_last_good_timestamp_seconds", "gauge",
		"When the server last took a batch.", (uint64_t)view->push.last_good_wall_s);
}

static void put_api(struct buf *out, const struct metrics_view *view)
{
	if (!view->has_pods)
		return;
	put_one(out, "pods_synced", "gauge", "Whether the list of the node's pods is complete.",
		view->pods.is_synced ? 1 : 0);
	put_one(out, "pod_events_total", "counter", "Changes of pods seen.", view->pods.events);
	put_one(out, "bad_plans_total", "counter", "Plans not used (MAC or form).",
		view->pods.bad_plans);
	put_one(out, "node_writes_total", "counter", "Writes of GPUNode and node labels.",
		view->node_writer.writes);
	put_one(out, "node_write_failures_total", "counter", "Failed ones of them.",
		view->node_writer.failures);
}

static void put_claims(struct buf *out, const struct metrics_view *view)
{
	put_one(out, "claims", "gauge", "Claims that are prepared on this node.", view->dra.claims);
	put_one(out, "claims_prepared_total", "counter", "Claims that were prepared.",
		view->dra.prepared);
	put_one(out, "claims_unprepared_total", "counter", "Claims that were unprepared.",
		view->dra.unprepared);
	put_one(out, "claim_failures_total", "counter",
		"Claims that could not be prepared or unprepared when asked.", view->dra.failures);
	put_one(out, "slice_published", "gauge",
		"Whether the node's ResourceSlice says what it should.",
		view->slice.is_published ? 1 : 0);
	put_one(out, "slice_writes_total", "counter", "Writes of the node's ResourceSlice.",
		view->slice.writes);
	put_one(out, "slice_failures_total", "counter",
		"Calls about the node's ResourceSlice that failed.", view->slice.failures);
}

void metrics_put_own(struct buf *out, const struct metrics_view *view)
{
	if (view->is_dra)
		put_claims(out, view);
	static const struct metric_label version = {
		"version", { GPUAAS_VERSION, sizeof GPUAAS_VERSION - 1 }
	};
	metric_family(out, "gpuaas_agent_build_info", "gauge", "Version of this agent.");
	metric_int(out, "gpuaas_agent_build_info", &version, 1, 1);
	put_health(out, view);
	put_xids(out, view);
	put_driver(out, view);
	put_counters(out, view);
	put_plugin(out, view);
	put_late(out, view);
	put_config(out, view);
	put_journal(out, view);
	put_push(out, view);
	put_api(out, view);
}
