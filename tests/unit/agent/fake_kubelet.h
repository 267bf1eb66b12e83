// SPDX-License-Identifier: Apache-2.0
// A kubelet as device plugins see it: registration, the device list stream, preferred and real
// allocations, PodResources, the checkpoint file, restarts. Runs on the test's loop; the calls
// block by running that loop.
#pragma once

#include "daemons/agent/dp_proto.h"
#include "net/grpc.h"

enum { FAKE_DEVICES_MAX = 32, FAKE_ROWS_MAX = 64, FAKE_ID_BYTES = 128, FAKE_OTHERS_MAX = 4 };
enum { FAKE_LIST_MAX = 4096 }; // devices of another plugin

struct fake_row {
	char namespace_[64], pod[64], uid[64], container[64], id[FAKE_ID_BYTES];
	char resource[64]; // empty: nvidia.com/gpu
	bool is_listed;    // by PodResources; the checkpoint has it in any case
};

struct fake_kubelet;

struct fake_device {
	char id[FAKE_ID_BYTES];
	bool is_healthy;
};

// A plugin of another resource than nvidia.com/gpu.
struct fake_plugin {
	struct fake_kubelet *kubelet;
	char endpoint[128], resource[64];
	struct grpc_call *stream;
	unsigned registrations, lists;
	struct fake_device devices[FAKE_LIST_MAX];
	size_t device_count;
};

struct fake_kubelet {
	struct loop *loop;
	char dir[200], pod_resources[200];
	struct grpc_server *server, *pods_server;
	struct grpc_call *stream;
	char endpoint[128], resource[64];
	unsigned registrations, lists, streams_open;
	bool is_deaf; // PodResources is not answered
	struct fake_device devices[FAKE_DEVICES_MAX];
	size_t device_count;
	struct fake_row rows[FAKE_ROWS_MAX];
	size_t row_count;
	struct fake_plugin others[FAKE_OTHERS_MAX];
	size_t other_count;
	const struct fake_plugin *target; // who is asked; NULL: that of nvidia.com/gpu
	// Holders beside the rows, if any.
	void *arg;
	void (*put_pods)(void *arg, struct buf *out);
	void (*put_entries)(void *arg, struct buf *out); // each with a comma before it
};

void fake_kubelet_init(struct fake_kubelet *kubelet, struct loop *loop, const char *dir);
void fake_kubelet_up(struct fake_kubelet *kubelet);   // as at its start: deletes all sockets first
void fake_kubelet_down(struct fake_kubelet *kubelet); // kill -9: the socket file stays
// The plugin of another resource, NULL: none registered.
const struct fake_plugin *fake_kubelet_other(const struct fake_kubelet *kubelet,
					     const char *resource);
size_t fake_kubelet_unhealthy(const struct fake_kubelet *kubelet);
// Adds a holder and writes the checkpoint.
void fake_kubelet_hold(struct fake_kubelet *kubelet, const struct fake_row *row);
void fake_kubelet_write_checkpoint(struct fake_kubelet *kubelet);

struct fake_answer {
	enum grpc_code code;
	char error[400];
	char ids[FAKE_DEVICES_MAX][FAKE_ID_BYTES]; // preferred ids, or CDI names
	size_t count;
	bool is_void;    // the environment says NVIDIA_VISIBLE_DEVICES=void
	char text[4000]; // all of an allocation's answer but CDI names, a line a part
};
void fake_kubelet_prefer(struct fake_kubelet *kubelet, const struct str *available, size_t count,
			 size_t size, struct fake_answer *ret);
void fake_kubelet_allocate(struct fake_kubelet *kubelet, const struct str *ids, size_t count,
			   struct fake_answer *ret);
