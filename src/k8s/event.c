// SPDX-License-Identifier: Apache-2.0
#include "k8s/event.h"

#include "base/map.h"
#include "k8s/microtime.h"
#include "k8s/path.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	SERIES_MAX = 2048, // known; the oldest is forgotten
	QUEUE_MAX = 500,   // waiting to be sent
	IN_FLIGHT_MAX = 2,
	NAME_MAX_BYTES = 253,
	INSTANCE_MAX_BYTES = 128,
	PATH_ARENA_BYTES = 16 * 1024,
};
#define SECOND_NS UINT64_C(1000000000)
#define SERIES_NS (360 * SECOND_NS)       // a later repeat is a new Event
#define SERIES_UPDATE_NS (60 * SECOND_NS) // between two updates of a count
#define CALL_TIMEOUT_NS (10 * SECOND_NS)

enum series_state {
	SERIES_QUEUED, // in the queue, for its first Event or a new count
	SERIES_SENDING,
	SERIES_IDLE,
};

struct series {
	struct event_sink *sink;
	char *key, *namespace_, *name;
	struct buf body; // of the first Event, until it is sent
	enum series_state state;
	bool exists; // on the server
	int64_t count, told_count;
	uint64_t last_ns, told_ns;
	struct k8s_call *call;
	struct series *next_queued;
};

struct event_sink {
	struct k8s_client *client;
	char *controller, *instance;
	struct map *by_key;
	struct series *first_queued, *last_queued;
	size_t queued_count, in_flight_count;
	struct loop_timer *timer; // a token, or a count that may be told again
	double tokens;
	uint64_t filled_ns;
	uint64_t dropped_count;
};

static void pump(void *arg);

static uint64_t now(const struct event_sink *sink)
{
	return world_mono_ns(loop_world(k8s_client_loop(sink->client)));
}

// ---- series

static void series_free(struct series *series)
{
	k8s_call_cancel(series->call);
	buf_done(&series->body);
	free(series->key);
	free(series->namespace_);
	free(series->name);
	free(series);
}

static void series_forget(struct series *series)
{
	void *old = map_remove(series->sink->by_key, str_of(series->key));
	ASSERT(old == series && series->state == SERIES_IDLE);
	series_free(series);
}

static void queue_push(struct series *series)
{
	struct event_sink *sink = series->sink;
	series->state = SERIES_QUEUED;
	series->next_queued = NULL;
	if (sink->last_queued != NULL)
		sink->last_queued->next_queued = series;
	else
		sink->first_queued = series;
	sink->last_queued = series;
	sink->queued_count++;
}

static struct series *queue_pop(struct event_sink *sink)
{
	struct series *series = sink->first_queued;
	ASSERT(series != NULL && sink->queued_count > 0);
	sink->first_queued = series->next_queued;
	if (sink->first_queued == NULL)
		sink->last_queued = NULL;
	sink->queued_count--;
	return series;
}

// Room in the map: what is long over goes first, else the oldest.
static void make_room(struct event_sink *sink)
{
	struct str key;
	void *value;
	for (size_t i = 0; map_next(sink->by_key, &i, &key, &value);) {
		struct series *series = value;
		if (series->state == SERIES_IDLE) {
			series_forget(series);
			return;
		}
	}
}

// ---- sending

static void on_sent(void *arg, const struct k8s_result *result)
{
	struct series *series = arg;
	struct event_sink *sink = series->sink;
	series->call = NULL;
	series->state = SERIES_IDLE;
	ASSERT(sink->in_flight_count > 0);
	sink->in_flight_count--;
	if (result->status == ERR_OK) {
		series->exists = true;
		buf_done(&series->body);
	} else {
		sink->dropped_count++;
	}
	// Without an Event on the server (refused, or expired since) the next one starts anew.
	if (result->status != ERR_OK)
		series_forget(series);
	pump(sink);
}

