// SPDX-License-Identifier: Apache-2.0
// What kube-scheduler does between the decision and the bind of a pod whose claims have no volume
// yet: writes the claim into the volume, or the node into the claim, then waits until the volume
// controller has bound each. What has been written stays when the bind fails, as there: the
// controllers own it from then on. A slow provisioner holds nobody up but the pods that use it.
#include "daemons/scheduler/claims.h"

#include "daemons/scheduler/allot.h"
#include "daemons/scheduler/wait.h"
#include "k8s/path.h"
#include "sys/log.h"

#define CALL_TIMEOUT_NS UINT64_C(5000000000)
#define POLL_NS UINT64_C(1000000000)
#define WAIT_MAX_NS (UINT64_C(600) * 1000000000)

struct claim {
	const char *namespace_, *name, *uid, *volume, *version; // volume "": to be made
};
struct claim_wait {
	struct wait base;
	struct claim *claims;
	size_t count, at;
	bool is_written; // all of them; at starts again for the wait
	uint64_t deadline_ns;
};

static void step(struct claim_wait *wait);

static void fail(struct claim_wait *wait, const char *why)
{
	struct scheduler *s = wait->base.scheduler;
	log_kv(LOG_WARN, why, "pod", wait->base.order.name.data, "claim",
	       wait->at < wait->count ? wait->claims[wait->at].name : "", NULL);
	s->counters.binds_failed++;
	allot_end(s, wait->base.order.uid, false);
	sched_bind_failed(s->core, wait->base.order.uid, scheduler_now_ms(s));
	wait_free(&wait->base);
	scheduler_drive(s);
}

static void on_timer(void *arg) { step(arg); }

static void step_later(struct claim_wait *wait) { loop_timer_set(wait->base.timer, POLL_NS); }

static struct str path_of(const struct claim_wait *wait, bool is_volume)
{
	const struct claim *claim = &wait->claims[wait->at];
	struct k8s_object_path path = { "v1", "persistentvolumeclaims", claim->namespace_,
					claim->name, NULL };
	if (is_volume)
		path = (struct k8s_object_path){ "v1", "persistentvolumes", NULL, claim->volume,
						 NULL };
	struct str text = k8s_path(wait->base.arena, &path);
	ASSERT(text.data != NULL);
	return text;
}

static void on_written(void *arg, const struct k8s_result *result)
{
	struct claim_wait *wait = arg;
	wait->base.call = NULL;
	if (result->status != ERR_OK) { // a conflict: decided on an older state
		log_err(LOG_WARN, "a claim cannot be written", result->err);
		fail(wait, "a bind is given up");
		return;
	}
	wait->at++;
	wait->is_written = wait->at == wait->count;
	if (wait->is_written)
		wait->at = 0;
	step(wait);
}

// The version makes a write fail that was decided on an older state.
static void put_version(struct buf *out, const char *version)
{
	buf_put_c(out, "{\"metadata\":{\"resourceVersion\":");
	buf_put_json(out, str_of(version));
	buf_put_c(out, ",\"annotations\":{");
}

static void write_next(struct claim_wait *wait)
{
	const struct claim *claim = &wait->claims[wait->at];
	AUTO(buf_done) struct buf body = { .limit = 16 * 1024 };
	bool is_volume = claim->volume[0] != 0;
	put_version(&body, claim->version);
	if (is_volume) {
		buf_put_c(&body,
			  "\"" FEED_BOUND_BY_CONTROLLER "\":\"yes\"}},\"spec\":{\"claimRef\":"
			  "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\","
			  "\"namespace\":");
		buf_put_json(&body, str_of(claim->namespace_));
		buf_put_c(&body, ",\"name\":");
		buf_put_json(&body, str_of(claim->name));
		buf_put_c(&body, ",\"uid\":");
		buf_put_json(&body, str_of(claim->uid));
		buf_put_c(&body, "}}}");
	} else {
		buf_put_c(&body, "\"" FEED_SELECTED_NODE "\":");
		buf_put_json(&body, wait->base.order.node);
		buf_put_c(&body, "}}}");
	}
	ASSERT(buf_ok(&body));
	struct k8s_request request = { .method = "PATCH",
				       .path = path_of(wait, is_volume),
				       .content_type = K8S_MERGE_PATCH,
				       .body = buf_str(&body),
				       .timeout_ns = CALL_TIMEOUT_NS,
				       .on_done = on_written,
				       .arg = wait };
	wait->base.call = k8s_call_start(wait->base.scheduler->client, &request);
}

