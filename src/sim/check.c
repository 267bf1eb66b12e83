// SPDX-License-Identifier: Apache-2.0
// Invariants of the design, checked from outside of the core with books of its own: what nodes
// have by the scenario, what pods take by their specs, who holds which device by the decisions.
#include "sim/check_gang.h"
#include "sim/check_window.h"

#include <stdlib.h>

struct checker {
	struct arena *arena;
	struct map *nodes;   // name -> map of resource -> amount left
	struct map *holders; // uuid -> sim_pod
	struct share_books *shares;
};

// Maps hold no NULL, so that amounts are kept with one more.
static void *number(int64_t value) { return (void *)(uintptr_t)(value + 1); }
static int64_t value_of(const void *kept)
{
	return kept == NULL ? 0 : (int64_t)(uintptr_t)kept - 1;
}

struct checker *checker_new(struct arena *arena)
{
	struct checker *checker = calloc(1, sizeof *checker);
	ASSERT(checker != NULL);
	checker->arena = arena;
	checker->nodes = map_new(0);
	checker->holders = map_new(0);
	checker->shares = share_books_new();
	return checker;
}

void checker_free(struct checker *checker)
{
	struct str name;
	void *node;
	for (size_t i = 0; map_next(checker->nodes, &i, &name, &node);)
		map_free(node);
	map_free(checker->nodes);
	map_free(checker->holders);
	share_books_free(checker->shares);
	free(checker);
}

struct share_books *checker_shares(struct checker *checker) { return checker->shares; }

// Amounts of the node as it is now; what pods take is summed up anew at each bind.
void checker_node(struct checker *checker, const struct sched_node_in *in)
{
	struct map *node = map_new(0);
	for (size_t i = 0; i < in->allocatable_count; i++)
		(void)map_set(node, in->allocatable[i].resource, number(in->allocatable[i].amount));
	map_free(map_set(checker->nodes, in->name, node));
}

void checker_node_gone(struct checker *checker, struct str name)
{
	map_free(map_remove(checker->nodes, name));
}

static int64_t amount_in(const struct sched_spec *spec, struct str resource)
{
	for (size_t i = 0; i < spec->amount_count; i++) {
		if (str_eq(spec->amounts[i].resource, resource))
			return spec->amounts[i].amount;
	}
	return str_eq_c(resource, "pods") ? 1 : 0;
}

static int64_t taken(const struct sim *sim, struct str node, struct str resource)
{
	struct str uid;
	void *value;
	int64_t sum = 0;
	for (size_t i = 0; map_next(sim->pods, &i, &uid, &value);) {
		const struct sim_pod *pod = value;
		if (str_eq(pod->node, node))
			sum += amount_in(pod->in.spec, resource);
	}
	return sum;
}

int64_t checker_has(const struct sim *sim, struct str node, struct str resource)
{
	const struct map *amounts = map_find(sim->checker->nodes, node);
	return amounts == NULL ? 0 : value_of(map_find(amounts, resource));
}

static const char *check_amounts(const struct sim *sim, const struct sim_pod *pod)
{
	const struct map *node = map_find(sim->checker->nodes, pod->node);
	if (node == NULL)
		return "a pod was bound to a node that is not there";
	const struct sched_spec *spec = pod->in.spec;
	for (size_t i = 0; i < spec->amount_count; i++) {
		struct str resource = spec->amounts[i].resource;
		if (taken(sim, pod->node, resource) > value_of(map_find(node, resource)))
			return "a node has less than its pods take";
	}
	if (taken(sim, pod->node, STR("pods")) > value_of(map_find(node, STR("pods"))))
		return "a node has more pods than it may have";
	return NULL;
}

static const char *take_devices(struct sim *sim, struct sim_pod *pod,
				const struct sched_decision *bind)
{
	int64_t distinct = 0;
	for (size_t i = 0; i < bind->grant_count; i++) {
		struct str uuid = bind->grants[i].uuid;
		if (bind->grants[i].resource.len > 0)
			continue;
		if (share_books_has(sim->checker->shares, uuid))
			return "a device was given whole and in shares";
		const struct sim_pod *holder = map_find(sim->checker->holders, uuid);
		if (holder != NULL && holder != pod)
			return "a device was given to two pods";
		distinct += holder == NULL;
		(void)map_set(sim->checker->holders, uuid, pod);
	}
	if (distinct != pod->in.spec->gpu_count)
		return "a pod was given another number of devices than it asked for";
	for (size_t i = 0; i < bind->grant_count; i++) {
		if (bind->grants[i].resource.len > 0 &&
		    map_find(sim->checker->holders, bind->grants[i].uuid) != NULL)
			return "a device was given whole and in shares";
	}
	return share_books_take(sim->checker->shares, pod, bind);
}

static const char *blame(struct sim *sim, const struct sim_pod *pod, const char *what)
{
	return arena_printf(sim->scenario->arena, STR_FMT " %s", STR_ARG(pod->key), what);
}

