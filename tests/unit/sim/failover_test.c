// SPDX-License-Identifier: Apache-2.0
// A thousand failovers of the scheduler on a virtual clock: replicas, each with the daemon's Lease
// and core, over a model of the API server and a network that is slow and can be cut. Replicas are
// killed, frozen and cut off while they bind. What is checked is what the API server holds: no
// device is of two pods. The same without the guard that refuses bindings of an earlier term must
// fail, else this test could not see anything.
#include "base/rng.h"
#include "check.h"
#include "k8s/lease_core.h"
#include "sched/sched.h"

#include <stdlib.h>

enum {
	REPLICAS = 3,
	NODES = 3,
	GPUS = 4,
	PODS = 16,
	CALLS = 256,
	STEP_MS = 20,
	CALL_TIMEOUT_MS = 1000,
	TAKEOVER_MAX_MS = 5000,
};
#define NS_PER_MS UINT64_C(1000000)

struct model_pod { // number 0: the place is free
	unsigned number;
	int64_t gpus, priority;
	int node; // -1: it waits
	uint32_t devices;
};

struct api { // what is durable
	char holder[32];
	unsigned version;
	int64_t transitions;
	struct model_pod pods[PODS];
	bool has_fence;
	unsigned doubles, late_refused, binds;
};

typedef enum call_kind { CALL_NONE, CALL_LOOK, CALL_WRITE, CALL_BIND } call_kind;

struct call {
	call_kind kind;
	int replica;
	unsigned life; // of the replica that sent it
	int64_t sent_ms, arrives_ms, answers_ms;
	bool has_arrived, is_good;
	// of the Lease
	unsigned version;
	int64_t transitions;
	bool is_there;
	char holder[32];
	// of a bind
	int64_t term;
	unsigned number;
	int node;
	uint32_t devices;
};

struct replica {
	unsigned life;
	char identity[32];
	struct lease_core lease;
	struct sched *core;
	int64_t term;
	struct model_pod known[PODS]; // what core was told
	bool has_call;                // about the Lease
	int64_t dark_until_ms;        // frozen or cut off
	bool is_frozen;
};

struct world_model {
	struct api api;
	struct replica replicas[REPLICAS];
	struct call calls[CALLS];
	struct rng rng;
	int64_t now_ms, fault_ms;
	unsigned next_number, failovers;
	int leader; // the last one
	int64_t takeover_max_ms;
};

// ---- the network

static bool is_dark(const struct world_model *w, const struct replica *r)
{
	return w->now_ms < r->dark_until_ms;
}

static int64_t delay(struct world_model *w) { return 1 + (int64_t)rng_below(&w->rng, 60); }

static struct call *send(struct world_model *w, int from, call_kind kind)
{
	for (size_t i = 0; i < CALLS; i++) {
		struct call *call = &w->calls[i];
		if (call->kind != CALL_NONE)
			continue;
		*call = (struct call){ .kind = kind,
				       .replica = from,
				       .life = w->replicas[from].life,
				       .sent_ms = w->now_ms,
				       .arrives_ms = w->now_ms + delay(w) };
		return call;
	}
	return NULL;
}

// ---- the API server

static bool is_double(const struct api *api, const struct model_pod *pod)
{
	for (size_t i = 0; i < PODS; i++) {
		const struct model_pod *other = &api->pods[i];
		if (other != pod && other->number != 0 && other->node == pod->node &&
		    (other->devices & pod->devices) != 0)
			return true;
	}
	return false;
}

static void take_bind(struct api *api, struct call *call)
{
	if (api->has_fence && call->term != api->transitions) {
		api->late_refused++;
		return;
	}
	for (size_t i = 0; i < PODS; i++) {
		struct model_pod *pod = &api->pods[i];
		if (pod->number != call->number || pod->node >= 0)
			continue;
		pod->node = call->node;
		pod->devices = call->devices;
		api->binds++;
		api->doubles += is_double(api, pod);
		call->is_good = true;
	}
}

