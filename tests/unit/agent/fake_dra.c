// SPDX-License-Identifier: Apache-2.0
#include "fake_dra.h"

#include "base/pb.h"
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>

#define SLICES "/apis/resource.k8s.io/v1/resourceslices"
#define CLAIMS "/apis/resource.k8s.io/v1/namespaces/team/resourceclaims/"
static const uint64_t CALL_NS = 10 * UINT64_C(1000000000);

static void respond(struct http_exchange *exchange, int status, struct str body)
{
	http_respond(exchange, status, "application/json", NULL, body);
}

static void tell(struct fake_dra *dra, const char *type, const json_t *slice)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
	AUTO(buf_done) struct buf line = { 0 };
	buf_printf(&line, "{\"type\":\"%s\",\"object\":" STR_FMT "}\n", type,
		   STR_ARG(json_dump(arena, slice)));
	for (size_t i = 0; i < FAKE_WATCH_MAX; i++) {
		if (dra->watches[i] != NULL)
			http_respond_chunk(dra->watches[i], buf_str(&line));
	}
}

static void answer_list(struct fake_dra *dra, struct http_exchange *exchange)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
	AUTO(buf_done) struct buf out = { 0 };
	buf_printf(&out, "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"%u\"},\"items\":[",
		   dra->version);
	if (dra->slice != NULL)
		buf_put(&out, json_dump(arena, dra->slice));
	buf_put_c(&out, "]}");
	respond(exchange, 200, buf_str(&out));
}

static void on_watch_closed(void *arg)
{
	struct http_exchange **watch = arg;
	*watch = NULL;
}

static void answer_watch(struct fake_dra *dra, struct http_exchange *exchange)
{
	for (size_t i = 0; i < FAKE_WATCH_MAX; i++) {
		if (dra->watches[i] != NULL)
			continue;
		dra->watches[i] = exchange;
		http_respond_start(exchange, 200, "application/json", on_watch_closed,
				   &dra->watches[i]);
		return;
	}
	abort();
}

// Takes a write only of the version that is there, as the real one does.
static void write_slice(struct fake_dra *dra, struct http_exchange *exchange,
			const struct http_request *request)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
	json_t *slice = NULL;
	char version[32];
	bool is_new = str_eq_c(request->method, "POST");
	if (json_parse(request->body, &slice, NULL) != ERR_OK)
		abort();
	bool fits = is_new ? dra->slice == NULL
			   : dra->slice != NULL &&
				     str_eq(json_text(slice, "metadata.resourceVersion"),
					    json_text(dra->slice, "metadata.resourceVersion"));
	if (!fits) {
		json_decref(slice);
		respond(exchange, 409,
			STR("{\"kind\":\"Status\",\"code\":409,\"message\":\"another was "
			    "first\"}"));
		return;
	}
	dra->writes++;
	(void)snprintf(version, sizeof version, "%u", ++dra->version);
	(void)json_object_set_new(json_at(slice, "metadata"), "resourceVersion",
				  json_string(version));
	json_decref(dra->slice);
	dra->slice = slice;
	respond(exchange, is_new ? 201 : 200, json_dump(arena, slice));
	tell(dra, is_new ? "ADDED" : "MODIFIED", slice);
}

void fake_dra_drop_slice(struct fake_dra *dra)
{
	tell(dra, "DELETED", dra->slice);
	json_decref(dra->slice);
	dra->slice = NULL;
}

static void answer_claim(struct fake_dra *dra, struct http_exchange *exchange, struct str name)
{
	AUTO(buf_done) struct buf out = { 0 };
	const struct fake_claim *claim = NULL;
	dra->claim_reads++;
	for (size_t i = 0; i < dra->claim_count && !dra->hides_claims; i++) {
		if (str_eq_c(name, dra->claims[i].name))
			claim = &dra->claims[i];
	}
	if (claim == NULL) {
		respond(exchange, 404,
			STR("{\"kind\":\"Status\",\"code\":404,\"message\":\"no such claim\"}"));
		return;
	}
	buf_printf(&out,
		   "{\"metadata\":{\"name\":\"%s\",\"uid\":\"%s\"},\"status\":{\"reservedFor\":"
		   "[{\"resource\":\"pods\",\"name\":\"%s\",\"uid\":\"%s\"}],\"allocation\":"
		   "{\"devices\":{\"results\":[",
		   claim->name, claim->uid, claim->pod, claim->pod_uid);
	for (size_t i = 0; i < claim->count; i++) {
		char device[GPU_UUID_BYTES];
		buf_printf(&out,
			   "%s{\"driver\":\"" DRA_DRIVER
			   "\",\"pool\":\"node1\",\"request\":\"gpu\",\"device\":\"%s\"}",
			   i == 0 ? "" : ",", dra_device_name(claim->uuids[i], device));
	}
	buf_put_c(&out, "]}}}}");
	respond(exchange, 200, buf_str(&out));
}