// Nobody before it in the queue could have run.
static const char *check_order(struct sim *sim, const struct sim_pod *pod)
{
	struct str uid, node;
	void *value;
	if (pod->in.gang != NULL) // it goes with the first of its gang
		return NULL;
	for (size_t i = 0; map_next(sim->pods, &i, &uid, &value);) {
		const struct sim_pod *other = value;
		bool is_above = checker_priority(sim, other) > checker_priority(sim, pod) &&
				other->node.len == 0;
		struct sched_explanation explanation;
		// A pod may be what one with affinity or spread was waiting for.
		bool has_terms = other->in.spec->near_count + other->in.spec->spread_count > 0;
		bool is_of_other_queue = checker_has_queues(sim) &&
					 !str_eq(other->in.namespace_, pod->in.namespace_);
		if (!is_above || has_terms || is_of_other_queue || sim->orders_by_factors ||
		    other->in.gang != NULL || // it may not fit as a whole
		    !sched_explain(sim->core, other->in.namespace_, other->in.name, &explanation))
			continue;
		bool is_late = explanation.facts.count > 0; // it may be waiting for a bind's retry
		if (explanation.state == SCHED_STATE_WAITING && !is_late &&
		    sched_feasible(sim->core, other->in.namespace_, other->in.name, &node, 1) > 0)
			return blame(sim, other, "was passed by one of lower priority and fits");
	}
	return NULL;
}

// ---- reservations: nobody behind a head makes it start later

int64_t checker_end_ms(const struct sim *sim, const struct sim_pod *pod)
{
	enum { FIRST_MS = 1000, LAST_MS = 1 << 30 };
	int64_t said_ms = SCHED_NEVER_MS;
	if (pod->in.spec->duration_s > 0)
		said_ms = pod->bound_ms + 1000 * pod->in.spec->duration_s;
	if (pod->evicted_for.len > 0)
		said_ms = min_i64(said_ms, pod->leaving_ms + 1000 * SCHED_GRACE_S);
	if (said_ms == SCHED_NEVER_MS)
		return said_ms;
	for (int64_t late_ms = FIRST_MS; said_ms <= sim->now_ms; late_ms *= 2) {
		if (late_ms > LAST_MS)
			return SCHED_NEVER_MS;
		if (said_ms + late_ms > sim->now_ms)
			return said_ms + late_ms;
	}
	return said_ms;
}

struct question { // about a head on a node, with all pods there but one
	const struct sim *sim;
	const struct sim_pod *head, *without;
	struct str node;
	int64_t count; // of pods like the head
};

static int64_t missing_at(const struct question *question, int64_t at_ms, struct str resource)
{
	const struct map *node = map_find(question->sim->checker->nodes, question->node);
	int64_t need = question->count * amount_in(question->head->in.spec, resource);
	int64_t left = value_of(map_find(node, resource));
	struct str uid;
	void *value;
	for (size_t i = 0; map_next(question->sim->pods, &i, &uid, &value);) {
		const struct sim_pod *pod = value;
		if (pod != question->without && str_eq(pod->node, question->node) &&
		    checker_end_ms(question->sim, pod) > at_ms)
			left -= amount_in(pod->in.spec, resource);
	}
	return need > 0 ? max_i64(need - left, 0) : 0;
}

static bool fits_at(const struct question *question, int64_t at_ms)
{
	const struct sched_spec *spec = question->head->in.spec;
	for (size_t i = 0; i < spec->amount_count; i++) {
		if (missing_at(question, at_ms, spec->amounts[i].resource) > 0)
			return false;
	}
	return missing_at(question, at_ms, STR("pods")) == 0;
}

static int64_t start_of(const struct question *question)
{
	int64_t best_ms = SCHED_NEVER_MS;
	struct str uid;
	void *value;
	if (fits_at(question, question->sim->now_ms))
		return question->sim->now_ms;
	for (size_t i = 0; map_next(question->sim->pods, &i, &uid, &value);) {
		const struct sim_pod *pod = value;
		if (!str_eq(pod->node, question->node))
			continue;
		int64_t end_ms = checker_end_ms(question->sim, pod);
		if (end_ms < best_ms && fits_at(question, end_ms))
			best_ms = end_ms;
	}
	return best_ms;
}

static bool misses_more(const struct question *with, const struct question *without)
{
	const struct sched_spec *spec = with->head->in.spec;
	int64_t now_ms = with->sim->now_ms;
	for (size_t i = 0; i < spec->amount_count; i++) {
		struct str resource = spec->amounts[i].resource;
		if (missing_at(with, now_ms, resource) > missing_at(without, now_ms, resource))
			return true;
	}
	return false;
}

// One that replaces an evicted pod stands where that one stood.
static int64_t queued_s(const struct sim *sim, const struct sim_pod *pod)
{
	struct sched_preempt_view view;
	bool is_heir = sched_preempt_explain(sim->core, pod->in.namespace_, pod->in.name, &view) &&
		       view.queued_s != 0;
	return is_heir ? view.queued_s : pod->in.created_s;
}

