// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/plugin.h"

#include "sys/log.h"
#include "sys/random.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// The arena grows with what is asked: 16 bytes for each id, and as much again while it grows.
enum { SOCKET_WORD = 8, ARENA_BYTES = 16 * 1024 * 1024, RESOURCE_BYTES = 64 };

#define MS UINT64_C(1000000)
static const uint64_t REGISTER_TIMEOUT_NS = 5000 * MS;
static const uint64_t RETRY_MIN_NS = 20 * MS;
static const uint64_t RETRY_MAX_NS = 1000 * MS;
static const uint64_t STREAM_WAIT_NS = 5000 * MS; // from registration to the kubelet's dial

struct plugin {
	struct loop *loop;
	struct plugin_config config;
	char resource[RESOURCE_BYTES];
	char name[NAME_MAX + 1]; // of the socket
	struct grpc_server *server;
	struct grpc_call *call;     // Register under way
	struct grpc_stream *stream; // ListAndWatch
	struct loop_timer *retry;   // next registration, or the wait for the stream
	uint64_t retry_ns;
	struct buf list;
	bool has_list, is_late;
	struct grpc_stream *waiting; // a put-off GetPreferredAllocation
	struct buf waiting_message;
	struct loop_timer *waiting_timer;
	struct plugin_stats stats;
};

static void begin(struct plugin *plugin);

static void on_list_closed(void *arg)
{
	struct plugin *plugin = arg;
	plugin->stream = NULL;
	plugin->stats.has_stream = false;
	// The kubelet went away or broke off; its new socket may tell earlier than this.
	plugin->stats.is_registered = false;
	plugin->retry_ns = RETRY_MIN_NS;
	loop_timer_set(plugin->retry, plugin->retry_ns);
}

static void on_options(void *arg, struct grpc_stream *stream, struct str message)
{
	const struct plugin *plugin = arg;
	AUTO(buf_done) struct buf out = { 0 };
	(void)message;
	dp_put_options(&out, !plugin->is_late, plugin->is_late);
	grpc_send(stream, buf_str(&out));
	grpc_finish(stream, GRPC_OK, "");
}

static void on_list(void *arg, struct grpc_stream *stream, struct str message)
{
	struct plugin *plugin = arg;
	(void)message;
	// Never two streams for one resource: the older one belongs to a connection gone by.
	if (plugin->stream != NULL)
		grpc_finish(plugin->stream, GRPC_CANCELLED, "another stream was opened");
	plugin->stream = stream;
	plugin->stats.has_stream = true;
	plugin->stats.lists++;
	loop_timer_stop(plugin->retry);
	grpc_stream_on_closed(stream, on_list_closed, plugin);
	grpc_send(stream, buf_str(&plugin->list));
}

static void answer_preferred(struct plugin *plugin, struct grpc_stream *stream, struct str message,
			     bool is_last)
{
	AUTO(arena_freep) struct arena *arena = arena_new(ARENA_BYTES);
	AUTO(buf_done) struct buf out = { .limit = GRPC_MESSAGE_MAX_BYTES };
	struct dp_preferred_list list = { 0 };
	struct err err = { 0 };
	if (arena == NULL || dp_read_preferred(arena, message, &list, &err) != ERR_OK) {
		grpc_finish(stream, GRPC_INVALID_ARGUMENT, err.text);
		return;
	}
	for (size_t i = 0; i < list.count; i++) {
		const struct dp_preferred *request = &list.items[i];
		struct str *ids = ARENA_ARRAY(arena, struct str, request->available.count + 1);
		bool fits = ids != NULL && request->size >= 0 &&
			    (size_t)request->size <= request->available.count;
		if (fits && plugin->config.prefer(plugin->config.arg, plugin->resource, request,
						  is_last, ids) == PLUGIN_LATER) {
			ASSERT(!is_last);
			plugin->waiting = stream;
			buf_clear(&plugin->waiting_message);
			buf_put(&plugin->waiting_message, message);
			loop_timer_set(plugin->waiting_timer, plugin->config.wait_ns);
			return;
		}
		// The kubelet falls back to its own choice when it gets too few.
		dp_put_preferred(&out, ids, fits ? (size_t)request->size : 0);
	}
	plugin->stats.preferred++;
	grpc_send(stream, buf_str(&out));
	grpc_finish(stream, GRPC_OK, "");
}

static void on_waiting_closed(void *arg)
{
	struct plugin *plugin = arg;
	plugin->waiting = NULL;
	loop_timer_stop(plugin->waiting_timer);
}

