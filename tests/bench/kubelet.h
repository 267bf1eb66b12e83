// SPDX-License-Identifier: Apache-2.0
// A kubelet as far as a device plugin sees it: takes a registration, lists and watches the
// plugin's devices, asks it to allocate, and ends and comes back as a restarted kubelet does.
// One plugin, one resource. It owns its sockets in the folder; failures end the program, because
// a figure of a broken exchange is none.
#pragma once

#include "net/grpc.h"

enum { KUBELET_DEVICES_MAX = 8192, KUBELET_ID_BYTES = 96, KUBELET_PATH_BYTES = 104 };

struct kubelet_device {
	char id[KUBELET_ID_BYTES];
	bool is_healthy;
};
struct kubelet {
	struct loop *loop;
	const char *dir;
	struct grpc_server *server, *pod_resources;
	char plugin_socket[KUBELET_PATH_BYTES];
	struct grpc_call *watch;
	struct kubelet_device devices[KUBELET_DEVICES_MAX];
	size_t device_count, unhealthy_count;
	uint64_t registrations, lists; // since kubelet_open
	uint64_t registered_ns, listed_ns;
	// the answer of the call under way
	bool is_done;
	enum grpc_code code;
	char error[200];
	struct buf reply;
};

// dir is where kubelet.sock is made; pod_resources is the path of the other socket or NULL.
void kubelet_init(struct kubelet *kubelet, const char *dir, const char *pod_resources);
void kubelet_done(struct kubelet *kubelet);
void kubelet_open(struct kubelet *kubelet);  // its socket appears
void kubelet_close(struct kubelet *kubelet); // and goes
typedef bool kubelet_wish(const struct kubelet *kubelet, uint64_t argument);
// Turns the loop until the wish holds; ends the program after patience_ms.
void kubelet_wait(struct kubelet *kubelet, kubelet_wish *wish, uint64_t argument, const char *what,
		  uint64_t patience_ms);
bool kubelet_has_lists(const struct kubelet *kubelet, uint64_t lists);
bool kubelet_has_registrations(const struct kubelet *kubelet, uint64_t registrations);
bool kubelet_has_unhealthy(const struct kubelet *kubelet, uint64_t unhealthy);
void kubelet_watch(struct kubelet *kubelet); // ListAndWatch on the plugin that registered
// The first count devices from index on, round the end; time of the whole call.
uint64_t kubelet_allocate_ns(struct kubelet *kubelet, size_t index, size_t count);
uint64_t kubelet_prefer_ns(struct kubelet *kubelet, size_t count);
