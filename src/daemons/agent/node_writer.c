// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/node_writer.h"

#include "base/timefmt.h"
#include "daemons/agent/node_seen.h"
#include "sys/log.h"

#include <stdio.h>
#include <stdlib.h>

static const uint64_t SOON_NS = 200 * UINT64_C(1000000); // several changes in one write
// How long what was read stays good: then others' changes of our labels are seen, and versions.
static const uint64_t SEEN_NS = 300 * UINT64_C(1000000000);

// The steps of a round, in order; only the last three write.
enum part { PART_SEE_NODE, PART_SEE_OBJECT, PART_OBJECT, PART_STATUS, PART_LABELS, PART_COUNT };
static const char *const part_names[] = { "node", "GPUNode", "GPUNode", "status of GPUNode",
					  "labels of the node" };

struct node_writer {
	struct loop *loop;
	struct k8s_client *client;
	struct node_writer_config config;
	struct loop_timer *timer;
	struct k8s_call *call;
	struct node_seen seen;
	struct node_versions versions;
	uint64_t seen_ns;               // 0: to be read
	bool is_unwritten[PART_COUNT];  // since it was read: the server has what was seen
	bool has_object;                // then: the GPUNode is there
	struct buf written[PART_COUNT]; // what the server has
	struct buf sending;
	enum part part;
	bool is_poked, is_armed;
	bool condition[NODE_CONDITIONS];
	char condition_t[NODE_CONDITIONS][TIME_TEXT_BYTES];
	int64_t labels_t;  // of the last change of the labels
	uint64_t write_ns; // when the last write began
	struct node_writer_stats stats;
};

static void write_next(struct node_writer *writer);

static int64_t now_s(const struct node_writer *writer)
{
	return world_wall_s(loop_world(writer->loop));
}

static void update_conditions(struct node_writer *writer, const struct node_view *view)
{
	bool now[NODE_CONDITIONS];
	node_object_conditions(view, now);
	for (size_t i = 0; i < NODE_CONDITIONS; i++) {
		char *time = writer->condition_t[i];
		if (time[0] != '\0' && writer->condition[i] == now[i])
			continue;
		// After a restart the time that is there stays.
		struct str kept = STR("");
		if (time[0] == '\0')
			kept = node_seen_condition_t(&writer->seen, node_object_condition_type(i),
						     now[i]);
		writer->condition[i] = now[i];
		if (kept.len > 0 && kept.len < TIME_TEXT_BYTES)
			(void)snprintf(time, TIME_TEXT_BYTES, STR_FMT, STR_ARG(kept));
		else
			(void)time_format(now_s(writer), time);
	}
}

static void render(struct node_writer *writer, const struct node_view *view, struct buf *out)
{
	const char *times[NODE_CONDITIONS];
	for (size_t i = 0; i < NODE_CONDITIONS; i++)
		times[i] = writer->condition_t[i];
	buf_clear(out);
	if (writer->part == PART_OBJECT)
		node_object_put(out, view);
	else if (writer->part == PART_STATUS)
		node_object_put_status(out, view, times);
	else
		node_object_put_labels(out, view, writer->labels_t);
	ASSERT(buf_ok(out));
}

static void failed(struct node_writer *writer, const struct err *err)
{
	writer->stats.failures++;
	log_kv(LOG_WARN, writer->part < PART_OBJECT ? "not read" : "not written", "what",
	       part_names[writer->part], "why", err == NULL ? "" : err->text, NULL);
	// The object may be gone: all is looked at anew.
	writer->seen_ns = 0;
	writer->is_poked = true;
	writer->is_armed = true;
	loop_timer_set(writer->timer, writer->config.period_ns);
}

static void keep(struct node_writer *writer)
{
	struct buf *written = &writer->written[writer->part];
	buf_clear(written);
	buf_put(written, buf_str(&writer->sending));
	writer->is_unwritten[writer->part] = false;
}

static void on_written(void *arg, const struct k8s_result *result)
{
	struct node_writer *writer = arg;
	writer->call = NULL;
	if (result->status != ERR_OK) {
		failed(writer, result->err);
		return;
	}
	writer->stats.writes++;
	keep(writer);
	writer->part++;
	write_next(writer);
}

static void on_seen(void *arg, const struct k8s_result *result)
{
	struct node_writer *writer = arg;
	struct err err = { 0 };
	writer->call = NULL;
	err_status status = result->status;
	if (status == ERR_OK && writer->part == PART_SEE_NODE)
		status = node_seen_node(&writer->seen, result->body, &writer->versions, &err);
	else if (status == ERR_OK)
		status = node_seen_gpu_node(&writer->seen, result->body, &err);
	bool is_absent = status == ERR_NOT_FOUND && writer->part == PART_SEE_OBJECT;
	if (status != ERR_OK && !is_absent) {
		failed(writer, result->err == NULL ? &err : result->err);
		return;
	}
	if (writer->part == PART_SEE_OBJECT) {
		writer->has_object = !is_absent;
		writer->seen_ns = loop_now_ns(writer->loop);
		if (writer->labels_t == 0)
			writer->labels_t = node_seen_timestamp_s(&writer->seen);
		for (size_t i = 0; i < PART_COUNT; i++) {
			buf_clear(&writer->written[i]);
			writer->is_unwritten[i] = true;
		}
	}
	writer->part++;
	write_next(writer);
}