static bool is_before(const struct sim *sim, const struct sim_pod *a, const struct sim_pod *b)
{
	int64_t a_s = queued_s(sim, a), b_s = queued_s(sim, b);
	if (a->in.priority != b->in.priority)
		return a->in.priority > b->in.priority;
	if (a_s != b_s)
		return a_s < b_s;
	int order = str_cmp(a->in.namespace_, b->in.namespace_);
	return order != 0 ? order < 0 : str_cmp(a->in.name, b->in.name) < 0;
}

static const char *check_reservation(struct sim *sim, const struct sim_pod *pod,
				     const struct sched_reservation *reservation)
{
	const struct sim_pod *head = map_find(sim->pods, reservation->uid);
	if (head == NULL || head->node.len > 0)
		return "a node is reserved for a pod that does not wait";
	// These books know no ports; one that never preempts has no right to others' room.
	bool is_of_amounts = head->in.spec->port_count == 0 &&
			     !(head->in.stay.never_preempts && pod->has_victims);
	if (!is_of_amounts || !str_eq(reservation->node, pod->node) || !is_before(sim, head, pod) ||
	    pod->in.gang != NULL) // a gang stands where its first member does
		return NULL;
	if (head->in.gang != NULL && !checker_gang_is_even(sim, head))
		return NULL;
	if (checker_has_window(sim, pod->node)) // the head may have to wait for that
		return NULL;
	int64_t count = (int64_t)reservation->pod_count;
	struct question with = { sim, head, NULL, pod->node, count };
	struct question without = { sim, head, pod, pod->node, count };
	int64_t start_ms = start_of(&without);
	bool is_never = start_ms == SCHED_NEVER_MS;
	if (head->in.gang != NULL) // other nodes may be what it waits for
		start_ms = max_i64(start_ms, reservation->start_ms);
	bool is_later = start_of(&with) > start_ms || (is_never && misses_more(&with, &without));
	return is_later ? blame(sim, pod, "delays one before it in the queue") : NULL;
}

static const char *check_reservations(struct sim *sim, const struct sim_pod *pod)
{
	enum { RESERVATIONS_MAX = 1024 };
	struct sched_reservation reservations[RESERVATIONS_MAX];
	size_t count = sched_reservations(sim->core, reservations, RESERVATIONS_MAX);
	const char *broken = NULL;
	if (checker_has_queues(sim)) // these books do not know who is before whom
		return NULL;
	for (size_t i = 0; i < count && broken == NULL; i++)
		broken = check_reservation(sim, pod, &reservations[i]);
	return broken;
}

const char *checker_bind(struct sim *sim, struct sim_pod *pod, const struct sched_decision *bind)
{
	const char *broken = check_amounts(sim, pod);
	if (broken == NULL)
		broken = take_devices(sim, pod, bind);
	if (broken == NULL)
		broken = checker_queue(sim, pod);
	if (broken == NULL)
		broken = checker_window(sim, pod);
	if (broken == NULL)
		broken = check_order(sim, pod);
	if (broken == NULL)
		broken = check_reservations(sim, pod);
	if (broken == NULL)
		broken = sched_check(sim->core);
	return broken;
}

void checker_release(struct sim *sim, const struct sim_pod *pod)
{
	struct str uuid;
	void *holder;
	for (size_t i = 0; map_next(sim->checker->holders, &i, &uuid, &holder);) {
		if (holder == pod)
			(void)map_remove(sim->checker->holders, uuid);
	}
	share_books_release(sim->checker->shares, pod);
}

static uint64_t codes_of(const struct sched_facts *facts)
{
	uint64_t codes = 0;
	for (size_t i = 0; i < facts->count; i++)
		codes |= UINT64_C(1) << facts->items[i].code;
	return codes;
}

const char *checker_quiet(struct sim *sim)
{
	struct str uid, node;
	void *value;
	for (size_t i = 0; map_next(sim->pods, &i, &uid, &value);) {
		const struct sim_pod *pod = value;
		struct sched_explanation explanation;
		if (pod->node.len > 0)
			continue;
		if (!sched_explain(sim->core, pod->in.namespace_, pod->in.name, &explanation))
			return blame(sim, pod, "waits and is not known");
		if (!pod->is_told || explanation.facts.count == 0)
			return blame(sim, pod, "waits without a reason");
		bool is_retry =
			(codes_of(&explanation.facts) & UINT64_C(1) << SCHED_CODE_BIND_FAILED) != 0;
		if (is_retry || pod->in.gang != NULL)
			continue;
		if (sched_feasible(sim->core, pod->in.namespace_, pod->in.name, &node, 1) > 0)
			return blame(sim, pod, "waits and could run");
		// Codes may lag behind until the next refresh; then nothing is left to wake up for.
		if (sched_wake_ms(sim->core) == INT64_MAX &&
		    codes_of(&explanation.facts) != pod->told_codes)
			return blame(sim, pod, "was told reasons that no longer hold");
	}
	const char *broken = checker_gangs(sim);
	return broken == NULL ? sched_check(sim->core) : broken;
}
