// SPDX-License-Identifier: Apache-2.0
#include "fake_api.h"

#include "base/json.h"
#include "base/pb.h"

#include <stdio.h>
#include <stdlib.h>

static void put_part(struct buf *out, uint32_t number, struct buf *part)
{
	pb_put_bytes(out, number, buf_str(part));
	buf_done(part);
	*part = (struct buf){ 0 };
}

static void put_text(struct buf *out, uint32_t number, const char *text)
{
	pb_put_bytes(out, number, str_of(text));
}

static void put_pair(struct buf *out, uint32_t number, const char *key, const char *value)
{
	struct buf pair = { 0 };
	put_text(&pair, 1, key);
	put_text(&pair, 2, value);
	put_part(out, number, &pair);
}

static void put_time(struct buf *out, uint32_t number, int64_t unix_s)
{
	struct buf time = { 0 };
	pb_put_varint(&time, 1, (uint64_t)unix_s);
	put_part(out, number, &time);
}

static void put_meta(struct buf *out, const struct fake_pod *pod)
{
	struct buf meta = { 0 };
	char version[32], request[128];
	(void)snprintf(request, sizeof request, "%s.req-1", pod->namespace_);
	(void)snprintf(version, sizeof version, "%llu", (unsigned long long)pod->version);
	put_text(&meta, 1, pod->name);
	put_text(&meta, 3, pod->namespace_);
	put_text(&meta, 5, pod->uid);
	put_text(&meta, 6, version);
	put_time(&meta, 8, pod->scheduled_s - 1);
	if (pod->deleted_s != 0)
		put_time(&meta, 9, pod->deleted_s);
	put_pair(&meta, 11, "gpuaas.io/request", request);
	if (pod->devices[0] != '\0') {
		put_pair(&meta, 12, "gpuaas.io/devices", pod->devices);
		put_pair(&meta, 12, "gpuaas.io/devices-mac", pod->mac);
	}
	put_part(out, 1, &meta);
}

static void put_spec(struct buf *out, const struct fake_pod *pod)
{
	struct buf spec = { 0 }, container = { 0 }, resources = { 0 }, pair = { 0 },
		   quantity = { 0 }, claim = { 0 };
	char gpus[16];
	(void)snprintf(gpus, sizeof gpus, "%u", pod->gpus);
	put_text(&quantity, 1, gpus);
	put_text(&pair, 1, pod->resource[0] == '\0' ? "nvidia.com/gpu" : pod->resource);
	put_part(&pair, 2, &quantity);
	put_part(&resources, 1, &pair);
	put_text(&container, 1, "main");
	put_part(&container, 8, &resources);
	put_part(&spec, 2, &container);
	if (pod->has_claim) {
		put_text(&claim, 1, "gpu");
		put_part(&spec, 39, &claim);
	}
	put_part(out, 2, &spec);
}

static void put_status(struct buf *out, const struct fake_pod *pod)
{
	struct buf status = { 0 }, condition = { 0 }, container = { 0 }, state = { 0 },
		   ended = { 0 };
	put_text(&status, 1, pod->finished_s != 0 ? "Succeeded" : "Running");
	put_text(&condition, 1, "PodScheduled");
	put_text(&condition, 2, "True");
	put_time(&condition, 4, pod->scheduled_s);
	put_part(&status, 2, &condition);
	put_text(&container, 1, "main");
	if (pod->finished_s != 0) {
		put_time(&ended, 6, pod->finished_s);
		put_part(&state, 3, &ended);
		put_part(&container, 2, &state);
	}
	put_part(&status, 8, &container);
	put_part(out, 3, &status);
}

static void put_pod(struct buf *out, const struct fake_pod *pod)
{
	put_meta(out, pod);
	put_spec(out, pod);
	put_status(out, pod);
}

// The API server's envelope around a message.
static void put_enveloped(struct buf *out, struct buf *message)
{
	struct buf unknown = { 0 };
	put_part(&unknown, 2, message);
	buf_put(out, (struct str){ "k8s\0", 4 });
	buf_put(out, buf_str(&unknown));
	buf_done(&unknown);
}

