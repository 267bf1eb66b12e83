// SPDX-License-Identifier: Apache-2.0
#include "net/http_client_inner.h"

struct wait {
	const struct http_call_request *request;
	struct arena *arena;
	struct http_reply reply;
	struct err err;
	err_status status;
	bool done;
};

static err_status copy_reply(struct wait *wait, const struct http_call_result *result)
{
	wait->reply.code = result->code;
	wait->reply.body = arena_dup(wait->arena, result->body);
	bool fits = wait->reply.body.data != NULL;
	for (size_t i = 0; fits && i < result->headers->count; i++) {
		struct str name = arena_dup(wait->arena, result->headers->items[i].name);
		struct str value = arena_dup(wait->arena, result->headers->items[i].value);
		fits = name.data != NULL && value.data != NULL &&
		       http_header_add(&wait->reply.headers, name, value);
	}
	return fits ? ERR_OK : err_set(&wait->err, ERR_LIMIT, "the answer does not fit its memory");
}

static void on_done(void *arg, const struct http_call_result *result)
{
	struct wait *wait = arg;
	wait->done = true;
	wait->status = result->status;
	if (result->status == ERR_OK)
		wait->status = copy_reply(wait, result);
	else
		wait->err = *result->err;
}

static void on_data(void *arg, int code, struct str data)
{
	struct wait *wait = arg;
	wait->request->on_data(wait->request->arg, code, data);
}

err_status http_call_wait(struct http_client *client, const struct http_call_request *request,
			  struct arena *arena, struct http_reply *ret_reply, struct err *err)
{
	struct wait wait = { .request = request, .arena = arena };
	struct http_call_request own = *request;
	own.on_done = on_done;
	own.on_data = request->on_data == NULL ? NULL : on_data;
	own.arg = &wait;
	struct http_call *call = http_call_start(client, &own);
	while (!wait.done && !loop_is_stopping(client->loop))
		loop_run_once(client->loop, -1);
	if (!wait.done) {
		http_call_cancel(call);
		return err_set(err, ERR_UNAVAILABLE, "%s %s: interrupted", request->method,
			       client->base);
	}
	if (wait.status == ERR_OK)
		*ret_reply = wait.reply;
	else if (err != NULL)
		*err = wait.err;
	return wait.status;
}
