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
	WATCH_RESYNC, // a list begins (anew, if none was SYNCED since): mark all as not seen
	WATCH_SYNCED, // the list is complete: what was not ADDED since RESYNC is gone
	WATCH_FAILED, // an attempt failed; err says why; it is tried again
} watch_event;

struct watch_item {
	watch_event event;
	struct str object; // bytes of the object, without envelope; empty for the other events
	bool is_protobuf;
	struct str resource_version; // of SYNCED
	const struct err *err;       // of FAILED
};

typedef void watch_fn(void *arg, const struct watch_item *item);

struct watch_config {
	const char *path;     // "/api/v1/pods", without query
	const char *selector; // "fieldSelector=spec.nodeName%3Dnode1", or NULL
	bool protobuf;        // ask for protobuf (built-in types only)
	bool paged;           // list by pages even where the server can stream the list
	watch_fn *fn;
	void *arg;
};

struct watch;
// fn is never called from inside watch_start. The client must outlive the watch.
struct watch *watch_start(struct k8s_client *client, const struct watch_config *config);
void watch_stop(struct watch *watch); // NULL allowed; also inside fn
// From inside fn: the object could not be read, so what is kept may be wrong. Lists anew, but twice
// at most while lists hold such objects themselves.
void watch_doubt(struct watch *watch);
// When the server was last heard of (bytes of the stream, bookmarks too): age of the cache.
uint64_t watch_last_event_ns(const struct watch *watch);
bool watch_is_synced(const struct watch *watch);