static void put_event(struct buf *out, const struct fake_pod *pod, const char *type)
{
	struct buf message = { 0 }, enveloped = { 0 }, raw = { 0 }, event = { 0 };
	put_pod(&message, pod);
	put_enveloped(&enveloped, &message);
	put_part(&raw, 1, &enveloped);
	put_text(&event, 1, type);
	put_part(&event, 2, &raw);
	for (int shift = 24; shift >= 0; shift -= 8)
		buf_put_byte(out, (char)(event.len >> shift & 0xff));
	buf_put(out, buf_str(&event));
	buf_done(&event);
}

static void answer_list(struct fake_api *api, struct http_exchange *exchange)
{
	struct buf list = { 0 }, meta = { 0 }, out = { 0 };
	char version[32];
	api->lists++;
	(void)snprintf(version, sizeof version, "%llu", (unsigned long long)api->version);
	put_text(&meta, 2, version);
	put_part(&list, 1, &meta);
	for (size_t i = 0; i < api->pod_count; i++) {
		struct buf pod = { 0 };
		if (api->pods[i].is_gone)
			continue;
		put_pod(&pod, &api->pods[i]);
		put_part(&list, 2, &pod);
	}
	put_enveloped(&out, &list);
	http_respond(exchange, 200, "application/vnd.kubernetes.protobuf", NULL, buf_str(&out));
	buf_done(&out);
}

static void on_watch_closed(void *arg)
{
	struct http_exchange **watch = arg;
	*watch = NULL; // the server frees it
}

static void answer_watch(struct fake_api *api, struct http_exchange *exchange,
			 const struct http_request *request)
{
	struct str from = http_query_get(request->arena, request->query, "resourceVersion");
	uint64_t version = 0;
	for (size_t i = 0; str_to_u64(from, &version) && i < FAKE_WATCHES_MAX; i++) {
		if (api->watches[i] != NULL)
			continue;
		api->watches[i] = exchange;
		http_respond_start(exchange, 200, "application/vnd.kubernetes.protobuf",
				   on_watch_closed, &api->watches[i]);
		for (; version < api->version; version++)
			http_respond_chunk(exchange, buf_str(&api->events[version]));
		return;
	}
	http_respond(exchange, 400, "application/json", NULL,
		     STR("{\"kind\":\"Status\",\"code\":400,\"message\":\"not here\"}"));
}

static void answer_namespace(struct http_exchange *exchange, struct str path)
{
	AUTO(buf_done) struct buf out = { 0 };
	struct str name = str_slice(path, strlen("/api/v1/namespaces/"), path.len);
	buf_printf(&out,
		   "{\"metadata\":{\"name\":\"" STR_FMT
		   "\",\"labels\":{\"gpuaas.io/tenant\":\"t-" STR_FMT "\"}}}",
		   STR_ARG(name), STR_ARG(name));
	http_respond(exchange, 200, "application/json", NULL, buf_str(&out));
}

static void keep(struct buf *out, struct str body)
{
	buf_clear(out);
	buf_put(out, body);
}

// The Node with the labels that were applied, and whose they are.
static void answer_node(struct fake_api *api, struct http_exchange *exchange)
{
	AUTO(json_decrefp) json_t *applied = NULL;
	AUTO(json_decrefp) json_t *node = json_object();
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
	json_t *owned = json_object(), *value;
	const char *key;
	if (api->labels.len > 0 && json_parse(buf_str(&api->labels), &applied, NULL) != ERR_OK)
		abort();
	json_object_foreach(json_at(applied, "metadata.labels"), key, value)
	{
		char name[200];
		(void)snprintf(name, sizeof name, "f:%s", key);
		(void)json_object_set_new(owned, name, json_object());
	}
	json_t *labels = json_incref(json_at(applied, "metadata.labels"));
	(void)json_object_set_new(node, "metadata",
				  json_pack("{s:s, s:o, s:[{s:s, s:s, s:{s:{s:o}}}]}", "uid",
					    "node-uid", "labels",
					    labels == NULL ? json_object() : labels,
					    "managedFields", "manager", "gpuaas-agent", "operation",
					    "Apply", "fieldsV1", "f:metadata", "f:labels", owned));
	(void)json_object_set_new(node, "status",
				  json_pack("{s:{s:s, s:s}}", "nodeInfo", "kubeletVersion",
					    "v1.36.3", "containerRuntimeVersion",
					    "containerd://2.2.9"));
	http_respond(exchange, 200, "application/json", NULL, json_dump(arena, node));
}

