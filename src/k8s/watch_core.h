// SPDX-License-Identifier: Apache-2.0
// List and watch of one resource as a pure state machine: it says which request comes next and
// is fed with what came back; time, randomness (a seed) and the network are the driver's. The
// daemon drives it from an HTTP client, tests and the simulator from scripts.
//
// A driver loops: watch_core_step; WAIT: wait so long and step again; REQUEST: send it, pass the
// bytes of streams to watch_core_data, then watch_core_end, and step again. When watch_core_data
// returns false the driver cuts the stream and steps, without watch_core_end.
#pragma once

#include "k8s/watch.h"

struct watch_core;

enum watch_step_kind {
	WATCH_STEP_WAIT,
	WATCH_STEP_LIST,  // a request whose body is collected for watch_core_end
	WATCH_STEP_WATCH, // a stream whose bytes go to watch_core_data
};

struct watch_step {
	enum watch_step_kind kind;
	uint64_t wait_ns;
	struct str path; // with query; lives until the next call of the core
	const char *accept;
	uint64_t timeout_ns;      // of a list
	uint64_t idle_timeout_ns; // of a stream
};

struct watch_end {
	err_status status; // ERR_OK: a response came and ended
	const struct err *err;
	int code;        // HTTP status, 0 when none came
	struct str body; // of a list, or of an answer other than 200
	int64_t retry_after_s;
	uint64_t lived_ns; // since the request was sent
};

// config's strings are copied; config->fn is called from data and end.
struct watch_core *watch_core_new(const struct watch_config *config, uint64_t seed);
void watch_core_free(struct watch_core *core);  // not inside config->fn; NULL allowed
void watch_core_stop(struct watch_core *core);  // also inside config->fn: no more items
void watch_core_doubt(struct watch_core *core); // only inside config->fn: see watch_doubt
void watch_core_step(struct watch_core *core, struct watch_step *ret_step);
MUST_USE bool watch_core_data(struct watch_core *core, int code, struct str bytes);
void watch_core_end(struct watch_core *core, const struct watch_end *end);
// The list is complete and no later failure has made it doubtful.
bool watch_core_is_synced(const struct watch_core *core);
