// SPDX-License-Identifier: Apache-2.0
// What the API server is told about this node: the GPUNode object and its status, and the labels
// of GPU feature discovery on the Node. Text only, in a fixed order, so that "nothing changed"
// is a comparison of bytes. Pure.
#pragma once

#include "base/buf.h"
#include "daemons/agent/mig_apply.h"
#include "daemons/agent/offer.h"
#include "daemons/agent/usage.h"
#include "gpu/labels.h"

enum { NODE_VERSION_BYTES = 64 };
// Set on the Node by whoever installs the container toolkit there; nothing else tells it.
#define NODE_TOOLKIT_ANNOTATION "gpuaas.io/container-toolkit-version"

struct node_versions { // as the Node tells them; empty: not known
	char kubelet[NODE_VERSION_BYTES];
	char runtime[NODE_VERSION_BYTES]; // "containerd://2.2.9"
	char toolkit[NODE_VERSION_BYTES];
};

struct node_share {
	const char *resource; // under which it is offered; NULL: not known
	uint32_t replicas;    // up to 1: whole
	bool is_renamed;
	uint32_t milli;                 // that are given out in shares bound late; 0: none
	const char *held_back;          // why it is given to nobody for now; NULL: it is given
	const struct offer_part *parts; // beside the instances; NULL: it is not offered in parts
};

struct node_view {
	const char *node;
	const struct monitor_gpu *gpus;
	size_t count;
	const struct usage *usage; // who holds what
	const struct nvml_hello *driver;
	const char *resource;
	bool is_driver_up, is_registered;
	struct node_versions versions;     // filled by the writer
	const char *machine;               // as the firmware names it, may be empty
	bool has_layout;                   // else it is not known yet how GPUs are offered
	struct node_share shares[GPU_MAX]; // by slot
	gpu_sharing sharing;
	gpu_mig_strategy mig;
	const char *problem;      // why nothing is offered; NULL: nothing
	const char *memory_limit; // what keeps shares to their memory; NULL: none are configured
	const char *shares_why;   // then: why they are not offered; NULL: they are
	const struct mig_apply *apply; // of layouts; NULL: they are not managed
};

// Bodies of server-side apply. conditions_t: RFC 3339 of the last change of each condition,
// in the order DriverReady, DevicePluginRegistered, DevicesHealthy, VersionsCompatible,
// SharesOffered where shares are configured, MIGLayoutApplied where a layout is wanted.
enum { NODE_CONDITIONS = 6 };
void node_object_put(struct buf *out, const struct node_view *view);
void node_object_put_status(struct buf *out, const struct node_view *view,
			    const char *const conditions_t[NODE_CONDITIONS]);
void node_object_conditions(const struct node_view *view, bool ret_is_true[NODE_CONDITIONS]);
// timestamp_s: of the last change of the labels.
void node_object_put_labels(struct buf *out, const struct node_view *view, int64_t timestamp_s);
const char *node_object_condition_type(size_t condition);