static bool handle(void *arg, struct http_exchange *exchange, const struct http_request *request)
{
	struct fake_dra *dra = arg;
	if (str_starts(request->path, STR(CLAIMS))) {
		answer_claim(dra, exchange,
			     str_slice(request->path, strlen(CLAIMS), request->path.len));
	} else if (!str_starts(request->path, STR(SLICES))) {
		return false;
	} else if (str_eq_c(request->method, "DELETE")) {
		respond(exchange, 200, STR("{}"));
	} else if (!str_eq_c(request->method, "GET")) {
		write_slice(dra, exchange, request);
	} else if (http_query_get(request->arena, request->query, "sendInitialEvents").data !=
		   NULL) {
		respond(exchange, 400,
			STR("{\"kind\":\"Status\",\"code\":400,\"message\":\"old server\"}"));
	} else if (http_query_get(request->arena, request->query, "watch").data != NULL) {
		answer_watch(dra, exchange);
	} else {
		answer_list(dra, exchange);
	}
	return true;
}

void fake_dra_init(struct fake_dra *dra, struct fake_api *api, const char *root)
{
	*dra = (struct fake_dra){ .api = api };
	(void)snprintf(dra->root, sizeof dra->root, "%s", root);
	api->more = handle;
	api->more_arg = dra;
}

void fake_dra_done(struct fake_dra *dra)
{
	if (dra->health != NULL)
		grpc_call_cancel(dra->health);
	json_decref(dra->slice);
	buf_done(&dra->health_text);
}

struct fake_claim *fake_dra_claim(struct fake_dra *dra, const char *name, const char *uuid)
{
	if (dra->claim_count == FAKE_CLAIMS_MAX)
		abort();
	struct fake_claim *claim = &dra->claims[dra->claim_count++];
	(void)snprintf(claim->name, sizeof claim->name, "%s", name);
	(void)snprintf(claim->uid, sizeof claim->uid, "uid-%s", name);
	(void)snprintf(claim->pod, sizeof claim->pod, "pod-%s", name);
	(void)snprintf(claim->pod_uid, sizeof claim->pod_uid, "pod-uid-%s", name);
	(void)snprintf(claim->uuids[0], sizeof claim->uuids[0], "%s", uuid);
	claim->count = 1;
	return claim;
}

static struct {
	struct fake_dra_answer *answer;
	bool is_done;
	struct buf reply;
} called;

static void on_done(void *arg, enum grpc_code code, const char *error, struct str message)
{
	(void)arg;
	called.is_done = true;
	called.answer->code = code;
	(void)snprintf(called.answer->error, sizeof called.answer->error, "%s",
		       code == GRPC_OK ? "" : error);
	buf_clear(&called.reply);
	buf_put(&called.reply, message);
}

static bool is_called(void) { return called.is_done; }

static struct str call(struct fake_dra *dra, const char *socket, const char *method,
		       struct str message, struct fake_dra_answer *ret)
{
	char path[200];
	*ret = (struct fake_dra_answer){ 0 };
	called.answer = ret;
	called.is_done = false;
	(void)snprintf(path, sizeof path, "%s/%s", dra->root, socket);
	if (grpc_call_start(rig.loop, path, method, message, CALL_NS, on_done, NULL) == NULL ||
	    rig_wait_for(is_called, 20000) == UINT64_MAX)
		abort();
	return buf_str(&called.reply);
}

