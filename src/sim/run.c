// SPDX-License-Identifier: Apache-2.0
#include "sim/check_gang.h"
#include "sim/evict.h"
#include "sim/jobs.h"
#include "sim/pack.h"

#include <errno.h>

enum { EXIT_INVARIANT = 9, BIND_MS_MAX = 20, STILL_MS_MAX = 24 * 3600 * 1000 };

static void on_bind(struct sim *sim, const struct sched_decision *decision, struct sim_pod *pod)
{
	pod->node = arena_dup(sim->scenario->arena, decision->node);
	pod->bound_ms = sim->now_ms;
	pod->kept = STR("");
	pod->bind_no++;
	checker_excuse_node(sim, pod->node);
	uint64_t lot = rng_below(&sim->rng, 1000);
	int64_t delay_ms = 1 + (int64_t)rng_below(&sim->rng, BIND_MS_MAX);
	event_kind kind = lot < sim->bind_failures_permille ? EVENT_BIND_FAILED : EVENT_BOUND;
	events_add(sim->events, (struct event){ .at_ms = sim->now_ms + delay_ms,
						.kind = kind,
						.uid = pod->uid,
						.bind_no = pod->bind_no });
}

static const char *on_decision(struct sim *sim, const struct sched_decision *decision)
{
	struct sim_pod *pod = map_find(sim->pods, decision->uid);
	if (pod == NULL)
		return "a decision about a pod that is not there";
	write_decision(sim, decision);
	if (decision->verb == SCHED_BIND) {
		storage_bind(sim, decision);
		if (pod->node.len > 0)
			return "a pod was bound twice";
		on_bind(sim, decision, pod);
		return checker_bind(sim, pod, decision);
	}
	if (decision->verb >= SCHED_NOMINATE) {
		const char *broken = checker_evict(sim, pod, decision);
		if (broken != NULL)
			return broken;
		evict_start(sim, decision);
	}
	if (decision->facts == NULL)
		return NULL;
	pod->is_told = true;
	pod->told_codes = 0;
	for (size_t i = 0; i < decision->facts->count; i++)
		pod->told_codes |= UINT64_C(1) << decision->facts->items[i].code;
	return decision->facts->count == 0 ? "a pod waits without a reason" : NULL;
}

static void on_bound(struct sim *sim, struct sim_pod *pod)
{
	struct sched_pod_in in = pod->in;
	in.node = pod->node;
	in.bound_ms = sim->now_ms;
	pod->in = in;
	pod->is_started = true;
	sim->bound++;
	sched_pod_set(sim->core, &in);
	evict_bound(sim, pod);
	if (pod->runs_ms >= 0)
		events_add(sim->events, (struct event){ .at_ms = sim->now_ms + pod->runs_ms,
							.kind = EVENT_FINISH,
							.uid = pod->uid,
							.bind_no = pod->bind_no });
}

static void on_pod_event(struct sim *sim, const struct event *event)
{
	struct sim_pod *pod = map_find(sim->pods, event->uid);
	if (event->kind > EVENT_FINISH) {
		evict_event(sim, event);
		return;
	}
	if (pod == NULL || pod->bind_no != event->bind_no)
		return; // deleted meanwhile
	if (event->kind == EVENT_BOUND) {
		on_bound(sim, pod);
	} else if (event->kind == EVENT_BIND_FAILED) {
		checker_release(sim, pod);
		checker_gang_excuse(sim, pod);
		pod->node = STR("");
		sched_bind_failed(sim->core, pod->uid, sim->now_ms);
	} else {
		sim->finished++;
		evict_gone(sim, pod);
		apply_remove_pod(sim, pod->uid);
	}
}

static err_status take_events(struct sim *sim, struct err *err)
{
	int64_t at_ms;
	while (events_first(sim->events, &at_ms) && at_ms <= sim->now_ms) {
		struct event event = events_take(sim->events);
		if (event.kind != EVENT_OBJECT) {
			on_pod_event(sim, &event);
			continue;
		}
		sim->moved_ms = sim->now_ms;
		if (apply_object(sim, event.object, err) != ERR_OK)
			return err_wrap(err, "%s", json_cstr(event.object->json, "metadata.name"));
	}
	return ERR_OK;
}

// Moves the clock to what comes next; false at the end. An eviction that is refused is asked for
// again and again, so a day in which no pod starts or ends is the end as well.
static bool advance(struct sim *sim)
{
	int64_t next_ms = sched_wake_ms(sim->core), event_ms = 0;
	bool has_event = events_first(sim->events, &event_ms);
	size_t moved = sim->bound + sim->finished + map_count(sim->pods);
	if (has_event)
		next_ms = min_i64(next_ms, event_ms);
	if (moved != sim->moved)
		sim->moved_ms = sim->now_ms;
	sim->moved = moved;
	if (next_ms == INT64_MAX || (!has_event && next_ms > sim->moved_ms + STILL_MS_MAX))
		return false;
	sim->now_ms = max_i64(sim->now_ms, next_ms);
	return true;
}

