// SPDX-License-Identifier: Apache-2.0
// The blocking forms of a call, for commands and tests.
#include "k8s/client.h"

struct wait {
	struct arena *arena;
	struct str body;
	struct err err;
	err_status status;
	bool done;
};

static void on_done(void *arg, const struct k8s_result *result)
{
	struct wait *wait = arg;
	wait->done = true;
	wait->status = result->status;
	if (result->status != ERR_OK) {
		wait->err = *result->err;
		return;
	}
	wait->body = arena_dup(wait->arena, result->body);
	if (wait->body.data == NULL)
		wait->status = err_set(&wait->err, ERR_LIMIT, "the answer does not fit its memory");
}

err_status k8s_call_wait(struct k8s_client *client, const struct k8s_request *request,
			 struct arena *arena, struct str *ret_body, struct err *err)
{
	struct wait wait = { .arena = arena };
	struct k8s_request own = *request;
	own.on_done = on_done;
	own.on_data = NULL;
	own.arg = &wait;
	struct k8s_call *call = k8s_call_start(client, &own);
	while (!wait.done && !loop_is_stopping(k8s_client_loop(client)))
		loop_run_once(k8s_client_loop(client), -1);
	if (!wait.done) {
		k8s_call_cancel(call);
		return err_set(err, ERR_UNAVAILABLE, "interrupted");
	}
	if (wait.status == ERR_OK)
		*ret_body = wait.body;
	else if (err != NULL)
		*err = wait.err;
	return wait.status;
}

err_status k8s_call_json(struct k8s_client *client, const struct k8s_request *request,
			 json_t **ret_value, struct err *err)
{
	AUTO(arena_freep) struct arena *arena = arena_new(JSON_INPUT_MAX_BYTES + 4096);
	struct str body;
	err_status status = k8s_call_wait(client, request, arena, &body, err);
	return status == ERR_OK ? json_parse(body, ret_value, err) : status;
}
