// SPDX-License-Identifier: Apache-2.0
// Bindings in flight. One without an answer may have happened: its space stays taken until the
// pod itself says what became of it.
#include "daemons/scheduler/allot.h"
#include "daemons/scheduler/claims.h"
#include "k8s/path.h"
#include "sched/why.h"
#include "sys/log.h"
#include "sys/mac.h"

#include <inttypes.h>
#include <stdio.h>

// The API server gives a bind up before we do, so that one without an answer is settled soon.
#define SERVER_TIMEOUT "?timeout=3s"
#define BIND_TIMEOUT_NS UINT64_C(5000000000)
enum { DOUBT_MS = 4000 };
#define CHECK_DELAY_NS UINT64_C(1000000000)

bool bind_may_start(const struct scheduler *s) { return s->binds_in_flight < BINDS_MAX; }

static struct bind *free_bind(struct scheduler *s)
{
	for (size_t i = 0; i < BINDS_MAX; i++) {
		struct bind *bind = &s->binds[i];
		if (bind->scheduler == NULL)
			return bind;
	}
	ASSERT(false && "bind_may_start was not asked");
	return NULL;
}

static void release(struct bind *bind)
{
	struct scheduler *s = bind->scheduler;
	loop_timer_free(bind->timer);
	*bind = (struct bind){ .scheduler = NULL };
	s->binds_in_flight--;
	scheduler_drive(s);
}

static void finish_ok(struct bind *bind)
{
	struct scheduler *s = bind->scheduler;
	char note[600];
	uint64_t now_ns = world_mono_ns(loop_world(s->loop));
	struct event_about about = { "v1", "Pod", bind->namespace_, bind->name, bind->uid };
	(void)snprintf(note, sizeof note, "Successfully assigned %.250s/%.250s to %.60s",
		       bind->namespace_, bind->name, bind->node);
	event_put(s->events, &about, "Normal", "Scheduled", "Binding", note);
	s->counters.binds_ok++;
	allot_end(s, str_of(bind->uid), true);
	metric_observe(&s->counters.bind_s, (double)(now_ns - bind->started_ns) / 1e9);
	release(bind);
}

static void finish_failed(struct bind *bind)
{
	struct scheduler *s = bind->scheduler;
	s->counters.binds_failed++;
	allot_end(s, str_of(bind->uid), false);
	sched_bind_failed(s->core, str_of(bind->uid), scheduler_now_ms(s));
	release(bind);
}

static void start_check(struct bind *bind);

static void on_check_timer(void *arg) { start_check(arg); }

static void check_later(struct bind *bind)
{
	if (bind->timer == NULL)
		bind->timer = loop_timer_new(bind->scheduler->loop, on_check_timer, bind);
	loop_timer_set(bind->timer, CHECK_DELAY_NS);
}

static void on_checked(void *arg, const struct k8s_result *result)
{
	struct bind *bind = arg;
	AUTO(json_decrefp) json_t *pod = NULL;
	bind->call = NULL;
	if (result->status == ERR_NOT_FOUND) {
		finish_failed(bind);
		return;
	}
	if (result->status != ERR_OK || json_parse(result->body, &pod, NULL) != ERR_OK) {
		check_later(bind);
		return;
	}
	bool is_same = str_eq_c(json_text(pod, "metadata.uid"), bind->uid);
	if (is_same && str_eq_c(json_text(pod, "spec.nodeName"), bind->node))
		finish_ok(bind);
	else
		finish_failed(bind); // if it is on another node, the watch has told or will tell
}

static struct str pod_path(struct arena *arena, const struct bind *bind, const char *subresource)
{
	struct k8s_object_path path = { "v1", "pods", bind->namespace_, bind->name, subresource };
	struct str text = k8s_path(arena, &path);
	ASSERT(text.data != NULL);
	return text;
}

static void start_check(struct bind *bind)
{
	struct scheduler *s = bind->scheduler;
	AUTO(arena_freep) struct arena *arena = arena_new(64 * 1024);
	ASSERT(arena != NULL);
	struct k8s_request request = { .method = "GET",
				       .path = pod_path(arena, bind, NULL),
				       .timeout_ns = BIND_TIMEOUT_NS,
				       .on_done = on_checked,
				       .arg = bind };
	bind->is_checking = true;
	bind->call = k8s_call_start(s->client, &request);
}

static bool is_sure(const struct k8s_result *result)
{
	return result->code >= 400 && result->code < 500; // refused: nothing has happened
}

static void on_bound(void *arg, const struct k8s_result *result)
{
	struct bind *bind = arg;
	bind->call = NULL;
	if (result->status == ERR_OK) {
		finish_ok(bind);
		return;
	}
	log_err(LOG_WARN, "a bind failed", result->err);
	if (is_sure(result)) {
		finish_failed(bind);
		return;
	}
	bind->scheduler->counters.binds_unknown++;
	check_later(bind);
}

