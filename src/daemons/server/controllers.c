// SPDX-License-Identifier: Apache-2.0
#include "daemons/server/controllers_state.h"

#include "base/timefmt.h"
#include "sys/log.h"

#include <stdlib.h>

enum { TENANT_PASSES_MAX = 4, ADMISSION_PASSES_MAX = 1, REQUEST_PASSES_MAX = 32 };
enum { UPGRADE_PASSES_MAX = 4, EVICTION_PASSES_MAX = 4, TAINT_PASSES_MAX = 4 };
static const uint64_t LOOK_NS = 2000 * UINT64_C(1000000);

static void on_look(void *arg)
{
	struct controllers *controllers = arg;
	upgrade_look(controllers);
	eviction_look(controllers);
	taint_look(controllers);
	loop_timer_set(controllers->look, LOOK_NS);
}

struct controllers *controllers_new(struct loop *loop, struct objects *objects,
				    struct k8s_client *k8s, const struct dead_gpu_rule *rule)
{
	struct controllers *controllers = calloc(1, sizeof *controllers);
	ASSERT(controllers != NULL);
	*controllers = (struct controllers){
		.loop = loop, .objects = objects, .k8s = k8s, .dead_gpus = *rule
	};
	if (k8s != NULL)
		controllers->events = event_sink_new(k8s, "gpuaas.io/server", "gpuaas-server");
	controllers->admitted = map_new(world_random(loop_world(loop)));
	controllers->tenants =
		workqueue_new(loop, TENANT_PASSES_MAX, tenant_reconcile, controllers);
	controllers->admissions =
		workqueue_new(loop, ADMISSION_PASSES_MAX, admission_reconcile, controllers);
	controllers->requests =
		workqueue_new(loop, REQUEST_PASSES_MAX, request_reconcile, controllers);
	controllers->upgrades =
		workqueue_new(loop, UPGRADE_PASSES_MAX, upgrade_reconcile, controllers);
	controllers->evictions =
		workqueue_new(loop, EVICTION_PASSES_MAX, eviction_reconcile, controllers);
	controllers->taints = workqueue_new(loop, TAINT_PASSES_MAX, taint_reconcile, controllers);
	controllers->look = loop_timer_new(loop, on_look, controllers);
	loop_timer_set(controllers->look, LOOK_NS);
	return controllers;
}

void controllers_free(struct controllers *controllers)
{
	if (controllers == NULL)
		return;
	workqueue_free(controllers->tenants);
	workqueue_free(controllers->admissions);
	workqueue_free(controllers->requests);
	workqueue_free(controllers->upgrades);
	workqueue_free(controllers->evictions);
	workqueue_free(controllers->taints);
	loop_timer_free(controllers->look);
	passes_free(controllers);
	event_sink_free(controllers->events);
	map_free(controllers->admitted);
	free(controllers);
}

struct str controllers_key(const json_t *object, char out[OBJECT_KEY_BYTES])
{
	return object_key(json_text(object, "metadata.namespace"),
			  json_text(object, "metadata.name"), out);
}

static void add_object(struct workqueue *queue, const json_t *object)
{
	char text[OBJECT_KEY_BYTES];
	struct str key = controllers_key(object, text);
	if (key.len > 0)
		workqueue_add(queue, key);
}

static void add_named(struct workqueue *queue, struct str namespace_, struct str name)
{
	char text[OBJECT_KEY_BYTES];
	struct str key = object_key(namespace_, name, text);
	if (key.len > 0 && name.len > 0)
		workqueue_add(queue, key);
}

// What waits for the quota is looked at by the admission of its tenant, which then adds what it
// lets through; everything else at once.
static void on_request(struct controllers *controllers, const json_t *request, bool is_gone)
{
	struct str namespace_ = json_text(request, "metadata.namespace");
	bool is_end = is_gone || view_phase_is_end(view_request_phase(request));
	bool waits = !is_end && !view_request_holds(controllers->objects, request) &&
		     !json_bool(request, "spec.cancel", false);
	if (is_end || waits)
		add_named(controllers->admissions, STR(""), namespace_);
	if (!waits)
		add_object(controllers->requests, request);
}

