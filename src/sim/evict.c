// SPDX-License-Identifier: Apache-2.0
#include "sim/evict.h"

static const struct str RECREATE = { "sim.gpuaas.io/recreate-after", 28 };
static const struct str SAVES = { "sim.gpuaas.io/checkpoint-every", 30 };
static const struct str ENDS = { "sim.gpuaas.io/ends-after", 24 };

void evict_init(struct sim *sim) { sim->budgets = map_new(0); }
void evict_done(struct sim *sim) { map_free(sim->budgets); }

err_status evict_apply_budget(struct sim *sim, const struct sim_object *object, struct err *err)
{
	struct arena *arena = sim->scenario->arena;
	struct kobj_budget budget;
	struct sched_budget *in = ARENA_NEW(arena, struct sched_budget);
	err_status status = kobj_from_json(arena, &KOBJ_BUDGET, object->json, NULL, &budget, err);
	if (status != ERR_OK)
		return status;
	if (budget.meta.namespace_.len == 0)
		budget.meta.namespace_ = STR("default");
	if (in == NULL || !feed_budget(arena, &budget, in))
		return err_set(err, ERR_LIMIT, "the scenario needs too much memory");
	if (object->action == SIM_DELETE) {
		sched_budget_remove(sim->core, in->key);
		(void)map_remove(sim->budgets, in->key);
		return ERR_OK;
	}
	sched_budget_set(sim->core, in);
	(void)map_set(sim->budgets, in->key, in);
	return ERR_OK;
}

static err_status read_after(const json_t *json, struct str name, int64_t *ret_ms, struct err *err)
{
	const json_t *value = json_object_get(json_at(json, "metadata.annotations"), name.data);
	int64_t seconds;
	if (value == NULL)
		return ERR_OK;
	if (!json_is_string(value) || !str_to_i64(str_of(json_string_value(value)), &seconds) ||
	    seconds < 0 || seconds > INT32_MAX)
		return err_set(err, ERR_INVALID, "%s must be whole seconds", name.data);
	*ret_ms = 1000 * seconds;
	return ERR_OK;
}

err_status evict_read(const struct sim_object *object, struct sim_pod *pod, struct err *err)
{
	pod->ends_ms = END_MS;
	pod->recreate_ms = -1;
	if (read_after(object->json, ENDS, &pod->ends_ms, err) != ERR_OK)
		return err->status;
	if (read_after(object->json, SAVES, &pod->saves_ms, err) != ERR_OK)
		return err->status;
	return read_after(object->json, RECREATE, &pod->recreate_ms, err);
}

static void add(struct sim *sim, event_kind kind, const struct sim_pod *pod, int64_t after_ms)
{
	events_add(sim->events, (struct event){ .at_ms = sim->now_ms + after_ms,
						.kind = kind,
						.uid = pod->uid,
						.bind_no = pod->bind_no });
}

// As the API server: every budget that counts the pod must allow it, more than one never does.
static bool is_allowed(struct sim *sim, const struct sim_pod *pod)
{
	struct sched_budget *found = NULL;
	struct str key;
	void *value;
	size_t count = 0;
	for (size_t i = 0; map_next(sim->budgets, &i, &key, &value);) {
		struct sched_budget *budget = value;
		if (!str_eq(budget->namespace_, pod->in.namespace_) ||
		    !sched_selector_matches(&budget->selector, &pod->in.labels))
			continue;
		found = budget;
		count++;
	}
	if (count == 0)
		return true;
	if (count > 1 || found->allowed == 0)
		return false;
	found->allowed--;
	sched_budget_set(sim->core, found);
	return true;
}

void evict_start(struct sim *sim, const struct sched_decision *decision)
{
	struct sim_pod *pod = map_find(sim->pods, decision->uid);
	bool is_given_back = decision->node.len == 0; // by a gang, or a node that is kept no longer
	pod->kept = arena_dup(sim->scenario->arena, decision->node);
	pod->has_victims = decision->victim_count > 0;
	for (size_t i = 0; i < decision->victim_count; i++) {
		struct sim_pod *victim = map_find(sim->pods, decision->victims[i].uid);
		victim->evicted_for = pod->uid;
		victim->leaving_ms = sim->now_ms;
		victim->home = arena_dup(sim->scenario->arena, decision->victims[i].home);
		sim->moved_pods += victim->home.len > 0;
		sim->evicted++;
		add(sim, EVENT_EVICT, victim, 1 + (int64_t)rng_below(&sim->rng, EVICT_MS_MAX));
	}
	if (!is_given_back || decision->victim_count == 0)
		add(sim, EVENT_NOMINATED, pod, 1 + (int64_t)rng_below(&sim->rng, EVICT_MS_MAX));
}

