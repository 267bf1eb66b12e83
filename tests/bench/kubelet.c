// SPDX-License-Identifier: Apache-2.0
// Field numbers are those of the kubelet's api.proto of the device plugin API v1beta1.
#include "kubelet.h"
#include "base/pb.h"
#include "measure.h"

#include <stdio.h>

#define PATIENCE_NS UINT64_C(30000000000)
static const uint64_t MS_NS = 1000000;

static void on_register(void *arg, struct grpc_stream *stream, struct str message)
{
	struct kubelet *kubelet = arg;
	struct pb_reader reader = pb_reader_of(message);
	struct pb_field field;
	struct str endpoint = STR("");
	while (pb_next(&reader, &field))
		if (field.number == 2 && field.wire == PB_BYTES)
			endpoint = field.bytes;
	if (endpoint.len == 0)
		measure_fail("registration without an endpoint");
	(void)snprintf(kubelet->plugin_socket, sizeof kubelet->plugin_socket, "%s/" STR_FMT,
		       kubelet->dir, STR_ARG(endpoint));
	if (kubelet->registrations++ == 0)
		kubelet->registered_ns = clock_mono_ns();
	grpc_send(stream, STR(""));
	grpc_finish(stream, GRPC_OK, NULL);
}

static void on_pods(void *arg, struct grpc_stream *stream, struct str message)
{
	(void)arg;
	(void)message;
	grpc_send(stream, STR(""));
	grpc_finish(stream, GRPC_OK, NULL);
}

void kubelet_init(struct kubelet *kubelet, const char *dir, const char *pod_resources)
{
	static const struct grpc_method pods[] = {
		{ "/v1.PodResourcesLister/List", on_pods },
		{ "/v1.PodResourcesLister/GetAllocatableResources", on_pods },
	};
	struct err err = { 0 };
	*kubelet = (struct kubelet){ .dir = dir };
	if (loop_new(&kubelet->loop, &err) != ERR_OK)
		measure_fail("loop: %s", err.text);
	if (pod_resources != NULL &&
	    grpc_server_new(kubelet->loop, pod_resources, pods, ARRAY_COUNT(pods), kubelet,
			    &kubelet->pod_resources, &err) != ERR_OK)
		measure_fail("%s: %s", pod_resources, err.text);
}

void kubelet_done(struct kubelet *kubelet)
{
	kubelet_close(kubelet);
	grpc_server_free(kubelet->pod_resources);
	loop_run_once(kubelet->loop, 0);
	loop_free(kubelet->loop);
	buf_done(&kubelet->reply);
}

void kubelet_open(struct kubelet *kubelet)
{
	static const struct grpc_method registration[] = {
		{ "/v1beta1.Registration/Register", on_register },
	};
	char path[KUBELET_PATH_BYTES];
	struct err err = { 0 };
	(void)snprintf(path, sizeof path, "%s/kubelet.sock", kubelet->dir);
	kubelet->registrations = kubelet->lists = 0;
	if (grpc_server_new(kubelet->loop, path, registration, ARRAY_COUNT(registration), kubelet,
			    &kubelet->server, &err) != ERR_OK)
		measure_fail("%s: %s", path, err.text);
}

void kubelet_close(struct kubelet *kubelet)
{
	if (kubelet->watch != NULL)
		grpc_call_cancel(kubelet->watch);
	kubelet->watch = NULL;
	grpc_server_free(kubelet->server);
	kubelet->server = NULL;
}

bool kubelet_has_lists(const struct kubelet *kubelet, uint64_t lists)
{
	return kubelet->lists >= lists;
}

bool kubelet_has_registrations(const struct kubelet *kubelet, uint64_t registrations)
{
	return kubelet->registrations >= registrations;
}

bool kubelet_has_unhealthy(const struct kubelet *kubelet, uint64_t unhealthy)
{
	return kubelet->unhealthy_count >= unhealthy;
}

void kubelet_wait(struct kubelet *kubelet, kubelet_wish *wish, uint64_t argument, const char *what,
		  uint64_t patience_ms)
{
	const uint64_t end_ns = clock_mono_ns() + patience_ms * MS_NS;
	while (!wish(kubelet, argument)) {
		if (clock_mono_ns() > end_ns)
			measure_fail("%s: not within %llu ms", what,
				     (unsigned long long)patience_ms);
		loop_run_once(kubelet->loop, 10);
	}
}

