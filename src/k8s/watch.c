// SPDX-License-Identifier: Apache-2.0
// Wires the state machine of watch_core.h to a client and a timer.
#include "k8s/watch.h"

#include "k8s/watch_core.h"

#include <stdlib.h>

struct watch {
	struct k8s_client *client;
	struct watch_core *core;
	struct k8s_call *call;
	struct loop_timer *timer; // the next step
	uint64_t sent_ns, last_event_ns;
	bool is_cut;     // the stream is of no use; the next step cancels it
	bool is_in_core; // the handler may be running
	bool is_stopped; // by the handler; freed when the core returns
};

static uint64_t now(const struct watch *watch)
{
	return world_mono_ns(loop_world(k8s_client_loop(watch->client)));
}

static void watch_free(struct watch *watch)
{
	ASSERT(!watch->is_in_core);
	k8s_call_cancel(watch->call);
	loop_timer_free(watch->timer);
	watch_core_free(watch->core);
	free(watch);
}

static void on_data(void *arg, int code, struct str data)
{
	struct watch *watch = arg;
	if (watch->is_cut)
		return;
	watch->last_event_ns = now(watch);
	watch->is_in_core = true;
	bool is_good = watch_core_data(watch->core, code, data);
	watch->is_in_core = false;
	if (watch->is_stopped) {
		watch_free(watch);
	} else if (!is_good) {
		watch->is_cut = true;
		loop_timer_set(watch->timer, 0);
	}
}

static void on_done(void *arg, const struct k8s_result *result)
{
	struct watch *watch = arg;
	watch->call = NULL;
	if (watch->is_cut)
		return; // the next step is due already
	struct watch_end end = {
		.status = result->status,
		.err = result->err,
		.code = result->code,
		.body = result->body,
		.retry_after_s = result->retry_after_s,
		.lived_ns = now(watch) - watch->sent_ns,
	};
	if (result->status == ERR_OK)
		watch->last_event_ns = now(watch);
	watch->is_in_core = true;
	watch_core_end(watch->core, &end);
	watch->is_in_core = false;
	if (watch->is_stopped)
		watch_free(watch);
	else
		loop_timer_set(watch->timer, 0);
}

static void on_step(void *arg)
{
	struct watch *watch = arg;
	struct watch_step step;
	if (watch->is_cut) {
		k8s_call_cancel(watch->call);
		watch->call = NULL;
		watch->is_cut = false;
	}
	ASSERT(watch->call == NULL);
	watch_core_step(watch->core, &step);
	if (step.kind == WATCH_STEP_WAIT) {
		loop_timer_set(watch->timer, step.wait_ns);
		return;
	}
	struct k8s_request request = {
		.method = "GET",
		.path = step.path,
		.accept = step.accept,
		.timeout_ns = step.timeout_ns,
		.on_done = on_done,
		.arg = watch,
	};
	if (step.kind == WATCH_STEP_WATCH) {
		request.timeout_ns = K8S_NO_TIMEOUT;
		request.idle_timeout_ns = step.idle_timeout_ns;
		request.on_data = on_data;
	}
	watch->sent_ns = now(watch);
	watch->call = k8s_call_start(watch->client, &request);
}

struct watch *watch_start(struct k8s_client *client, const struct watch_config *config)
{
	struct watch *watch = calloc(1, sizeof *watch);
	struct loop *loop = k8s_client_loop(client);
	ASSERT(watch != NULL);
	watch->client = client;
	watch->core = watch_core_new(config, world_random(loop_world(loop)));
	watch->timer = loop_timer_new(loop, on_step, watch);
	watch->last_event_ns = now(watch);
	loop_timer_set(watch->timer, 0);
	return watch;
}

void watch_stop(struct watch *watch)
{
	if (watch == NULL)
		return;
	watch_core_stop(watch->core);
	watch->is_stopped = true;
	if (!watch->is_in_core)
		watch_free(watch);
}

void watch_doubt(struct watch *watch)
{
	ASSERT(watch->is_in_core);
	watch_core_doubt(watch->core);
}

uint64_t watch_last_event_ns(const struct watch *watch) { return watch->last_event_ns; }
bool watch_is_synced(const struct watch *watch) { return watch_core_is_synced(watch->core); }
