// SPDX-License-Identifier: Apache-2.0
#include "daemons/server/manifests.h"

#include "api/views.h"
#include "gpu/mig.h"
#include "gpu/share.h"

#include <stdio.h>

// What a ResourceQuota calls the devices that claims ask of our DeviceClasses.
#define CLAIMED(class_) class_ ".deviceclass.resource.k8s.io/devices"
#define CLAIMED_GPUS CLAIMED("gpu.gpuaas.io")
#define CLAIMED_MIGS CLAIMED("mig.gpuaas.io")

#define MIG_PREFIX "nvidia.com/"

// json_pack with constant forms can fail only without memory.
static json_t *made(json_t *value)
{
	ASSERT(value != NULL);
	return value;
}

static json_t *meta_of(struct str name, struct str namespace_)
{
	json_t *meta = made(json_pack("{s:{s:s}}", "labels", LABEL_MANAGED_BY, "gpuaas-server"));
	put_text(meta, "name", name);
	put_text(meta, "namespace", namespace_);
	return meta;
}

static json_t *owner_of(const json_t *object, const char *kind)
{
	return made(json_pack("[{s:s, s:s, s:s, s:s, s:b}]", "apiVersion", "gpuaas.io/v1alpha1",
			      "kind", kind, "name", json_cstr(object, "metadata.name"), "uid",
			      json_cstr(object, "metadata.uid"), "controller", 1));
}

json_t *manifest_namespace(const json_t *tenant)
{
	struct str name = json_text(tenant, "metadata.name");
	json_t *meta = meta_of(name, STR(""));
	json_t *labels = json_object_get(meta, "labels");
	put_text(labels, LABEL_TENANT, name);
	put_text(labels, "pod-security.kubernetes.io/enforce", STR("restricted"));
	(void)json_object_set_new(meta, "ownerReferences", owner_of(tenant, "Tenant"));
	return made(json_pack("{s:s, s:s, s:o}", "apiVersion", "v1", "kind", "Namespace",
			      "metadata", meta));
}

// As the API server writes it, so that what it gives back is covered by what we want.
static void format_cpu(int64_t cpu_milli, char out[24])
{
	bool is_whole = cpu_milli % 1000 == 0;
	(void)snprintf(out, 24, "%lld%s", (long long)(is_whole ? cpu_milli / 1000 : cpu_milli),
		       is_whole ? "" : "m");
}

static void format_count(int64_t count, char out[24])
{
	static const char *const suffixes[] = { "", "k", "M", "G" };
	size_t i = 0;
	for (; count != 0 && count % 1000 == 0 && i + 1 < ARRAY_COUNT(suffixes); i++)
		count /= 1000;
	(void)snprintf(out, 24, "%lld%s", (long long)count, suffixes[i]);
}

// So many MIG devices as the GPUs have sevenths for, of each profile by itself.
static void put_migs(json_t *hard, int64_t gpus, const struct mig_names *migs)
{
	for (size_t i = 0; i < migs->count; i++) {
		char key[64], amount[24];
		struct str profile = str_of(migs->items[i]);
		int64_t milli = mig_profile_milli(profile);
		ASSERT(milli > 0);
		mig_resource_name("requests." MIG_PREFIX, profile, key, sizeof key);
		format_count(gpus * SHARE_WHOLE_MILLI / milli, amount);
		put_text(hard, key, str_of(amount));
	}
}

// Shares are counted by themselves, as many thousandths as the GPUs have and as much memory as
// GPUs of 80 GiB; so are GPUs by claims, and MIG devices by claims, where one that may be as large
// as a GPU counts as one. Limits count like requests: what a pod does not ask for it
// does not take from others either. A port of the nodes or a load balancer is nobody's to open.
static json_t *quota_part(const json_t *tenant, struct str name, const struct mig_names *migs)
{
	struct tenant_quota quota;
	enum { MEMORY_UNITS_A_GPU = 80 * 1024 / SHARE_UNIT_MIB };
	char gpus[24], cpu[24], memory[24], pods[24], milli[24], units[24];
	view_tenant_quota(tenant, &quota);
	(void)snprintf(gpus, sizeof gpus, "%lld", (long long)quota.gpus);
	format_count(quota.gpus * SHARE_WHOLE_MILLI, milli);
	format_count(quota.gpus * MEMORY_UNITS_A_GPU, units);
	format_cpu(quota.cpu_milli, cpu);
	(void)snprintf(memory, sizeof memory, "%lld", (long long)quota.memory_bytes);
	(void)snprintf(pods, sizeof pods, "%lld", (long long)quota.pods);
	json_t *hard = made(json_pack(
		"{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "requests.nvidia.com/gpu",
		gpus, CLAIMED_GPUS, gpus, "requests." SHARE_MILLI_RESOURCE, milli,
		"requests." SHARE_MEMORY_RESOURCE, units, "requests.cpu", cpu, "requests.memory",
		memory, "limits.memory", memory, "pods", pods, "services.nodeports", "0",
		"services.loadbalancers", "0"));
	put_text(hard, CLAIMED_MIGS, str_of(gpus));
	put_migs(hard, quota.gpus, migs);
	return made(json_pack("{s:s, s:s, s:o, s:{s:o}}", "apiVersion", "v1", "kind",
			      "ResourceQuota", "metadata", meta_of(STR("gpuaas"), name), "spec",
			      "hard", hard));
}