// A pod says by its label which request it is of: "TENANT.NAME", as its namespace does.
static void on_pod(struct controllers *controllers, const json_t *pod)
{
	const json_t *label = json_object_get(json_at(pod, "metadata.labels"), LABEL_REQUEST);
	struct str id = { json_string_value(label), json_string_length(label) };
	struct str namespace_ = json_text(pod, "metadata.namespace");
	if (id.len > namespace_.len + 1 && str_starts(id, namespace_))
		add_named(controllers->requests, namespace_,
			  str_slice(id, namespace_.len + 1, id.len));
}

static void add_all_tenants(struct controllers *controllers)
{
	json_t *tenant;
	for (size_t i = 0; objects_next(controllers->objects, OBJECT_TENANT, &i, &tenant);)
		add_named(controllers->tenants, STR(""), json_text(tenant, "metadata.name"));
}

void controllers_on_change(struct controllers *controllers, object_kind kind, json_t *object,
			   bool is_gone)
{
	struct str namespace_ = json_text(object, "metadata.namespace");
	struct str name = json_text(object, "metadata.name");
	switch (kind) {
	case OBJECT_TENANT:
		add_named(controllers->tenants, STR(""), name);
		add_named(controllers->admissions, STR(""), name);
		return;
	case OBJECT_REQUEST: on_request(controllers, object, is_gone); return;
	case OBJECT_JOB: add_named(controllers->requests, namespace_, name); return;
	case OBJECT_POD: on_pod(controllers, object); return;
	case OBJECT_NAMESPACE: add_named(controllers->tenants, STR(""), name); return;
	case OBJECT_QUOTA:
	case OBJECT_LIMITS:
	case OBJECT_POLICY:
	case OBJECT_BINDING: add_named(controllers->tenants, STR(""), namespace_); return;
	case OBJECT_EVENT:
		add_named(controllers->requests, namespace_,
			  json_text(object, "involvedObject.name"));
		return;
	case OBJECT_NODE:
		if (mig_names_learn(&controllers->migs, object))
			add_all_tenants(controllers);
		add_named(controllers->upgrades, STR(""), name);
		return;
	case OBJECT_HOST: add_named(controllers->upgrades, STR(""), name); return;
	case OBJECT_KIND_COUNT: return;
	}
}

static void put_queue(struct buf *out, const char *name, const struct workqueue *queue)
{
	struct metric_label label = { "queue", str_of(name) };
	metric_int(out, "gpuaas_server_queue_depth", &label, 1, (int64_t)workqueue_depth(queue));
}

void controllers_put_metrics(const struct controllers *controllers, struct buf *out)
{
	const struct workqueue *const queues[] = { controllers->tenants, controllers->admissions,
						   controllers->requests, controllers->upgrades,
						   controllers->evictions };
	uint64_t passes = 0, failures = 0;
	for (size_t i = 0; i < ARRAY_COUNT(queues); i++) {
		passes += workqueue_passes(queues[i]);
		failures += workqueue_failures(queues[i]);
	}
	metric_family(out, "gpuaas_server_queue_depth", "gauge",
		      "Objects that controllers have to look at.");
	put_queue(out, "tenants", controllers->tenants);
	put_queue(out, "admissions", controllers->admissions);
	put_queue(out, "requests", controllers->requests);
	put_queue(out, "upgrades", controllers->upgrades);
	put_queue(out, "evictions", controllers->evictions);
	put_queue(out, "taints", controllers->taints);
	metric_family(out, "gpuaas_server_reconciles_total", "counter", "Passes of controllers.");
	metric_int(out, "gpuaas_server_reconciles_total", NULL, 0, (int64_t)passes);
	metric_family(out, "gpuaas_server_reconcile_failures_total", "counter",
		      "Passes that failed and are repeated.");
	metric_int(out, "gpuaas_server_reconcile_failures_total", NULL, 0, (int64_t)failures);
	metric_family(out, "gpuaas_server_jobs_created_total", "counter",
		      "Jobs made for requests.");
	metric_int(out, "gpuaas_server_jobs_created_total", NULL, 0,
		   (int64_t)controllers->jobs_created);
	metric_family(out, "gpuaas_server_pods_evicted_total", "counter",
		      "Pods that were asked to leave a dead GPU.");
	metric_int(out, "gpuaas_server_pods_evicted_total", NULL, 0,
		   (int64_t)controllers->pods_evicted);
}

