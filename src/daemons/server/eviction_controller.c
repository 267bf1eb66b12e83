// SPDX-License-Identifier: Apache-2.0
// Pods on dead GPUs are asked to leave by the Eviction API, one after another in a node's pass: one
// that may not leave keeps none of the others. What a node's agent says is believed of pods on that
// node only: the pod is read first.
#include "daemons/server/controllers_state.h"

#include "sys/log.h"

static void look_at_pod(struct pass *pass);

struct k8s_call *pod_evict(struct k8s_client *k8s, const struct pod_name *pod, k8s_done_fn *on_done,
			   void *arg)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 16);
	ASSERT(arena != NULL);
	const char *path = arena_printf(arena,
					"/api/v1/namespaces/" STR_FMT "/pods/" STR_FMT "/eviction",
					STR_ARG(pod->namespace_), STR_ARG(pod->name));
	AUTO(buf_done) struct buf body = { 0 };
	buf_printf(&body,
		   "{\"apiVersion\":\"policy/"
		   "v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"" STR_FMT
		   "\",\"namespace\":\"" STR_FMT "\"}",
		   STR_ARG(pod->name), STR_ARG(pod->namespace_));
	if (pod->uid.len > 0) {
		buf_put_c(&body, ",\"deleteOptions\":{\"preconditions\":{\"uid\":");
		buf_put_json(&body, pod->uid);
		buf_put_c(&body, "}}");
	}
	buf_put_c(&body, "}");
	const struct k8s_request request = { .method = "POST",
					     .path = str_of(path),
					     .body = buf_str(&body),
					     .timeout_ns = UINT64_C(2000000000),
					     .on_done = on_done,
					     .arg = arg };
	return k8s_call_start(k8s, &request);
}

struct str pod_controller(const json_t *pod)
{
	size_t i;
	json_t *owner;
	json_array_foreach(json_at(pod, "metadata.ownerReferences"), i, owner)
	{
		if (json_bool(owner, "controller", false))
			return json_text(owner, "kind");
	}
	return STR("");
}

static void tell(struct pass *pass)
{
	const struct event_about about = {
		.api_version = "v1",
		.kind = "Pod",
		.namespace_ = json_cstr(pass->victim, "namespace"),
		.name = json_cstr(pass->victim, "name"),
		.uid = json_cstr(pass->victim, "uid"),
	};
	const char *note = json_cstr(pass->victim, "note");
	log_kv(LOG_WARN, "a pod is asked to leave a dead GPU", "pod", about.name, "namespace",
	       about.namespace_, "why", note, NULL);
	event_put(pass->controllers->events, &about, "Warning", "GPUDead", "Evict", note);
	pass->controllers->pods_evicted++;
}

static void look_at_next(struct pass *pass)
{
	pass->victim_i++;
	look_at_pod(pass); // who is still there in the end is looked at again soon
}

static void on_evicted(void *arg, const struct k8s_result *result)
{
	struct pass *pass = arg;
	pass->call = NULL;
	if (result->status == ERR_OK)
		tell(pass);
	else if (result->status != ERR_NOT_FOUND)
		log_err(LOG_WARN, "a pod stays on a dead GPU for now", result->err);
	look_at_next(pass);
}

// A pod that nobody makes anew, or that would be made anew in the same place, is left alone.
static bool may_leave(const struct pass *pass, const json_t *pod)
{
	struct str none, node, kind = pod_controller(pod), phase = json_text(pod, "status.phase");
	pass_split(pass, &none, &node);
	return str_eq(json_text(pod, "spec.nodeName"), node) &&
	       str_eq(json_text(pod, "metadata.uid"), json_text(pass->victim, "uid")) &&
	       json_at(pod, "metadata.deletionTimestamp") == NULL && kind.len > 0 &&
	       !str_eq_c(kind, "DaemonSet") && !str_eq_c(phase, "Succeeded") &&
	       !str_eq_c(phase, "Failed");
}

