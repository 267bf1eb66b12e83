// SPDX-License-Identifier: Apache-2.0
#include "api/views.h"

#include "api/object_kinds.h"
#include "base/timefmt.h"
#include "k8s/condition.h"

static json_t *text_of(struct str text)
{
	return json_stringn(text.len == 0 ? "" : text.data, text.len);
}

static json_t *object_of(const char *kind, struct str namespace_, struct str name)
{
	json_t *object = json_object(), *meta = json_object();
	put_text(object, "apiVersion", STR("gpuaas.io/v1alpha1"));
	put_text(object, "kind", str_of(kind));
	put_text(meta, "name", name);
	put_text(meta, "namespace", namespace_);
	(void)json_object_set_new(meta, "annotations", json_object());
	(void)json_object_set_new(object, "metadata", meta);
	return object;
}

// The body's own texts, so that "16Gi" stays "16Gi".
static json_t *quota_of(const json_t *body)
{
	json_t *quota = json_object();
	const json_t *given = json_object_get(body, "quota");
	static const char *const names[] = { "gpus", "cpu", "memory", "pods" };
	(void)json_object_set_new(quota, "gpus", json_integer(8));
	(void)json_object_set_new(quota, "cpu", json_string("64"));
	(void)json_object_set_new(quota, "memory", json_string("256Gi"));
	(void)json_object_set_new(quota, "pods", json_integer(200));
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		json_t *value = json_object_get(given, names[i]);
		if (value != NULL)
			(void)json_object_set(quota, names[i], value);
	}
	return quota;
}

json_t *view_tenant_object(const struct tenant_spec *spec, const json_t *body)
{
	json_t *object = object_of("Tenant", STR(""), spec->name);
	json_t *out = json_object();
	put_text(out, "displayName", spec->display_name);
	(void)json_object_set_new(out, "quota", quota_of(body));
	(void)json_object_set_new(object, "spec", out);
	return object;
}

json_t *view_tenant_patch(const json_t *body)
{
	json_t *patch = json_object(), *spec = json_object();
	json_t *quota = json_object_get(body, "quota");
	json_t *name = json_object_get(body, "display_name");
	if (name != NULL)
		(void)json_object_set(spec, "displayName", name);
	if (quota != NULL)
		(void)json_object_set(spec, "quota", quota);
	(void)json_object_set_new(patch, "spec", spec);
	return patch;
}

static json_t *env_list(const json_t *env)
{
	const char *key;
	json_t *value, *list = json_array();
	json_object_foreach((json_t *)(uintptr_t)env, key, value)
	{
		json_t *pair = json_object();
		(void)json_object_set_new(pair, "name", json_string(key));
		(void)json_object_set(pair, "value", value);
		(void)json_array_append_new(list, pair);
	}
	return list;
}

// The caller's own text, so that "16Gi" stays "16Gi".
static void put_given(json_t *object, const char *key, const json_t *body, const char *name,
		      const char *absent)
{
	struct str text = json_text(body, name);
	put_text(object, key, text.len > 0 ? text : str_of(absent));
}

static void put_borrowed(json_t *object, const char *key, const json_t *value)
{
	if (value != NULL)
		(void)json_object_set(object, key, (json_t *)(uintptr_t)value);
}

json_t *view_request_object(const struct request_spec *spec, const json_t *body, struct str tenant,
			    struct str name)
{
	json_t *object = object_of("GPURequest", tenant, name);
	json_t *out = json_object(), *models = json_array();
	for (size_t i = 0; i < spec->model_count; i++)
		(void)json_array_append_new(models, text_of(spec->models[i]));
	put_text(out, "class", str_of(request_class_name(spec->class_)));
	if (spec->gpu_count > 0)
		put_int(out, "gpus", spec->gpu_count);
	else if (spec->mig_profile.len > 0)
		put_text(out, "migProfile", spec->mig_profile);
	else
		put_int(out, "gpuMilli", spec->gpu_milli);
	if (spec->gang > 0)
		put_int(out, "gang", spec->gang);
	(void)json_object_set_new(out, "gpuModels", models);
	put_given(out, "gpuMemory", body, "gpu_memory", "");
	put_given(out, "cpu", body, "cpu", "1");
	put_given(out, "memory", body, "memory", "1Gi");
	if (spec->duration_s > 0)
		put_int(out, "durationSeconds", spec->duration_s);
	put_int(out, "maxDurationSeconds", spec->max_duration_s);
	if (spec->deadline.len > 0)
		put_text(out, "deadline", spec->deadline);
	put_text(out, "image", spec->image);
	put_borrowed(out, "command", spec->command);
	put_borrowed(out, "args", spec->args);
	if (spec->env != NULL)
		(void)json_object_set_new(out, "env", env_list(spec->env));
	(void)json_object_set_new(object, "spec", out);
	return object;
}

