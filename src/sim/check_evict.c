// SPDX-License-Identifier: Apache-2.0
// Invariants of preemption: nobody is evicted for an equal or a lower one, nobody who could stay,
// nobody for a pod that then does not start. Minimal sets are checked where amounts alone decide.
#include "sim/check_gang.h"
#include "sim/evict.h"

enum { RESERVATIONS_MAX = 1024 };

static const char *blame(struct sim *sim, const struct sim_pod *pod, const char *what)
{
	return arena_printf(sim->scenario->arena, STR_FMT " %s", STR_ARG(pod->key), what);
}

// Its spec says nothing that these books do not know.
static bool is_plain(const struct sched_spec *spec)
{
	return spec->near_count + spec->apart_count + spec->spread_count + spec->port_count +
		       spec->claim_count + spec->disk_count + spec->gpu_model_count +
		       spec->share_count + spec->device_claim_count ==
	       0;
}

static bool is_leaving(const struct sim_pod *pod)
{
	return pod->in.is_terminating || pod->evicted_for.len > 0;
}

static int64_t amount_of(const struct sched_spec *spec, struct str resource)
{
	for (size_t i = 0; i < spec->amount_count; i++) {
		if (str_eq(spec->amounts[i].resource, resource))
			return spec->amounts[i].amount;
	}
	return str_eq_c(resource, "pods") ? 1 : 0;
}

static bool is_told(const struct sched_decision *decision, struct str uid)
{
	for (size_t i = 0; i < decision->victim_count; i++) {
		if (str_eq(decision->victims[i].uid, uid))
			return true;
	}
	return false;
}

// What is left of a resource when all victims but one have left; but empty: all.
static int64_t left_without(const struct sim *sim, const struct sched_decision *decision,
			    struct str resource, struct str but)
{
	int64_t left = checker_has(sim, decision->node, resource);
	struct str uid;
	void *value;
	for (size_t i = 0; map_next(sim->pods, &i, &uid, &value);) {
		const struct sim_pod *pod = value;
		bool leaves = is_leaving(pod) || is_told(decision, uid);
		if (str_eq(pod->node, decision->node) && (!leaves || str_eq(uid, but)))
			left -= amount_of(pod->in.spec, resource);
	}
	return left;
}

static bool suffices(const struct sim *sim, const struct sim_pod *pod,
		     const struct sched_decision *decision, struct str but)
{
	const struct sched_spec *spec = pod->in.spec;
	for (size_t i = 0; i < spec->amount_count; i++) {
		struct str resource = spec->amounts[i].resource;
		if (spec->amounts[i].amount > 0 &&
		    left_without(sim, decision, resource, but) < spec->amounts[i].amount)
			return false;
	}
	return left_without(sim, decision, STR("pods"), but) >= 1;
}

// Others' claims on the node may make more victims necessary than these books see.
static bool is_alone(const struct sim *sim, const struct sim_pod *pod, struct str node)
{
	struct sched_reservation reservations[RESERVATIONS_MAX];
	size_t count = sched_reservations(sim->core, reservations, RESERVATIONS_MAX);
	struct str uid;
	void *value;
	for (size_t i = 0; i < count; i++) {
		if (str_eq(reservations[i].node, node) && !str_eq(reservations[i].uid, pod->uid))
			return false;
	}
	for (size_t i = 0; map_next(sim->pods, &i, &uid, &value);) {
		const struct sim_pod *other = value;
		if (other != pod &&
		    (str_eq(other->kept, node) || str_eq(other->in.nominated, node)))
			return false;
	}
	return true;
}

// It goes on elsewhere, where there is room for it now.
static const char *check_moved(struct sim *sim, const struct sim_pod *pod,
			       const struct sim_pod *victim, const struct sched_victim *told)
{
	const struct sched_move_rules *rules = &sim->rules.move;
	const struct sched_decision there = { .node = told->home };
	bool has_queues = map_count(sim->queues) > 0;
	if (victim->in.priority > pod->in.priority && !has_queues)
		return blame(sim, victim, "is moved for one that is below it");
	if (victim->in.stay.checkpoint_ms <= victim->bound_ms || victim->in.stay.owner == 0)
		return blame(sim, victim, "is moved and would begin anew, or not at all");
	if (sim->now_ms - victim->bound_ms < rules->min_run_ms)
		return blame(sim, victim, "is moved again too soon");
	if (told->lost_ms * max_i64(told->gpu_count, 1) > rules->lost_max_ms)
		return blame(sim, victim, "is moved and loses too much");
	if (str_eq(told->home, victim->node) || !suffices(sim, victim, &there, STR("")))
		return blame(sim, victim, "is moved to where there is no room for it");
	return NULL;
}

static const char *check_victim(struct sim *sim, const struct sim_pod *pod,
				const struct sched_decision *decision,
				const struct sched_victim *told)
{
	const struct sim_pod *victim = map_find(sim->pods, told->uid);
	if (victim == NULL || !victim->is_started)
		return blame(sim, pod, "evicts a pod that does not run");
	// A gang goes, and comes, as a whole, also on other nodes.
	bool is_single = victim->in.gang == NULL && pod->in.gang == NULL;
	if (is_single && !str_eq(victim->node, decision->node))
		return blame(sim, victim, "is evicted and runs elsewhere");
	bool has_queues = map_count(sim->queues) > 0; // their ceilings lower a priority
	bool is_below = victim->in.priority < pod->in.priority;
	if (told->home.len > 0) {
		const char *broken = check_moved(sim, pod, victim, told);
		if (broken != NULL)
			return broken;
	} else if (!is_below && !has_queues) {
		return blame(sim, victim, "is evicted for one that is not above it");
	}
	if (is_leaving(victim))
		return blame(sim, victim, "is evicted twice");
	if (sim->now_ms - victim->bound_ms < sim->rules.min_run_ms)
		return blame(sim, victim, "is evicted before its minimum run time");
	bool is_sure = is_single && is_plain(pod->in.spec) && victim->in.spec->apart_count == 0 &&
		       is_alone(sim, pod, decision->node);
	if (is_sure && suffices(sim, pod, decision, told->uid))
		return blame(sim, victim, "is evicted and could stay");
	return NULL;
}

