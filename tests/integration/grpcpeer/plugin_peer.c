// SPDX-License-Identifier: Apache-2.0
// Our side of the meeting with grpc-go (main.go).
//   plugin_peer serve SOCKET   a device plugin for "grpcpeer kubelet", until standard input ends
//   plugin_peer call SOCKET    calls "grpcpeer serve"; last line "N passed, N failed"
#include "base/pb.h"
#include "check.h"
#include "net/grpc.h"

#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)
enum { LONG_LIST_COUNT = 70000, PODS_COUNT = 20000 };

static void on_input(void *arg, unsigned events)
{
	char bytes[64];
	(void)events;
	if (read(STDIN_FILENO, bytes, sizeof bytes) <= 0)
		loop_stop(arg);
}

// ---- the plugin

static void answer(struct grpc_stream *stream, const struct buf *message)
{
	ASSERT(buf_ok(message));
	grpc_send(stream, buf_str(message));
	grpc_finish(stream, GRPC_OK, NULL);
}

static void get_options(void *arg, struct grpc_stream *stream, struct str message)
{
	AUTO(buf_done) struct buf out = { 0 };
	(void)arg;
	(void)message;
	pb_put_varint(&out, 1, 1);
	answer(stream, &out);
}

static void on_gone(void *arg) { (void)arg; }

static void put_device(struct buf *out, const char *id)
{
	AUTO(buf_done) struct buf device = { 0 };
	pb_put_bytes(&device, 1, str_of(id));
	pb_put_bytes(&device, 2, STR("Healthy"));
	pb_put_bytes(out, 1, buf_str(&device));
}

static void list_and_watch(void *arg, struct grpc_stream *stream, struct str message)
{
	AUTO(buf_done) struct buf one = { 0 }, many = { 0 };
	(void)arg;
	(void)message;
	grpc_stream_on_closed(stream, on_gone, NULL);
	put_device(&one, "GPU-0");
	grpc_send(stream, buf_str(&one));
	for (int i = 0; i < LONG_LIST_COUNT; i++) {
		char id[64];
		(void)snprintf(id, sizeof id, "GPU-%040d", i);
		put_device(&many, id);
	}
	ASSERT(many.len > GRPC_MESSAGE_MAX_BYTES * 9 / 10 && many.len <= GRPC_MESSAGE_MAX_BYTES);
	grpc_send(stream, buf_str(&many));
	grpc_send(stream, STR(""));
}

static struct str first_text(struct str message, uint32_t number)
{
	struct pb_reader reader = pb_reader_of(message);
	struct pb_field field;
	while (pb_next(&reader, &field))
		if (field.number == number && field.wire == PB_BYTES)
			return field.bytes;
	return STR("");
}

static void pre_start(void *arg, struct grpc_stream *stream, struct str message)
{
	struct str id = first_text(message, 1);
	(void)arg;
	if (str_eq(id, STR("hang"))) {
		grpc_stream_on_closed(stream, on_gone, NULL);
		return;
	}
	if (str_eq(id, STR("bad"))) {
		grpc_finish(stream, GRPC_NOT_FOUND, "no device \"bad\": 100%\n\xc3\xa4ndere es");
		return;
	}
	grpc_send(stream, STR(""));
	grpc_finish(stream, GRPC_OK, NULL);
}

static void allocate(void *arg, struct grpc_stream *stream, struct str message)
{
	AUTO(buf_done) struct buf out = { 0 }, container = { 0 }, cdi = { 0 }, name = { 0 };
	struct str id = first_text(first_text(message, 1), 1);
	(void)arg;
	buf_printf(&name, "nvidia.com/gpu=" STR_FMT, STR_ARG(id));
	pb_put_bytes(&cdi, 1, buf_str(&name));
	pb_put_bytes(&container, 5, buf_str(&cdi));
	pb_put_bytes(&out, 1, buf_str(&container));
	answer(stream, &out);
}

static const struct grpc_method methods[] = {
	{ "/v1beta1.DevicePlugin/GetDevicePluginOptions", get_options },
	{ "/v1beta1.DevicePlugin/ListAndWatch", list_and_watch },
	{ "/v1beta1.DevicePlugin/PreStartContainer", pre_start },
	{ "/v1beta1.DevicePlugin/Allocate", allocate },
};

