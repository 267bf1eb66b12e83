// SPDX-License-Identifier: Apache-2.0
#include "base/yaml.h"
#include "feed/feed_claim.h"
#include "sim/sim.h"
#include "sys/fs.h"

#include <stdlib.h>

enum { SCENARIO_MAX_BYTES = 30 * 1024 * 1024, ARENA_MAX_BYTES = 1024 * 1024 * 1024 };

// Seconds with at most three decimals.
static bool read_seconds(struct str text, int64_t *ret_ms)
{
	struct str whole, part = text;
	int64_t seconds, milli = 0;
	(void)str_split_next(&part, '.', &whole);
	if (!str_to_i64(whole, &seconds) || seconds < 0 || seconds > INT64_C(1) << 40)
		return false;
	if (part.len > 3 || (part.len == 0 && str_find_byte(text, '.', 0) != SIZE_MAX))
		return false;
	if (part.len > 0 && (!str_to_i64(part, &milli) || milli < 0))
		return false;
	for (size_t i = part.len; i < 3; i++)
		milli *= 10;
	*ret_ms = seconds * 1000 + milli;
	return true;
}

static struct str annotation(const json_t *json, const char *name)
{
	const json_t *value = json_object_get(json_at(json, "metadata.annotations"), name);
	return (struct str){ json_string_value(value), json_string_length(value) };
}

static err_status read_times(const json_t *json, struct sim_object *object, struct err *err)
{
	struct str at = annotation(json, "sim.gpuaas.io/at");
	struct str runs = annotation(json, "sim.gpuaas.io/runs-for");
	struct str action = annotation(json, "sim.gpuaas.io/action");
	const char *name = json_cstr(json, "metadata.name");
	object->runs_ms = -1;
	if (at.data != NULL && !read_seconds(at, &object->at_ms))
		return err_set(err, ERR_INVALID, "%s: sim.gpuaas.io/at must be seconds", name);
	if (runs.data != NULL && !read_seconds(runs, &object->runs_ms))
		return err_set(err, ERR_INVALID, "%s: sim.gpuaas.io/runs-for must be seconds",
			       name);
	if (action.data == NULL || str_eq_c(action, "create"))
		object->action = SIM_CREATE;
	else if (str_eq_c(action, "update"))
		object->action = SIM_UPDATE;
	else if (str_eq_c(action, "delete"))
		object->action = SIM_DELETE;
	else
		return err_set(err, ERR_INVALID,
			       "%s: sim.gpuaas.io/action is create, update or delete", name);
	return ERR_OK;
}

static bool find_kind(const json_t *json, struct str kind, struct sim_object *object)
{
	static const char *const KINDS[SIM_STORAGE] = { "Node",   "GPUNode", "Namespace",
							"Tenant", "Pod",     "PodDisruptionBudget",
							"GPULoad" };
	for (int i = 0; i < SIM_STORAGE; i++) {
		object->kind = (sim_kind)i;
		if (str_eq_c(kind, KINDS[i]))
			return true;
	}
	object->kind = SIM_STORAGE;
	for (int i = 0; i < SCHED_STORAGES; i++) {
		object->storage = (sched_storage)i;
		if (str_eq_c(kind, FEED_STORAGES[i].kind))
			return true;
	}
	object->kind = SIM_CLAIM;
	for (int i = 0; i < SCHED_CLAIM_KINDS; i++) {
		object->claim = (sched_claim_kind)i;
		if (str_eq_c(kind, FEED_CLAIM_KINDS[i].kind))
			return true;
	}
	object->kind = SIM_GROUP;
	object->group = feed_group_find(json_text(json, "apiVersion"), kind);
	return object->group != NULL;
}

static err_status add_object(struct scenario *scenario, const json_t *json, struct err *err)
{
	struct str kind = json_text(json, "kind");
	struct str name = json_text(json, "metadata.name");
	if (str_eq_c(kind, "PriorityClass")) {
		(void)map_set(scenario->priorities, name, (void *)(uintptr_t)json);
		if (json_bool(json, "globalDefault", false))
			scenario->default_priority = json;
		return ERR_OK;
	}
	struct sim_object object = { .json = json };
	if (find_kind(json, kind, &object)) {
		if (name.len == 0)
			return err_set(err, ERR_INVALID, "a " STR_FMT " lacks metadata.name",
				       STR_ARG(kind));
		scenario->objects[scenario->object_count] = object;
		return read_times(json, &scenario->objects[scenario->object_count++], err);
	}
	(void)fprintf(stderr, "gpuaas-sim: %.60s is not simulated and left out\n",
		      json_cstr(json, "kind"));
	return ERR_OK;
}

static err_status add_all(struct scenario *scenario, struct err *err)
{
	size_t count = 0;
	for (size_t i = 0; i < json_array_size(scenario->documents); i++) {
		const json_t *document = json_array_get(scenario->documents, i);
		count += max_size(json_array_size(json_object_get(document, "items")), 1);
	}
	scenario->objects = calloc(max_size(count, 1), sizeof *scenario->objects);
	ASSERT(scenario->objects != NULL);
	for (size_t i = 0; i < json_array_size(scenario->documents); i++) {
		const json_t *document = json_array_get(scenario->documents, i);
		const json_t *items = json_object_get(document, "items");
		if (!json_is_array(items)) {
			if (add_object(scenario, document, err) != ERR_OK)
				return err->status;
			continue;
		}
		for (size_t k = 0; k < json_array_size(items); k++) { // what kubectl get prints
			if (add_object(scenario, json_array_get(items, k), err) != ERR_OK)
				return err->status;
		}
	}
	return ERR_OK;
}

err_status scenario_parse(struct str text, struct scenario *ret, struct err *err)
{
	*ret = (struct scenario){ .priorities = map_new(0), .arena = arena_new(ARENA_MAX_BYTES) };
	if (yaml_parse_documents(text, &ret->documents, err) == ERR_OK &&
	    add_all(ret, err) == ERR_OK)
		return ERR_OK;
	scenario_done(ret);
	return err->status;
}

err_status scenario_load(const char *path, struct scenario *ret, struct err *err)
{
	AUTO(buf_done) struct buf text = { .limit = SCENARIO_MAX_BYTES };
	if (fs_read(path, SCENARIO_MAX_BYTES, &text, err) != ERR_OK)
		return err->status;
	if (scenario_parse(buf_str(&text), ret, err) != ERR_OK)
		return err_wrap(err, "%s", path);
	return ERR_OK;
}

void scenario_done(struct scenario *scenario)
{
	json_decref(scenario->documents);
	free(scenario->objects);
	map_free(scenario->priorities);
	arena_free(scenario->arena);
	*scenario = (struct scenario){ .documents = NULL };
}