static void start(struct node_writer *writer)
{
	char path[512];
	const char *node = writer->config.node;
	bool is_write = writer->part >= PART_OBJECT;
	const char *query = is_write ? "?fieldManager=" NODE_FIELD_MANAGER "&force=true" : "";
	if (writer->part == PART_LABELS || writer->part == PART_SEE_NODE)
		(void)snprintf(path, sizeof path, "/api/v1/nodes/%s%s", node, query);
	else
		(void)snprintf(path, sizeof path, "/apis/gpuaas.io/v1alpha1/gpunodes/%s%s%s", node,
			       writer->part == PART_STATUS ? "/status" : "", query);
	const struct k8s_request request = {
		.method = is_write ? "PATCH" : "GET",
		.path = str_of(path),
		.content_type = is_write ? K8S_APPLY_PATCH : NULL,
		.body = is_write ? buf_str(&writer->sending) : STR(""),
		.on_done = is_write ? on_written : on_seen,
		.arg = writer,
	};
	if (is_write)
		writer->write_ns = loop_now_ns(writer->loop);
	writer->call = k8s_call_start(writer->client, &request);
	if (writer->call == NULL)
		node_writer_poke(writer);
}

// Whether the server has what would be written, by what was read.
static bool is_there(const struct node_writer *writer)
{
	struct str body = buf_str(&writer->sending);
	if (!writer->is_unwritten[writer->part])
		return false;
	if (writer->part == PART_OBJECT)
		return writer->has_object;
	if (writer->part == PART_STATUS)
		return node_seen_has_status(&writer->seen, body);
	return node_seen_has_labels(&writer->seen, body);
}

// Renders the part; false: there is nothing to write.
static bool prepare(struct node_writer *writer, struct node_view *view)
{
	// Labels never say less because driver or configuration are not there just now.
	bool is_known = view->has_layout && view->driver->driver_version[0] != '\0';
	if (writer->part == PART_LABELS && !is_known)
		return false;
	view->versions = writer->versions;
	update_conditions(writer, view);
	render(writer, view, &writer->sending);
	if (str_eq(buf_str(&writer->sending), buf_str(&writer->written[writer->part])))
		return false;
	if (is_there(writer)) {
		keep(writer);
		return false;
	}
	if (writer->part == PART_LABELS) {
		writer->labels_t = now_s(writer);
		render(writer, view, &writer->sending);
	}
	return true;
}

static void write_next(struct node_writer *writer)
{
	struct node_view view;
	while (writer->part < PART_COUNT && writer->config.view(writer->config.arg, &view)) {
		if (writer->part < PART_OBJECT || prepare(writer, &view)) {
			start(writer);
			return;
		}
		writer->part++;
	}
	writer->part = PART_COUNT; // the round is over
	if (writer->is_poked)
		node_writer_poke(writer);
}

static void on_timer(void *arg)
{
	struct node_writer *writer = arg;
	writer->is_armed = false;
	if (writer->call != NULL)
		return; // the end of the round sees that it was poked
	writer->is_poked = false;
	uint64_t now_ns = loop_now_ns(writer->loop);
	bool is_old = writer->seen_ns == 0 || now_ns - writer->seen_ns > SEEN_NS;
	writer->part = is_old ? PART_SEE_NODE : PART_OBJECT;
	write_next(writer);
}

void node_writer_poke(struct node_writer *writer)
{
	uint64_t now_ns = loop_now_ns(writer->loop);
	writer->is_poked = true;
	if (writer->is_armed || writer->call != NULL)
		return;
	uint64_t delay_ns = SOON_NS;
	if (writer->write_ns != 0 && now_ns - writer->write_ns < writer->config.period_ns)
		delay_ns = max_size(SOON_NS, writer->write_ns + writer->config.period_ns - now_ns);
	writer->is_armed = true;
	loop_timer_set(writer->timer, delay_ns);
}

err_status node_writer_new(struct k8s_client *client, const struct node_writer_config *config,
			   struct node_writer **ret, struct err *err)
{
	struct node_writer *writer = calloc(1, sizeof *writer);
	if (writer == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the node's object");
	writer->loop = k8s_client_loop(client);
	writer->client = client;
	writer->config = *config;
	writer->part = PART_COUNT;
	writer->timer = loop_timer_new(writer->loop, on_timer, writer);
	*ret = writer;
	return ERR_OK;
}

void node_writer_free(struct node_writer *writer)
{
	if (writer == NULL)
		return;
	k8s_call_cancel(writer->call);
	loop_timer_free(writer->timer);
	for (size_t i = 0; i < PART_COUNT; i++)
		buf_done(&writer->written[i]);
	buf_done(&writer->sending);
	node_seen_done(&writer->seen);
	free(writer);
}

void node_writer_stats(const struct node_writer *writer, struct node_writer_stats *ret)
{
	*ret = writer->stats;
}