static const char *run_all(struct sim *sim, struct err *err)
{
	while (advance(sim)) {
		struct sched_decision decision;
		if (take_events(sim, err) != ERR_OK)
			return NULL;
		while (sched_next(sim->core, sim->now_ms, &decision)) {
			const char *broken = on_decision(sim, &decision);
			if (broken != NULL)
				return broken;
		}
		if (sim->jobs != NULL)
			jobs_look(sim->jobs, sim);
		const char *broken = checker_quiet(sim);
		if (broken == NULL)
			broken = checker_kept(sim);
		if (broken != NULL)
			return broken;
	}
	return NULL;
}

static void print_summary(const struct sim *sim)
{
	struct sched_counts counts = sched_counts_get(sim->core);
	printf("{\"t_ms\":%lld,\"bound\":%zu,\"finished\":%zu,\"waiting\":%zu,\"gated\":%zu,"
	       "\"refused\":%zu,\"evicted\":%zu,\"moved\":%zu}\n",
	       (long long)sim->now_ms, sim->bound, sim->finished, counts.waiting, counts.gated,
	       counts.refused, sim->evicted, sim->moved_pods);
}

static int finish(struct sim *sim, const char *broken, const struct err *err)
{
	if (fflush(sim->out) != 0 || ferror(sim->out)) {
		(void)fprintf(stderr, "gpuaas-sim: the output could not be written\n");
		return 1;
	}
	if (broken != NULL) {
		(void)fprintf(stderr, "gpuaas-sim: at %lld ms an invariant is broken: %s\n",
			      (long long)sim->now_ms, broken);
		return EXIT_INVARIANT;
	}
	if (err->status != ERR_OK) {
		(void)fprintf(stderr, "gpuaas-sim: %s\n", err->text);
		return err_exit_code(err->status);
	}
	return 0;
}

static int fail(const struct err *err)
{
	(void)fprintf(stderr, "gpuaas-sim: %s\n", err->text);
	return err_exit_code(err->status);
}

int run_on(struct scenario *scenario, const struct run_options *options, FILE *out)
{
	struct score_policy policy;
	struct err err = { .status = ERR_OK };
	struct sim sim = { .scenario = scenario,
			   .out = out,
			   .bind_failures_permille = (uint64_t)options->bind_failures_permille,
			   .evict_failures_permille = (uint64_t)options->evict_failures_permille,
			   .rules = options->rules,
			   .jobs = options->jobs };
	if (options->policy != NULL && pack_policy_load(options->policy, &policy, &err) != ERR_OK)
		return fail(&err);
	rng_init(&sim.rng, (uint64_t)options->seed);
	sim.core = sched_new(rng_next(&sim.rng), 0);
	if (options->policy != NULL)
		sched_policy_set(sim.core, &policy);
	sim.pods = map_new(0);
	storage_init(&sim);
	checker_queue_init(&sim);
	evict_init(&sim);
	sched_preempt_set(sim.core, &options->rules);
	checker_queue_rules(&sim, options);
	sim.events = events_new();
	checker_gang_init(&sim);
	sim.checker = checker_new(scenario->arena);
	for (size_t i = 0; i < scenario->object_count; i++) {
		const struct sim_object *object = &scenario->objects[i];
		events_add(sim.events, (struct event){ .at_ms = object->at_ms,
						       .kind = EVENT_OBJECT,
						       .object = object });
	}
	const char *broken = run_all(&sim, &err);
	int code = finish(&sim, broken, &err);
	if (code == 0 && options->out != NULL) // else decisions go where this would
		print_summary(&sim);
	sched_free(sim.core);
	map_free(sim.pods);
	storage_done(&sim);
	checker_queue_done(&sim);
	evict_done(&sim);
	events_free(sim.events);
	checker_gang_done(&sim);
	checker_free(sim.checker);
	return code;
}

// Runs, and writes what became of the pods where that is wanted.
static int run_told(struct scenario *scenario, const struct run_options *options, FILE *out)
{
	struct run_options told = *options;
	struct err err = { .status = ERR_OK };
	if (options->jobs_out == NULL)
		return run_on(scenario, options, out);
	told.jobs = jobs_new();
	int code = run_on(scenario, &told, out);
	if (code == 0 && jobs_write(told.jobs, options->jobs_out, &err) != ERR_OK)
		code = fail(&err);
	jobs_free(told.jobs);
	return code;
}

int run_scenario(const struct run_options *options)
{
	struct scenario scenario;
	struct err err = { .status = ERR_OK };
	if (scenario_load(options->file, &scenario, &err) != ERR_OK)
		return fail(&err);
	FILE *out = options->out == NULL ? stdout : fopen(options->out, "we");
	int code = 0;
	if (out == NULL) {
		(void)err_sys(&err, errno, "%s", options->out);
		code = fail(&err);
	} else {
		code = run_told(&scenario, options, out);
	}
	if (out != NULL && out != stdout && fclose(out) != 0 && code == 0) {
		(void)fprintf(stderr, "gpuaas-sim: %s could not be written\n", options->out);
		code = 1;
	}
	scenario_done(&scenario);
	return code;
}
