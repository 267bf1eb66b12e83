// SPDX-License-Identifier: Apache-2.0
#include "api/node_upgrade.h"
#include "api/tenant_queues.h"
#include "api/views.h"

#include "k8s/condition.h"

#include <stdlib.h>

static void copy(json_t *to, const char *to_key, const json_t *from, const char *path)
{
	json_t *value = json_at(from, path);
	if (value != NULL)
		(void)json_object_set(to, to_key, value);
}

static const char *tenant_state(const struct objects *objects, const json_t *tenant)
{
	if (json_at(tenant, "metadata.deletionTimestamp") != NULL)
		return "Deleting";
	const json_t *ready = k8s_condition_find(json_at(tenant, "status.conditions"), "Ready");
	bool is_ready = objects_are_local(objects) || str_eq_c(json_text(ready, "status"), "True");
	return is_ready ? "Ready" : "Pending";
}

json_t *view_tenant(struct call *call, const json_t *tenant)
{
	struct tenant_load load = { 0 };
	struct str name = json_text(tenant, "metadata.name");
	json_t *out = json_object(), *usage = json_object();
	put_text(out, "name", name);
	copy(out, "display_name", tenant, "spec.displayName");
	copy(out, "quota", tenant, "spec.quota");
	tenant_queue_put(out, tenant);
	tenant_windows_put(out, tenant);
	if (view_tenant_load(call->api->objects, call->arena, name, NULL, &load)) {
		put_int(usage, "gpus", load.used.gpus);
		if (load.used.gpu_milli > 0)
			put_int(usage, "gpu_milli", load.used.gpu_milli);
		put_int(usage, "waiting_gpus", load.waiting_gpus);
		put_int(usage, "requests", (int64_t)load.count);
		(void)json_object_set(out, "usage", usage);
	}
	json_decref(usage);
	put_text(out, "state", str_of(tenant_state(call->api->objects, tenant)));
	copy(out, "conditions", tenant, "status.conditions");
	copy(out, "created", tenant, "metadata.creationTimestamp");
	return out;
}

static json_t *env_map(const json_t *list)
{
	json_t *out = json_object(), *pair;
	size_t i;
	json_array_foreach(list, i, pair) copy(out, json_cstr(pair, "name"), pair, "value");
	return out;
}

static json_t *spec_view(const json_t *request)
{
	const json_t *spec = json_at(request, "spec");
	json_t *out = json_object();
	static const char *const same[] = { "class",  "gpus",  "gang",    "cpu",
					    "memory", "image", "command", "args" };
	copy(out, "name", request, "metadata.name");
	for (size_t i = 0; i < ARRAY_COUNT(same); i++)
		copy(out, same[i], spec, same[i]);
	if (json_array_size(json_object_get(spec, "gpuModels")) > 0)
		copy(out, "gpu_models", spec, "gpuModels");
	copy(out, "gpu_milli", spec, "gpuMilli");
	copy(out, "mig_profile", spec, "migProfile");
	copy(out, "gpu_memory", spec, "gpuMemory");
	copy(out, "duration", spec, "durationSeconds");
	copy(out, "max_duration", spec, "maxDurationSeconds");
	copy(out, "deadline", spec, "deadline");
	if (json_object_get(spec, "env") != NULL)
		(void)json_object_set_new(out, "env", env_map(json_object_get(spec, "env")));
	return out;
}

static bool is_being_cancelled(const json_t *request)
{
	return json_bool(request, "spec.cancel", false) &&
	       !view_phase_is_end(view_request_phase(request));
}

json_t *view_request_plain(const json_t *request)
{
	json_t *out = json_object();
	char id[REQUEST_ID_BYTES + 64];
	struct str tenant = json_text(request, "metadata.namespace");
	struct str name = json_text(request, "metadata.name");
	// Objects made by kubectl may have longer names than the API gives out.
	(void)snprintf(id, sizeof id, STR_FMT "." STR_FMT, STR_ARG(tenant), STR_ARG(name));
	put_text(out, "id", str_of(id));
	put_text(out, "name", name);
	put_text(out, "tenant", tenant);
	(void)json_object_set_new(out, "spec", spec_view(request));
	put_text(out, "state", str_of(view_phase_name(view_request_phase(request))));
	copy(out, "reason", request, "status.reason");
	copy(out, "message", request, "status.message");
	if (is_being_cancelled(request)) {
		put_text(out, "reason", STR("Cancelling"));
		put_text(out, "message", STR("it is being cancelled; its pod gets time to end"));
	}
	const json_t *notes = json_at(request, "metadata.annotations");
	json_t *user = json_object_get(notes, ANNOTATION_USER);
	if (user != NULL)
		(void)json_object_set(out, "user", user);
	copy(out, "node", request, "status.nodeName");
	copy(out, "pod", request, "status.podName");
	copy(out, "devices", request, "status.devices");
	copy(out, "created", request, "metadata.creationTimestamp");
	copy(out, "scheduled", request, "status.scheduledTime");
	copy(out, "started", request, "status.startTime");
	copy(out, "ended", request, "status.endTime");
	copy(out, "exit_code", request, "status.exitCode");
	return out;
}