static void send_series(struct series *series)
{
	struct event_sink *sink = series->sink;
	AUTO(arena_freep) struct arena *arena = arena_new(PATH_ARENA_BYTES);
	AUTO(buf_done) struct buf patch = { 0 };
	char time[TIME_TEXT_BYTES];
	struct k8s_object_path path = { "events.k8s.io/v1", "events", series->namespace_,
					series->exists ? series->name : NULL, NULL };
	if (series->exists)
		buf_printf(&patch, "{\"series\":{\"count\":%lld,\"lastObservedTime\":\"%s\"}}",
			   (long long)series->count,
			   k8s_micro_time(world_wall_s(loop_world(k8s_client_loop(sink->client))),
					  0, time));
	struct k8s_request request = {
		.method = series->exists ? "PATCH" : "POST",
		.path = k8s_path(arena, &path),
		.content_type = series->exists ? K8S_MERGE_PATCH : NULL,
		.body = series->exists ? buf_str(&patch) : buf_str(&series->body),
		.timeout_ns = CALL_TIMEOUT_NS,
		.on_done = on_sent,
		.arg = series,
	};
	ASSERT(request.path.data != NULL); // checked when it was put
	// The first Event says nothing of repeats, so what came before it was sent is told next.
	series->told_count = series->exists ? series->count : 1;
	series->told_ns = now(sink);
	series->state = SERIES_SENDING;
	sink->in_flight_count++;
	series->call = k8s_call_start(sink->client, &request);
}

static void fill_tokens(struct event_sink *sink)
{
	uint64_t now_ns = now(sink);
	sink->tokens += (double)(now_ns - sink->filled_ns) * EVENT_RATE_PER_S / (double)SECOND_NS;
	if (sink->tokens > EVENT_BURST)
		sink->tokens = EVENT_BURST;
	sink->filled_ns = now_ns;
}

// Counts that have grown and were not told for a while join the queue. The time until the next
// does, 0 when there is none.
static uint64_t queue_counts(struct event_sink *sink)
{
	struct str key;
	void *value;
	uint64_t now_ns = now(sink), next_ns = 0;
	for (size_t i = 0; map_next(sink->by_key, &i, &key, &value);) {
		struct series *series = value;
		if (series->state != SERIES_IDLE || series->count == series->told_count)
			continue;
		// The first repeat is told at once: it makes the Event a series.
		uint64_t due_ns = series->told_count == 1 ? 0 : series->told_ns + SERIES_UPDATE_NS;
		if (due_ns <= now_ns)
			queue_push(series);
		else if (next_ns == 0 || due_ns - now_ns < next_ns)
			next_ns = due_ns - now_ns;
	}
	return next_ns;
}

static void pump(void *arg)
{
	struct event_sink *sink = arg;
	uint64_t next_ns = queue_counts(sink);
	fill_tokens(sink);
	while (sink->first_queued != NULL && sink->in_flight_count < IN_FLIGHT_MAX &&
	       sink->tokens >= 1) {
		struct series *series = queue_pop(sink);
		sink->tokens -= 1;
		send_series(series);
	}
	if (sink->first_queued != NULL && sink->tokens < 1)
		next_ns = SECOND_NS / EVENT_RATE_PER_S;
	if (next_ns > 0)
		loop_timer_set(sink->timer, next_ns);
}

// ---- the sink

struct event_sink *event_sink_new(struct k8s_client *client, const char *controller,
				  const char *instance)
{
	struct event_sink *sink = calloc(1, sizeof *sink);
	ASSERT(sink != NULL);
	sink->client = client;
	sink->controller = strdup(controller);
	sink->instance = strndup(instance, INSTANCE_MAX_BYTES);
	sink->by_key = map_new(world_random(loop_world(k8s_client_loop(client))));
	sink->timer = loop_timer_new(k8s_client_loop(client), pump, sink);
	sink->tokens = EVENT_BURST;
	sink->filled_ns = now(sink);
	ASSERT(sink->controller != NULL && sink->instance != NULL);
	return sink;
}

void event_sink_free(struct event_sink *sink)
{
	struct str key;
	void *value;
	if (sink == NULL)
		return;
	loop_timer_free(sink->timer);
	for (size_t i = 0; map_next(sink->by_key, &i, &key, &value);)
		series_free(value);
	map_free(sink->by_key);
	free(sink->controller);
	free(sink->instance);
	free(sink);
}

static struct str cut_note(const char *note)
{
	struct str text = str_slice(str_of(note), 0, EVENT_NOTE_MAX_BYTES);
	while (text.len > 0 && !str_is_utf8(text))
		text.len--; // not in the middle of a character
	return text;
}

