// SPDX-License-Identifier: Apache-2.0
#include "fake_kubelet.h"

#include "base/pb.h"
#include "sys/fs.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const uint64_t CALL_NS = 5 * UINT64_C(1000000000);

static void copy_text(char *out, size_t out_bytes, struct str text)
{
	(void)snprintf(out, out_bytes, STR_FMT, STR_ARG(text));
}

static size_t read_devices(struct str message, struct fake_device *ret_devices, size_t max)
{
	struct pb_reader reader = pb_reader_of(message);
	struct pb_field field;
	size_t count = 0;
	while (pb_next(&reader, &field) && count < max) {
		struct pb_reader device = pb_reader_of(field.bytes);
		struct pb_field part;
		struct fake_device *to = &ret_devices[count++];
		while (pb_next(&device, &part)) {
			if (part.number == 1)
				copy_text(to->id, FAKE_ID_BYTES, part.bytes);
			if (part.number == 2)
				to->is_healthy = str_eq_c(part.bytes, "Healthy");
		}
	}
	return count;
}

static void on_devices(void *arg, struct str message)
{
	struct fake_kubelet *kubelet = arg;
	kubelet->lists++;
	kubelet->device_count = read_devices(message, kubelet->devices, FAKE_DEVICES_MAX);
}

static void on_other_devices(void *arg, struct str message)
{
	struct fake_plugin *plugin = arg;
	plugin->lists++;
	plugin->device_count = read_devices(message, plugin->devices, FAKE_LIST_MAX);
}

static void on_other_end(void *arg, enum grpc_code code, const char *error, struct str message)
{
	struct fake_plugin *plugin = arg;
	(void)code;
	(void)error;
	(void)message;
	plugin->stream = NULL;
	plugin->device_count = 0;
}

static void on_stream_end(void *arg, enum grpc_code code, const char *error, struct str message)
{
	struct fake_kubelet *kubelet = arg;
	(void)code;
	(void)error;
	(void)message;
	kubelet->stream = NULL;
	kubelet->streams_open--;
	kubelet->device_count = 0;
}

static void path_of_plugin(const struct fake_kubelet *kubelet, char out[400])
{
	const struct fake_plugin *target = kubelet->target;
	(void)snprintf(out, 400, "%s/%s", kubelet->dir,
		       target == NULL ? kubelet->endpoint : target->endpoint);
}

static void dial(void *arg)
{
	struct fake_kubelet *kubelet = arg;
	char path[400];
	(void)snprintf(path, sizeof path, "%s/%s", kubelet->dir, kubelet->endpoint);
	if (kubelet->stream != NULL) { // the older endpoint is dropped
		grpc_call_cancel(kubelet->stream);
		kubelet->streams_open--;
	}
	const struct grpc_watch_request request = { .socket_path = path,
						    .method = DP_LIST,
						    .on_message = on_devices,
						    .on_done = on_stream_end,
						    .arg = kubelet };
	kubelet->stream = grpc_watch_start(kubelet->loop, &request);
	kubelet->streams_open++;
}

static void dial_other(void *arg)
{
	struct fake_plugin *plugin = arg;
	char path[400];
	(void)snprintf(path, sizeof path, "%s/%s", plugin->kubelet->dir, plugin->endpoint);
	if (plugin->stream != NULL)
		grpc_call_cancel(plugin->stream);
	const struct grpc_watch_request request = { .socket_path = path,
						    .method = DP_LIST,
						    .on_message = on_other_devices,
						    .on_done = on_other_end,
						    .arg = plugin };
	plugin->stream = grpc_watch_start(plugin->kubelet->loop, &request);
}

static void register_other(struct fake_kubelet *kubelet, const struct dp_register *request)
{
	size_t i = 0;
	while (i < kubelet->other_count &&
	       !str_eq_c(request->resource, kubelet->others[i].resource))
		i++;
	if (i == FAKE_OTHERS_MAX)
		abort();
	struct fake_plugin *plugin = &kubelet->others[i];
	kubelet->other_count += i == kubelet->other_count ? 1 : 0;
	plugin->kubelet = kubelet;
	plugin->registrations++;
	copy_text(plugin->endpoint, sizeof plugin->endpoint, request->endpoint);
	copy_text(plugin->resource, sizeof plugin->resource, request->resource);
	loop_defer(kubelet->loop, dial_other, plugin);
}