static int serve(struct loop *loop, const char *socket_path)
{
	struct grpc_server *server = NULL;
	struct loop_fd *input = NULL;
	struct err err = { 0 };
	err_status status = grpc_server_new(loop, socket_path, methods, ARRAY_COUNT(methods), NULL,
					    &server, &err);
	if (status == ERR_OK)
		status = loop_fd_new(loop, STDIN_FILENO, LOOP_READ, on_input, loop, &input, &err);
	if (status != ERR_OK) {
		(void)fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	printf("ready\n");
	(void)fflush(stdout);
	loop_run(loop);
	loop_fd_free(input);
	grpc_server_free(server);
	return 0;
}

// ---- the client

struct outcome {
	bool done;
	enum grpc_code code;
	char error[200];
	struct buf message;
};

static void on_done(void *arg, enum grpc_code code, const char *error, struct str message)
{
	struct outcome *outcome = arg;
	outcome->done = true;
	outcome->code = code;
	(void)snprintf(outcome->error, sizeof outcome->error, "%s", error);
	buf_put(&outcome->message, message);
}

static struct outcome call(struct loop *loop, const char *socket_path, const char *method,
			   const char *pod, uint64_t timeout_ns)
{
	struct outcome outcome = { .done = false };
	AUTO(buf_done) struct buf request = { 0 };
	if (pod != NULL)
		pb_put_bytes(&request, 1, str_of(pod));
	(void)grpc_call_start(loop, socket_path, method, buf_str(&request), timeout_ns, on_done,
			      &outcome);
	while (!outcome.done)
		loop_run_once(loop, 100);
	return outcome;
}

static void check_list(struct check *c, struct loop *loop, const char *socket_path)
{
	struct outcome list =
		call(loop, socket_path, "/v1.PodResourcesLister/List", NULL, 20 * SECOND_NS);
	struct pb_reader reader = pb_reader_of(buf_str(&list.message));
	struct pb_field field;
	int count = 0;
	CHECK_INT(c, list.error, list.code, GRPC_OK);
	while (pb_next(&reader, &field)) {
		char name[32];
		(void)snprintf(name, sizeof name, "pod-%06d", count++);
		CHECK_STR(c, "name", first_text(field.bytes, 1), name);
	}
	CHECK(c, "whole", !reader.failed && count == PODS_COUNT);
	buf_done(&list.message);
}

static void check_codes(struct check *c, struct loop *loop, const char *socket_path)
{
	static const struct {
		const char *method, *pod;
		enum grpc_code code;
		const char *error;
	} cases[] = {
		{ "/v1.PodResourcesLister/Get", "one", GRPC_OK, "" },
		{ "/v1.PodResourcesLister/Get", "busy", GRPC_RESOURCE_EXHAUSTED,
		  "rejected by rate limit: 50% \xc3\xbc" },
		{ "/v1.PodResourcesLister/Get", "hang", GRPC_DEADLINE_EXCEEDED, NULL },
		{ "/v1.PodResourcesLister/Nothing", NULL, GRPC_UNIMPLEMENTED, NULL },
		{ "/v1.Nobody/Get", NULL, GRPC_UNIMPLEMENTED, NULL },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct outcome o =
			call(loop, socket_path, cases[i].method, cases[i].pod, SECOND_NS / 5);
		CHECK_INT(c, cases[i].method, o.code, cases[i].code);
		if (cases[i].error != NULL)
			CHECK_STR(c, cases[i].method, str_of(o.error), cases[i].error);
		if (o.code == GRPC_OK)
			CHECK_STR(c, "name", first_text(first_text(buf_str(&o.message), 1), 1),
				  cases[i].pod);
		buf_done(&o.message);
	}
	for (int i = 0; i < 500; i++) {
		struct outcome o = call(loop, socket_path, cases[0].method, "again", SECOND_NS);
		CHECK_INT(c, "again", o.code, GRPC_OK);
		buf_done(&o.message);
	}
}

int main(int argc, char **argv)
{
	struct loop *loop = NULL;
	struct err err;
	struct check c = { 0 };
	if (argc != 3) {
		(void)fprintf(stderr, "usage: plugin_peer serve|call SOCKET\n");
		return 2;
	}
	err_status status = loop_new(&loop, &err);
	ASSERT(status == ERR_OK);
	int rc = 0;
	if (strcmp(argv[1], "serve") == 0) {
		rc = serve(loop, argv[2]);
	} else {
		check_list(&c, loop, argv[2]);
		check_codes(&c, loop, argv[2]);
		rc = check_done(&c);
	}
	loop_free(loop);
	return rc;
}
