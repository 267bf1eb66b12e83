// SPDX-License-Identifier: Apache-2.0
#include "sched/dryrun.h"

#include "sched/queueing.h"

// No object of Kubernetes can be called so.
#define NO_UID STR("?")

// It is in the maps of pods and in its queue, but in no place from which pods are tried or told.
static struct pod *enter(struct sched *sched, const struct sched_pod_in *asked, struct arena *arena)
{
	struct sched_pod_in in = *asked;
	in.uid = NO_UID;
	if (pod_find(sched, in.namespace_, in.name) != NULL)
		in.name = str_of(arena_printf(arena, "?" STR_FMT, STR_ARG(asked->name)));
	in.priority = queueing_priority(sched, asked);
	in.node = in.nominated = STR("");
	in.stay.owner = 0; // the place of an evicted pod is for who really comes
	in.is_ours = true;
	in.gang = NULL;
	struct pod *pod = pod_new(sched, &in);
	pod->is_ours = true;
	pod->asked_priority = asked->priority;
	pod->deadline_s = asked->deadline_s;
	pod->leaving_ms = sched->now_ms;
	return pod;
}

static struct node *best_node(struct sched *sched, struct pod *pod)
{
	if (queueing_is_blocked(pod))
		return NULL;
	shape_ready(sched, pod->shape);
	struct affinity *affinity = affinity_new(sched, pod);
	struct check check = {
		.sched = sched, .pod = pod, .shape = pod->shape, .affinity = affinity
	};
	struct node *node = place_best(&check);
	affinity_free(affinity);
	return node;
}

static void put_reasons(const struct sched *sched, const struct pod *pod,
			const struct sched_facts *facts, struct arena *arena,
			struct sched_dry_answer *ret)
{
	for (size_t i = 0; i < facts->count; i++)
		ret->reasons[i] = sched_fact_text(sched, pod->key.namespace_, pod->key.name,
						  &facts->items[i], arena);
	ret->reason_count = facts->count;
}

static void answer_refused(const struct pod *pod, struct sched_facts *ret_facts)
{
	const struct sched_spec *spec = pod->shape->spec;
	for (size_t i = 0; i < spec->refusal_count; i++)
		(void)facts_add(ret_facts, (sched_code)spec->refusals[i].code, (uint32_t)i);
}

static void answer_waiting(struct sched *sched, struct pod *pod, struct sched_facts *ret_facts,
			   struct sched_dry_answer *ret)
{
	struct sched_explanation explanation;
	queueing_enter(sched, pod);
	pod_set_state(sched, pod, SCHED_STATE_WAITING);
	const struct node *node = best_node(sched, pod);
	bool is_there = sched_explain(sched, pod->key.namespace_, pod->key.name, &explanation);
	ASSERT(is_there);
	*ret_facts = explanation.facts;
	if (node != NULL) {
		ret->state = SCHED_STATE_ASSUMED;
		ret->node = node->name;
	} else {
		ret->position = explanation.position;
	}
	queueing_exit(sched, pod);
}

void sched_dry_run(struct sched *sched, const struct sched_pod_in *asked, int64_t now_ms,
		   struct arena *arena, struct sched_dry_answer *ret)
{
	struct sched_facts facts = { .count = 0 };
	ASSERT(asked->spec != NULL && arena != NULL);
	sched->now_ms = max_i64(sched->now_ms, now_ms);
	struct pod *pod = enter(sched, asked, arena);
	*ret = (struct sched_dry_answer){ .state = SCHED_STATE_WAITING };
	if (pod->shape->spec->refusal_count > 0) {
		ret->state = SCHED_STATE_REFUSED;
		answer_refused(pod, &facts);
	} else if (asked->is_gated) {
		ret->state = SCHED_STATE_GATED;
		(void)facts_add(&facts, SCHED_CODE_SCHEDULING_GATED, 0);
	} else {
		answer_waiting(sched, pod, &facts, ret);
	}
	ret->node = arena_dup(arena, ret->node);
	put_reasons(sched, pod, &facts, arena, ret);
	sched_pod_remove(sched, pod->uid);
}