const char *checker_evict(struct sim *sim, struct sim_pod *pod,
			  const struct sched_decision *decision)
{
	const char *broken = NULL;
	pod->is_excused = false;
	if (decision->node.len == 0) // what a gang gives back is checked with the gangs
		return NULL;
	if (!suffices(sim, pod, decision, STR("")))
		return blame(sim, pod, "makes room that does not suffice");
	if (pod->in.stay.never_preempts && decision->victim_count > 0)
		return blame(sim, pod, "evicts though its policy is Never");
	for (size_t i = 0; i < decision->victim_count && broken == NULL; i++)
		broken = check_victim(sim, pod, decision, &decision->victims[i]);
	return broken;
}

// Pods that still have to leave, for it or for others.
static size_t count_leaving(const struct sim *sim, const struct sim_pod *pod)
{
	size_t count = 0;
	struct str uid;
	void *value;
	for (size_t i = 0; map_next(sim->pods, &i, &uid, &value);) {
		const struct sim_pod *other = value;
		count += is_leaving(other) && str_eq(other->node, pod->kept);
	}
	return count;
}

// Whether some of its gang is to leave others for, or something came between it and its room. With
// a node for itself each of its gang has one, or runs.
static const char *check_mates(struct sim *sim, const struct sim_pod *pod, bool *ret_is_excused)
{
	size_t mates = 0, placed = 0;
	struct str uid;
	void *value;
	for (size_t i = 0; map_next(sim->pods, &i, &uid, &value);) {
		const struct sim_pod *other = value;
		if (!checker_gang_is_same(other, pod))
			continue;
		mates++;
		placed += other->node.len > 0 || other->kept.len > 0;
		*ret_is_excused = *ret_is_excused || other->is_excused ||
				  (other->kept.len > 0 && count_leaving(sim, other) > 0);
	}
	bool is_whole = pod->in.gang->min == 0 || (int64_t)mates < pod->in.gang->min ||
			(int64_t)placed >= pod->in.gang->min;
	return is_whole || *ret_is_excused ? NULL
					   : blame(sim, pod, "has a node kept, its gang has not");
}

// The room is there, nothing came between, and the pod waits: it was made in vain.
static const char *check_vain(struct sim *sim, struct sim_pod *pod)
{
	bool has_queues = map_count(sim->queues) > 0; // a limit may come between
	bool is_excused = pod->is_excused;
	if (pod->in.gang != NULL && pod->kept.len > 0 && pod->node.len == 0) {
		const char *broken = check_mates(sim, pod, &is_excused);
		if (broken != NULL)
			return broken;
	}
	if (pod->kept.len == 0 || pod->node.len > 0 || is_excused || has_queues ||
	    !is_plain(pod->in.spec) || count_leaving(sim, pod) > 0)
		return NULL;
	return blame(sim, pod, "waits though its victims have left");
}

// A gang may have to stay for the sake of one member, which these books do not follow.
static bool has_gangs(const struct sim *sim)
{
	struct str uid;
	void *value;
	for (size_t i = 0; map_next(sim->pods, &i, &uid, &value);) {
		if (((const struct sim_pod *)value)->in.gang != NULL)
			return true;
	}
	return false;
}

// Nobody of lower priority runs on what the pod could have, unless a reason says why.
static const char *check_lower(struct sim *sim, const struct sim_pod *pod)
{
	struct sched_explanation why;
	struct sched_reservation reservations[2];
	uint32_t held = 0, spared = 0;
	bool is_asked = sim->rules.mode != SCHED_PREEMPT_OFF && is_plain(pod->in.spec) &&
			!pod->in.stay.never_preempts && pod->kept.len == 0 &&
			map_count(sim->queues) == 0 && !has_gangs(sim);
	if (!is_asked || sched_wake_ms(sim->core) != INT64_MAX ||
	    sched_reservations(sim->core, reservations, 2) > 1 ||
	    !sched_explain(sim->core, pod->in.namespace_, pod->in.name, &why))
		return NULL;
	for (size_t i = 0; i < why.facts.count; i++) {
		const struct sched_fact *fact = &why.facts.items[i];
		held += fact->code == SCHED_CODE_HELD_BY_LOWER ? fact->nodes : 0;
		spared += fact->code == SCHED_CODE_LOWER_PROTECTED ? fact->nodes : 0;
	}
	bool is_first = why.position == 1;
	return is_first && held > spared ? blame(sim, pod, "waits, and lower ones could leave")
					 : NULL;
}

const char *checker_kept(struct sim *sim)
{
	const char *broken = NULL;
	struct str uid;
	void *value;
	for (size_t i = 0; broken == NULL && map_next(sim->pods, &i, &uid, &value);) {
		struct sim_pod *pod = value;
		if (pod->node.len > 0)
			continue;
		broken = check_vain(sim, pod);
		if (broken == NULL)
			broken = check_lower(sim, pod);
	}
	return broken;
}

void checker_excuse_node(struct sim *sim, struct str node)
{
	struct str uid;
	void *value;
	for (size_t i = 0; map_next(sim->pods, &i, &uid, &value);) {
		struct sim_pod *pod = value;
		pod->is_excused = pod->is_excused || str_eq(pod->kept, node);
	}
}
