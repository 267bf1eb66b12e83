// SPDX-License-Identifier: Apache-2.0
// What the API server is told about this node: the GPUNode object and its status, and the labels
// of GPU feature discovery on the Node. Text only, in a fixed order, so that "nothing changed"
// is a comparison of bytes. Pure.
#pragma once

#include "base/buf.h"
#include "daemons/agent/monitor.h"

struct node_view {
	const char *node;
	const struct monitor_gpu *gpus;
	size_t count;
	const struct nvml_hello *driver;
	const char *resource;
	bool is_driver_up, is_registered;
};

// Bodies of server-side apply. conditions_t: RFC 3339 of the last change of each condition,
// in the order DriverReady, DevicePluginRegistered, DevicesHealthy.
enum { NODE_CONDITIONS = 3 };
void node_object_put(struct buf *out, const struct node_view *view);
void node_object_put_status(struct buf *out, const struct node_view *view,
			    const char *const conditions_t[NODE_CONDITIONS]);
void node_object_conditions(const struct node_view *view, bool ret_is_true[NODE_CONDITIONS]);
void node_object_put_labels(struct buf *out, const struct node_view *view);