static void answer_gpu_node(struct fake_api *api, struct http_exchange *exchange)
{
	bool is_there = api->gpu_node_status.len > 0;
	http_respond(exchange, is_there ? 200 : 404, "application/json", NULL,
		     is_there ? buf_str(&api->gpu_node_status)
			      : STR("{\"kind\":\"Status\",\"code\":404,\"message\":\"none\"}"));
}

static void handle(void *arg, struct http_exchange *exchange, const struct http_request *request)
{
	struct fake_api *api = arg;
	if (api->more != NULL && api->more(api->more_arg, exchange, request))
		return;
	if (str_eq_c(request->method, "PATCH")) {
		api->patches++;
		if (str_starts(request->path, STR("/api/v1/nodes/")))
			keep(&api->labels, request->body);
		else if (str_ends(request->path, STR("/status")))
			keep(&api->gpu_node_status, request->body);
		http_respond(exchange, 200, "application/json", NULL, STR("{}"));
	} else if (str_starts(request->path, STR("/apis/events.k8s.io/"))) {
		buf_put(&api->told, request->body);
		buf_put_byte(&api->told, '\n');
		http_respond(exchange, 201, "application/json", NULL, request->body);
	} else if (str_starts(request->path, STR("/api/v1/nodes/"))) {
		answer_node(api, exchange);
	} else if (str_starts(request->path, STR("/apis/gpuaas.io/"))) {
		answer_gpu_node(api, exchange);
	} else if (str_starts(request->path, STR("/api/v1/namespaces/"))) {
		answer_namespace(exchange, request->path);
	} else if (http_query_get(request->arena, request->query, "sendInitialEvents").data !=
		   NULL) {
		http_respond(exchange, 400, "application/json", NULL,
			     STR("{\"kind\":\"Status\",\"code\":400,\"message\":\"old server\"}"));
	} else if (http_query_get(request->arena, request->query, "watch").data != NULL) {
		answer_watch(api, exchange, request);
	} else {
		answer_list(api, exchange);
	}
}

void fake_api_init(struct fake_api *api, struct loop *loop)
{
	*api = (struct fake_api){ .loop = loop, .version = 0 };
	fake_api_up(api, "127.0.0.1:0");
	(void)snprintf(api->address, sizeof api->address, "127.0.0.1:%u",
		       http_server_port(api->server));
}

void fake_api_up(struct fake_api *api, const char *listen)
{
	const struct http_server_config config = { .listen = listen,
						   .handler = handle,
						   .arg = api };
	struct err err = { 0 };
	if (http_server_new(api->loop, &config, &api->server, &err) != ERR_OK) {
		printf("fake API server: %s\n", err.text);
		abort();
	}
}

void fake_api_down(struct fake_api *api)
{
	for (size_t i = 0; i < FAKE_WATCHES_MAX; i++) {
		if (api->watches[i] != NULL)
			http_respond_end(api->watches[i]);
		api->watches[i] = NULL;
	}
	http_server_free(api->server);
	api->server = NULL;
}

void fake_api_done(struct fake_api *api)
{
	fake_api_down(api);
	for (size_t i = 0; i < FAKE_EVENTS_MAX; i++)
		buf_done(&api->events[i]);
	buf_done(&api->gpu_node_status);
	buf_done(&api->labels);
	buf_done(&api->told);
}

struct fake_pod *fake_api_add(struct fake_api *api)
{
	if (api->pod_count == FAKE_PODS_MAX)
		abort();
	return &api->pods[api->pod_count++];
}

void fake_api_tell(struct fake_api *api, struct fake_pod *pod, const char *type)
{
	if (api->version == FAKE_EVENTS_MAX)
		abort();
	struct buf *event = &api->events[api->version];
	pod->version = ++api->version;
	put_event(event, pod, type);
	for (size_t i = 0; i < FAKE_WATCHES_MAX; i++) {
		if (api->watches[i] != NULL)
			http_respond_chunk(api->watches[i], buf_str(event));
	}
}