static struct str annotation(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(json_at(object, "metadata.annotations"), name);
	return (struct str){ json_string_value(value), json_string_length(value) };
}

static void look(struct claim_wait *wait, const json_t *claim)
{
	const struct claim *wanted = &wait->claims[wait->at];
	bool is_made = wanted->volume[0] == 0;
	if (!str_eq_c(json_text(claim, "metadata.uid"), wanted->uid)) {
		fail(wait, "a claim was made anew");
	} else if (is_made &&
		   !str_eq(annotation(claim, FEED_SELECTED_NODE), wait->base.order.node)) {
		fail(wait, "no volume could be made for a claim");
	} else if (json_text(claim, "spec.volumeName").len == 0 ||
		   annotation(claim, FEED_BIND_COMPLETED).data == NULL) {
		step_later(wait);
	} else {
		wait->at++;
		step(wait);
	}
}

static void on_claim(void *arg, const struct k8s_result *result)
{
	struct claim_wait *wait = arg;
	AUTO(json_decrefp) json_t *claim = NULL;
	wait->base.call = NULL;
	if (result->status == ERR_NOT_FOUND)
		fail(wait, "a claim is gone");
	else if (result->status != ERR_OK || json_parse(result->body, &claim, NULL) != ERR_OK)
		step_later(wait);
	else
		look(wait, claim);
}

static void ask(struct claim_wait *wait)
{
	struct k8s_request request = { .method = "GET",
				       .path = path_of(wait, false),
				       .timeout_ns = CALL_TIMEOUT_NS,
				       .on_done = on_claim,
				       .arg = wait };
	wait->base.call = k8s_call_start(wait->base.scheduler->client, &request);
}

static void step(struct claim_wait *wait)
{
	struct scheduler *s = wait->base.scheduler;
	if (record_find(s, wait->base.order.uid) == NULL) {
		fail(wait, "a pod is gone before its claims were bound");
	} else if (world_mono_ns(loop_world(s->loop)) > wait->deadline_ns) {
		fail(wait, "a claim was not bound in time");
	} else if (!wait->is_written) {
		write_next(wait);
	} else if (wait->at < wait->count) {
		ask(wait);
	} else if (!bind_may_start(s)) {
		step_later(wait);
	} else {
		allot_write(s, &wait->base.order);
		wait_free(&wait->base);
	}
}

static void copy_claims(struct claim_wait *wait, const struct sched_decision *decision)
{
	wait->count = decision->claim_bind_count;
	wait->claims = ARENA_ARRAY(wait->base.arena, struct claim, wait->count);
	ASSERT(wait->claims != NULL);
	for (size_t i = 0; i < wait->count; i++) {
		const struct sched_claim_bind *bind = &decision->claim_binds[i];
		struct str name = bind->claim_key, namespace_;
		bool is_split = str_split_next(&name, '/', &namespace_);
		ASSERT(is_split);
		wait->claims[i] =
			(struct claim){ .namespace_ = wait_keep(&wait->base, namespace_),
					.name = wait_keep(&wait->base, name),
					.uid = wait_keep(&wait->base, bind->claim_uid),
					.volume = wait_keep(&wait->base, bind->volume),
					.version = wait_keep(&wait->base, bind->version) };
	}
}

void claims_start(struct scheduler *s, const struct bind_order *order,
		  const struct sched_decision *decision)
{
	struct claim_wait *wait = wait_new(s, &s->claim_waits, sizeof *wait, on_timer);
	wait_keep_order(&wait->base, order);
	wait->deadline_ns = world_mono_ns(loop_world(s->loop)) + WAIT_MAX_NS;
	copy_claims(wait, decision);
	write_next(wait);
}

void claims_cancel_all(struct scheduler *s) { wait_free_all(&s->claim_waits); }
