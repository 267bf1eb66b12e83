// SPDX-License-Identifier: Apache-2.0
// Objects of the scenario into the core, with what the API server would have filled in.
#include "feed/feed_load.h"
#include "sim/check_gang.h"
#include "sim/evict.h"

#include <stdlib.h>

static const struct str OUR_NAME = { "gpuaas", 6 };

static err_status fail_memory(struct err *err)
{
	return err_set(err, ERR_LIMIT, "the scenario needs too much memory");
}

// Devices of a node that no GPUNode of the scenario describes: the whole GPUs it names, and behind
// them as many as its thousandths make up.
static void make_devices(struct sim *sim, const struct sched_node_in *node)
{
	struct sched_device_in devices[SCHED_DEVICES_MAX];
	int64_t whole = 0, shared = 0, memory_mib = 0;
	for (size_t i = 0; i < node->allocatable_count; i++) {
		const struct sched_amount *item = &node->allocatable[i];
		if (str_eq_c(item->resource, FEED_GPU_RESOURCE))
			whole = min_i64(item->amount, SCHED_DEVICES_MAX);
		if (str_eq_c(item->resource, SHARE_MILLI_RESOURCE))
			shared = min_i64(item->amount / SHARE_WHOLE_MILLI, SCHED_DEVICES_MAX);
	}
	int64_t count = min_i64(whole + shared, SCHED_DEVICES_MAX);
	struct str memory = sched_labels_get(&node->labels, STR("nvidia.com/gpu.memory"));
	if (!str_to_i64(memory, &memory_mib))
		memory_mib = 0;
	for (int64_t i = 0; i < count; i++) {
		char *uuid = arena_printf(sim->scenario->arena, "GPU-" STR_FMT "-%lld",
					  STR_ARG(node->name), (long long)i);
		devices[i] = (struct sched_device_in){
			.uuid = str_of(uuid),
			.model = sched_labels_get(&node->labels, STR("nvidia.com/gpu.product")),
			.index = i,
			.memory_mib = memory_mib,
			.is_healthy = true,
			.is_shared = i >= whole,
		};
	}
	sched_devices_set(sim->core, node->name, devices, (size_t)count);
	share_books_devices(checker_shares(sim->checker), devices, (size_t)count);
}

static bool has_gpu_node(const struct scenario *scenario, struct str name)
{
	for (size_t i = 0; i < scenario->object_count; i++) {
		const struct sim_object *object = &scenario->objects[i];
		if (object->kind == SIM_GPU_NODE &&
		    str_eq(json_text(object->json, "metadata.name"), name))
			return true;
	}
	return false;
}

static void remove_pods_of(struct sim *sim, struct str node)
{
	struct str uid;
	void *value;
	for (size_t i = 0; map_next(sim->pods, &i, &uid, &value);) {
		if (str_eq(((struct sim_pod *)value)->node, node))
			apply_remove_pod(sim, ((struct sim_pod *)value)->uid);
	}
}

static err_status apply_node(struct sim *sim, const struct sim_object *object, struct err *err)
{
	struct kobj_node node;
	struct sched_node_in in;
	struct arena *arena = sim->scenario->arena;
	err_status status = kobj_from_json(arena, &KOBJ_NODE, object->json, NULL, &node, err);
	if (status != ERR_OK)
		return status;
	if (!feed_node(arena, &node, &in))
		return fail_memory(err);
	if (object->action == SIM_DELETE) {
		sched_node_remove(sim->core, in.name);
		checker_node_gone(sim->checker, in.name);
		checker_excuse_node(sim, in.name);
		remove_pods_of(sim, in.name); // as the garbage collector of pods does
		return ERR_OK;
	}
	sched_node_set(sim->core, &in);
	checker_excuse_node(sim, in.name);
	checker_node(sim->checker, &in);
	if (!has_gpu_node(sim->scenario, in.name))
		make_devices(sim, &in);
	return ERR_OK;
}

static err_status apply_gpu_node(struct sim *sim, const struct sim_object *object, struct err *err)
{
	struct kobj_gpu_node node;
	struct sched_device_in *devices;
	size_t count = 0;
	struct arena *arena = sim->scenario->arena;
	err_status status = kobj_from_json(arena, &KOBJ_GPU_NODE, object->json, NULL, &node, err);
	if (status != ERR_OK)
		return status;
	if (!feed_devices(arena, &node, &devices, &count))
		return fail_memory(err);
	share_books_devices(checker_shares(sim->checker), devices, count);
	sched_devices_set(sim->core, node.meta.name, devices,
			  object->action == SIM_DELETE ? 0 : count);
	return ERR_OK;
}

