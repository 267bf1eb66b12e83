// SPDX-License-Identifier: Apache-2.0
#include "sim/whatif.h"

#include "base/timefmt.h"

#include <stdio.h>

enum { NAME_BYTES = 320 };
#define AT "sim.gpuaas.io/at"
#define RUNS "sim.gpuaas.io/runs-for"
#define DURATION "gpuaas.io/duration"

static bool is_kind(const json_t *document, const char *kind)
{
	return str_eq_c(json_text(document, "kind"), kind);
}

static bool is_named(const json_t *document, const char *kind, struct str name)
{
	return is_kind(document, kind) && str_eq(json_text(document, "metadata.name"), name);
}

static json_t *member(json_t *object, const char *key) // made if absent
{
	json_t *value = json_object_get(object, key);
	if (!json_is_object(value)) {
		(void)json_object_set_new(object, key, json_object());
		value = json_object_get(object, key);
	}
	return value;
}

// ---- times of a dump

static int64_t time_of(struct str text)
{
	int64_t seconds;
	uint32_t ns;
	return time_parse(text, &seconds, &ns) ? seconds : 0;
}

static int64_t bound_s(const json_t *pod)
{
	size_t i;
	const json_t *condition;
	json_array_foreach(json_at(pod, "status.conditions"), i, condition)
	{
		if (str_eq_c(json_text(condition, "type"), "PodScheduled") &&
		    str_eq_c(json_text(condition, "status"), "True"))
			return time_of(json_text(condition, "lastTransitionTime"));
	}
	return 0;
}

static int64_t youngest_s(const json_t *documents)
{
	int64_t youngest = 0;
	size_t i;
	const json_t *document;
	json_array_foreach(documents, i, document)
	{
		youngest = max_i64(youngest,
				   time_of(json_text(document, "metadata.creationTimestamp")));
		youngest = max_i64(youngest, bound_s(document));
	}
	return youngest;
}

static void annotate(json_t *document, const char *name, int64_t seconds)
{
	char text[32];
	json_t *annotations = member(member(document, "metadata"), "annotations");
	(void)snprintf(text, sizeof text, "%lld", (long long)seconds);
	if (json_object_get(annotations, name) == NULL)
		(void)json_object_set_new(annotations, name, json_string(text));
}

static const char *note_of(const json_t *document, const char *name)
{
	const char *text =
		json_string_value(json_object_get(json_at(document, "metadata.annotations"), name));
	return text == NULL ? "" : text;
}

// A pod that is on its node already ends by an object that deletes it.
static void end_running(json_t *documents, const json_t *pod, int64_t end_s)
{
	json_t *end = json_deep_copy(pod);
	json_t *annotations = member(member(end, "metadata"), "annotations");
	(void)json_object_del(annotations, AT);
	(void)json_object_set_new(annotations, "sim.gpuaas.io/action", json_string("delete"));
	annotate(end, AT, end_s);
	(void)json_array_append_new(documents, end);
}

static void time_pod(json_t *documents, json_t *pod, int64_t start_s, int64_t default_s,
		     size_t *endless)
{
	int64_t runs_s = default_s;
	bool is_said = str_to_i64(str_of(note_of(pod, DURATION)), &runs_s) && runs_s > 0;
	if (note_of(pod, RUNS)[0] != 0 || note_of(pod, "sim.gpuaas.io/action")[0] != 0)
		return;
	if (!is_said)
		runs_s = default_s;
	if (runs_s < 0) {
		(*endless)++;
		return;
	}
	annotate(pod, RUNS, runs_s);
	if (json_text(pod, "spec.nodeName").len > 0) // one that is late may end at any time
		end_running(documents, pod, max_i64(bound_s(pod) + runs_s, start_s + 1));
}

static void flatten(const json_t *documents, json_t *out)
{
	size_t i, k;
	json_t *document, *item;
	json_array_foreach(documents, i, document)
	{
		json_t *items = json_object_get(document, "items");
		if (!json_is_array(items))
			(void)json_array_append_new(out, json_deep_copy(document));
		json_array_foreach(items, k, item)(void)
			json_array_append_new(out, json_deep_copy(item));
	}
}

err_status whatif_prepare(const json_t *documents, int64_t default_s, json_t **ret,
			  size_t *ret_endless, struct err *err)
{
	json_t *out = json_array();
	size_t endless = 0;
	ASSERT(out != NULL);
	flatten(documents, out);
	size_t count = json_array_size(out);
	int64_t start_s = youngest_s(out);
	for (size_t i = 0; i < count; i++) {
		json_t *document = json_array_get(out, i);
		if (!json_is_object(document)) {
			json_decref(out);
			return err_set(err, ERR_INVALID, "document %zu is no object", i + 1);
		}
		if (is_kind(document, "Pod"))
			time_pod(out, document, start_s, default_s, &endless);
		if (start_s > 0)
			annotate(document, AT, start_s);
	}
	*ret = out;
	*ret_endless = endless;
	return ERR_OK;
}