// Pods that name no amounts get small ones, because the quota demands them.
static json_t *limits_part(struct str name)
{
	return made(json_pack("{s:s, s:s, s:o, s:{s:[{s:s, s:{s:s}, s:{s:s, s:s}}]}}", "apiVersion",
			      "v1", "kind", "LimitRange", "metadata", meta_of(STR("gpuaas"), name),
			      "spec", "limits", "type", "Container", "default", "memory", "512Mi",
			      "defaultRequest", "cpu", "100m", "memory", "128Mi"));
}

// Only pods of the same tenant may connect.
static json_t *policy_part(struct str name)
{
	return made(json_pack("{s:s, s:s, s:o, s:{s:{}, s:[s], s:[{s:[{s:{}}]}]}}", "apiVersion",
			      "networking.k8s.io/v1", "kind", "NetworkPolicy", "metadata",
			      meta_of(STR("gpuaas"), name), "spec", "podSelector", "policyTypes",
			      "Ingress", "ingress", "from", "podSelector"));
}

static json_t *binding_part(struct str name, const char *role, const char *cluster_role)
{
	char group[100];
	(void)snprintf(group, sizeof group, "gpuaas:%.*s:%s", (int)name.len, name.data, role);
	return made(json_pack("{s:s, s:s, s:o, s:{s:s, s:s, s:s}, s:[{s:s, s:s, s:s}]}",
			      "apiVersion", "rbac.authorization.k8s.io/v1", "kind", "RoleBinding",
			      "metadata", meta_of(str_of(cluster_role), name), "roleRef",
			      "apiGroup", "rbac.authorization.k8s.io", "kind", "ClusterRole",
			      "name", cluster_role, "subjects", "kind", "Group", "apiGroup",
			      "rbac.authorization.k8s.io", "name", group));
}

void manifest_tenant_parts(const json_t *tenant, const struct mig_names *migs,
			   struct manifest ret_parts[MANIFEST_TENANT_PARTS])
{
	struct str name = json_text(tenant, "metadata.name");
	ret_parts[0] = (struct manifest){ OBJECT_QUOTA, "gpuaas", quota_part(tenant, name, migs) };
	ret_parts[1] = (struct manifest){ OBJECT_LIMITS, "gpuaas", limits_part(name) };
	ret_parts[2] = (struct manifest){ OBJECT_POLICY, "gpuaas", policy_part(name) };
	ret_parts[3] =
		(struct manifest){ OBJECT_BINDING, "gpuaas-tenant-admin",
				   binding_part(name, "tenant-admin", "gpuaas-tenant-admin") };
	ret_parts[4] = (struct manifest){ OBJECT_BINDING, "gpuaas-tenant-member",
					  binding_part(name, "member", "gpuaas-tenant-member") };
}

// ---- the Job of a request

static json_t *annotations_of(const struct request_spec *spec)
{
	char text[512] = "";
	size_t used = 0;
	json_t *notes = json_object();
	for (size_t i = 0; i < spec->model_count && used < sizeof text - 1; i++) {
		int n = snprintf(text + used, sizeof text - used, "%s%.*s", i == 0 ? "" : ",",
				 (int)spec->models[i].len, spec->models[i].data);
		used = n < 0 ? used : min_size(used + (size_t)n, sizeof text - 1);
	}
	put_text(notes, "gpuaas.io/gpu-models", str_of(text));
	if (spec->gpu_count > 0 && spec->gpu_memory_mib > 0) {
		(void)snprintf(text, sizeof text, "%lldMi", (long long)spec->gpu_memory_mib);
		put_text(notes, "gpuaas.io/min-gpu-memory", str_of(text));
	}
	if (spec->duration_s > 0) {
		(void)snprintf(text, sizeof text, "%lld", (long long)spec->duration_s);
		put_text(notes, "gpuaas.io/duration", str_of(text));
	}
	if (spec->deadline.len > 0)
		put_text(notes, "gpuaas.io/deadline", spec->deadline);
	if (spec->gang > 0) // the Job says of how many
		put_text(notes, "gpuaas.io/gang", spec->name);
	return notes;
}