static err_status apply_namespace(struct sim *sim, const struct sim_object *object, struct err *err)
{
	struct kobj_namespace space;
	err_status status = kobj_from_json(sim->scenario->arena, &KOBJ_NAMESPACE, object->json,
					   NULL, &space, err);
	if (status != ERR_OK)
		return status;
	struct sched_labels labels = feed_labels(&space.meta.labels);
	if (object->action == SIM_DELETE)
		sched_namespace_remove(sim->core, space.meta.name);
	else
		sched_namespace_set(sim->core, space.meta.name, &labels);
	return ERR_OK;
}

void apply_remove_pod(struct sim *sim, struct str uid)
{
	struct sim_pod *pod = map_find(sim->pods, uid);
	if (pod == NULL)
		return;
	checker_release(sim, pod);
	checker_gang_excuse(sim, pod);
	sched_pod_remove(sim->core, uid);
	(void)map_remove(sim->pods, uid); // its memory is the arena's
}

static struct sim_pod *find_pod(const struct sim *sim, struct str key)
{
	struct str uid;
	void *value;
	for (size_t i = 0; map_next(sim->pods, &i, &uid, &value);) {
		if (str_eq(((struct sim_pod *)value)->key, key))
			return value;
	}
	return NULL;
}

static void fill_in(struct sim *sim, const struct sim_object *object, struct kobj_pod *pod)
{
	struct scenario *scenario = sim->scenario;
	if (pod->meta.namespace_.len == 0)
		pod->meta.namespace_ = STR("default");
	if (pod->spec.scheduler_name.len == 0 || sim->takes_all)
		pod->spec.scheduler_name = OUR_NAME;
	if (pod->meta.created_s == 0)
		pod->meta.created_s = object->at_ms / 1000;
	const json_t *class_ = map_find(scenario->priorities, pod->spec.priority_class_name);
	if (class_ == NULL && pod->spec.priority_class_name.len == 0)
		class_ = scenario->default_priority;
	if (pod->spec.priority == 0 && class_ != NULL)
		pod->spec.priority = json_int(class_, "value", 0);
}

static void adopt_plan(struct arena *arena, const struct kobj_pod *pod, struct sched_pod_in *in)
{
	struct str plan = kobj_pairs_get(&pod->meta.annotations, STR(FEED_PLAN_ANNOTATION));
	struct str *uuids;
	struct sched_hold *holds;
	if (in->node.len > 0 && feed_plan_read(arena, plan, &uuids, &in->device_count))
		in->device_uuids = uuids;
	if (in->node.len > 0 && feed_plan_holds(arena, plan, &holds, &in->hold_count))
		in->holds = holds;
}

static struct sim_pod *new_pod(struct sim *sim, struct str key, struct str uid)
{
	struct arena *arena = sim->scenario->arena;
	struct sim_pod *pod = ARENA_NEW(arena, struct sim_pod);
	if (pod == NULL)
		return NULL;
	pod->key = key;
	pod->uid = uid.len > 0 ? uid
			       : str_of(arena_printf(arena, "uid-%llu",
						     (unsigned long long)sim->pod_no++));
	(void)map_set(sim->pods, pod->uid, pod);
	return pod;
}

