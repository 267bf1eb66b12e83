// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/node_writer.h"

#include "base/timefmt.h"
#include "sys/log.h"

#include <stdio.h>
#include <stdlib.h>

static const uint64_t SOON_NS = 200 * UINT64_C(1000000); // several changes in one write

// The three bodies, in the order in which they are written.
enum part { PART_OBJECT, PART_STATUS, PART_LABELS, PART_COUNT };
static const char *const part_names[] = { "GPUNode", "status of GPUNode", "labels of the node" };

struct node_writer {
	struct loop *loop;
	struct k8s_client *client;
	struct node_writer_config config;
	struct loop_timer *timer;
	struct k8s_call *call;
	struct buf written[PART_COUNT]; // what the server has
	struct buf sending;
	enum part part;
	bool is_poked, is_armed;
	bool condition[NODE_CONDITIONS];
	char condition_t[NODE_CONDITIONS][TIME_TEXT_BYTES];
	uint64_t write_ns; // when the last write began
	struct node_writer_stats stats;
};

static void write_next(struct node_writer *writer);

static void update_conditions(struct node_writer *writer, const struct node_view *view)
{
	bool now[NODE_CONDITIONS];
	node_object_conditions(view, now);
	for (size_t i = 0; i < NODE_CONDITIONS; i++) {
		if (writer->condition_t[i][0] != '\0' && writer->condition[i] == now[i])
			continue;
		writer->condition[i] = now[i];
		(void)time_format(world_wall_s(loop_world(writer->loop)), writer->condition_t[i]);
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
		node_object_put_labels(out, view);
}

static void on_done(void *arg, const struct k8s_result *result)
{
	struct node_writer *writer = arg;
	struct buf *written = &writer->written[writer->part];
	writer->call = NULL;
	if (result->status != ERR_OK) {
		writer->stats.failures++;
		log_kv(LOG_WARN, "not written", "what", part_names[writer->part], "why",
		       result->err == NULL ? "" : result->err->text, NULL);
		// The object may be gone: all is written anew.
		for (size_t i = 0; i < PART_COUNT; i++)
			buf_clear(&writer->written[i]);
		writer->is_poked = true;
		writer->is_armed = true;
		loop_timer_set(writer->timer, writer->config.period_ns);
		return;
	}
	writer->stats.writes++;
	buf_clear(written);
	buf_put(written, buf_str(&writer->sending));
	writer->part++;
	write_next(writer);
}

static void start(struct node_writer *writer)
{
	char path[512];
	const char *node = writer->config.node;
	static const char query[] = "?fieldManager=gpuaas-agent&force=true";
	if (writer->part == PART_LABELS)
		(void)snprintf(path, sizeof path, "/api/v1/nodes/%s%s", node, query);
	else
		(void)snprintf(path, sizeof path, "/apis/gpuaas.io/v1alpha1/gpunodes/%s%s%s", node,
			       writer->part == PART_STATUS ? "/status" : "", query);
	const struct k8s_request request = { .method = "PATCH",
					     .path = str_of(path),
					     .content_type = K8S_APPLY_PATCH,
					     .body = buf_str(&writer->sending),
					     .on_done = on_done,
					     .arg = writer };
	writer->write_ns = loop_now_ns(writer->loop);
	writer->call = k8s_call_start(writer->client, &request);
	if (writer->call == NULL)
		node_writer_poke(writer);
}

static void write_next(struct node_writer *writer)
{
	struct node_view view;
	while (writer->part < PART_COUNT && writer->config.view(writer->config.arg, &view)) {
		update_conditions(writer, &view);
		render(writer, &view, &writer->sending);
		ASSERT(buf_ok(&writer->sending));
		if (!str_eq(buf_str(&writer->sending), buf_str(&writer->written[writer->part]))) {
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
	writer->part = PART_OBJECT;
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
	free(writer);
}

void node_writer_stats(const struct node_writer *writer, struct node_writer_stats *ret)
{
	*ret = writer->stats;
}