void view_put_position(const struct tenant_load *load, struct str name, json_t *out)
{
	for (size_t i = 0; i < load->count; i++) {
		if (str_eq(load->entries[i].name, name) && load->entries[i].position > 0)
			put_int(out, "position", load->entries[i].position);
	}
}

json_t *view_request(struct call *call, const json_t *request)
{
	json_t *out = view_request_plain(request);
	struct tenant_load load = { 0 };
	struct str tenant = json_text(request, "metadata.namespace");
	struct str name = json_text(request, "metadata.name");
	if (view_request_phase(request) != PHASE_PENDING ||
	    view_request_holds(call->api->objects, request) ||
	    !view_tenant_load(call->api->objects, call->arena, tenant, NULL, &load))
		return out;
	view_put_position(&load, name, out);
	return out;
}

static int name_cmp(const void *key, const void *element)
{
	return str_cmp(*(const struct str *)key,
		       json_text(*(json_t *const *)element, "metadata.name"));
}

void view_held_gpus(const struct objects *objects, json_t *const *nodes, size_t count,
		    int64_t *ret_held)
{
	json_t *request;
	memset(ret_held, 0, count * sizeof *ret_held);
	for (size_t i = 0; objects_next(objects, OBJECT_REQUEST, &i, &request);) {
		struct str name = json_text(request, "status.nodeName");
		if (name.len == 0 || view_phase_is_end(view_request_phase(request)))
			continue;
		json_t *const *found = bsearch(&name, nodes, count, sizeof *nodes, name_cmp);
		if (found != NULL)
			ret_held[found - nodes] += json_int(request, "spec.gpus", 0);
	}
}

json_t *view_node(const json_t *node, int64_t held_gpus)
{
	json_t *out = json_object(), *device;
	const json_t *devices = json_at(node, "status.devices");
	const json_t *first = json_array_get(devices, 0);
	int64_t healthy = 0;
	size_t i;
	json_array_foreach(devices, i, device) healthy += json_bool(device, "healthy", false) ? 1
											      : 0;
	put_text(out, "name", json_text(node, "metadata.name"));
	(void)json_object_set_new(out, "ready", json_boolean(healthy > 0));
	copy(out, "model", first, "model");
	put_int(out, "gpus", (int64_t)json_array_size(devices));
	put_int(out, "healthy_gpus", healthy);
	put_int(out, "held_gpus", held_gpus);
	copy(out, "memory_mib", first, "memoryMiB");
	copy(out, "driver", node, "status.driverVersion");
	if (devices != NULL)
		copy(out, "devices", node, "status.devices");
	return out;
}

void view_node_details(json_t *out, const json_t *node, const json_t *host)
{
	static const char *const names[][2] = {
		{ "cuda", "status.cudaVersion" },
		{ "kubelet", "status.kubeletVersion" },
		{ "container_runtime", "status.containerRuntimeVersion" },
		{ "container_toolkit", "status.containerToolkitVersion" },
		{ "agent", "status.agentVersion" },
		{ "conditions", "status.conditions" },
		{ "version_problems", "status.versionProblems" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		if (json_at(node, names[i][1]) != NULL)
			copy(out, names[i][0], node, names[i][1]);
	}
	if (host == NULL)
		return;
	json_t *upgrade = NULL;
	const json_t *text =
		json_object_get(json_at(host, "metadata.annotations"), UPGRADE_ANNOTATION);
	(void)json_object_set_new(out, "schedulable", json_boolean(!node_is_cordoned(host)));
	if (text != NULL && json_parse(str_of(json_string_value(text)), &upgrade, NULL) == ERR_OK)
		(void)json_object_set_new(out, "upgrade", upgrade);
}