// ---- changes

static void rename_uuids(json_t *value, const char *end)
{
	const char *key;
	size_t i;
	json_t *part;
	json_array_foreach(value, i, part) rename_uuids(part, end);
	if (!json_is_object(value))
		return;
	json_object_foreach(value, key, part)
	{
		const char *text = json_string_value(part);
		char name[NAME_BYTES];
		if (text == NULL || strcmp(key, "uuid") != 0) {
			rename_uuids(part, end);
			continue;
		}
		(void)snprintf(name, sizeof name, "%s%s", text, end);
		(void)json_string_set(part, name);
	}
}

static void copy_as(json_t *documents, const json_t *original, const char *end)
{
	char name[NAME_BYTES];
	json_t *copy = json_deep_copy(original);
	json_t *meta = member(copy, "metadata");
	(void)snprintf(name, sizeof name, "%s%s", json_cstr(original, "metadata.name"), end);
	(void)json_object_del(meta, "uid");
	(void)json_object_set_new(meta, "name", json_string(name));
	(void)json_object_set_new(member(meta, "labels"), "kubernetes.io/hostname",
				  json_string(name));
	rename_uuids(copy, end);
	(void)json_array_append_new(documents, copy);
}

static err_status add_nodes(json_t *documents, const struct whatif_change *change, struct err *err)
{
	size_t count = json_array_size(documents), found = 0;
	struct str like = str_of(change->like);
	for (size_t i = 0; i < count; i++) {
		const json_t *document = json_array_get(documents, i);
		bool is_node = is_named(document, "Node", like);
		if (!is_node && !is_named(document, "GPUNode", like))
			continue;
		found += is_node;
		for (int64_t k = 1; k <= change->nodes; k++) {
			char end[32];
			(void)snprintf(end, sizeof end, "-new-%lld", (long long)k);
			copy_as(documents, document, end);
		}
	}
	return found > 0 ? ERR_OK
			 : err_set(err, ERR_NOT_FOUND, "there is no node %s", change->like);
}

static void unbind(json_t *pod)
{
	json_t *annotations = json_at(pod, "metadata.annotations");
	(void)json_object_del(json_object_get(pod, "spec"), "nodeName");
	(void)json_object_del(pod, "status");
	(void)json_object_del(annotations, "gpuaas.io/devices");
	(void)json_object_del(annotations, "gpuaas.io/devices-mac");
}

static err_status remove_node(json_t *documents, const char *name, struct err *err)
{
	size_t found = 0;
	for (size_t i = json_array_size(documents); i-- > 0;) {
		json_t *document = json_array_get(documents, i);
		bool is_node = is_named(document, "Node", str_of(name));
		if (is_node || is_named(document, "GPUNode", str_of(name))) {
			found += is_node;
			(void)json_array_remove(documents, i);
		} else if (is_kind(document, "Pod") &&
			   str_eq_c(json_text(document, "spec.nodeName"), name)) {
			bool is_end = note_of(document, "sim.gpuaas.io/action")[0] != 0;
			if (is_end) // it starts anew and ends by itself
				(void)json_array_remove(documents, i);
			else
				unbind(document);
		}
	}
	return found > 0 ? ERR_OK : err_set(err, ERR_NOT_FOUND, "there is no node %s", name);
}

static err_status set_limit(json_t *documents, const char *word, struct err *err)
{
	struct str tenant, amount = str_of(word);
	size_t i, found = 0;
	int64_t limit;
	json_t *document;
	if (!str_split_next(&amount, '=', &tenant) || !str_to_i64(amount, &limit) || limit < 0)
		return err_set(err, ERR_INVALID, "%s is not TENANT=GPUS", word);
	json_array_foreach(documents, i, document)
	{
		if (!is_named(document, "Tenant", tenant))
			continue;
		found++;
		(void)json_object_set_new(member(member(document, "spec"), "queue"), "limit",
					  json_integer(limit));
	}
	return found > 0 ? ERR_OK
			 : err_set(err, ERR_NOT_FOUND, "there is no tenant " STR_FMT,
				   STR_ARG(tenant));
}

err_status whatif_apply(json_t *documents, const struct whatif_change *change, struct err *err)
{
	ASSERT(json_is_array(documents));
	for (size_t i = 0; i < change->limit_count; i++) {
		if (set_limit(documents, change->limits[i], err) != ERR_OK)
			return err->status;
	}
	if (change->nodes > 0 && add_nodes(documents, change, err) != ERR_OK)
		return err->status;
	for (size_t i = 0; i < change->removed_count; i++) {
		if (remove_node(documents, change->removed[i], err) != ERR_OK)
			return err->status;
	}
	return ERR_OK;
}
