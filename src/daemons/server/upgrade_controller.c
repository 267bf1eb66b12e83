// SPDX-License-Identifier: Apache-2.0
// The steps of a node's upgrade: each pass looks at Node, GPUNode and, while draining, at the pods
// that are still there, asks those to leave by the Eviction API, and writes the next state. What
// budgets refuse is asked again with the next pass.
#include "daemons/server/controllers_state.h"

#include "api/node_upgrade.h"
#include "k8s/condition.h"
#include "sys/log.h"

#include <stdio.h>
#include <stdlib.h>

enum { NODE_PODS_MAX = 500 }; // of one list

struct drain {
	json_t *pods; // that must leave, as "namespace/name"
	size_t next, left;
	char blocker[160];
	bool is_unmanaged;
};

static void evict_next(struct pass *pass);

static void on_written(void *arg, const struct object_result *result)
{
	struct pass *pass = arg;
	// A conflict: somebody else wrote; the watch brings it and the next pass looks again.
	bool is_fine = result->status == ERR_OK || result->status == ERR_CONFLICT ||
		       result->status == ERR_NOT_FOUND;
	pass_end(pass, is_fine ? NULL : result->err);
}

static bool is_condition(const json_t *node, const char *type, struct str *ret_message)
{
	const json_t *found = k8s_condition_find(json_at(node, "status.conditions"), type);
	*ret_message = found != NULL ? json_text(found, "message")
				     : STR("the node's agent has not told it");
	return str_eq_c(json_text(found, "status"), "True");
}

static void step(struct pass *pass)
{
	struct upgrade upgrade;
	struct str message, unused, none, name;
	pass_split(pass, &none, &name);
	const json_t *node = objects_find(pass->controllers->objects, OBJECT_NODE, STR(""), name);
	struct drain *drain = pass->drain;
	struct upgrade_facts facts = {
		.driver = json_text(node, "status.driverVersion"),
		.cuda = json_text(node, "status.cudaVersion"),
		.is_driver_ready = is_condition(node, "DriverReady", &unused),
		.is_plugin_registered = is_condition(node, "DevicePluginRegistered", &unused),
		.are_devices_healthy = is_condition(node, "DevicesHealthy", &message),
		.unhealthy = message,
		.is_counted = drain != NULL,
		.pods_left = drain == NULL ? 0 : drain->left,
		.blocker = drain == NULL ? STR("") : str_of(drain->blocker),
		.is_unmanaged = drain != NULL && drain->is_unmanaged,
	};
	int64_t now_s = world_wall_s(loop_world(pass->controllers->loop));
	bool is_good = node_upgrade_read(pass->object, &upgrade);
	ASSERT(is_good); // the pass began with it
	if (!upgrade_step(&upgrade, &facts, now_s)) {
		pass_end(pass, NULL);
		return;
	}
	log_kv(LOG_INFO, "upgrade of a node", "node", pass->key + 1, "phase",
	       upgrade_phase_name(upgrade.phase), "reason", upgrade.reason, NULL);
	AUTO(json_decrefp) json_t *patch = node_upgrade_patch(pass->object, &upgrade);
	const struct object_write write = {
		.kind = OBJECT_HOST, .name = name, .body = patch, .on_done = on_written, .arg = pass
	};
	objects_patch(pass->controllers->objects, &write);
}

// ---- draining

static void on_evicted(void *arg, const struct k8s_result *result)
{
	struct pass *pass = arg;
	struct drain *drain = pass->drain;
	const json_t *pod = json_array_get(drain->pods, drain->next);
	pass->call = NULL;
	if (result->status == ERR_NOT_FOUND)
		drain->left--;
	else if (result->status != ERR_OK && drain->blocker[0] == '\0')
		(void)snprintf(drain->blocker, sizeof drain->blocker, "%.70s: %.80s",
			       json_string_value(pod),
			       result->err == NULL ? "" : result->err->text);
	drain->next++;
	evict_next(pass);
}

static void evict_next(struct pass *pass)
{
	struct drain *drain = pass->drain;
	const char *pod = json_string_value(json_array_get(drain->pods, drain->next));
	if (pod == NULL) {
		step(pass);
		return;
	}
	const char *slash = strchr(pod, '/');
	ASSERT(slash != NULL);
	const struct pod_name name = { .namespace_ = { pod, (size_t)(slash - pod) },
				       .name = str_of(slash + 1) };
	pass->call = pod_evict(pass->controllers->k8s, &name, on_evicted, pass);
}

