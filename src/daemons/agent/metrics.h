// SPDX-License-Identifier: Apache-2.0
// The /metrics page: per-GPU values under the classic names of dcgm-exporter with the pod that
// holds the device, and the agent's own figures. Renders what is in memory; asks nobody, so that
// neither a hanging driver nor a hanging kubelet delays a scrape.
#pragma once

#include "base/buf.h"
#include "daemons/agent/counters.h"
#include "daemons/agent/dp_source.h"
#include "daemons/agent/dra.h"
#include "daemons/agent/dra_publish.h"
#include "daemons/agent/grant.h"
#include "daemons/agent/holders.h"
#include "daemons/agent/late.h"
#include "daemons/agent/meter.h"
#include "daemons/agent/node_writer.h"
#include "daemons/agent/push.h"
#include "gpu/handover.h"

struct metrics_view {
	const char *node;
	const char *tenant; // NULL: all; else only what this tenant alone holds
	const struct counters *counters;
	const struct monitor_gpu *gpus; // by slot
	uint32_t count;
	const struct nvml_hello *driver;
	const struct handover *handovers; // by slot
	const struct monitor *monitor;    // for the agent's own figures
	const struct usage *usage;
	uint64_t now_ns, reading_max_age_ns; // older values are left out
	struct plugin_stats plugin;
	struct dra_stats dra; // where is_dra
	struct dra_publish_stats slice;
	bool is_dra;
	struct dp_source_stats source;
	struct holders_stats holders;
	struct journal_stats journal;
	struct meter_stats meter;
	struct push_stats push;
	struct pods_stats pods;
	struct node_writer_stats node_writer;
	struct late_stats late;
	uint64_t planned, unplanned;
	bool has_push, has_pods, has_inotify, is_offer_bad;
	bool is_counters_bad, is_tokens_bad;
};

// The whole page; for a tenant its GPUs and allocations.
void metrics_put(struct buf *out, const struct metrics_view *view);
bool metrics_is_fresh(const struct metrics_view *view, const struct monitor_gpu *gpu);
// Values of the GPUs; label order and formats are those of dcgm-exporter's classic profile.
void metrics_put_gpus(struct buf *out, const struct metrics_view *view);
void metrics_put_allocations(struct buf *out, const struct metrics_view *view);
void metrics_put_own(struct buf *out, const struct metrics_view *view);