static void on_register(void *arg, struct grpc_stream *stream, struct str message)
{
	struct fake_kubelet *kubelet = arg;
	struct dp_register request;
	if (dp_read_register(message, &request, NULL) != ERR_OK) {
		grpc_finish(stream, GRPC_INVALID_ARGUMENT, "no RegisterRequest");
		return;
	}
	if (!str_eq_c(request.resource, kubelet->resource)) {
		register_other(kubelet, &request);
		grpc_send(stream, STR(""));
		grpc_finish(stream, GRPC_OK, "");
		return;
	}
	kubelet->registrations++;
	copy_text(kubelet->endpoint, sizeof kubelet->endpoint, request.endpoint);
	grpc_send(stream, STR(""));
	grpc_finish(stream, GRPC_OK, "");
	loop_defer(kubelet->loop, dial, kubelet);
}

static const char *resource_of(const struct fake_kubelet *kubelet, const struct fake_row *row)
{
	return row->resource[0] == '\0' ? kubelet->resource : row->resource;
}

static void put_row(struct buf *out, const struct fake_kubelet *kubelet, const struct fake_row *row)
{
	AUTO(buf_done) struct buf devices = { 0 };
	AUTO(buf_done) struct buf container = { 0 };
	AUTO(buf_done) struct buf pod = { 0 };
	pb_put_bytes(&devices, 1, str_of(resource_of(kubelet, row)));
	pb_put_bytes(&devices, 2, str_of(row->id));
	pb_put_bytes(&container, 1, str_of(row->container));
	pb_put_bytes(&container, 2, buf_str(&devices));
	pb_put_bytes(&pod, 1, str_of(row->pod));
	pb_put_bytes(&pod, 2, str_of(row->namespace_));
	pb_put_bytes(&pod, 3, buf_str(&container));
	pb_put_bytes(out, 1, buf_str(&pod));
}

static void on_pods_list(void *arg, struct grpc_stream *stream, struct str message)
{
	struct fake_kubelet *kubelet = arg;
	AUTO(buf_done) struct buf out = { 0 };
	(void)message;
	if (kubelet->is_deaf)
		return;
	for (size_t i = 0; i < kubelet->row_count; i++) {
		if (kubelet->rows[i].is_listed)
			put_row(&out, kubelet, &kubelet->rows[i]);
	}
	if (kubelet->put_pods != NULL)
		kubelet->put_pods(kubelet->arg, &out);
	grpc_send(stream, buf_str(&out));
	grpc_finish(stream, GRPC_OK, "");
}

static const struct grpc_method registration[] = { { DP_REGISTER, on_register } };
static const struct grpc_method pods[] = { { PODRES_LIST, on_pods_list } };

void fake_kubelet_init(struct fake_kubelet *kubelet, struct loop *loop, const char *dir)
{
	*kubelet = (struct fake_kubelet){ .loop = loop };
	copy_text(kubelet->dir, sizeof kubelet->dir, str_of(dir));
	(void)snprintf(kubelet->pod_resources, sizeof kubelet->pod_resources, "%s/pods.sock", dir);
	copy_text(kubelet->resource, sizeof kubelet->resource, STR("nvidia.com/gpu"));
}

static void delete_sockets(const struct fake_kubelet *kubelet)
{
	DIR *dir = opendir(kubelet->dir);
	if (dir == NULL)
		abort();
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		if (str_ends(str_of(entry->d_name), STR(".sock")) &&
		    unlinkat(dirfd(dir), entry->d_name, 0) != 0)
			abort();
	}
	(void)closedir(dir);
}

