// SPDX-License-Identifier: Apache-2.0
// List and watch of one resource: paged LIST (or WatchList where the server offers it), then
// WATCH from its resourceVersion with bookmarks; a closed watch goes on from the last version,
// 410 (status or ERROR event) lists anew with jitter. The state machine (watch_core) is pure and
// driven by events, so that the simulator drives it too; watch_start wires it to a client.
// Objects arrive as raw bytes (JSON, or protobuf when asked for) and are the handler's to decode.
#pragma once

#include "k8s/client.h"

typedef enum watch_event {
	WATCH_ADDED, // new, or changed while we did not look
	WATCH_MODIFIED,
	WATCH_DELETED,
	WATCH_RESYNC, // a new list begins: forget what it will not name again at WATCH_SYNCED
	WATCH_SYNCED, // the list is complete
	WATCH_FAILED, // an attempt failed; err says why; it is tried again
} watch_event;

struct watch_item {
	watch_event event;
	struct str object; // bytes of the object; empty for RESYNC, SYNCED, FAILED
	bool is_protobuf;
	struct str resource_version; // of SYNCED
	const struct err *err;       // of FAILED
};

typedef void watch_fn(void *arg, const struct watch_item *item);

struct watch_config {
	const char *path;     // "/api/v1/pods", without query
	const char *selector; // "fieldSelector=spec.nodeName%3Dnode1", or NULL
	bool protobuf;        // ask for protobuf (built-in types only)
	watch_fn *fn;
	void *arg;
};

struct watch;
struct watch *watch_start(struct k8s_client *client, const struct watch_config *config);
void watch_stop(struct watch *watch);                    // NULL allowed
uint64_t watch_last_event_ns(const struct watch *watch); // age of the cache
