// SPDX-License-Identifier: Apache-2.0
// Paths of the Kubernetes API: names that come from outside are checked or escaped here, so that
// no name can name another resource ("../secrets"). Results are terminated texts in the arena;
// data is NULL when a part is not allowed in a path or the arena is full.
#pragma once

#include "base/arena.h"

struct k8s_object_path {
	const char *group_version; // "v1", "coordination.k8s.io/v1", "gpuaas.io/v1alpha1"
	const char *resource;      // "pods"
	const char *namespace_;    // NULL: cluster-scoped, or of all namespaces
	const char *name;          // NULL: the collection
	const char *subresource;   // NULL: none; "status", "binding"
};

struct str k8s_path(struct arena *arena, const struct k8s_object_path *path);
// The same with "?fieldManager=MANAGER&force=true|false" for a PATCH with K8S_APPLY_PATCH. The
// body is the whole of what the manager owns, with apiVersion, kind and metadata.name.
struct str k8s_apply_path(struct arena *arena, const struct k8s_object_path *path,
			  const char *field_manager, bool force);