// What people are told who ask later why it is there; it rides on the bind and costs no write.
static void put_why(struct scheduler *s, const struct sched_decision *decision, struct buf *out)
{
	AUTO(buf_done) struct buf text = { .limit = SCHED_WHY_TEXT_MAX_BYTES };
	struct sched_why why;
	if (!sched_why_get(s->core, decision->uid, &why))
		return;
	sched_why_put(&why, &text);
	if (!buf_ok(&text))
		return;
	buf_put_c(out, ",\"" FEED_WHY_ANNOTATION "\":");
	buf_put_json(out, buf_str(&text));
}

static bool put_body(struct scheduler *s, const struct sched_decision *decision, struct buf *out)
{
	buf_put_c(out, "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":");
	buf_put_json(out, decision->name);
	buf_put_c(out, ",\"namespace\":");
	buf_put_json(out, decision->namespace_);
	buf_put_c(out, ",\"uid\":");
	buf_put_json(out, decision->uid);
	// A bind of an earlier leader that arrives late is refused by this (policy
	// gpuaas-bindings).
	buf_printf(out, ",\"annotations\":{\"" FEED_TERM_ANNOTATION "\":\"%" PRId64 "\"", s->term);
	put_why(s, decision, out);
	if (decision->grant_count > 0) {
		AUTO(buf_done) struct buf plan = { .limit = 256 * 1024 };
		char mac[MAC_TEXT_BYTES];
		feed_plan_write(&plan, decision->grants, decision->grant_count);
		struct mac_plan signed_plan = { decision->uid, decision->node, buf_str(&plan) };
		if (!buf_ok(&plan) || !mac_plan_sign(buf_str(&s->plan_key), &signed_plan, mac))
			return false;
		buf_put_c(out, ",\"" FEED_PLAN_ANNOTATION "\":");
		buf_put_json(out, buf_str(&plan));
		buf_printf(out, ",\"" FEED_MAC_ANNOTATION "\":\"%s\"", mac);
	}
	buf_put_c(out, "}},\"target\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":");
	buf_put_json(out, decision->node);
	buf_put_c(out, "}}");
	return buf_ok(out);
}

static bool copy_text(char *out, size_t out_bytes, struct str text)
{
	if (text.len >= out_bytes)
		return false;
	memcpy(out, text.data, text.len);
	out[text.len] = 0;
	return true;
}

void bind_post(struct scheduler *s, const struct bind_order *order)
{
	struct bind *bind = free_bind(s);
	AUTO(arena_freep) struct arena *arena = arena_new(64 * 1024);
	ASSERT(arena != NULL);
	bool good = copy_text(bind->uid, sizeof bind->uid, order->uid) &&
		    copy_text(bind->namespace_, sizeof bind->namespace_, order->namespace_) &&
		    copy_text(bind->name, sizeof bind->name, order->name) &&
		    copy_text(bind->node, sizeof bind->node, order->node);
	bind->scheduler = s;
	bind->started_ns = world_mono_ns(loop_world(s->loop));
	s->binds_in_flight++;
	if (!good || order->body.len == 0) {
		log_kv(LOG_ERROR, "a plan could not be signed or written", "pod", bind->name, NULL);
		finish_failed(bind);
		return;
	}
	struct str path = pod_path(arena, bind, "binding");
	char *limited = arena_printf(arena, STR_FMT SERVER_TIMEOUT, STR_ARG(path));
	ASSERT(limited != NULL);
	struct k8s_request request = { .method = "POST",
				       .path = str_of(limited),
				       .body = order->body,
				       .timeout_ns = BIND_TIMEOUT_NS,
				       .on_done = on_bound,
				       .arg = bind };
	bind->call = k8s_call_start(s->client, &request);
}

void bind_start(struct scheduler *s, const struct sched_decision *decision)
{
	AUTO(buf_done) struct buf body = { .limit = 512 * 1024 };
	struct bind_order order = { .uid = decision->uid,
				    .namespace_ = decision->namespace_,
				    .name = decision->name,
				    .node = decision->node };
	if (put_body(s, decision, &body))
		order.body = buf_str(&body);
	allot_keep(s, decision);
	if (decision->claim_bind_count > 0 && order.body.len > 0)
		claims_start(s, &order, decision);
	else
		allot_write(s, &order);
}

// What is under way cannot be called back; whoever leads next waits until it is settled, and we
// may be the one.
void bind_cancel_all(struct scheduler *s)
{
	if (s->binds_in_flight > 0)
		s->doubt_until_ms = scheduler_now_ms(s) + DOUBT_MS;
	for (size_t i = 0; i < BINDS_MAX; i++) {
		struct bind *bind = &s->binds[i];
		if (bind->scheduler == NULL)
			continue;
		k8s_call_cancel(bind->call);
		loop_timer_free(bind->timer);
		*bind = (struct bind){ .scheduler = NULL };
	}
	s->binds_in_flight = 0;
}