static void arrive(struct world_model *w, struct call *call)
{
	struct api *api = &w->api;
	if (call->kind == CALL_BIND) {
		take_bind(api, call);
	} else if (call->kind == CALL_WRITE && call->version == api->version) {
		memcpy(api->holder, call->holder, sizeof api->holder);
		api->transitions = call->transitions;
		api->version++;
		call->is_good = true;
	}
	call->is_there = api->version > 0;
	call->version = api->version;
	call->transitions = api->transitions;
	memcpy(call->holder, api->holder, sizeof call->holder);
	call->has_arrived = true;
	call->answers_ms = w->now_ms + delay(w);
}

// ---- a replica

static void start(struct world_model *w, int i)
{
	struct replica *r = &w->replicas[i];
	unsigned life = r->life + 1;
	sched_free(r->core);
	*r = (struct replica){ .life = life };
	(void)snprintf(r->identity, sizeof r->identity, "replica-%d-%u", i, life);
	lease_core_init(&r->lease, r->identity);
}

static void add_nodes(struct sched *core)
{
	for (int n = 0; n < NODES; n++) {
		char name[8], uuids[GPUS][16];
		struct sched_device_in devices[GPUS] = { 0 };
		const struct sched_amount amounts[] = { { STR("cpu"), 64000 },
							{ STR("nvidia.com/gpu"), GPUS },
							{ STR("pods"), 110 } };
		(void)snprintf(name, sizeof name, "n%d", n);
		const struct sched_node_in node = { .name = str_of(name),
						    .allocatable = amounts,
						    .allocatable_count = ARRAY_COUNT(amounts) };
		sched_node_set(core, &node);
		for (int g = 0; g < GPUS; g++) {
			(void)snprintf(uuids[g], sizeof uuids[g], "n%d-%d", n, g);
			devices[g].uuid = str_of(uuids[g]);
			devices[g].model = STR("A100");
			devices[g].index = g;
			devices[g].is_healthy = true;
		}
		sched_devices_set(core, str_of(name), devices, GPUS);
	}
}

static void tell_pod(struct replica *r, const struct model_pod *pod)
{
	char uid[16], node[16] = "", uuids[GPUS][16];
	struct str devices[GPUS];
	size_t count = 0;
	struct sched_amount amounts[] = { { STR("cpu"), 1000 },
					  { STR("nvidia.com/gpu"), pod->gpus } };
	struct sched_gpu_ask ask = { .container = STR("c"), .count = pod->gpus };
	const struct sched_spec spec = { .amounts = amounts,
					 .amount_count = ARRAY_COUNT(amounts),
					 .gpu_asks = &ask,
					 .gpu_ask_count = 1,
					 .gpu_count = pod->gpus };
	(void)snprintf(uid, sizeof uid, "p%u", pod->number);
	if (pod->node >= 0)
		(void)snprintf(node, sizeof node, "n%d", pod->node);
	for (int g = 0; g < GPUS; g++) {
		if ((pod->devices >> g & 1) == 0)
			continue;
		(void)snprintf(uuids[g], sizeof uuids[g], "n%d-%d", pod->node, g);
		devices[count++] = str_of(uuids[g]);
	}
	const struct sched_pod_in in = { .uid = str_of(uid),
					 .namespace_ = STR("n"),
					 .name = str_of(uid),
					 .node = str_of(node),
					 .created_s = pod->number,
					 .priority = pod->priority,
					 .is_ours = true,
					 .device_uuids = devices,
					 .device_count = count,
					 .spec = &spec };
	sched_pod_set(r->core, &in);
}

// The watch: what changed since the last look.
static void sync(struct world_model *w, struct replica *r)
{
	for (size_t i = 0; i < PODS; i++) {
		struct model_pod *known = &r->known[i];
		const struct model_pod *is = &w->api.pods[i];
		if (known->number != 0 && known->number != is->number) {
			char uid[16];
			(void)snprintf(uid, sizeof uid, "p%u", known->number);
			sched_pod_remove(r->core, str_of(uid));
			*known = (struct model_pod){ 0 };
		}
		if (is->number != 0 && memcmp(known, is, sizeof *is) != 0)
			tell_pod(r, is);
		*known = *is;
	}
}

