// SPDX-License-Identifier: Apache-2.0
// Shares of GPUs under the device plugin, bound late: Allocate answers with a CDI name made for
// this allocation alone; when the kubelet is about to start the container it asks again, and only
// then the holder is found (PodResources and checkpoint), its plan read, and the name written as
// a CDI specification of the planned GPU. What cannot be resolved is refused, so a container never
// starts with another GPU than planned. Owns the table of allocations and its file; questions
// under way are the kubelet's streams, answered later. Facts: docs/agent.md.
#pragma once

#include "daemons/agent/dp_proto.h"
#include "daemons/agent/pods.h"
#include "daemons/agent/share_table.h"
#include "daemons/agent/usage.h"
#include "k8s/event.h"
#include "net/grpc.h"

struct late;

struct late_config {
	const char *pod_resources_socket, *checkpoint_path;
	const char *state_path; // of the table; copied like the others
	struct pods *pods;      // NULL: no API server, nothing is ever bound
	struct event_sink *events;
	struct usage *usage;
	void *arg;
	// Whether the GPU is given out in shares now; why not.
	err_status (*check_gpu)(void *arg, const char *uuid, const struct gpu_info **ret,
				struct err *err);
	// Whether the id is one that is offered now.
	bool (*is_offered)(void *arg, share_kind kind, struct str id);
	// The specification behind each name of the grant; nothing to do when it is there.
	err_status (*write_spec)(void *arg, const struct share_grant *grant, struct err *err);
	void (*remove_spec)(void *arg, const struct share_grant *grant);
};

struct late_stats {
	uint64_t allocations, binds, refusals, lists, list_failures;
	size_t waiting, bound; // questions under way; containers that hold shares now
};

MUST_USE err_status late_new(struct loop *loop, const struct late_config *config, struct late **ret,
			     struct err *err);
void late_free(struct late *late); // NULL allowed
MUST_USE err_status late_allocate(struct late *late, share_kind kind,
				  const struct dp_allocate_list *request, struct buf *out,
				  struct err *err);
// Answers the stream, now or later.
void late_pre_start(struct late *late, share_kind kind, struct grpc_stream *stream,
		    struct str message);
void late_look(struct late *late); // something changed: who waits is tried again
void late_show(struct late *late); // tells usage who holds what
// Now and then: forgets what is gone, writes specifications that are missing.
void late_refresh(struct late *late);
const struct share_table *late_table(const struct late *late);
void late_stats(const struct late *late, struct late_stats *ret);
