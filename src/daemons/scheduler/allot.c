// SPDX-License-Identifier: Apache-2.0
// As kube-scheduler does it: first the finalizer, then allocation and reservation in one write,
// both on the version that was decided on, so that a claim that somebody changed is decided about
// anew.
#include "daemons/scheduler/allot.h"

#include "daemons/scheduler/wait.h"
#include "feed/feed_claim.h"
#include "k8s/path.h"
#include "sys/log.h"

#define STRATEGIC_PATCH "application/strategic-merge-patch+json"
#define FINALIZER "resource.kubernetes.io/delete-protection"
#define CALL_TIMEOUT_NS UINT64_C(5000000000)
#define POLL_NS UINT64_C(100000000)
enum { BODY_MAX_BYTES = 256 * 1024 };

struct allot {
	const char *namespace_, *name, *uid, *version;
	struct str allocation; // its text; empty: it is allocated already
	bool is_written;
};

struct allot_wait {
	struct wait base;
	const char *pod_uid, *pod;
	struct allot *allots;
	size_t count, at;
	bool has_finalizer; // of the one at hand
};

static void write_next(struct allot_wait *wait);

static struct allot_wait *find(const struct scheduler *s, struct str uid)
{
	struct wait *at = s->allot_waits;
	while (at != NULL && !str_eq_c(uid, ((struct allot_wait *)at)->pod_uid))
		at = at->next;
	return (struct allot_wait *)at;
}

static void on_timer(void *arg) { write_next(arg); }

static void put_field(struct buf *out, const char *name, struct str value)
{
	buf_printf(out, ",\"%s\":", name);
	buf_put_json(out, value);
}

static void put_tolerations(struct buf *out, const struct sched_claim_request *request)
{
	for (size_t i = 0; i < request->toleration_count; i++) {
		const struct sched_toleration *t = &request->tolerations[i];
		buf_printf(out, "%s{\"operator\":\"%s\"", i == 0 ? ",\"tolerations\":[" : ",",
			   t->any_value ? "Exists" : "Equal");
		if (t->key.len > 0)
			put_field(out, "key", t->key);
		if (t->value.len > 0)
			put_field(out, "value", t->value);
		if (t->effect.len > 0)
			put_field(out, "effect", t->effect);
		buf_put_byte(out, '}');
	}
	if (request->toleration_count > 0)
		buf_put_byte(out, ']');
}

static void put_allocation(struct buf *out, const struct sched_claim_allot *allot, struct str node)
{
	buf_put_c(out, "{\"devices\":{\"results\":[");
	for (size_t i = 0; i < allot->give_count; i++) {
		const struct sched_claim_give *give = &allot->gives[i];
		buf_put_c(out, i == 0 ? "{\"request\":" : ",{\"request\":");
		buf_put_json(out, give->request->name);
		put_field(out, "driver", STR("gpu.gpuaas.io"));
		put_field(out, "pool", node);
		put_field(out, "device", give->device);
		put_tolerations(out, give->request);
		buf_put_byte(out, '}');
	}
	buf_put_c(out, "]},\"nodeSelector\":{\"nodeSelectorTerms\":[{\"matchFields\":[{\"key\":"
		       "\"metadata.name\",\"operator\":\"In\",\"values\":[");
	buf_put_json(out, node);
	buf_put_c(out, "]}]}]}}");
}

static void copy_allot(struct allot_wait *wait, const struct sched_claim_allot *from,
		       struct str node, struct allot *to)
{
	AUTO(buf_done) struct buf text = { .limit = BODY_MAX_BYTES };
	struct str name = from->key, namespace_;
	bool is_split = str_split_next(&name, '/', &namespace_);
	ASSERT(is_split);
	*to = (struct allot){ .namespace_ = wait_keep(&wait->base, namespace_),
			      .name = wait_keep(&wait->base, name),
			      .uid = wait_keep(&wait->base, from->uid),
			      .version = wait_keep(&wait->base, from->version) };
	if (from->is_allocated)
		return;
	put_allocation(&text, from, node);
	ASSERT(buf_ok(&text)); // at most SCHED_CLAIM_GIVES_MAX devices
	to->allocation = str_of(wait_keep(&wait->base, buf_str(&text)));
}

void allot_keep(struct scheduler *s, const struct sched_decision *decision)
{
	if (decision->claim_allot_count == 0)
		return;
	// A pod that a list lost and found again may still have one on the way.
	allot_end(s, decision->uid, true);
	struct allot_wait *wait = wait_new(s, &s->allot_waits, sizeof *wait, on_timer);
	wait->pod_uid = wait_keep(&wait->base, decision->uid);
	wait->pod = wait_keep(&wait->base, decision->name);
	wait->count = decision->claim_allot_count;
	wait->allots = ARENA_ARRAY(wait->base.arena, struct allot, wait->count);
	ASSERT(wait->allots != NULL);
	for (size_t i = 0; i < wait->count; i++)
		copy_allot(wait, &decision->claim_allots[i], decision->node, &wait->allots[i]);
}

static struct k8s_call *patch(struct allot_wait *wait, const struct allot *allot, bool is_status,
			      struct str body, k8s_done_fn *on_done)
{
	const struct k8s_object_path path = { FEED_CLAIMS_VERSION, "resourceclaims",
					      allot->namespace_, allot->name,
					      is_status ? "status" : NULL };
	const struct k8s_request request = { .method = "PATCH",
					     .path = k8s_path(wait->base.arena, &path),
					     .content_type = STRATEGIC_PATCH,
					     .body = body,
					     .timeout_ns = CALL_TIMEOUT_NS,
					     .on_done = on_done,
					     .arg = wait };
	ASSERT(request.path.data != NULL);
	return k8s_call_start(wait->base.scheduler->client, &request);
}

