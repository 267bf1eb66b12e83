// SPDX-License-Identifier: Apache-2.0
// Where each kind lives in the Kubernetes API. Internal to the objects of src/api.
#pragma once

#include "api/objects.h"

#define OBJECT_FIELD_MANAGER "gpuaas-server"

struct object_kind_info {
	const char *kind;
	const char *api_version;
	const char *prefix; // "/apis/gpuaas.io/v1alpha1"
	const char *plural;
	bool is_namespaced;
	const char *selector; // of the watch, escaped; NULL: all
};
extern const struct object_kind_info object_kinds[OBJECT_KIND_COUNT];

// Path of the object, or of the collection when name is empty; in the arena.
char *object_path(struct arena *arena, object_kind kind, struct str namespace_, struct str name);
// "namespace/name" into out; empty str when it is too long to be a name.
enum { OBJECT_KEY_BYTES = 64 + 1 + 254 };
struct str object_key(struct str namespace_, struct str name, char out[OBJECT_KEY_BYTES]);
// RFC 7386: changes target in place.
void object_merge(json_t *target, const json_t *patch);
