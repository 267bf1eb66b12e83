// SPDX-License-Identifier: Apache-2.0
// Berths: room kept for pods that replace moved ones. A guest stands for each among the nominated
// pods of the node, so that every filter sees it; when its pod has come, that one is nominated.
#include "sched/move.h"
#include "sched/queueing.h"

#include <stdlib.h>

struct moves *moves_new(void)
{
	struct moves *moves = core_alloc(1, sizeof *moves);
	link_head_init(&moves->berths);
	return moves;
}

static struct pod *guest_new(struct sched *sched, const struct pod *moved)
{
	const struct str texts[3] = { moved->key.namespace_, moved->key.name, moved->user_name };
	size_t text_bytes = texts[0].len + texts[1].len + texts[2].len;
	struct pod *guest = core_alloc(1, sizeof *guest + text_bytes);
	struct str *const copies[3] = { &guest->key.namespace_, &guest->key.name,
					&guest->user_name };
	char *at = guest->texts;
	guest->key = moved->key;
	for (size_t i = 0; i < 3; i++) {
		if (texts[i].len > 0)
			memcpy(at, texts[i].data, texts[i].len);
		*copies[i] = (struct str){ at, texts[i].len };
		at += texts[i].len;
	}
	guest->labels = core_labels_copy(&moved->labels);
	guest->stay = moved->stay;
	guest->asked_priority = moved->asked_priority;
	guest->said_s = moved->said_s;
	guest->shape = moved->shape;
	guest->shape->pod_count++;
	guest->state = SCHED_STATE_GATED; // counted nowhere
	queueing_join(sched, guest);
	return guest;
}

static void guest_free(struct sched *sched, struct pod *guest)
{
	nominate_unlink(sched, guest);
	shape_unref(sched, guest->shape);
	queueing_leave(sched, guest);
	free((void *)(uintptr_t)guest->wait->nominated.data);
	free(guest->labels.items);
	free(guest);
}

static void berth_free(struct sched *sched, struct berth *berth)
{
	link_drop(&berth->in_berths);
	guest_free(sched, berth->guest);
	free(berth);
	preempt_changed(sched);
}

void moves_free(struct sched *sched)
{
	struct link *head = &sched->preempt->moves->berths;
	while (!link_is_empty(head))
		berth_free(sched, LINK_OF(head->next, struct berth, in_berths));
	free(sched->preempt->moves);
	sched->preempt->moves = NULL;
}

void berth_keep(struct sched *sched, struct pod *moved, struct node *home)
{
	struct berth *berth = core_alloc(1, sizeof *berth);
	int64_t grace_s = moved->stay.grace_s == 0 ? SCHED_GRACE_S : moved->stay.grace_s;
	ASSERT(moved->fate != NULL && moved->node != home);
	berth->guest = guest_new(sched, moved);
	berth->keep = (struct keep){ .pod = berth->guest, .is_own = true, .has_victims = true };
	berth->wait = (struct waiting){ .pod = berth->guest, .keep = &berth->keep };
	berth->guest->wait = &berth->wait;
	berth->moved = moved;
	berth->until_ms = sched->now_ms + 1000 * grace_s + LEAVE_LATE_MS + BERTH_MS;
	nominate_set(sched, berth->guest, home->name);
	nominate_link(sched, berth->guest);
	link_add(&sched->preempt->moves->berths, &berth->in_berths);
	core_touch(sched, home);
}

static struct berth *find(const struct sched *sched, const struct pod *moved)
{
	const struct link *head = &sched->preempt->moves->berths;
	for (struct link *at = head->next; at != head; at = at->next) {
		struct berth *berth = LINK_OF(at, struct berth, in_berths);
		if (berth->moved == moved)
			return berth;
	}
	return NULL;
}

const struct node *berth_of(const struct sched *sched, const struct pod *moved)
{
	const struct berth *berth = moved->fate == NULL ? NULL : find(sched, moved);
	return berth == NULL ? NULL : map_find(sched->node_by_name, berth->guest->wait->nominated);
}

void berth_refused(struct sched *sched, const struct pod *moved)
{
	struct berth *berth = find(sched, moved);
	if (berth != NULL)
		berth_free(sched, berth);
}

void berth_left(struct sched *sched, const struct pod *moved)
{
	struct berth *berth = find(sched, moved);
	if (berth == NULL)
		return;
	berth->moved = NULL;
	berth->until_ms = sched->now_ms + BERTH_MS;
}

void berth_arrived(struct sched *sched, struct pod *pod)
{
	struct link *head = &sched->preempt->moves->berths;
	if (pod->state != SCHED_STATE_WAITING || pod->stay.owner == 0 || pod->wait->keep != NULL)
		return;
	for (struct link *at = head->next; at != head; at = at->next) {
		struct berth *berth = LINK_OF(at, struct berth, in_berths);
		const struct pod *guest = berth->guest;
		if (guest->stay.owner != pod->stay.owner || guest->shape != pod->shape ||
		    !str_eq(guest->key.namespace_, pod->key.namespace_))
			continue;
		nominate_set(sched, pod, guest->wait->nominated);
		keep_new(sched, pod, true);
		pod->wait->keep->has_victims = true; // it has left for another
		link_add(&sched->preempt->telling, &pod->wait->keep->in_telling);
		berth_free(sched, berth);
		return;
	}
}

void berth_tick(struct sched *sched)
{
	struct link *head = &sched->preempt->moves->berths;
	for (struct link *at = head->next, *next; at != head; at = next) {
		struct berth *berth = LINK_OF(at, struct berth, in_berths);
		next = at->next;
		if (berth->until_ms <= sched->now_ms)
			berth_free(sched, berth);
	}
}

int64_t berth_wake_ms(const struct sched *sched)
{
	const struct link *head = &sched->preempt->moves->berths;
	int64_t wake_ms = INT64_MAX;
	for (struct link *at = head->next; at != head; at = at->next)
		wake_ms = min_i64(wake_ms, LINK_OF(at, struct berth, in_berths)->until_ms);
	return wake_ms;
}
