// SPDX-License-Identifier: Apache-2.0
#include "fetch.h"

#include <stdio.h>

static void on_done(void *arg, const struct http_call_result *result)
{
	struct fetch *fetch = arg;
	fetch->done_count++;
	fetch->status = result->status;
	fetch->code = result->code;
	if (result->status == ERR_OK) {
		struct str answer = http_header_find(result->headers, "x-answer");
		(void)snprintf(fetch->header, sizeof fetch->header, STR_FMT, STR_ARG(answer));
		if (fetch->collect) {
			(void)snprintf(fetch->body, sizeof fetch->body, STR_FMT,
				       STR_ARG(str_slice(result->body, 0, 199)));
			fetch->body_bytes = result->body.len;
		}
	} else {
		(void)snprintf(fetch->error, sizeof fetch->error, "%s", result->err->text);
	}
	fetch->call = NULL;
	if (fetch->deed == FETCH_FREE_CLIENT_IN_DONE)
		http_client_free(TAKE(fetch->client));
	if (fetch->deed == FETCH_START_IN_DONE) {
		fetch->next->collect = true;
		fetch_start(fetch->next, fetch->client, fetch->request.path.data);
	}
}

static void on_data(void *arg, int code, struct str data)
{
	struct fetch *fetch = arg;
	fetch->code = code;
	fetch->pieces++;
	if (fetch->body_bytes < sizeof fetch->body - 1)
		(void)snprintf(fetch->body + fetch->body_bytes,
			       sizeof fetch->body - fetch->body_bytes, STR_FMT, STR_ARG(data));
	fetch->body_bytes += data.len;
	if (fetch->deed == FETCH_CANCEL_IN_DATA)
		http_call_cancel(TAKE(fetch->call));
	if (fetch->deed == FETCH_FREE_CLIENT_IN_DATA) {
		fetch->deed = FETCH_NOTHING;
		http_client_free(TAKE(fetch->client));
	}
}

void fetch_start(struct fetch *fetch, struct http_client *client, const char *path)
{
	fetch->client = client;
	if (fetch->request.method == NULL)
		fetch->request.method = "GET";
	fetch->request.path = str_of(path);
	fetch->request.on_data = fetch->collect ? NULL : on_data;
	fetch->request.on_done = on_done;
	fetch->request.arg = fetch;
	fetch->call = http_call_start(client, &fetch->request);
	ASSERT(fetch->done_count == 0);
}

void fetch_turn(struct loop *loop, int ms)
{
	const struct world *world = loop_world(loop);
	uint64_t end_ns = world_mono_ns(world) + (uint64_t)ms * 1000000;
	while (world_mono_ns(world) < end_ns)
		loop_run_once(loop, 2);
}

bool fetch_wait(struct fetch *fetch, int limit_ms)
{
	const struct world *world = loop_world(fetch->loop);
	uint64_t end_ns = world_mono_ns(world) + (uint64_t)limit_ms * 1000000;
	while (fetch->done_count == 0 && world_mono_ns(world) < end_ns)
		loop_run_once(fetch->loop, 5);
	return fetch->done_count == 1;
}

bool fetch_get(struct fetch *fetch, struct http_client *client, const char *path)
{
	fetch_start(fetch, client, path);
	return fetch_wait(fetch, 5000);
}
