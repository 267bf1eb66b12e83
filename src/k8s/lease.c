// SPDX-License-Identifier: Apache-2.0
#include "k8s/lease.h"

#include "k8s/microtime.h"
#include "k8s/path.h"
#include "sys/random.h"

#include <stdio.h>
#include <stdlib.h>

enum { SUFFIX_BYTES = 8, ARENA_BYTES = 64 * 1024 };
#define SECOND_NS UINT64_C(1000000000)
#define CALL_TIMEOUT_NS SECOND_NS

struct lease {
	struct k8s_client *client;
	struct lease_core core;
	struct arena *arena; // paths and names
	const char *name, *namespace_;
	struct str path, collection_path;
	void (*on_acquired)(void *arg, int64_t transitions);
	void (*on_lost)(void *arg);
	void *arg;
	struct loop_timer *timer; // the next step
	struct loop_timer *guard; // the end of the trust in the last renewal
	struct k8s_call *call;
	uint64_t sent_ns;
	int64_t led_transitions;
	// Where wall time was at a monotonic instant: renewTime is for people.
	int64_t start_wall_s;
	uint64_t start_ns;
	char acquired_text[TIME_TEXT_BYTES];
	struct err problem;
	bool is_released; // of lease_stop
};

static uint64_t now(const struct lease *lease)
{
	return world_mono_ns(loop_world(k8s_client_loop(lease->client)));
}

// ---- JSON

static void format_now(const struct lease *lease, char out[TIME_TEXT_BYTES])
{
	uint64_t passed_ns = now(lease) - lease->start_ns;
	(void)k8s_micro_time(lease->start_wall_s + (int64_t)(passed_ns / SECOND_NS),
			     (uint32_t)(passed_ns % SECOND_NS / 1000), out);
}

static void put_body(struct lease *lease, struct buf *out, const struct lease_plan *plan,
		     const char *holder)
{
	char renewed[TIME_TEXT_BYTES];
	format_now(lease, renewed);
	if (plan->act != LEASE_RENEW)
		memcpy(lease->acquired_text, renewed, sizeof renewed);
	buf_printf(out,
		   "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{"
		   "\"name\":\"%s\",\"namespace\":\"%s\"",
		   lease->name, lease->namespace_);
	if (plan->act != LEASE_CREATE) {
		buf_put_c(out, ",\"resourceVersion\":");
		buf_put_json(out, str_of(lease->core.version));
	}
	buf_put_c(out, "},\"spec\":{\"holderIdentity\":");
	buf_put_json(out, str_of(holder));
	buf_printf(out,
		   ",\"leaseDurationSeconds\":%d,\"leaseTransitions\":%lld,\"acquireTime\":\"%s\","
		   "\"renewTime\":\"%s\"}}",
		   (int)LEASE_DURATION_S, (long long)plan->transitions, lease->acquired_text,
		   renewed);
}

err_status lease_record_read(const json_t *value, struct lease_record *ret, struct err *err)
{
	struct lease_record record = {
		.holder = json_text(value, "spec.holderIdentity"),
		.version = json_text(value, "metadata.resourceVersion"),
		.transitions = json_int(value, "spec.leaseTransitions", 0),
		.duration_s = json_int(value, "spec.leaseDurationSeconds", LEASE_DURATION_S),
	};
	if (record.version.len == 0 || record.version.len >= LEASE_VERSION_MAX_BYTES)
		return err_set(err, ERR_PROTOCOL, "Lease: resourceVersion is missing or too long");
	// It is an int32 in the API, and we write one more than what we read.
	if (record.transitions < 0 || record.transitions >= INT32_MAX)
		return err_set(err, ERR_PROTOCOL, "Lease: leaseTransitions is out of range");
	*ret = record;
	return ERR_OK;
}

// ---- calls

static void step(void *arg);

// Reads the Lease of an answer; false when there is none to go by, which is a failure then. The
// record borrows from *value, which the caller frees.
static bool take_answer(struct lease *lease, const struct k8s_result *result, json_t **value,
			struct lease_record *ret_record)
{
	if (result->status != ERR_OK) {
		lease->problem = *result->err;
	} else if (json_parse(result->body, value, &lease->problem) == ERR_OK &&
		   lease_record_read(*value, ret_record, &lease->problem) == ERR_OK) {
		lease->problem.text[0] = '\0';
		return true;
	}
	lease_core_failed(&lease->core, now(lease));
	return false;
}

static void on_looked(void *arg, const struct k8s_result *result)
{
	struct lease *lease = arg;
	struct lease_record record;
	AUTO(json_decrefp) json_t *value = NULL;
	lease->call = NULL;
	if (result->code == 404)
		lease_core_looked(&lease->core, now(lease), NULL);
	else if (take_answer(lease, result, &value, &record))
		lease_core_looked(&lease->core, now(lease), &record);
	step(lease);
}

static void on_wrote(void *arg, const struct k8s_result *result)
{
	struct lease *lease = arg;
	struct lease_record record;
	AUTO(json_decrefp) json_t *value = NULL;
	bool has_begun = false;
	const uint64_t now_ns = now(lease);
	lease->call = NULL;
	if (result->code == 409 || result->code == 404)
		lease_core_conflict(&lease->core);
	else if (take_answer(lease, result, &value, &record))
		has_begun = lease_core_wrote(&lease->core, now_ns, lease->sent_ns, &record);
	if (lease_core_is_held(&lease->core, now_ns))
		loop_timer_set(lease->guard, lease->core.trusted_until_ns - now_ns);
	if (has_begun) {
		lease->led_transitions = record.transitions;
		lease->on_acquired(lease->arg, record.transitions);
	}
	step(lease);
}

