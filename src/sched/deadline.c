// SPDX-License-Identifier: Apache-2.0
#include "sched/deadline.h"

#include "sched/queueing.h"

#include <stdlib.h>

enum { MS_PER_S = 1000 };

static int64_t left_s(const struct sched *sched, const struct pod *pod)
{
	int64_t clock_s = sched->queueing->factors.clock_s;
	return ((pod->deadline_s - clock_s) * MS_PER_S - sched->now_ms) / MS_PER_S;
}

static int64_t last_start_ms(const struct sched *sched, const struct pod *pod)
{
	int64_t clock_s = sched->queueing->factors.clock_s;
	return (pod->deadline_s - clock_s - pod->key.duration_s) * MS_PER_S;
}

static bool is_lost(const struct sched *sched, const struct pod *pod)
{
	return pod->deadline_s != 0 && sched->now_ms > last_start_ms(sched, pod);
}

void deadline_leave(struct sched *sched, struct pod *pod)
{
	if (pod->wait->due == NULL)
		return;
	tree_remove(&sched->due, &pod->wait->due->node);
	free(pod->wait->due);
	pod->wait->due = NULL;
}

void deadline_enter(struct sched *sched, struct pod *pod)
{
	deadline_leave(sched, pod);
	if (pod->deadline_s == 0 || pod->state != SCHED_STATE_WAITING || is_lost(sched, pod))
		return;
	struct due *due = core_alloc(1, sizeof *due);
	due->pod = pod;
	due->key = (struct tree_key){ .created_s = last_start_ms(sched, pod),
				      .namespace_ = pod->key.namespace_,
				      .name = pod->key.name };
	pod->wait->due = due;
	tree_insert(&sched->due, &due->node, &due->key);
}

static struct due *first_due(const struct sched *sched)
{
	struct tree_node *node = tree_first(&sched->due);
	return node == NULL ? NULL : LINK_OF(node, struct due, node);
}

void deadline_tick(struct sched *sched)
{
	struct due *due;
	while ((due = first_due(sched)) != NULL && due->key.created_s < sched->now_ms) {
		struct pod *pod = due->pod;
		deadline_leave(sched, pod);
		pod->wait->told_hash = 0;
		pod_tell(sched, pod);
	}
}

int64_t deadline_wake_ms(const struct sched *sched)
{
	const struct due *due = first_due(sched);
	return due == NULL ? INT64_MAX : due->key.created_s + 1;
}

void deadline_note(const struct sched *sched, const struct pod *pod, struct sched_facts *facts)
{
	if (pod->state != SCHED_STATE_WAITING || !is_lost(sched, pod))
		return; // what is refused or has gates does not wait for room
	struct sched_fact *fact = facts_add(facts, SCHED_CODE_DEADLINE_LOST, 0);
	fact->need = pod->key.duration_s > 0 ? pod->key.duration_s : -1;
	fact->have = max_i64(left_s(sched, pod), 0);
}