static void decide(struct world_model *w, int i)
{
	struct replica *r = &w->replicas[i];
	struct sched_decision decision;
	while (sched_next(r->core, w->now_ms, &decision)) {
		if (decision.verb != SCHED_BIND)
			continue;
		struct call *call = send(w, i, CALL_BIND);
		if (call == NULL)
			return; // the space stays taken; the next leader knows nothing of it
		call->term = r->term;
		call->number = (unsigned)strtoul(decision.uid.data + 1, NULL, 10);
		call->node = decision.node.data[1] - '0';
		for (size_t g = 0; g < decision.grant_count; g++)
			call->devices |= UINT32_C(1) << decision.grants[g].index;
	}
}

static void lead(struct world_model *w, int i)
{
	struct replica *r = &w->replicas[i];
	r->core = sched_new(rng_next(&w->rng), w->now_ms);
	r->term = r->lease.transitions;
	memset(r->known, 0, sizeof r->known);
	add_nodes(r->core);
	if (w->leader != i || w->fault_ms > 0)
		w->failovers++;
	if (w->fault_ms > 0)
		w->takeover_max_ms = max_i64(w->takeover_max_ms, w->now_ms - w->fault_ms);
	w->fault_ms = 0;
	w->leader = i;
}

static void answer(struct world_model *w, struct call *call)
{
	struct replica *r = &w->replicas[call->replica];
	uint64_t now_ns = (uint64_t)w->now_ms * NS_PER_MS;
	char version[16], uid[16];
	(void)snprintf(version, sizeof version, "%u", call->version);
	const struct lease_record record = { str_of(call->holder), str_of(version),
					     call->transitions, LEASE_DURATION_S };
	if (call->kind == CALL_BIND) {
		(void)snprintf(uid, sizeof uid, "p%u", call->number);
		if (!call->is_good && r->core != NULL && call->term == r->term)
			sched_bind_failed(r->core, str_of(uid), w->now_ms);
		return;
	}
	r->has_call = false;
	if (call->kind == CALL_LOOK)
		lease_core_looked(&r->lease, now_ns, call->is_there ? &record : NULL);
	else if (!call->is_good)
		lease_core_conflict(&r->lease);
	else if (lease_core_wrote(&r->lease, now_ns, (uint64_t)call->sent_ms * NS_PER_MS, &record))
		lead(w, call->replica);
}

static void step_lease(struct world_model *w, int i)
{
	struct replica *r = &w->replicas[i];
	struct lease_plan plan;
	lease_core_step(&r->lease, (uint64_t)w->now_ms * NS_PER_MS, &plan);
	if (plan.act == LEASE_LOST) {
		sched_free(r->core);
		r->core = NULL;
		return;
	}
	if (plan.act == LEASE_WAIT || r->has_call)
		return;
	struct call *call = send(w, i, plan.act == LEASE_LOOK ? CALL_LOOK : CALL_WRITE);
	if (call == NULL)
		return;
	r->has_call = true;
	call->transitions = plan.transitions;
	call->version = (unsigned)strtoul(r->lease.version, NULL, 10);
	memcpy(call->holder, r->identity, sizeof call->holder);
}

static void step_replica(struct world_model *w, int i)
{
	struct replica *r = &w->replicas[i];
	if (is_dark(w, r) && r->is_frozen)
		return;
	step_lease(w, i);
	bool may = lease_core_is_held(&r->lease, (uint64_t)w->now_ms * NS_PER_MS);
	if (r->core == NULL || !may)
		return;
	if (!is_dark(w, r))
		sync(w, r);
	decide(w, i); // what a replica without a network decides is on its way for long
}

// ---- all together

