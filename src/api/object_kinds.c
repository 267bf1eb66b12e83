// SPDX-License-Identifier: Apache-2.0
#include "api/object_kinds.h"

#include <stdio.h>

#define OURS "labelSelector=app.kubernetes.io%2Fmanaged-by%3Dgpuaas-server"

const struct object_kind_info object_kinds[OBJECT_KIND_COUNT] = {
	[OBJECT_TENANT] = { "Tenant", "gpuaas.io/v1alpha1", "/apis/gpuaas.io/v1alpha1", "tenants",
			    false, NULL },
	[OBJECT_REQUEST] = { "GPURequest", "gpuaas.io/v1alpha1", "/apis/gpuaas.io/v1alpha1",
			     "gpurequests", true, NULL },
	[OBJECT_NODE] = { "GPUNode", "gpuaas.io/v1alpha1", "/apis/gpuaas.io/v1alpha1", "gpunodes",
			  false, NULL },
	[OBJECT_JOB] = { "Job", "batch/v1", "/apis/batch/v1", "jobs", true, OURS },
	[OBJECT_POD] = { "Pod", "v1", "/api/v1", "pods", true,
			 "labelSelector=gpuaas.io%2Frequest" },
	[OBJECT_NAMESPACE] = { "Namespace", "v1", "/api/v1", "namespaces", false,
			       "labelSelector=gpuaas.io%2Ftenant" },
	[OBJECT_QUOTA] = { "ResourceQuota", "v1", "/api/v1", "resourcequotas", true, OURS },
	[OBJECT_LIMITS] = { "LimitRange", "v1", "/api/v1", "limitranges", true, OURS },
	[OBJECT_POLICY] = { "NetworkPolicy", "networking.k8s.io/v1", "/apis/networking.k8s.io/v1",
			    "networkpolicies", true, OURS },
	[OBJECT_BINDING] = { "RoleBinding", "rbac.authorization.k8s.io/v1",
			     "/apis/rbac.authorization.k8s.io/v1", "rolebindings", true, OURS },
	[OBJECT_EVENT] = { "Event", "v1", "/api/v1", "events", true,
			   "fieldSelector=reason%3DFailedCreate%2CinvolvedObject.kind%3DJob" },
	[OBJECT_HOST] = { "Node", "v1", "/api/v1", "nodes", false,
			  "labelSelector=nvidia.com%2Fgpu.present%3Dtrue" },
};

char *object_path(struct arena *arena, object_kind kind, struct str namespace_, struct str name)
{
	ASSERT(kind < OBJECT_KIND_COUNT);
	const struct object_kind_info *info = &object_kinds[kind];
	const char *slash = name.len > 0 ? "/" : "";
	if (info->is_namespaced && namespace_.len > 0)
		return arena_printf(arena, "%s/namespaces/" STR_FMT "/%s%s" STR_FMT, info->prefix,
				    STR_ARG(namespace_), info->plural, slash, STR_ARG(name));
	return arena_printf(arena, "%s/%s%s" STR_FMT, info->prefix, info->plural, slash,
			    STR_ARG(name));
}

struct str object_key(struct str namespace_, struct str name, char out[OBJECT_KEY_BYTES])
{
	int len = snprintf(out, OBJECT_KEY_BYTES, STR_FMT "/" STR_FMT, STR_ARG(namespace_),
			   STR_ARG(name));
	if (len < 0 || len >= OBJECT_KEY_BYTES)
		return (struct str){ NULL, 0 };
	return (struct str){ out, (size_t)len };
}

void object_merge(json_t *target, const json_t *patch)
{
	ASSERT(json_is_object(target) && json_is_object(patch));
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)patch, key, value)
	{
		json_t *old = json_object_get(target, key);
		if (json_is_null(value)) {
			(void)json_object_del(target, key);
		} else if (json_is_object(value)) {
			if (!json_is_object(old)) {
				old = json_object();
				(void)json_object_set_new(target, key, old);
			}
			object_merge(old, value); // as deep as our own patches
		} else {
			(void)json_object_set(target, key, value);
		}
	}
}