static void put_member(struct buf *out, const char *name, struct str value)
{
	buf_printf(out, "%s\"%s\":", out->data[out->len - 1] == '{' ? "" : ",", name);
	buf_put_json(out, value);
}

struct event_words {
	const char *type, *reason, *action;
	struct str note;
};

static void put_event(struct series *series, const struct event_about *about,
		      const struct event_words *words)
{
	const struct event_sink *sink = series->sink;
	const struct world *world = loop_world(k8s_client_loop(sink->client));
	struct buf *out = &series->body;
	char time[TIME_TEXT_BYTES];
	buf_put_c(out, "{");
	put_member(out, "apiVersion", STR("events.k8s.io/v1"));
	put_member(out, "kind", STR("Event"));
	buf_put_c(out, ",\"metadata\":{");
	put_member(out, "name", str_of(series->name));
	put_member(out, "namespace", str_of(series->namespace_));
	buf_put_c(out, "},\"regarding\":{");
	put_member(out, "apiVersion", str_of(about->api_version));
	put_member(out, "kind", str_of(about->kind));
	if (about->namespace_ != NULL && about->namespace_[0] != '\0')
		put_member(out, "namespace", str_of(about->namespace_));
	put_member(out, "name", str_of(about->name));
	put_member(out, "uid", str_of(about->uid));
	buf_put_c(out, "}");
	put_member(out, "eventTime", str_of(k8s_micro_time(world_wall_s(world), 0, time)));
	put_member(out, "reportingController", str_of(sink->controller));
	put_member(out, "reportingInstance", str_of(sink->instance));
	put_member(out, "type", str_of(words->type));
	put_member(out, "reason", str_of(words->reason));
	put_member(out, "action", str_of(words->action));
	put_member(out, "note", words->note);
	buf_put_c(out, "}");
}

static struct series *series_new(struct event_sink *sink, struct str key,
				 const struct event_about *about, const struct event_words *words)
{
	struct series *series = calloc(1, sizeof *series);
	bool has_namespace = about->namespace_ != NULL && about->namespace_[0] != '\0';
	char name[NAME_MAX_BYTES + 1];
	ASSERT(series != NULL);
	(void)snprintf(name, sizeof name, "%.230s.%016llx", about->name,
		       (unsigned long long)world_random(loop_world(k8s_client_loop(sink->client))));
	series->sink = sink;
	series->key = strndup(key.data, key.len);
	series->namespace_ = strdup(has_namespace ? about->namespace_ : "default");
	series->name = strdup(name);
	series->count = 1;
	series->last_ns = now(sink);
	ASSERT(series->key != NULL && series->namespace_ != NULL && series->name != NULL);
	put_event(series, about, words);
	return series;
}

void event_put(struct event_sink *sink, const struct event_about *about, const char *type,
	       const char *reason, const char *action, const char *note)
{
	AUTO(buf_done) struct buf key = { 0 };
	struct event_words words = { type, reason, action, cut_note(note) };
	buf_printf(&key, "%s/%s/%s/%s/%s/%s/" STR_FMT,
		   about->namespace_ == NULL ? "" : about->namespace_, about->name, about->uid,
		   type, reason, action, STR_ARG(words.note));
	struct series *known = map_find(sink->by_key, buf_str(&key));
	if (known != NULL &&
	    (known->state != SERIES_IDLE || now(sink) - known->last_ns < SERIES_NS)) {
		known->count++;
		known->last_ns = now(sink);
		loop_timer_set(sink->timer, 0);
		return;
	}
	// Names that cannot be in a path are not of this cluster.
	bool is_named = str_is_dns_name(str_of(about->name)) &&
			(about->namespace_ == NULL || about->namespace_[0] == '\0' ||
			 str_is_dns_label(str_of(about->namespace_)));
	if (!is_named || sink->queued_count >= QUEUE_MAX) {
		sink->dropped_count++;
		return;
	}
	if (known != NULL)
		series_forget(known);
	if (map_count(sink->by_key) >= SERIES_MAX)
		make_room(sink);
	struct series *series = series_new(sink, buf_str(&key), about, &words);
	(void)map_set(sink->by_key, buf_str(&key), series);
	queue_push(series);
	loop_timer_set(sink->timer, 0);
}

uint64_t event_dropped_count(const struct event_sink *sink) { return sink->dropped_count; }