// ---- old requests

static void on_forgotten(void *arg, const struct object_result *result)
{
	(void)arg;
	if (result->status != ERR_OK && result->status != ERR_NOT_FOUND)
		log_err(LOG_WARN, "an old request cannot be deleted; tried again", result->err);
}

static bool ended_before(const json_t *request, int64_t before_s)
{
	int64_t ended_s = 0;
	return view_phase_is_end(view_request_phase(request)) &&
	       json_at(request, "metadata.deletionTimestamp") == NULL &&
	       time_parse(json_text(request, "status.endTime"), &ended_s, NULL) &&
	       ended_s < before_s;
}

void controllers_forget_ended(struct controllers *controllers, int64_t before_s, size_t max)
{
	json_t *request;
	for (size_t i = 0;
	     max > 0 && objects_next(controllers->objects, OBJECT_REQUEST, &i, &request);) {
		if (!ended_before(request, before_s))
			continue;
		max--;
		struct object_write write = { .kind = OBJECT_REQUEST,
					      .namespace_ =
						      json_text(request, "metadata.namespace"),
					      .name = json_text(request, "metadata.name"),
					      .on_done = on_forgotten };
		objects_delete(controllers->objects, &write);
	}
}

// ---- passes

struct pass *pass_new(struct controllers *controllers, struct workqueue *queue, struct str key)
{
	struct pass *pass = calloc(1, sizeof *pass);
	ASSERT(pass != NULL && key.len < sizeof pass->key);
	*pass = (struct pass){ .controllers = controllers,
			       .queue = queue,
			       .next = controllers->passes,
			       .back = &controllers->passes };
	memcpy(pass->key, key.data, key.len);
	if (controllers->passes != NULL)
		controllers->passes->back = &pass->next;
	controllers->passes = pass;
	return pass;
}

static void pass_free(struct pass *pass)
{
	*pass->back = pass->next;
	if (pass->next != NULL)
		pass->next->back = pass->back;
	json_decref(pass->object);
	json_decref(pass->status);
	json_decref(pass->victim);
	k8s_call_cancel(pass->call);
	upgrade_drain_free(pass->drain);
	for (size_t i = 0; i < ARRAY_COUNT(pass->parts); i++)
		json_decref(pass->parts[i].body);
	free(pass);
}

void passes_free(struct controllers *controllers)
{
	while (controllers->passes != NULL)
		pass_free(controllers->passes);
}

void pass_end(struct pass *pass, const struct err *err)
{
	struct workqueue *queue = pass->queue;
	char key[OBJECT_KEY_BYTES];
	memcpy(key, pass->key, sizeof key);
	if (err != NULL)
		log_kv(LOG_WARN, "reconcile failed, tried again", "object", key, "error", err->text,
		       NULL);
	pass_free(pass);
	workqueue_done(queue, str_of(key), err == NULL);
}

void pass_split(const struct pass *pass, struct str *ret_namespace, struct str *ret_name)
{
	struct str key = str_of(pass->key);
	size_t slash = str_find_byte(key, '/', 0);
	ASSERT(slash != SIZE_MAX);
	*ret_namespace = str_slice(key, 0, slash);
	*ret_name = str_slice(key, slash + 1, key.len);
}