static void put_share_memory(json_t *both, int64_t memory_mib)
{
	char units[24];
	(void)snprintf(units, sizeof units, "%lld",
		       (long long)((memory_mib + SHARE_UNIT_MIB - 1) / SHARE_UNIT_MIB));
	put_text(json_object_get(both, "requests"), SHARE_MEMORY_RESOURCE, str_of(units));
	put_text(json_object_get(both, "limits"), SHARE_MEMORY_RESOURCE, str_of(units));
}

// A pod cannot take more memory or GPUs than was granted. CPU is a share by weight: a limit would
// only keep what is idle from it, and a small one makes the start of its container, which counts
// against it, more than a second slower. Whole CPUs get a limit equal to the request all the same:
// so the kubelet can give them CPUs of their own.
static json_t *resources_of(const struct request_spec *spec)
{
	bool is_mig = spec->mig_profile.len > 0, is_share = spec->gpu_count == 0 && !is_mig;
	char cpu[24], memory[24], gpus[24], mig[64];
	const char *gpu = is_share ? SHARE_MILLI_RESOURCE : is_mig ? mig : "nvidia.com/gpu";
	mig_resource_name(MIG_PREFIX, spec->mig_profile, mig, sizeof mig);
	(void)snprintf(cpu, sizeof cpu, "%lldm", (long long)spec->cpu_milli);
	(void)snprintf(memory, sizeof memory, "%lld", (long long)spec->memory_bytes);
	(void)snprintf(gpus, sizeof gpus, "%lld",
		       (long long)(is_share ? spec->gpu_milli
				   : is_mig ? 1
					    : spec->gpu_count));
	json_t *both =
		made(json_pack("{s:{s:s, s:s, s:s}, s:{s:s, s:s}}", "requests", "cpu", cpu,
			       "memory", memory, gpu, gpus, "limits", "memory", memory, gpu, gpus));
	if (is_share && spec->gpu_memory_mib > 0)
		put_share_memory(both, spec->gpu_memory_mib);
	if (spec->cpu_milli % 1000 == 0)
		put_text(json_object_get(both, "limits"), "cpu", str_of(cpu));
	return both;
}

static void put_borrowed(json_t *object, const char *key, const json_t *value)
{
	if (value != NULL)
		(void)json_object_set(object, key, (json_t *)(uintptr_t)value);
}

static json_t *container_of(const struct request_spec *spec)
{
	json_t *container = made(json_pack(
		"{s:s, s:o, s:{s:b, s:{s:[s]}}}", "name", "main", "resources", resources_of(spec),
		"securityContext", "allowPrivilegeEscalation", 0, "capabilities", "drop", "ALL"));
	put_text(container, "image", spec->image);
	put_borrowed(container, "command", spec->command);
	put_borrowed(container, "args", spec->args);
	put_borrowed(container, "env", spec->env);
	return container;
}

// The longest time is the pod's, counted from its start: a Job's would also count the queue.
static json_t *pod_spec_of(const struct request_spec *spec)
{
	enum { NOBODY = 65532 };
	char class_[40];
	(void)snprintf(class_, sizeof class_, "gpuaas-%s", request_class_name(spec->class_));
	return made(
		json_pack("{s:s, s:s, s:s, s:I, s:b, s:b, s:i, s:{s:b, s:i, s:i, s:{s:s}}, s:[o]}",
			  "restartPolicy", "Never", "schedulerName", "gpuaas", "priorityClassName",
			  class_, "activeDeadlineSeconds", (json_int_t)spec->max_duration_s,
			  "automountServiceAccountToken", 0, "enableServiceLinks", 0,
			  "terminationGracePeriodSeconds", 10, "securityContext", "runAsNonRoot", 1,
			  "runAsUser", NOBODY, "runAsGroup", NOBODY, "seccompProfile", "type",
			  "RuntimeDefault", "containers", container_of(spec)));
}