void evict_bound(struct sim *sim, const struct sim_pod *pod)
{
	if (pod->saves_ms > 0)
		add(sim, EVENT_SAVED, pod, pod->saves_ms);
}

static void on_saved(struct sim *sim, struct sim_pod *pod)
{
	if (pod->in.is_terminating)
		return;
	pod->in.stay.checkpoint_ms = sim->now_ms;
	sched_pod_set(sim->core, &pod->in);
	if (pod->runs_ms >= 0) // else it would go on for ever
		add(sim, EVENT_SAVED, pod, pod->saves_ms);
}

static void on_evict(struct sim *sim, struct sim_pod *pod)
{
	uint64_t lot = rng_below(&sim->rng, 1000);
	if (lot < sim->evict_failures_permille || !is_allowed(sim, pod)) {
		struct sim_pod *claimant = map_find(sim->pods, pod->evicted_for);
		if (claimant != NULL)
			claimant->is_excused = true;
		pod->evicted_for = pod->home = STR("");
		sched_evict_failed(sim->core, pod->uid, sim->now_ms);
		return;
	}
	pod->in.is_terminating = true;
	pod->leaving_ms = sim->now_ms;
	sched_pod_set(sim->core, &pod->in);
	add(sim, EVENT_FINISH, pod, pod->ends_ms);
}

static void on_recreate(struct sim *sim, const struct event *event)
{
	struct arena *arena = sim->scenario->arena;
	const struct sim_pod *old = event->pod;
	struct sim_pod *pod = ARENA_NEW(arena, struct sim_pod);
	ASSERT(pod != NULL); // a scenario that goes on for ever ends here
	*pod = *old;
	pod->uid = str_of(arena_printf(arena, "uid-%llu", (unsigned long long)sim->pod_no++));
	pod->in.name = str_of(arena_printf(arena, STR_FMT "+", STR_ARG(old->in.name)));
	pod->key = str_of(arena_printf(arena, STR_FMT "/" STR_FMT, STR_ARG(pod->in.namespace_),
				       STR_ARG(pod->in.name)));
	pod->in.uid = pod->uid;
	pod->in.node = pod->in.nominated = pod->node = pod->evicted_for = STR("");
	pod->in.device_count = 0;
	pod->in.created_s = sim->now_ms / 1000;
	pod->in.is_terminating = pod->is_told = pod->is_started = false;
	if (old->saves_ms > 0 && old->runs_ms >= 0) { // it goes on from its checkpoint
		pod->runs_ms -= max_i64(old->in.stay.checkpoint_ms - old->bound_ms, 0);
		pod->in.stay.checkpoint_ms = 0;
	}
	(void)map_set(sim->pods, pod->uid, pod);
	sched_pod_set(sim->core, &pod->in);
}

void evict_event(struct sim *sim, const struct event *event)
{
	struct sim_pod *pod = map_find(sim->pods, event->uid);
	if (event->kind == EVENT_RECREATE) {
		on_recreate(sim, event);
		return;
	}
	if (pod == NULL || pod->bind_no != event->bind_no)
		return;
	if (event->kind == EVENT_EVICT) {
		on_evict(sim, pod);
	} else if (event->kind == EVENT_SAVED) {
		on_saved(sim, pod);
	} else if (pod->node.len == 0) { // the API server tells what we have told it
		pod->in.nominated = pod->kept;
		sched_pod_set(sim->core, &pod->in);
	}
}

void evict_gone(struct sim *sim, struct sim_pod *pod)
{
	if (pod->evicted_for.len == 0 || pod->recreate_ms < 0)
		return;
	events_add(sim->events, (struct event){ .at_ms = sim->now_ms + pod->recreate_ms,
						.kind = EVENT_RECREATE,
						.pod = pod });
}