static void put_meta(struct buf *out, const struct allot *allot, bool has_version)
{
	buf_put_c(out, "{\"metadata\":{\"uid\":");
	buf_put_json(out, str_of(allot->uid));
	if (has_version)
		put_field(out, "resourceVersion", str_of(allot->version));
}

static void fail(struct allot_wait *wait, const struct err *why)
{
	struct scheduler *s = wait->base.scheduler;
	AUTO(arena_freep) struct arena *arena = arena_new(1024);
	struct str uid = arena_dup(arena, str_of(wait->pod_uid));
	ASSERT(uid.data != NULL);
	log_err(LOG_WARN, "a resource claim cannot be written", why);
	s->counters.binds_failed++;
	allot_end(s, uid, false);
	sched_bind_failed(s->core, uid, scheduler_now_ms(s));
	scheduler_drive(s);
}

static void on_written(void *arg, const struct k8s_result *result)
{
	struct allot_wait *wait = arg;
	struct allot *allot = &wait->allots[wait->at];
	AUTO(json_decrefp) json_t *json = NULL;
	struct err err = { 0 };
	wait->base.call = NULL;
	if (result->status != ERR_OK) {
		fail(wait, result->err);
		return;
	}
	if (json_parse(result->body, &json, &err) != ERR_OK) {
		fail(wait, &err);
		return;
	}
	allot->version = wait_keep(&wait->base, json_text(json, "metadata.resourceVersion"));
	if (!wait->has_finalizer && allot->allocation.len > 0) {
		wait->has_finalizer = true;
	} else {
		allot->is_written = true;
		wait->has_finalizer = false;
		wait->at++;
	}
	write_next(wait);
}

static void put_status(const struct allot_wait *wait, const struct allot *allot, struct buf *out)
{
	bool is_new = allot->allocation.len > 0;
	put_meta(out, allot, is_new);
	buf_put_c(out, "},\"status\":{");
	if (is_new) {
		buf_put_c(out, "\"allocation\":");
		buf_put(out, allot->allocation);
		buf_put_byte(out, ',');
	}
	buf_put_c(out, "\"reservedFor\":[{\"resource\":\"pods\"");
	put_field(out, "name", str_of(wait->pod));
	put_field(out, "uid", str_of(wait->pod_uid));
	buf_put_c(out, "}]}}");
}

static void write_next(struct allot_wait *wait)
{
	struct scheduler *s = wait->base.scheduler;
	AUTO(buf_done) struct buf body = { .limit = BODY_MAX_BYTES };
	if (wait->at == wait->count) {
		if (bind_may_start(s))
			bind_post(s, &wait->base.order);
		else
			loop_timer_set(wait->base.timer, POLL_NS);
		return;
	}
	const struct allot *allot = &wait->allots[wait->at];
	bool is_status = wait->has_finalizer || allot->allocation.len == 0;
	if (is_status) {
		put_status(wait, allot, &body);
	} else {
		put_meta(&body, allot, true);
		buf_put_c(&body, ",\"finalizers\":[\"" FINALIZER "\"]}}");
	}
	ASSERT(buf_ok(&body));
	wait->base.call = patch(wait, allot, is_status, buf_str(&body), on_written);
	ASSERT(wait->base.call != NULL);
}

void allot_write(struct scheduler *s, const struct bind_order *order)
{
	struct allot_wait *wait = find(s, order->uid);
	if (wait == NULL) {
		bind_post(s, order);
		return;
	}
	wait_keep_order(&wait->base, order);
	write_next(wait);
}

// Its wait is gone by then.
static void on_taken_back(void *arg, const struct k8s_result *result)
{
	(void)arg;
	if (result->status != ERR_OK)
		log_err(LOG_WARN, "an allocation is not taken back", result->err);
}

// On the version that was written: a claim that another pod uses meanwhile stays as it is.
static void take_back(struct allot_wait *wait, const struct allot *allot)
{
	AUTO(buf_done) struct buf body = { .limit = BODY_MAX_BYTES };
	put_meta(&body, allot, true);
	if (allot->allocation.len > 0) {
		buf_put_c(&body, "},\"status\":{\"allocation\":null,\"reservedFor\":null}}");
	} else {
		buf_put_c(&body, "},\"status\":{\"reservedFor\":[{\"$patch\":\"delete\"");
		put_field(&body, "uid", str_of(wait->pod_uid));
		buf_put_c(&body, "}]}}");
	}
	ASSERT(buf_ok(&body));
	(void)patch(wait, allot, true, buf_str(&body), on_taken_back);
}

void allot_release(struct scheduler *s, const struct sched_claim_stray *stray)
{
	struct allot_wait *wait = wait_new(s, &s->allot_waits, sizeof *wait, on_timer);
	const struct sched_claim_allot told = { .key = stray->key,
						.uid = stray->uid,
						.version = stray->version,
						.is_allocated = true };
	struct allot allot;
	wait->pod_uid = "";
	copy_allot(wait, &told, STR(""), &allot);
	allot.allocation = STR("{}"); // whatever it is, it goes as a whole
	log_kv(LOG_INFO, "an allocation that was left behind is taken back", "namespace",
	       allot.namespace_, "claim", allot.name, NULL);
	take_back(wait, &allot);
	wait_free(&wait->base);
}

void allot_end(struct scheduler *s, struct str uid, bool is_bound)
{
	struct allot_wait *wait = find(s, uid);
	if (wait == NULL)
		return;
	for (size_t i = 0; i < wait->count && !is_bound; i++) {
		if (wait->allots[i].is_written)
			take_back(wait, &wait->allots[i]);
	}
	wait_free(&wait->base);
}

void allot_cancel_all(struct scheduler *s) { wait_free_all(&s->allot_waits); }