static json_t *pod_template_of(const json_t *request, const struct request_spec *spec,
			       const char *id)
{
	const json_t *notes = json_at(request, "metadata.annotations");
	const json_t *user = json_object_get(notes, ANNOTATION_USER);
	json_t *meta =
		made(json_pack("{s:{s:s, s:s}, s:o}", "labels", LABEL_REQUEST, id, LABEL_MANAGED_BY,
			       "gpuaas-server", "annotations", annotations_of(spec)));
	put_text(json_object_get(meta, "labels"), LABEL_TENANT,
		 json_text(request, "metadata.namespace"));
	if (json_is_string(user)) // the scheduler counts it for them
		put_text(json_object_get(meta, "annotations"), ANNOTATION_USER,
			 str_of(json_string_value(user)));
	return made(json_pack("{s:o, s:o}", "metadata", meta, "spec", pod_spec_of(spec)));
}

// A pod that was evicted for a higher priority or a drain is made anew, and so is one that the
// node could not start (a restart of its kubelet or of containerd in that second does that): code
// 128, at most START_RETRIES times. Any other code is the program's own and ends the request.
static json_t *on_failure(void)
{
	enum { START_ERROR = 128 };
	return made(json_pack("{s:[{s:s, s:[{s:s, s:s}]}, {s:s, s:{s:s, s:[i]}}]}", "rules",
			      "action", "Ignore", "onPodConditions", "type", "DisruptionTarget",
			      "status", "True", "action", "FailJob", "onExitCodes", "operator",
			      "NotIn", "values", START_ERROR));
}

// All at once, each with its number (JOB_COMPLETION_INDEX).
static void put_gang(json_t *spec, int64_t count)
{
	(void)json_object_set_new(spec, "parallelism", json_integer(count));
	(void)json_object_set_new(spec, "completions", json_integer(count));
	put_text(spec, "completionMode", STR("Indexed"));
}

json_t *manifest_job(const json_t *request)
{
	enum { START_RETRIES = 2 };
	struct request_spec spec;
	struct str tenant = json_text(request, "metadata.namespace");
	struct str name = json_text(request, "metadata.name");
	char id[2 * 64 + 2];
	(void)view_request_spec(request, &spec);
	(void)snprintf(id, sizeof id, "%.*s.%.*s", (int)tenant.len, tenant.data, (int)name.len,
		       name.data);
	json_t *meta = meta_of(name, tenant);
	put_text(json_object_get(meta, "labels"), LABEL_REQUEST, str_of(id));
	(void)json_object_set_new(meta, "ownerReferences", owner_of(request, "GPURequest"));
	json_t *job = made(json_pack("{s:s, s:s, s:o, s:{s:i, s:o, s:o}}", "apiVersion", "batch/v1",
				     "kind", "Job", "metadata", meta, "spec", "backoffLimit",
				     START_RETRIES, "podFailurePolicy", on_failure(), "template",
				     pod_template_of(request, &spec, id)));
	if (spec.gang > 0)
		put_gang(json_object_get(job, "spec"), spec.gang);
	return job;
}

json_t *manifest_pod(const json_t *request)
{
	json_t *job = manifest_job(request);
	json_t *pod = json_incref(json_at(job, "spec.template"));
	json_t *meta = json_object_get(pod, "metadata");
	ASSERT(meta != NULL);
	put_text(meta, "namespace", json_text(request, "metadata.namespace"));
	put_text(meta, "name", json_text(request, "metadata.name"));
	json_decref(job);
	return pod;
}

// ---- drift

bool manifest_is_covered(const json_t *wanted, const json_t *actual)
{
	if (json_is_object(wanted)) {
		const char *key;
		json_t *value;
		json_object_foreach((json_t *)(uintptr_t)wanted, key, value)
		{
			if (!manifest_is_covered(value, json_object_get(actual, key)))
				return false; // as deep as our own manifests
		}
		return json_is_object(actual) || json_object_size(wanted) == 0;
	}
	if (json_is_array(wanted)) {
		size_t i;
		json_t *value;
		if (json_array_size(wanted) != json_array_size(actual))
			return false;
		json_array_foreach(wanted, i, value)
		{
			if (!manifest_is_covered(value, json_array_get(actual, i)))
				return false;
		}
		return true;
	}
	return json_equal(wanted, actual) != 0;
}