static void answer_waiting(struct plugin *plugin, bool is_last)
{
	struct grpc_stream *stream = plugin->waiting;
	if (stream == NULL)
		return;
	AUTO(buf_done) struct buf message = plugin->waiting_message;
	plugin->waiting_message = (struct buf){ .limit = GRPC_MESSAGE_MAX_BYTES };
	plugin->waiting = NULL;
	loop_timer_stop(plugin->waiting_timer);
	answer_preferred(plugin, stream, buf_str(&message), is_last);
}

static void on_waiting_timer(void *arg) { answer_waiting(arg, true); }

static void on_preferred(void *arg, struct grpc_stream *stream, struct str message)
{
	struct plugin *plugin = arg;
	answer_waiting(plugin, true); // kubelets ask one by one
	grpc_stream_on_closed(stream, on_waiting_closed, plugin);
	answer_preferred(plugin, stream, message, plugin->config.wait_ns == 0);
}

static void on_allocate(void *arg, struct grpc_stream *stream, struct str message)
{
	struct plugin *plugin = arg;
	AUTO(arena_freep) struct arena *arena = arena_new(ARENA_BYTES);
	AUTO(buf_done) struct buf out = { .limit = GRPC_MESSAGE_MAX_BYTES };
	struct dp_allocate_list list = { 0 };
	struct err err = { 0 };
	err_status status = ERR_LIMIT;
	if (arena != NULL)
		status = dp_read_allocate(arena, message, &list, &err);
	if (status == ERR_OK)
		status = plugin->config.allocate(plugin->config.arg, plugin->resource, &list, &out,
						 &err);
	if (status == ERR_OK) {
		plugin->stats.allocations++;
		grpc_send(stream, buf_str(&out));
		grpc_finish(stream, GRPC_OK, "");
	} else {
		plugin->stats.refusals++;
		log_err(LOG_WARN, "allocation refused", &err);
		grpc_finish(stream,
			    status == ERR_UNAVAILABLE ? GRPC_FAILED_PRECONDITION
						      : GRPC_INVALID_ARGUMENT,
			    err.text);
	}
}

static void on_pre_start(void *arg, struct grpc_stream *stream, struct str message)
{
	struct plugin *plugin = arg;
	if (plugin->is_late) {
		plugin->config.pre_start(plugin->config.arg, plugin->resource, stream, message);
		return;
	}
	grpc_send(stream, STR(""));
	grpc_finish(stream, GRPC_OK, "");
}

static const struct grpc_method methods[] = {
	{ DP_OPTIONS, on_options },     { DP_LIST, on_list },
	{ DP_PREFERRED, on_preferred }, { DP_ALLOCATE, on_allocate },
	{ DP_PRE_START, on_pre_start },
};

static void retry_later(struct plugin *plugin)
{
	plugin->stats.failures++;
	plugin->stats.is_registered = false;
	plugin->retry_ns = plugin->retry_ns * 2 < RETRY_MAX_NS ? plugin->retry_ns * 2
							       : RETRY_MAX_NS;
	loop_timer_set(plugin->retry, plugin->retry_ns);
}

static void on_registered(void *arg, enum grpc_code code, const char *error, struct str message)
{
	struct plugin *plugin = arg;
	(void)message;
	plugin->call = NULL;
	if (code != GRPC_OK) {
		// The socket may be there before anybody accepts on it.
		if (plugin->retry_ns >= RETRY_MAX_NS)
			log_kv(LOG_WARN, "the kubelet does not take the registration", "why", error,
			       "resource", plugin->resource, NULL);
		retry_later(plugin);
		return;
	}
	plugin->stats.registrations++;
	plugin->stats.is_registered = true;
	plugin->retry_ns = RETRY_MIN_NS;
	log_kv(LOG_INFO, "registered with the kubelet", "resource", plugin->resource, "socket",
	       plugin->name, NULL);
	if (plugin->stream == NULL)
		loop_timer_set(plugin->retry, STREAM_WAIT_NS);
}

static void close_server(struct plugin *plugin)
{
	if (plugin->call != NULL)
		grpc_call_cancel(plugin->call);
	plugin->call = NULL;
	// Streams are told by their closing callbacks, which must not start anything anew here.
	grpc_server_free(plugin->server);
	plugin->server = NULL;
	plugin->stream = NULL;
	plugin->waiting = NULL;
	plugin->stats.has_stream = false;
	plugin->stats.is_registered = false;
	loop_timer_stop(plugin->waiting_timer);
	loop_timer_stop(plugin->retry);
}