void fake_kubelet_up(struct fake_kubelet *kubelet)
{
	char path[400];
	struct err err = { 0 };
	delete_sockets(kubelet);
	(void)snprintf(path, sizeof path, "%s/kubelet.sock", kubelet->dir);
	if (grpc_server_new(kubelet->loop, path, registration, 1, kubelet, &kubelet->server,
			    &err) != ERR_OK ||
	    grpc_server_new(kubelet->loop, kubelet->pod_resources, pods, 1, kubelet,
			    &kubelet->pods_server, &err) != ERR_OK) {
		printf("fake kubelet: %s\n", err.text);
		abort();
	}
}

void fake_kubelet_down(struct fake_kubelet *kubelet)
{
	if (kubelet->stream != NULL) {
		grpc_call_cancel(kubelet->stream);
		kubelet->streams_open--;
	}
	kubelet->stream = NULL;
	kubelet->device_count = 0;
	for (size_t i = 0; i < kubelet->other_count; i++) {
		if (kubelet->others[i].stream != NULL)
			grpc_call_cancel(kubelet->others[i].stream);
		kubelet->others[i].stream = NULL;
		kubelet->others[i].device_count = 0;
	}
	kubelet->other_count = 0;
	grpc_server_free(kubelet->server);
	grpc_server_free(kubelet->pods_server);
	kubelet->server = kubelet->pods_server = NULL;
}

const struct fake_plugin *fake_kubelet_other(const struct fake_kubelet *kubelet,
					     const char *resource)
{
	for (size_t i = 0; i < kubelet->other_count; i++) {
		if (strcmp(kubelet->others[i].resource, resource) == 0)
			return &kubelet->others[i];
	}
	return NULL;
}

size_t fake_kubelet_unhealthy(const struct fake_kubelet *kubelet)
{
	size_t count = 0;
	for (size_t i = 0; i < kubelet->device_count; i++)
		count += kubelet->devices[i].is_healthy ? 0 : 1;
	return count;
}

void fake_kubelet_write_checkpoint(struct fake_kubelet *kubelet)
{
	AUTO(buf_done) struct buf out = { 0 };
	char path[400];
	struct err err = { 0 };
	buf_put_c(&out, "{\"Data\":{\"PodDeviceEntries\":[");
	for (size_t i = 0; i < kubelet->row_count; i++) {
		const struct fake_row *row = &kubelet->rows[i];
		buf_printf(&out,
			   "%s{\"PodUID\":\"%s\",\"ContainerName\":\"%s\",\"ResourceName\":\"%s\","
			   "\"DeviceIDs\":{\"-1\":[\"%s\"]},\"AllocResp\":\"\"}",
			   i == 0 ? "" : ",", row->uid, row->container, resource_of(kubelet, row),
			   row->id);
	}
	// An entry of no resource of ours stands before those with commas.
	if (kubelet->row_count == 0)
		buf_put_c(&out,
			  "{\"PodUID\":\"-\",\"ContainerName\":\"-\",\"ResourceName\":\"-\"}");
	if (kubelet->put_entries != NULL)
		kubelet->put_entries(kubelet->arg, &out);
	buf_put_c(&out, "],\"RegisteredDevices\":{}},\"Checksum\":1}");
	(void)snprintf(path, sizeof path, "%s/kubelet_internal_checkpoint", kubelet->dir);
	if (fs_write_atomic(path, buf_str(&out), 0600, &err) != ERR_OK) {
		printf("fake kubelet: %s\n", err.text);
		abort();
	}
}

void fake_kubelet_hold(struct fake_kubelet *kubelet, const struct fake_row *row)
{
	if (kubelet->row_count == FAKE_ROWS_MAX)
		abort();
	kubelet->rows[kubelet->row_count++] = *row;
	fake_kubelet_write_checkpoint(kubelet);
}

struct pending {
	struct fake_answer *answer;
	void (*read)(struct fake_answer *answer, struct str message);
	bool is_done;
};