static void take(char *to, size_t to_bytes, struct str from)
{
	(void)snprintf(to, to_bytes, STR_FMT, STR_ARG(from));
}

static void take_device(struct str device, struct fake_dra_answer *ret)
{
	struct pb_reader reader = pb_reader_of(device);
	struct pb_field field;
	ret->count++;
	while (pb_next(&reader, &field)) {
		if (field.number == 1)
			take(ret->request, sizeof ret->request, field.bytes);
		else if (field.number == 3)
			take(ret->device, sizeof ret->device, field.bytes);
		else if (field.number == 4)
			take(ret->cdi, sizeof ret->cdi, field.bytes);
	}
}

// Of the one claim: field 2 of the entry; error_number: of its text there.
static void take_entry(struct str reply, uint32_t error_number, struct fake_dra_answer *ret)
{
	struct pb_reader reader = pb_reader_of(reply);
	struct pb_field entry, field, part;
	while (pb_next(&reader, &entry)) {
		struct pb_reader fields = pb_reader_of(entry.bytes);
		while (pb_next(&fields, &field)) {
			struct pb_reader parts = pb_reader_of(field.bytes);
			while (field.number == 2 && pb_next(&parts, &part)) {
				if (part.number == error_number)
					take(ret->error, sizeof ret->error, part.bytes);
				else if (part.number == 1)
					take_device(part.bytes, ret);
			}
		}
	}
}

static void ask(struct fake_dra *dra, const struct fake_claim *claim, const char *method,
		struct fake_dra_answer *ret)
{
	AUTO(buf_done) struct buf ref = { 0 };
	AUTO(buf_done) struct buf message = { 0 };
	pb_put_bytes(&ref, 1, STR("team"));
	pb_put_bytes(&ref, 2, str_of(claim->uid));
	pb_put_bytes(&ref, 3, str_of(claim->name));
	pb_put_bytes(&message, 1, buf_str(&ref));
	struct str reply =
		call(dra, "plugins/" DRA_DRIVER "/dra.sock", method, buf_str(&message), ret);
	if (ret->code == GRPC_OK)
		take_entry(reply, strcmp(method, DRA_PREPARE) == 0 ? 2 : 1, ret);
}

void fake_dra_prepare(struct fake_dra *dra, const struct fake_claim *claim,
		      struct fake_dra_answer *ret)
{
	ask(dra, claim, DRA_PREPARE, ret);
}

void fake_dra_unprepare(struct fake_dra *dra, const struct fake_claim *claim,
			struct fake_dra_answer *ret)
{
	ask(dra, claim, DRA_UNPREPARE, ret);
}

bool fake_dra_register(struct fake_dra *dra)
{
	struct fake_dra_answer answer;
	AUTO(buf_done) struct buf want = { 0 };
	char endpoint[200];
	(void)snprintf(endpoint, sizeof endpoint, "%s/plugins/" DRA_DRIVER "/dra.sock", dra->root);
	dra_put_info(&want, endpoint);
	struct str info =
		call(dra, "registry/" DRA_DRIVER "-reg.sock", DRA_GET_INFO, STR(""), &answer);
	if (answer.code != GRPC_OK || !str_eq(info, buf_str(&want)))
		return false;
	(void)call(dra, "registry/" DRA_DRIVER "-reg.sock", DRA_NOTIFY, STR("\x08\x01"), &answer);
	return answer.code == GRPC_OK;
}

static void on_health(void *arg, struct str message)
{
	struct fake_dra *dra = arg;
	buf_clear(&dra->health_text);
	buf_put(&dra->health_text, message);
}

static void on_health_end(void *arg, enum grpc_code code, const char *error, struct str message)
{
	struct fake_dra *dra = arg;
	(void)code;
	(void)error;
	(void)message;
	dra->health = NULL;
}

void fake_dra_watch_health(struct fake_dra *dra)
{
	char path[200];
	(void)snprintf(path, sizeof path, "%s/plugins/" DRA_DRIVER "/dra.sock", dra->root);
	const struct grpc_watch_request request = { .socket_path = path,
						    .method = DRA_WATCH,
						    .on_message = on_health,
						    .on_done = on_health_end,
						    .arg = dra };
	dra->health = grpc_watch_start(rig.loop, &request);
}
