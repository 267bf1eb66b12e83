// SPDX-License-Identifier: Apache-2.0
// Nodes kept for waiting pods for which others leave, and what that means for the others.
#include "sched/gang.h"
#include "sched/queueing.h"
#include "sched/victims.h"

#include <stdlib.h>

void keep_free(struct pod *pod)
{
	if (link_is_in(&pod->wait->keep->in_telling))
		link_drop(&pod->wait->keep->in_telling);
	if (pod->member != NULL)
		pod->member->gang->asking.kept_count--;
	link_drop(&pod->wait->keep->in_keeps);
	free(pod->wait->keep);
	pod->wait->keep = NULL;
}

void keep_new(struct sched *sched, struct pod *pod, bool is_own)
{
	ASSERT(pod->wait->keep == NULL && pod->state == SCHED_STATE_WAITING);
	pod->wait->keep = core_alloc(1, sizeof *pod->wait->keep);
	*pod->wait->keep = (struct keep){ .pod = pod,
					  .is_own = is_own,
					  .since_ms = sched->now_ms,
					  .check_ms = sched->now_ms + KEEP_CHECK_MS };
	link_add(&sched->preempt->keeps, &pod->wait->keep->in_keeps);
	if (pod->member != NULL)
		pod->member->gang->asking.kept_count++;
}

static bool has_made_room(const struct pod *pod)
{
	return pod->wait->keep != NULL && pod->wait->keep->has_victims;
}

bool preempt_makes_room(const struct sched *sched, const struct pod *pod, const struct node *node)
{
	const struct pod *trying = sched->preempt->trying;
	bool tries = trying != NULL &&
		     (trying == pod || (gang_of(pod) != NULL && gang_of(pod) == gang_of(trying)));
	return tries || (has_made_room(pod) && str_eq(pod->wait->nominated, node->name));
}

bool preempt_goes_before(const struct sched *sched, const struct pod *kept, const struct pod *pod)
{
	if (kept->queue != pod->queue && queues_are_used(sched->queueing->queues))
		return has_made_room(kept) || queueing_cmp(sched, kept, pod) < 0;
	return kept->key.priority >= pod->key.priority;
}

struct pod *preempt_kept(struct sched *sched, const struct shape *shape, const struct node *node,
			 const struct pod *after)
{
	const struct link *head = &sched->preempt->keeps;
	const struct link *at = after == NULL ? head->next : after->wait->keep->in_keeps.next;
	for (; at != head; at = at->next) {
		struct pod *pod = LINK_OF((uintptr_t)at, struct keep, in_keeps)->pod;
		const struct node *kept = map_find(sched->node_by_name, pod->wait->nominated);
		if (pod->shape == shape && pod->member == NULL && kept != NULL &&
		    (node == NULL || node == kept) && shape_is_static_fit(shape, kept->slot) &&
		    filter_has_room(sched, shape, kept))
			return pod;
	}
	return NULL;
}

bool preempt_is_kept_from(const struct sched *sched, const struct pod *pod, const struct node *node)
{
	const struct link *head = &node->nominated;
	for (const struct link *at = head->next; at != head; at = at->next) {
		const struct pod *kept = POD_OF((uintptr_t)at, in_nominated);
		if (kept != pod && has_made_room(kept) && preempt_goes_before(sched, kept, pod))
			return true;
	}
	return false;
}

bool preempt_keeps(const struct pod *pod)
{
	return pod->wait->keep != NULL && pod->wait->keep->is_own;
}

void preempt_nominated(struct sched *sched, struct pod *pod)
{
	ASSERT(!preempt_keeps(pod));
	if (pod->wait->keep != NULL)
		keep_free(pod);
	if (sched->preempt->rules.mode != SCHED_PREEMPT_OFF && pod->wait->nominated.len > 0 &&
	    pod->state == SCHED_STATE_WAITING)
		keep_new(sched, pod, false);
}

void preempt_leave(struct sched *sched, struct pod *pod)
{
	if (pod->wait->keep == NULL)
		return;
	bool is_own = pod->wait->keep->is_own;
	keep_free(pod);
	if (is_own)
		nominate_set(sched, pod, STR(""));
}