static void on_answer(void *arg, enum grpc_code code, const char *error, struct str message)
{
	struct pending *pending = arg;
	pending->is_done = true;
	pending->answer->code = code;
	copy_text(pending->answer->error, sizeof pending->answer->error, str_of(error));
	if (code == GRPC_OK)
		pending->read(pending->answer, message);
}

static void call(struct fake_kubelet *kubelet, const char *method, struct str message,
		 struct pending *pending)
{
	char path[400];
	path_of_plugin(kubelet, path);
	(void)grpc_call_start(kubelet->loop, path, method, message, CALL_NS, on_answer, pending);
	while (!pending->is_done)
		loop_run_once(kubelet->loop, 100);
}

static void add_id(struct fake_answer *answer, struct str id)
{
	if (answer->count < FAKE_DEVICES_MAX)
		copy_text(answer->ids[answer->count++], FAKE_ID_BYTES, id);
}

static void read_preferred(struct fake_answer *answer, struct str message)
{
	struct pb_reader reader = pb_reader_of(message);
	struct pb_field container, id;
	while (pb_next(&reader, &container)) {
		struct pb_reader ids = pb_reader_of(container.bytes);
		while (pb_next(&ids, &id))
			add_id(answer, id.bytes);
	}
}

static void read_part(struct fake_answer *answer, const struct pb_field *field)
{
	static const char *const kinds[] = { "?", "env", "mount", "node", "annotation" };
	struct pb_reader reader = pb_reader_of(field->bytes);
	struct pb_field part;
	struct str texts[4] = { { 0 } };
	size_t len = strlen(answer->text);
	while (pb_next(&reader, &part)) {
		if (part.number < ARRAY_COUNT(texts))
			texts[part.number] = part.wire == PB_BYTES ? part.bytes : STR("ro");
	}
	if (field->number == 5) {
		add_id(answer, texts[1]);
		return;
	}
	if (field->number == 1 && str_eq_c(texts[1], "NVIDIA_VISIBLE_DEVICES"))
		answer->is_void = str_eq_c(texts[2], "void");
	(void)snprintf(answer->text + len, sizeof answer->text - len,
		       "%s " STR_FMT " " STR_FMT " " STR_FMT "\n",
		       field->number < ARRAY_COUNT(kinds) ? kinds[field->number] : "?",
		       STR_ARG(texts[1]), STR_ARG(texts[2]), STR_ARG(texts[3]));
}

static void read_allocated(struct fake_answer *answer, struct str message)
{
	struct pb_reader reader = pb_reader_of(message);
	struct pb_field container, field;
	while (pb_next(&reader, &container)) {
		struct pb_reader parts = pb_reader_of(container.bytes);
		while (pb_next(&parts, &field))
			read_part(answer, &field);
	}
}

void fake_kubelet_prefer(struct fake_kubelet *kubelet, const struct str *available, size_t count,
			 size_t size, struct fake_answer *ret)
{
	AUTO(buf_done) struct buf container = { 0 };
	AUTO(buf_done) struct buf message = { 0 };
	struct pending pending = { .answer = ret, .read = read_preferred };
	*ret = (struct fake_answer){ 0 };
	for (size_t i = 0; i < count; i++)
		pb_put_bytes(&container, 1, available[i]);
	pb_put_varint(&container, 3, size);
	pb_put_bytes(&message, 1, buf_str(&container));
	call(kubelet, DP_PREFERRED, buf_str(&message), &pending);
}

void fake_kubelet_allocate(struct fake_kubelet *kubelet, const struct str *ids, size_t count,
			   struct fake_answer *ret)
{
	AUTO(buf_done) struct buf container = { 0 };
	AUTO(buf_done) struct buf message = { 0 };
	struct pending pending = { .answer = ret, .read = read_allocated };
	*ret = (struct fake_answer){ 0 };
	for (size_t i = 0; i < count; i++)
		pb_put_bytes(&container, 1, ids[i]);
	pb_put_bytes(&message, 1, buf_str(&container));
	call(kubelet, DP_ALLOCATE, buf_str(&message), &pending);
}
