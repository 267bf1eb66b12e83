// SPDX-License-Identifier: Apache-2.0
// The agent as a whole: one loop that owns every part, and what one part's news means for the
// others. Devices and their health come from the monitor; the device plugins offer them as the
// configuration says; grant answers the kubelet; holders and pods tell usage who has what; the
// meter journals it; push sends it; node_writer and the HTTP server show it.
#pragma once

#include "daemons/agent/agent_dra.h"
#include "daemons/agent/agent_layout.h"
#include "daemons/agent/config.h"
#include "daemons/agent/dp_source.h"
#include "daemons/agent/exporter.h"
#include "daemons/agent/kubelet_dir.h"
#include "daemons/agent/late.h"
#include "daemons/agent/metrics.h"
#include "daemons/agent/node_label.h"
#include "daemons/agent/resources.h"
#include "gpu/handover.h"
#include "k8s/event.h"
#include "net/http_server.h"

struct agent {
	struct agent_config config;
	struct loop *loop;
	struct monitor *monitor;
	struct kubelet_dir *dir;
	struct dp_source *source;
	struct dp_config dp; // in force
	char kept_path[4096];
	struct node_label *label; // NULL: no configurations by label
	struct offer offer;
	uint64_t form_changed_ns[GPU_MAX];  // by slot, 0: not
	struct handover handovers[GPU_MAX]; // by slot
	const char *held_back[GPU_MAX];     // by slot, why it is given to nobody for now; else NULL
	bool is_offer_bad;                  // these GPUs cannot be offered as configured
	char offer_why[400];
	struct loop_timer *settle, *mps_look;
	struct resources *resources;
	struct k8s_client *client; // NULL: no API server
	struct pods *pods;         // NULL then
	struct event_sink *events; // NULL then
	bool is_told_out[GPU_MAX]; // by slot: the last Event said that it is out of use
	struct node_writer *node;  // NULL then
	struct meter *meter;
	struct holders *holders;
	struct agent_dra *dra;
	struct agent_layout *layout; // NULL: not managed
	struct late *late;
	struct push *push; // NULL: not configured
	struct grant grant;
	struct exporter exporter;
	struct tls_ctx *tls;
	struct http_server *http;
	struct tls_ctx *load_tls;
	struct http_server *load_http; // NULL: the load view is not served
	struct loop_timer *housekeeping;
	struct buf plan_key;
	char machine[96]; // the product's name as the firmware tells it
	uint64_t plan_key_ns;
};

// Starts all parts; on failure those that were started are ended.
MUST_USE err_status agent_start(struct agent *agent, const struct agent_config *config,
				struct arena *arena, struct err *err);
void agent_stop(struct agent *agent);
// Configuration of the device plugin, before the other parts ask for it.
MUST_USE err_status agent_start_source(struct agent *agent, struct err *err);
// Offers what there is now; nothing happens when nothing changed.
void agent_offer(struct agent *agent);
void agent_offer_later(void *arg);
// Events of what went out of use or came back since the last call.
void agent_tell_health(struct agent *agent);
bool agent_resolve(void *arg, uint32_t share, struct usage_holder *holder);
bool agent_knows_devices(void *arg);
// Of the one file; a share's is made from it.
struct cdi_config agent_cdi_config(const struct agent *agent);
// Shares.
MUST_USE err_status agent_start_late(struct agent *agent, struct err *err);
const char *agent_shares_why(const struct agent *agent); // not offered; NULL: they can be
bool agent_is_late(const char *resource);
void agent_pre_start(void *arg, const char *resource, struct grpc_stream *stream,
		     struct str message);
void agent_show_shares(void *arg);
void agent_view_shared(const struct agent *agent, uint32_t slot, struct node_share *share);
void agent_look_at_shares(struct agent *agent); // whether they can be offered
// Of MIG devices: all there are, by the GPUs' order (returns how many), and which are held back.
size_t agent_list_migs(const struct agent *agent, const struct mig_caps *caps,
		       const struct gpu_info *gpus,
		       struct mig_device ret[GPU_MAX * MIG_INSTANCES_MAX]);
void agent_hold_back_parts(struct agent *agent, uint32_t slot);
struct str agent_plan_key(void *arg); // of the plans, read anew now and then; empty: none
// Answers of the HTTP servers.
void agent_http(void *arg, struct http_exchange *exchange, const struct http_request *request);
void agent_http_load(void *arg, struct http_exchange *exchange, const struct http_request *request);