struct str view_tenant_uid(const struct objects *objects, struct str tenant)
{
	return json_text(objects_find(objects, OBJECT_TENANT, STR(""), tenant), "metadata.uid");
}

void view_tenant_quota(const json_t *tenant, struct tenant_quota *ret_quota)
{
	*ret_quota = tenant_quota_default();
	const json_t *quota = json_at(tenant, "spec.quota");
	if (quota != NULL)
		tenant_quota_merge(quota, ret_quota);
}

bool view_request_spec(const json_t *request, struct request_spec *ret_spec)
{
	const json_t *in = json_at(request, "spec");
	struct request_spec spec = {
		.name = json_text(request, "metadata.name"),
		.class_ = request_class_of(json_text(in, "class")),
		.gpu_count = json_int(in, "gpus", 0),
		.gpu_milli = json_int(in, "gpuMilli", 0),
		.mig_profile = json_text(in, "migProfile"),
		.gang = min_i64(max_i64(json_int(in, "gang", 0), 0), REQUEST_GANG_MAX),
		.gpu_memory_mib = schema_get_bytes(in, "gpuMemory", 0) >> 20,
		.cpu_milli = schema_get_cpu_milli(in, "cpu", 1000),
		.memory_bytes = schema_get_bytes(in, "memory", INT64_C(1) << 30),
		.duration_s = json_int(in, "durationSeconds", 0),
		.max_duration_s = json_int(in, "maxDurationSeconds", 86400),
		.deadline = json_text(in, "deadline"),
		.image = json_text(in, "image"),
		.command = json_object_get(in, "command"),
		.args = json_object_get(in, "args"),
		.env = json_object_get(in, "env"),
	};
	size_t i;
	json_t *model;
	json_array_foreach(json_object_get(in, "gpuModels"), i, model)
	{
		if (spec.model_count < REQUEST_MODELS_MAX)
			spec.models[spec.model_count++] =
				(struct str){ json_string_value(model), json_string_length(model) };
	}
	*ret_spec = spec;
	int asked = (spec.gpu_count > 0) + (spec.gpu_milli > 0) + (spec.mig_profile.len > 0);
	return asked == 1 && spec.image.len > 0;
}

static const char *const phase_names[] = { "Pending", "Running", "Succeeded", "Failed",
					   "Cancelled" };

const char *view_phase_name(request_phase phase)
{
	ASSERT(phase <= PHASE_CANCELLED);
	return phase_names[phase];
}

bool view_phase_is_name(struct str text)
{
	for (unsigned i = 0; i < ARRAY_COUNT(phase_names); i++) {
		if (str_eq_c(text, phase_names[i]))
			return true;
	}
	return false;
}

request_phase view_request_phase(const json_t *request)
{
	struct str phase = json_text(request, "status.phase");
	for (unsigned i = 0; i < ARRAY_COUNT(phase_names); i++) {
		if (str_eq_c(phase, phase_names[i]))
			return (request_phase)i;
	}
	return PHASE_PENDING;
}

static bool is_owned_by(const json_t *object, struct str uid)
{
	size_t i;
	json_t *owner;
	json_array_foreach(json_at(object, "metadata.ownerReferences"), i, owner)
	{
		if (uid.len > 0 && str_eq(json_text(owner, "uid"), uid))
			return true;
	}
	return false;
}

json_t *view_request_job(const struct objects *objects, const json_t *request)
{
	json_t *job = objects_find(objects, OBJECT_JOB, json_text(request, "metadata.namespace"),
				   json_text(request, "metadata.name"));
	return is_owned_by(job, json_text(request, "metadata.uid")) ? job : NULL;
}

static bool is_newer(const json_t *pod, const json_t *other)
{
	return str_cmp(json_text(pod, "metadata.creationTimestamp"),
		       json_text(other, "metadata.creationTimestamp")) > 0;
}

static bool is_condition_true(const json_t *object, const char *type)
{
	const json_t *condition = k8s_condition_find(json_at(object, "status.conditions"), type);
	return str_eq_c(json_text(condition, "status"), "True");
}

static int progress_of(const json_t *pod)
{
	static const char *const PHASES[] = { "Running", "Succeeded", "Failed" };
	for (int i = 0; i < (int)ARRAY_COUNT(PHASES); i++) {
		if (str_eq_c(json_text(pod, "status.phase"), PHASES[i]))
			return 2 + i;
	}
	return is_condition_true(pod, "PodScheduled");
}