static void take_device(struct kubelet *kubelet, struct str device)
{
	struct pb_reader reader = pb_reader_of(device);
	struct pb_field field;
	struct kubelet_device *taken = &kubelet->devices[kubelet->device_count++];
	*taken = (struct kubelet_device){ .is_healthy = false };
	while (pb_next(&reader, &field)) {
		if (field.number == 1 && field.wire == PB_BYTES)
			(void)snprintf(taken->id, sizeof taken->id, STR_FMT, STR_ARG(field.bytes));
		else if (field.number == 2 && field.wire == PB_BYTES)
			taken->is_healthy = str_eq_c(field.bytes, "Healthy");
	}
	kubelet->unhealthy_count += !taken->is_healthy;
}

static void on_list(void *arg, struct str message)
{
	struct kubelet *kubelet = arg;
	struct pb_reader reader = pb_reader_of(message);
	struct pb_field field;
	kubelet->device_count = kubelet->unhealthy_count = 0;
	while (pb_next(&reader, &field))
		if (field.number == 1 && field.wire == PB_BYTES &&
		    kubelet->device_count < KUBELET_DEVICES_MAX)
			take_device(kubelet, field.bytes);
	kubelet->lists++;
	kubelet->listed_ns = clock_mono_ns();
}

static void on_watch_done(void *arg, enum grpc_code code, const char *error, struct str message)
{
	(void)code;
	(void)error;
	(void)message;
	((struct kubelet *)arg)->watch = NULL; // the plugin may begin a new life
}

void kubelet_watch(struct kubelet *kubelet)
{
	if (kubelet->watch != NULL)
		grpc_call_cancel(kubelet->watch);
	kubelet->watch = grpc_watch_start(
		kubelet->loop,
		&(struct grpc_watch_request){ .socket_path = kubelet->plugin_socket,
					      .method = "/v1beta1.DevicePlugin/ListAndWatch",
					      .message = STR(""),
					      .on_message = on_list,
					      .on_done = on_watch_done,
					      .arg = kubelet });
}

static void on_done(void *arg, enum grpc_code code, const char *error, struct str message)
{
	struct kubelet *kubelet = arg;
	kubelet->is_done = true;
	kubelet->code = code;
	(void)snprintf(kubelet->error, sizeof kubelet->error, "%s", error == NULL ? "" : error);
	buf_clear(&kubelet->reply);
	buf_put(&kubelet->reply, message);
}

static uint64_t call_ns(struct kubelet *kubelet, const char *method, struct str message)
{
	kubelet->is_done = false;
	const uint64_t start_ns = clock_mono_ns();
	(void)grpc_call_start(kubelet->loop, kubelet->plugin_socket, method, message, PATIENCE_NS,
			      on_done, kubelet);
	while (!kubelet->is_done)
		loop_run_once(kubelet->loop, -1);
	const uint64_t end_ns = clock_mono_ns();
	if (kubelet->code != GRPC_OK || kubelet->reply.len == 0)
		measure_fail("%s: code %d %s", method, (int)kubelet->code, kubelet->error);
	return end_ns - start_ns;
}

static void put_id(const struct kubelet *kubelet, size_t index, struct buf *out)
{
	pb_put_bytes(out, 1, str_of(kubelet->devices[index % kubelet->device_count].id));
}

uint64_t kubelet_allocate_ns(struct kubelet *kubelet, size_t index, size_t count)
{
	AUTO(buf_done) struct buf container = { 0 }, message = { 0 };
	for (size_t i = 0; i < count; i++)
		put_id(kubelet, index + i, &container);
	pb_put_bytes(&message, 1, buf_str(&container));
	return call_ns(kubelet, "/v1beta1.DevicePlugin/Allocate", buf_str(&message));
}

uint64_t kubelet_prefer_ns(struct kubelet *kubelet, size_t count)
{
	AUTO(buf_done) struct buf container = { 0 }, message = { 0 };
	for (size_t i = 0; i < kubelet->device_count; i++)
		put_id(kubelet, i, &container);
	pb_put_varint(&container, 3, count);
	pb_put_bytes(&message, 1, buf_str(&container));
	return call_ns(kubelet, "/v1beta1.DevicePlugin/GetPreferredAllocation", buf_str(&message));
}