static err_status apply_pod(struct sim *sim, const struct sim_object *object, struct err *err)
{
	struct kobj_pod pod;
	struct kobj_unknowns unknowns;
	struct sched_pod_in in;
	struct arena *arena = sim->scenario->arena;
	err_status status = kobj_from_json(arena, &KOBJ_POD, object->json, &unknowns, &pod, err);
	if (status != ERR_OK)
		return status;
	fill_in(sim, object, &pod);
	if (!feed_pod(arena, &pod, &unknowns, OUR_NAME, &in))
		return fail_memory(err);
	struct str key = str_of(
		arena_printf(arena, STR_FMT "/" STR_FMT, STR_ARG(in.namespace_), STR_ARG(in.name)));
	struct sim_pod *known = find_pod(sim, key);
	if (object->action == SIM_DELETE || feed_pod_is_finished(&pod)) {
		if (known != NULL)
			apply_remove_pod(sim, known->uid);
		return ERR_OK;
	}
	if (known == NULL)
		known = new_pod(sim, key, pod.meta.uid);
	if (known == NULL)
		return fail_memory(err);
	if (known->is_started) // an update of a running pod does not move it
		in.node = known->node;
	adopt_plan(arena, &pod, &in);
	in.uid = known->uid;
	in.created_s = known->in.spec != NULL ? known->in.created_s : in.created_s;
	int64_t bound_s = feed_bound_s(&pod);
	in.bound_ms = known->is_started ? known->bound_ms : 1000 * bound_s;
	in.stay.checkpoint_ms = 1000 * feed_checkpoint_s(&pod);
	in.is_terminating = in.is_terminating || known->in.is_terminating;
	if (known->kept.len > 0 && in.nominated.len == 0)
		in.nominated = known->in.nominated;
	known->is_excused = true;
	known->in = in;
	if (evict_read(object, known, err) != ERR_OK)
		return err->status;
	known->runs_ms = object->runs_ms;
	if (in.node.len > 0) {
		if (!known->is_started)
			known->bound_ms = bound_s > 0 ? 1000 * bound_s : sim->now_ms;
		known->node = in.node;
		known->is_started = true;
		checker_gang_excuse(sim, known);
	}
	sched_pod_set(sim->core, &in);
	return ERR_OK;
}

static err_status apply_group(struct sim *sim, const struct sim_object *object, struct err *err)
{
	struct arena *arena = sim->scenario->arena;
	union feed_group_object group;
	struct sched_gang_part part;
	err_status status =
		kobj_from_json(arena, object->group->table, object->json, NULL, &group, err);
	if (status != ERR_OK)
		return status;
	if (!object->group->read(arena, &group, &part))
		return fail_memory(err);
	if (part.namespace_.len == 0)
		part.namespace_ = STR("default");
	if (object->action == SIM_DELETE || part.name.len == 0)
		sched_gang_part_remove(sim->core, part.key);
	else
		sched_gang_part_set(sim->core, &part);
	return ERR_OK;
}

// What an agent or Prometheus would have told at this instant; the clock of the scenario begins
// with that of the world.
static err_status apply_load(struct sim *sim, const struct sim_object *object, struct err *err)
{
	struct arena *arena = sim->scenario->arena;
	const struct feed_clock clock = { sim->now_ms, sim->now_ms };
	const json_t *view = json_at(object->json, "spec.agent");
	const json_t *matrix = json_at(object->json, "spec.prometheus");
	int64_t period_s = json_int(object->json, "spec.periodSeconds", 15);
	struct feed_loads loads = { .count = 0 };
	if (period_s < 1 || period_s > 3600)
		return err_set(err, ERR_INVALID, "spec.periodSeconds must be from 1 to 3600");
	sched_load_period_set(sim->core, 1000 * period_s);
	if (view != NULL &&
	    feed_load_view(arena, json_dump(arena, view), clock, &loads, err) != ERR_OK)
		return err->status;
	if (matrix != NULL &&
	    feed_load_prometheus(arena, json_dump(arena, matrix), clock, &loads, err) != ERR_OK)
		return err->status;
	(void)sched_load_set(sim->core, loads.items, loads.count, sim->now_ms);
	return ERR_OK;
}

err_status apply_object(struct sim *sim, const struct sim_object *object, struct err *err)
{
	switch (object->kind) {
	case SIM_NODE: return apply_node(sim, object, err);
	case SIM_GPU_NODE: return apply_gpu_node(sim, object, err);
	case SIM_TENANT: return apply_tenant(sim, object, err);
	case SIM_NAMESPACE: return apply_namespace(sim, object, err);
	case SIM_POD: return apply_pod(sim, object, err);
	case SIM_BUDGET: return evict_apply_budget(sim, object, err);
	case SIM_LOAD: return apply_load(sim, object, err);
	case SIM_STORAGE: return storage_apply(sim, object, err);
	case SIM_CLAIM: return storage_apply_claim(sim, object, err);
	case SIM_GROUP: return apply_group(sim, object, err);
	case SIM_KINDS: break;
	}
	ASSERT(false && "a kind is missing");
	return ERR_INTERNAL;
}