static void send_look(struct lease *lease)
{
	struct k8s_request request = {
		.method = "GET",
		.path = lease->path,
		.timeout_ns = CALL_TIMEOUT_NS,
		.on_done = on_looked,
		.arg = lease,
	};
	lease->call = k8s_call_start(lease->client, &request);
}

static void send_write(struct lease *lease, const struct lease_plan *plan)
{
	AUTO(buf_done) struct buf body = { 0 };
	bool is_create = plan->act == LEASE_CREATE;
	put_body(lease, &body, plan, lease->core.identity);
	ASSERT(buf_ok(&body));
	struct k8s_request request = {
		.method = is_create ? "POST" : "PATCH",
		.path = is_create ? lease->collection_path : lease->path,
		.content_type = is_create ? NULL : K8S_MERGE_PATCH,
		.body = buf_str(&body),
		.timeout_ns = CALL_TIMEOUT_NS,
		.on_done = on_wrote,
		.arg = lease,
	};
	lease->sent_ns = now(lease);
	lease->call = k8s_call_start(lease->client, &request);
}

static void step(void *arg)
{
	struct lease *lease = arg;
	struct lease_plan plan;
	if (lease->call != NULL)
		return; // its answer steps
	lease_core_step(&lease->core, now(lease), &plan);
	switch (plan.act) {
	case LEASE_WAIT: loop_timer_set(lease->timer, plan.wait_ns); break;
	case LEASE_LOOK: send_look(lease); break;
	case LEASE_CREATE:
	case LEASE_TAKE:
	case LEASE_RENEW: send_write(lease, &plan); break;
	case LEASE_LOST:
		loop_timer_stop(lease->guard);
		lease->on_lost(lease->arg);
		loop_timer_set(lease->timer, 0);
		break;
	}
}

// Leadership ends on time even while a renewal is under way.
static void on_guard(void *arg)
{
	struct lease *lease = arg;
	if (lease->call != NULL) {
		k8s_call_cancel(lease->call);
		lease->call = NULL;
		lease_core_failed(&lease->core, now(lease));
	}
	step(lease);
}

// ---- start and stop

struct lease *lease_start(struct k8s_client *client, const struct lease_config *config)
{
	struct lease *lease = calloc(1, sizeof *lease);
	struct loop *loop = k8s_client_loop(client);
	char suffix[SUFFIX_BYTES + 1], identity[LEASE_IDENTITY_MAX_BYTES];
	ASSERT(lease != NULL && config->on_acquired != NULL && config->on_lost != NULL);
	*lease = (struct lease){
		.client = client,
		.arena = arena_new(ARENA_BYTES),
		.on_acquired = config->on_acquired,
		.on_lost = config->on_lost,
		.arg = config->arg,
		.start_ns = world_mono_ns(loop_world(loop)),
		.start_wall_s = world_wall_s(loop_world(loop)),
	};
	ASSERT(lease->arena != NULL);
	struct k8s_object_path path = { "coordination.k8s.io/v1", "leases", config->namespace_,
					NULL, NULL };
	lease->collection_path = k8s_path(lease->arena, &path);
	path.name = config->name;
	lease->path = k8s_path(lease->arena, &path);
	ASSERT(lease->path.data != NULL && str_is_dns_name(str_of(config->name)));
	lease->name = arena_cstr(lease->arena, str_of(config->name));
	lease->namespace_ = arena_cstr(lease->arena, str_of(config->namespace_));
	random_base62(suffix, SUFFIX_BYTES);
	(void)snprintf(identity, sizeof identity, "%.200s_%s", config->identity, suffix);
	lease_core_init(&lease->core, identity);
	lease->timer = loop_timer_new(loop, step, lease);
	lease->guard = loop_timer_new(loop, on_guard, lease);
	loop_timer_set(lease->timer, 0);
	return lease;
}

static void on_released(void *arg, const struct k8s_result *result)
{
	struct lease *lease = arg;
	(void)result; // whoever follows waits for the end of the duration then
	lease->call = NULL;
	lease->is_released = true;
}

// The loop may be stopping, so it is turned here, for a second at most.
static void release(struct lease *lease)
{
	AUTO(buf_done) struct buf body = { 0 };
	struct lease_plan plan = { .act = LEASE_RENEW, .transitions = lease->led_transitions };
	put_body(lease, &body, &plan, "");
	struct k8s_request request = {
		.method = "PATCH",
		.path = lease->path,
		.content_type = K8S_MERGE_PATCH,
		.body = buf_str(&body),
		.timeout_ns = SECOND_NS,
		.on_done = on_released,
		.arg = lease,
	};
	uint64_t end_ns = now(lease) + SECOND_NS;
	lease->call = k8s_call_start(lease->client, &request);
	while (!lease->is_released && now(lease) < end_ns)
		loop_run_once(k8s_client_loop(lease->client), 50);
}

void lease_stop(struct lease *lease)
{
	if (lease == NULL)
		return;
	loop_timer_free(lease->timer);
	loop_timer_free(lease->guard);
	k8s_call_cancel(lease->call);
	lease->call = NULL;
	if (lease_is_held(lease))
		release(lease);
	k8s_call_cancel(lease->call);
	arena_free(lease->arena);
	free(lease);
}

bool lease_is_held(const struct lease *lease)
{
	return lease_core_is_held(&lease->core, now(lease));
}

const char *lease_problem(const struct lease *lease) { return lease->problem.text; }
