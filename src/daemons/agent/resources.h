// SPDX-License-Identifier: Apache-2.0
// The device plugins of this node, one for each resource that is offered: started when a
// resource appears, kept with their streams while it stays, withdrawn with an empty list (so
// that the node's capacity falls to nothing) before their socket closes.
#pragma once

#include "daemons/agent/offer.h"
#include "daemons/agent/plugin.h"

struct resources;

// config: of each plugin; its resource is not used.
MUST_USE err_status resources_new(struct loop *loop, const struct plugin_config *config,
				  struct resources **ret, struct err *err);
void resources_free(struct resources *resources); // NULL allowed
// What is offered from now on.
void resources_offer(struct resources *resources, const struct offer *offer,
		     const struct monitor_gpu *gpus, const char *const held_back[GPU_MAX]);
void resources_restart(struct resources *resources);       // a new kubelet
void resources_check_sockets(struct resources *resources); // restarts whose socket has gone
void resources_ask_again(struct resources *resources);
// Sums over all; is_registered and has_stream: all of them that are offered, once it is known
// what is.
void resources_stats(const struct resources *resources, struct plugin_stats *ret);