// Of a gang the pod that is least far speaks for all; of one that has failed, a failed one.
static bool speaks_before(const json_t *pod, const json_t *other, bool has_failed)
{
	int own = progress_of(pod), others = progress_of(other);
	if (own != others)
		return (own < others) != has_failed;
	return str_cmp(json_text(pod, "metadata.name"), json_text(other, "metadata.name")) < 0;
}

json_t *view_request_pod(const struct objects *objects, const json_t *request)
{
	json_t *pod, *found = NULL;
	const json_t *job = view_request_job(objects, request);
	struct str namespace_ = json_text(request, "metadata.namespace");
	struct str uid = json_text(job, "metadata.uid");
	bool is_gang = json_int(request, "spec.gang", 0) > 0;
	bool has_failed = is_condition_true(job, "Failed");
	if (uid.len == 0) // the Job may be gone before its pods
		uid = json_text(request, "status.jobUID");
	for (size_t i = 0; objects_next_in(objects, OBJECT_POD, namespace_, &i, &pod);) {
		if (!is_owned_by(pod, uid))
			continue;
		bool is_it = found == NULL || (is_gang ? speaks_before(pod, found, has_failed)
						       : is_newer(pod, found));
		found = is_it ? pod : found;
	}
	return found;
}

bool view_request_holds(const struct objects *objects, const json_t *request)
{
	return json_text(request, "status.jobUID").len > 0 ||
	       view_request_job(objects, request) != NULL;
}

// ---- counting

// What counting needs of a request; the cache keeps it beside each.
struct request_facts {
	struct quota_entry entry; // its name borrows from the object
	struct str uid;
	bool is_end, has_job;
};

static void read_facts(const json_t *request, void *ret_facts)
{
	struct request_facts *facts = ret_facts;
	struct request_spec spec;
	struct err err;
	(void)view_request_spec(request, &spec);
	facts->is_end = view_phase_is_end(view_request_phase(request));
	facts->uid = json_text(request, "metadata.uid");
	facts->has_job = json_text(request, "status.jobUID").len > 0;
	facts->entry = (struct quota_entry){ .name = json_text(request, "metadata.name"),
					     .class_ = spec.class_,
					     .need = quota_need_of(&spec) };
	// What nobody can read never gets a Job and takes no room; its end is next.
	if (!facts->has_job && request_check_object(json_at(request, "spec"), &err) != ERR_OK)
		facts->entry.need = (struct quota_amount){ 0 };
	if (!time_parse(json_text(request, "metadata.creationTimestamp"), &facts->entry.created_s,
			NULL))
		facts->entry.created_s = 0; // first in the order
}

void view_keep_facts(struct objects *objects)
{
	objects_keep_facts(objects, OBJECT_REQUEST, read_facts, sizeof(struct request_facts));
}

static bool holds(const struct objects *objects, struct str tenant,
		  const struct request_facts *facts, const struct map *extra_holds)
{
	char text[OBJECT_KEY_BYTES];
	struct str name = facts->entry.name;
	if (facts->has_job ||
	    is_owned_by(objects_find(objects, OBJECT_JOB, tenant, name), facts->uid))
		return true;
	struct str key = object_key(tenant, name, text);
	return extra_holds != NULL && key.len > 0 && map_find(extra_holds, key) != NULL;
}

bool view_tenant_load(const struct objects *objects, struct arena *arena, struct str tenant,
		      const struct map *extra_holds, struct tenant_load *ret_load)
{
	struct tenant_quota quota;
	struct tenant_load load = { 0 };
	size_t open = 0;
	const void *facts;
	for (size_t i = 0; objects_next_facts(objects, OBJECT_REQUEST, tenant, &i, &facts);)
		open += ((const struct request_facts *)facts)->is_end ? 0 : 1;
	load.entries = ARENA_ARRAY(arena, struct quota_entry, open + 1);
	if (load.entries == NULL)
		return false;
	for (size_t i = 0; objects_next_facts(objects, OBJECT_REQUEST, tenant, &i, &facts);) {
		const struct request_facts *request = facts;
		if (request->is_end)
			continue;
		struct quota_entry *entry = &load.entries[load.count++];
		*entry = request->entry;
		entry->holds = holds(objects, tenant, request, extra_holds);
	}
	view_tenant_quota(objects_find(objects, OBJECT_TENANT, STR(""), tenant), &quota);
	quota_admit(&quota, load.entries, load.count, &load.used);
	for (size_t i = 0; i < load.count; i++)
		load.waiting_gpus +=
			load.entries[i].position > 0 ? quota_gpus(&load.entries[i].need) : 0;
	*ret_load = load;
	return true;
}