static struct pod_name name_of(const struct pass *pass)
{
	return (struct pod_name){ .namespace_ = json_text(pass->victim, "namespace"),
				  .name = json_text(pass->victim, "name"),
				  .uid = json_text(pass->victim, "uid") };
}

static void on_pod(void *arg, const struct k8s_result *result)
{
	struct pass *pass = arg;
	struct err err = { 0 };
	AUTO(json_decrefp) json_t *pod = NULL;
	pass->call = NULL;
	if (result->status != ERR_OK || json_parse(result->body, &pod, &err) != ERR_OK ||
	    !may_leave(pass, pod)) {
		look_at_next(pass);
		return;
	}
	const struct pod_name name = name_of(pass);
	pass->call = pod_evict(pass->controllers->k8s, &name, on_evicted, pass);
}

bool eviction_is_braked(struct controllers *controllers)
{
	struct dead_gpu_count count = { 0 };
	json_t *node;
	for (size_t i = 0; objects_next(controllers->objects, OBJECT_NODE, &i, &node);)
		dead_gpu_add(&count, node);
	bool is_braked = dead_gpu_is_too_many(&count);
	if (is_braked && !controllers->is_eviction_braked)
		log_kv(LOG_ERROR,
		       "more than a quarter of all GPUs is said to be dead: nobody is sent away, "
		       "no node is closed",
		       NULL);
	controllers->is_eviction_braked = is_braked;
	return is_braked;
}

static void set_victim(struct pass *pass, const struct dead_gpu_pod *pod)
{
	json_decref(pass->victim);
	pass->victim = json_pack("{s:s%, s:s%, s:s%, s:s}", "namespace", pod->namespace_.data,
				 pod->namespace_.len, "name", pod->name.data, pod->name.len, "uid",
				 pod->uid.data, pod->uid.len, "note", pod->note);
	ASSERT(pass->victim != NULL);
}

// The node is looked at anew each time: by now its GPU may be well again.
static void look_at_pod(struct pass *pass)
{
	struct controllers *controllers = pass->controllers;
	struct str none, name;
	struct dead_gpu_pod found;
	pass_split(pass, &none, &name);
	json_t *node = objects_find(controllers->objects, OBJECT_NODE, STR(""), name);
	int64_t now_s = world_wall_s(loop_world(controllers->loop));
	if (node == NULL || controllers->k8s == NULL || !objects_are_synced(controllers->objects) ||
	    dead_gpu_pods(node, &controllers->dead_gpus, now_s, pass->victim_i, &found) <=
		    pass->victim_i ||
	    eviction_is_braked(controllers)) {
		pass_end(pass, NULL);
		return;
	}
	set_victim(pass, &found);
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 16);
	ASSERT(arena != NULL);
	const char *path = arena_printf(arena, "/api/v1/namespaces/" STR_FMT "/pods/" STR_FMT,
					STR_ARG(found.namespace_), STR_ARG(found.name));
	const struct k8s_request request = { .method = "GET",
					     .path = str_of(path),
					     .timeout_ns = UINT64_C(5000000000),
					     .on_done = on_pod,
					     .arg = pass };
	pass->call = k8s_call_start(controllers->k8s, &request);
}

void eviction_reconcile(void *arg, struct str key)
{
	struct controllers *controllers = arg;
	look_at_pod(pass_new(controllers, controllers->evictions, key));
}

void eviction_look(struct controllers *controllers)
{
	json_t *node;
	int64_t now_s = world_wall_s(loop_world(controllers->loop));
	for (size_t i = 0; objects_next(controllers->objects, OBJECT_NODE, &i, &node);) {
		struct dead_gpu_pod pod;
		char text[OBJECT_KEY_BYTES];
		if (dead_gpu_pods(node, &controllers->dead_gpus, now_s, 0, &pod) > 0)
			workqueue_add(controllers->evictions,
				      object_key(STR(""), json_text(node, "metadata.name"), text));
	}
}