// Pods of a DaemonSet and static ones stay: they would come back at once.
static bool must_leave(const json_t *pod)
{
	const json_t *mirror = json_object_get(json_at(pod, "metadata.annotations"),
					       "kubernetes.io/config.mirror");
	return mirror == NULL && !str_eq_c(pod_controller(pod), "DaemonSet");
}

static void take_pods(struct pass *pass, const json_t *list, bool evicts_unmanaged)
{
	struct drain *drain = pass->drain;
	size_t i;
	json_t *pod;
	json_array_foreach(json_at(list, "items"), i, pod)
	{
		char key[OBJECT_KEY_BYTES];
		struct str text = object_key(json_text(pod, "metadata.namespace"),
					     json_text(pod, "metadata.name"), key);
		if (!must_leave(pod) || text.len == 0)
			continue;
		drain->left++;
		if (json_at(pod, "metadata.deletionTimestamp") != NULL)
			continue; // it is on its way
		if (pod_controller(pod).len == 0 && !evicts_unmanaged) {
			drain->is_unmanaged = true;
			(void)snprintf(drain->blocker, sizeof drain->blocker,
				       "%.100s has no owner that makes it anew: delete it, or "
				       "use force",
				       text.data);
			continue;
		}
		(void)json_array_append_new(drain->pods, json_string(text.data));
	}
	if (json_text(list, "metadata.continue").len > 0)
		drain->left++; // there are more than one answer holds
	// Nobody is asked to leave in vain.
	if (drain->is_unmanaged)
		(void)json_array_clear(drain->pods);
}

static void on_pods(void *arg, const struct k8s_result *result)
{
	struct pass *pass = arg;
	struct upgrade upgrade;
	struct err err = { 0 };
	AUTO(json_decrefp) json_t *list = NULL;
	pass->call = NULL;
	if (result->status != ERR_OK || json_parse(result->body, &list, &err) != ERR_OK) {
		log_err(LOG_WARN, "pods of a node are not listed",
			result->err == NULL ? &err : result->err);
		step(pass); // its time runs on
		return;
	}
	bool is_good = node_upgrade_read(pass->object, &upgrade);
	ASSERT(is_good && pass->drain == NULL);
	pass->drain = calloc(1, sizeof *pass->drain);
	ASSERT(pass->drain != NULL);
	pass->drain->pods = json_array();
	take_pods(pass, list, upgrade.evicts_unmanaged);
	evict_next(pass);
}

void upgrade_drain_free(struct drain *drain)
{
	if (drain == NULL)
		return;
	json_decref(drain->pods);
	free(drain);
}

void upgrade_reconcile(void *arg, struct str key)
{
	struct controllers *controllers = arg;
	struct pass *pass = pass_new(controllers, controllers->upgrades, key);
	struct str none, name;
	struct upgrade upgrade;
	pass_split(pass, &none, &name);
	json_t *host = objects_find(controllers->objects, OBJECT_HOST, STR(""), name);
	if (host == NULL || !node_upgrade_read(host, &upgrade) || !upgrade_is_active(&upgrade) ||
	    !objects_are_synced(controllers->objects) || controllers->k8s == NULL) {
		pass_end(pass, NULL);
		return;
	}
	pass->object = json_incref(host);
	if (upgrade.phase != UPGRADE_DRAINING) {
		step(pass);
		return;
	}
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 16);
	ASSERT(arena != NULL);
	const char *path = arena_printf(
		arena,
		"/api/v1/pods?fieldSelector=spec.nodeName%%3D" STR_FMT
		"%%2Cstatus.phase%%21%%3DSucceeded%%2Cstatus.phase%%21%%3DFailed&limit=%d",
		STR_ARG(name), NODE_PODS_MAX);
	const struct k8s_request request = { .method = "GET",
					     .path = str_of(path),
					     .timeout_ns = UINT64_C(20000000000),
					     .on_done = on_pods,
					     .arg = pass };
	pass->call = k8s_call_start(controllers->k8s, &request);
}

void upgrade_look(struct controllers *controllers)
{
	json_t *host;
	for (size_t i = 0; objects_next(controllers->objects, OBJECT_HOST, &i, &host);) {
		struct upgrade upgrade;
		char text[OBJECT_KEY_BYTES];
		if (node_upgrade_read(host, &upgrade) && upgrade_is_active(&upgrade))
			workqueue_add(controllers->upgrades,
				      object_key(STR(""), json_text(host, "metadata.name"), text));
	}
}
