// SPDX-License-Identifier: Apache-2.0
// Events (events.k8s.io/v1) about objects, aggregated (the same reason and note on the same
// object becomes a series) and within a budget, so that a storm of reasons never loads the API
// server. Best effort: a lost Event is counted, never retried forever. Needs create and patch on
// events of events.k8s.io in the namespaces of the objects ("default" for cluster-scoped ones).
#pragma once

#include "k8s/client.h"

struct event_sink;

enum { EVENT_BURST = 50, EVENT_RATE_PER_S = 5, EVENT_NOTE_MAX_BYTES = 1024 };

struct event_about {
	const char *api_version, *kind, *namespace_, *name, *uid; // namespace_ NULL or "": cluster
};

// controller: "gpuaas.io/scheduler"; instance: the pod's name.
struct event_sink *event_sink_new(struct k8s_client *client, const char *controller,
				  const char *instance);
void event_sink_free(struct event_sink *sink); // NULL allowed; what was not sent is lost
// type: "Normal" or "Warning"; reason CamelCase; action CamelCase; note at most 1 kB (cut).
void event_put(struct event_sink *sink, const struct event_about *about, const char *type,
	       const char *reason, const char *action, const char *note);
uint64_t event_dropped_count(const struct event_sink *sink);
