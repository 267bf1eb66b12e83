// SPDX-License-Identifier: Apache-2.0
// The device plugin of one resource: its own socket with a fresh name for each life, registration
// with the kubelet (at once when a new kubelet appears, again while it refuses), one stream with
// the full list of devices, and the kubelet's questions. Which devices and which answers is the
// owner's to say; nothing here asks the driver.
#pragma once

#include "daemons/agent/dp_proto.h"
#include "net/grpc.h"
#include "sys/loop.h"

struct plugin;

// What the owner says to a question for preferred devices.
typedef enum plugin_choice {
	PLUGIN_CHOSEN, // ret_ids holds request->size of them
	PLUGIN_LATER,  // a plan may still come; asked again by plugin_ask_again or after a while
} plugin_choice;

struct plugin_config {
	const char *dir;      // the kubelet's device plugin folder
	const char *resource; // "nvidia.com/gpu"; copied
	uint64_t wait_ns;     // how long a choice may be put off
	void *arg;
	// is_last: PLUGIN_LATER is no answer any more. ret_ids has room for request->available.
	plugin_choice (*prefer)(void *arg, const char *resource, const struct dp_preferred *request,
				bool is_last, struct str *ret_ids);
	// All containers of one call; on success adds the containers' answers to out.
	err_status (*allocate)(void *arg, const char *resource,
			       const struct dp_allocate_list *request, struct buf *out,
			       struct err *err);
	// Resources whose devices are bound when a container starts: they are asked once more then,
	// and have no preferences. Answers the stream, now or later. NULL: there are none.
	bool (*is_late)(const char *resource);
	void (*pre_start)(void *arg, const char *resource, struct grpc_stream *stream,
			  struct str message);
};

struct plugin_stats {
	uint64_t registrations, failures, lists, preferred, allocations, refusals;
	bool is_registered, has_stream;
};

MUST_USE err_status plugin_new(struct loop *loop, const struct plugin_config *config,
			       struct plugin **ret, struct err *err);
void plugin_free(struct plugin *plugin); // NULL allowed
const char *plugin_resource(const struct plugin *plugin);
// The full list, a message for the kubelet; sent on when it differs from the last one.
void plugin_set_list(struct plugin *plugin, struct str list);
// Begins a new life: new socket, new registration. For a new kubelet or a lost socket.
void plugin_restart(struct plugin *plugin);
// Whether our socket file has gone although we serve it.
bool plugin_has_lost_socket(const struct plugin *plugin);
void plugin_ask_again(struct plugin *plugin);
void plugin_stats(const struct plugin *plugin, struct plugin_stats *ret);