static void step_calls(struct world_model *w)
{
	for (size_t i = 0; i < CALLS; i++) {
		struct call *call = &w->calls[i];
		if (call->kind == CALL_NONE)
			continue;
		struct replica *r = &w->replicas[call->replica];
		bool is_same_life = call->life == r->life;
		bool is_cut = is_same_life && is_dark(w, r) && !r->is_frozen;
		bool is_late = w->now_ms - call->sent_ms > CALL_TIMEOUT_MS;
		if (!call->has_arrived && !is_cut && w->now_ms >= call->arrives_ms)
			arrive(w, call);
		if (is_same_life && is_late && call->kind != CALL_BIND &&
		    !(is_dark(w, r) && r->is_frozen)) {
			lease_core_failed(&r->lease, (uint64_t)w->now_ms * NS_PER_MS);
			r->has_call = false;
			call->kind = CALL_NONE;
		} else if (call->has_arrived && !is_same_life) {
			call->kind = CALL_NONE; // nobody waits for the answer
		} else if (call->has_arrived && !is_dark(w, r) && w->now_ms >= call->answers_ms) {
			answer(w, call);
			call->kind = CALL_NONE;
		}
	}
}

static void step_pods(struct world_model *w)
{
	struct model_pod *pod = &w->api.pods[rng_below(&w->rng, PODS)];
	if (rng_below(&w->rng, 24) != 0)
		return;
	*pod = (struct model_pod){ .node = -1 };
	if (rng_below(&w->rng, 8) != 0) {
		pod->number = w->next_number++;
		pod->gpus = 1 + (int64_t)rng_below(&w->rng, 3);
		pod->priority = (int64_t)rng_below(&w->rng, 5);
	}
}

static bool is_binding(const struct world_model *w, int replica)
{
	for (size_t i = 0; i < CALLS; i++) {
		if (w->calls[i].kind == CALL_BIND && w->calls[i].replica == replica &&
		    !w->calls[i].has_arrived)
			return true;
	}
	return false;
}

// One at a time, of the one that leads, and most of them while it binds.
static void step_faults(struct world_model *w)
{
	struct replica *r = &w->replicas[w->leader];
	bool leads = r->core != NULL &&
		     lease_core_is_held(&r->lease, (uint64_t)w->now_ms * NS_PER_MS);
	if (w->fault_ms > 0 || !leads ||
	    rng_below(&w->rng, is_binding(w, w->leader) ? 4 : 200) != 0)
		return;
	for (int i = 0; i < REPLICAS; i++) {
		if (is_dark(w, &w->replicas[i]))
			return;
	}
	w->fault_ms = w->now_ms;
	if (rng_below(&w->rng, 3) == 0) {
		start(w, w->leader);
		return;
	}
	r->is_frozen = rng_below(&w->rng, 2) == 0;
	r->dark_until_ms = w->now_ms + 4500 + (int64_t)rng_below(&w->rng, 8000);
}

static void run(struct world_model *w, uint64_t seed, bool has_fence, unsigned failovers)
{
	*w = (struct world_model){ .next_number = 1 };
	rng_init(&w->rng, seed);
	w->api.has_fence = has_fence;
	for (size_t i = 0; i < PODS; i++)
		w->api.pods[i].node = -1;
	for (int i = 0; i < REPLICAS; i++)
		start(w, i);
	while (w->failovers < failovers) {
		w->now_ms += STEP_MS;
		step_faults(w);
		step_pods(w);
		step_calls(w);
		for (int i = 0; i < REPLICAS; i++)
			step_replica(w, i);
	}
	for (int i = 0; i < REPLICAS; i++)
		sched_free(w->replicas[i].core);
}

int main(void)
{
	struct check c = { 0, 0 };
	struct world_model *w = calloc(1, sizeof *w);
	ASSERT(w != NULL);
	run(w, 1, true, 1000);
	CHECK_INT(&c, "no device is of two pods", w->api.doubles, 0);
	CHECK(&c, "they were at work", w->api.binds > 1000);
	CHECK(&c, "bindings came late", w->api.late_refused > 0);
	CHECK(&c, "the next one leads within 5 s", w->takeover_max_ms <= TAKEOVER_MAX_MS);
	printf("1000 failovers, %u binds, %u late ones refused, the slowest takeover %lld ms\n",
	       w->api.binds, w->api.late_refused, (long long)w->takeover_max_ms);
	run(w, 1, false, 300);
	CHECK(&c, "without the guard there are some", w->api.doubles > 0);
	printf("300 failovers without the guard: %u devices of two pods\n", w->api.doubles);
	free(w);
	return check_done(&c);
}
