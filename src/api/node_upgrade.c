// SPDX-License-Identifier: Apache-2.0
#include "api/node_upgrade.h"

#include <stdlib.h>

bool node_upgrade_read(const json_t *host, struct upgrade *ret)
{
	const json_t *text =
		json_object_get(json_at(host, "metadata.annotations"), UPGRADE_ANNOTATION);
	return json_is_string(text) && upgrade_parse(str_of(json_string_value(text)), ret);
}

bool node_is_cordoned(const json_t *host) { return json_bool(host, "spec.unschedulable", false); }

static json_t *patch_of(const json_t *host, json_t *owned_value, bool is_cordoned)
{
	json_t *annotations = json_object(), *meta = json_object(), *spec = json_object();
	json_t *patch = json_object(), *version = json_at(host, "metadata.resourceVersion");
	(void)json_object_set_new(annotations, UPGRADE_ANNOTATION, owned_value);
	(void)json_object_set_new(meta, "annotations", annotations);
	if (version != NULL)
		(void)json_object_set(meta, "resourceVersion", version);
	(void)json_object_set_new(patch, "metadata", meta);
	if (is_cordoned != node_is_cordoned(host)) {
		(void)json_object_set_new(spec, "unschedulable",
					  is_cordoned ? json_true() : json_null());
		(void)json_object_set(patch, "spec", spec);
	}
	json_decref(spec);
	return patch;
}

json_t *node_upgrade_patch(const json_t *host, const struct upgrade *upgrade)
{
	AUTO(json_decrefp) json_t *state = upgrade_to_json(upgrade);
	char *text = json_dumps(state, JSON_COMPACT);
	ASSERT(text != NULL);
	json_t *value = json_string(text);
	free(text);
	return patch_of(host, value, upgrade_is_cordoned(upgrade));
}

json_t *node_upgrade_end_patch(const json_t *host, const struct upgrade *upgrade)
{
	return patch_of(host, json_null(), upgrade->was_cordoned);
}