static bool path_of(const struct plugin *plugin, char out[PATH_MAX])
{
	int n = snprintf(out, PATH_MAX, "%s/%s", plugin->config.dir, plugin->name);
	return n > 0 && n < PATH_MAX;
}

static bool open_server(struct plugin *plugin)
{
	char word[SOCKET_WORD + 1], path[PATH_MAX];
	struct err err;
	random_base62(word, SOCKET_WORD);
	// Upstream's name of the socket, "nvidia-gpu.shared", with a word of this life.
	const char *slash = strchr(plugin->resource, '/');
	(void)snprintf(plugin->name, sizeof plugin->name, "nvidia-%.63s-%s.sock",
		       slash == NULL ? plugin->resource : slash + 1, word);
	if (!path_of(plugin, path))
		return false;
	if (grpc_server_new(plugin->loop, path, methods, ARRAY_COUNT(methods), plugin,
			    &plugin->server, &err) != ERR_OK) {
		if (plugin->retry_ns >= RETRY_MAX_NS)
			log_err(LOG_WARN, "socket of the device plugin", &err);
		return false;
	}
	return true;
}

static void begin(struct plugin *plugin)
{
	char path[PATH_MAX];
	AUTO(buf_done) struct buf message = { 0 };
	if (!plugin->has_list || plugin->call != NULL)
		return;
	if (plugin->server == NULL && !open_server(plugin)) {
		retry_later(plugin);
		return;
	}
	const struct dp_register request = { .version = STR("v1beta1"),
					     .endpoint = str_of(plugin->name),
					     .resource = str_of(plugin->resource),
					     .prefers = !plugin->is_late,
					     .pre_starts = plugin->is_late };
	dp_put_register(&message, &request);
	(void)snprintf(path, sizeof path, "%.4000s/kubelet.sock", plugin->config.dir);
	plugin->call = grpc_call_start(plugin->loop, path, DP_REGISTER, buf_str(&message),
				       REGISTER_TIMEOUT_NS, on_registered, plugin);
	if (plugin->call == NULL)
		retry_later(plugin);
}

static void on_retry(void *arg) { begin(arg); }

err_status plugin_new(struct loop *loop, const struct plugin_config *config, struct plugin **ret,
		      struct err *err)
{
	struct plugin *plugin = calloc(1, sizeof *plugin);
	if (plugin == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the device plugin");
	plugin->loop = loop;
	plugin->config = *config;
	plugin->config.resource = plugin->resource;
	(void)snprintf(plugin->resource, sizeof plugin->resource, "%.63s", config->resource);
	plugin->is_late = config->is_late != NULL && config->is_late(plugin->resource);
	plugin->retry_ns = RETRY_MIN_NS;
	plugin->list.limit = GRPC_MESSAGE_MAX_BYTES;
	plugin->waiting_message.limit = GRPC_MESSAGE_MAX_BYTES;
	plugin->retry = loop_timer_new(loop, on_retry, plugin);
	plugin->waiting_timer = loop_timer_new(loop, on_waiting_timer, plugin);
	*ret = plugin;
	return ERR_OK;
}

void plugin_free(struct plugin *plugin)
{
	if (plugin == NULL)
		return;
	close_server(plugin);
	loop_timer_free(plugin->retry);
	loop_timer_free(plugin->waiting_timer);
	buf_done(&plugin->list);
	buf_done(&plugin->waiting_message);
	free(plugin);
}

const char *plugin_resource(const struct plugin *plugin) { return plugin->resource; }

void plugin_set_list(struct plugin *plugin, struct str list)
{
	ASSERT(list.len <= GRPC_MESSAGE_MAX_BYTES);
	if (plugin->has_list && str_eq(list, buf_str(&plugin->list)))
		return;
	buf_clear(&plugin->list);
	buf_put(&plugin->list, list);
	if (plugin->stream != NULL) {
		plugin->stats.lists++;
		grpc_send(plugin->stream, buf_str(&plugin->list));
	}
	if (!plugin->has_list) {
		plugin->has_list = true;
		begin(plugin);
	}
}

void plugin_restart(struct plugin *plugin)
{
	close_server(plugin);
	plugin->retry_ns = RETRY_MIN_NS;
	begin(plugin);
}

bool plugin_has_lost_socket(const struct plugin *plugin)
{
	char path[PATH_MAX];
	return plugin->server != NULL && path_of(plugin, path) && access(path, F_OK) != 0;
}

void plugin_ask_again(struct plugin *plugin) { answer_waiting(plugin, false); }

void plugin_stats(const struct plugin *plugin, struct plugin_stats *ret) { *ret = plugin->stats; }
