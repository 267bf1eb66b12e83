// SPDX-License-Identifier: Apache-2.0
// As much of an API server as the agent uses: list and watch of pods in protobuf, namespaces with
// a tenant label, server-side apply of nodes and GPUNodes (kept as they came). Runs on the
// test's loop. Can be away (connections are refused) and come back with what it had.
#pragma once

#include "net/http_server.h"

enum { FAKE_PODS_MAX = 128, FAKE_EVENTS_MAX = 4096, FAKE_WATCHES_MAX = 8 };

struct fake_pod {
	char uid[64], namespace_[64], name[64];
	unsigned gpus;
	bool has_claim;
	char resource[64]; // of which it wants so many; empty: nvidia.com/gpu
	int64_t scheduled_s, finished_s, deleted_s; // 0: not
	char devices[1024], mac[80];                // annotations
	bool is_gone;                               // deleted from the API
	uint64_t version;
};

struct fake_api {
	struct loop *loop;
	struct http_server *server;
	char address[64];
	uint64_t version;
	struct fake_pod pods[FAKE_PODS_MAX];
	size_t pod_count;
	struct buf events[FAKE_EVENTS_MAX]; // by version - 1: frames of the watch
	struct http_exchange *watches[FAKE_WATCHES_MAX];
	unsigned lists, patches;
	struct buf gpu_node_status; // the last body of each
	struct buf labels;
	// Answers what else there is; false: it does not. NULL: there is nothing else.
	bool (*more)(void *arg, struct http_exchange *exchange, const struct http_request *request);
	void *more_arg;
	struct buf told; // Events of events.k8s.io, a line each
};

void fake_api_init(struct fake_api *api, struct loop *loop);
void fake_api_done(struct fake_api *api);
void fake_api_up(struct fake_api *api, const char *listen);
void fake_api_down(struct fake_api *api);
struct fake_pod *fake_api_add(struct fake_api *api); // fill it, then tell it
void fake_api_tell(struct fake_api *api, struct fake_pod *pod, const char *type);
