// SPDX-License-Identifier: Apache-2.0
// Tenants with queues in the simulator, and books of its own about their limits: what is bound in
// a queue and below it, summed up anew from the pods at each bind.
#include "sim/sim.h"

#include "feed/feed_queue.h"
#include "feed/feed_window.h"

#include <stdlib.h>

void checker_queue_init(struct sim *sim) { sim->queues = map_new(0); }

void checker_queue_rules(struct sim *sim, const struct run_options *options)
{
	if (options->half_life_s > 0)
		sched_half_life_set(sim->core, options->half_life_s);
	sched_factors_set(sim->core, &options->factors);
	sched_reclaim_set(sim->core, options->reclaims_deserved);
	sim->orders_by_factors = factors_are_used(&options->factors);
}

void checker_queue_done(struct sim *sim) { map_free(sim->queues); }

err_status apply_tenant(struct sim *sim, const struct sim_object *object, struct err *err)
{
	struct arena *arena = sim->scenario->arena;
	struct str name = json_text(object->json, "metadata.name");
	struct sched_queue_in *in = ARENA_NEW(arena, struct sched_queue_in);
	if (in == NULL)
		return err_set(err, ERR_LIMIT, "the scenario needs too much memory");
	struct sched_window_in windows[FEED_WINDOWS_MAX];
	size_t window_count = object->action == SIM_DELETE ? 0
							   : feed_windows(object->json, windows);
	sched_windows_set(sim->core, name, windows, window_count);
	bool has_queue = feed_queue(arena, object->json, sim->now_ms / 1000, in);
	if (object->action == SIM_DELETE || !has_queue) {
		sched_queue_remove(sim->core, name);
		(void)map_remove(sim->queues, name);
		return ERR_OK;
	}
	sched_queue_set(sim->core, in);
	(void)map_set(sim->queues, name, in);
	return ERR_OK;
}

bool checker_has_queues(const struct sim *sim)
{
	return map_count(sim->queues) > 0 || sim->orders_by_factors;
}

int64_t checker_priority(const struct sim *sim, const struct sim_pod *pod)
{
	const struct sched_queue_in *queue = map_find(sim->queues, pod->in.namespace_);
	return queue == NULL ? pod->in.priority : min_i64(pod->in.priority, queue->priority_max);
}

// One whose settings cannot hold hangs nowhere: what still runs in it counts for itself.
static bool is_below(const struct sim *sim, struct str name, struct str top)
{
	for (int depth = 0; depth < SCHED_QUEUE_DEPTH_MAX; depth++) {
		if (str_eq(name, top))
			return true;
		const struct sched_queue_in *queue = map_find(sim->queues, name);
		if (queue == NULL || queue->parent.len == 0 || queue->fault.len > 0)
			return false;
		name = queue->parent;
	}
	return false;
}

struct sums { // whole GPUs, in thousandths
	int64_t queue, person;
};

static struct sums sum_up(const struct sim *sim, const struct sim_pod *pod, struct str top)
{
	struct sums sums = { 0, 0 };
	struct str uid;
	void *value;
	for (size_t i = 0; map_next(sim->pods, &i, &uid, &value);) {
		const struct sim_pod *other = value;
		int64_t milli = 1000 * other->in.spec->gpu_count;
		if (other->node.len == 0 || !is_below(sim, other->in.namespace_, top))
			continue;
		sums.queue += milli;
		bool is_of_person = str_eq(other->in.namespace_, pod->in.namespace_) &&
				    str_eq(other->in.user, pod->in.user);
		sums.person += is_of_person ? milli : 0;
	}
	return sums;
}

const char *checker_queue(const struct sim *sim, const struct sim_pod *pod)
{
	struct str name = pod->in.namespace_;
	const struct sched_queue_in *queue = map_find(sim->queues, name);
	bool is_own = true;
	if (queue != NULL && queue->fault.len > 0)
		return "a pod was bound from a queue whose settings cannot hold";
	for (int depth = 0; queue != NULL && depth < SCHED_QUEUE_DEPTH_MAX; depth++) {
		struct sums sums = sum_up(sim, pod, name);
		if (pod->in.spec->gpu_count > 0 && sums.queue > queue->limit_milli)
			return "a queue holds more than its limit";
		if (is_own && pod->in.spec->gpu_count > 0 && sums.person > queue->user_limit_milli)
			return "a person holds more than their limit";
		is_own = false;
		name = queue->parent;
		queue = map_find(sim->queues, name);
	}
	return NULL;
}
