// SPDX-License-Identifier: Apache-2.0
// What a gang holds that was started in part (a bind in the middle failed, a pod went) and could
// not be completed in time is given back: those that run are asked to leave.
#include "sched/gang.h"
#include "sched/victims.h"

static int64_t due_ms(const struct gang *gang) { return gang->begun_ms + gang_expiry_ms(gang); }

static bool may_go(const struct sched *sched, const struct pod *pod)
{
	return pod->state == SCHED_STATE_BOUND && !pod->is_terminating && pod->fate == NULL &&
	       pod->spared_ms <= sched->now_ms;
}

static size_t give_back(struct sched *sched, struct gang *gang)
{
	size_t count = 0;
	const struct link *head = &gang->members;
	for (struct link *at = head->next; at != head && count < SCHED_VICTIMS_MAX; at = at->next) {
		struct pod *pod = LINK_OF(at, struct member, in_gang)->pod;
		if (may_go(sched, pod))
			preempt_mark(sched, pod, pod, count++);
	}
	return count;
}

bool gang_expire_next(struct sched *sched, struct sched_decision *ret)
{
	struct link *begun = &sched->gangs->begun;
	for (struct link *at = begun->next; at != begun; at = at->next) {
		struct gang *gang = LINK_OF(at, struct gang, in_begun);
		struct sched_facts facts = { .count = 0 };
		size_t count = due_ms(gang) > sched->now_ms ? 0 : give_back(sched, gang);
		if (count == 0)
			continue;
		struct sched_fact *fact = facts_add(&facts, SCHED_CODE_GANG_EXPIRED, 0);
		fact->need = gang_min(gang);
		fact->have = (int64_t)gang->on_node_count;
		struct pod *first = map_find(sched->pod_by_uid, sched->preempt->victims[0].uid);
		decide_lend(sched, first, &facts, ret);
		ret->verb = SCHED_EVICT;
		ret->victims = sched->preempt->victims;
		ret->victim_count = count;
		return true;
	}
	return false;
}

int64_t gang_expire_wake_ms(const struct sched *sched)
{
	int64_t wake_ms = INT64_MAX;
	const struct link *begun = &sched->gangs->begun;
	for (const struct link *at = begun->next; at != begun; at = at->next) {
		const struct gang *gang = LINK_OF((uintptr_t)at, struct gang, in_begun);
		const struct link *head = &gang->members;
		if (due_ms(gang) > sched->now_ms)
			wake_ms = min_i64(wake_ms, due_ms(gang));
		for (const struct link *k = head->next; k != head; k = k->next) {
			const struct pod *pod = LINK_OF((uintptr_t)k, struct member, in_gang)->pod;
			if (pod->spared_ms > sched->now_ms) // it may be asked again then
				wake_ms = min_i64(wake_ms, pod->spared_ms);
		}
	}
	return wake_ms;
}
