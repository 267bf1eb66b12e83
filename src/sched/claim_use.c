// SPDX-License-Identifier: Apache-2.0
#include "sched/claim_use.h"

#include "sched/gang.h"
#include "sched/queueing.h"

#include <stdlib.h>

static struct claim_use *use_get(struct claim_book *book, struct str key)
{
	struct claim_use *use = map_find(book->uses, key);
	if (use != NULL)
		return use;
	use = core_alloc(1, sizeof *use);
	link_head_init(&use->users);
	link_head_init(&use->waiters);
	(void)map_set(book->uses, key, use);
	return use;
}

static struct claim_ref *first_of(const struct link *list)
{
	return link_is_empty(list) ? NULL : LINK_OF(list->next, struct claim_ref, in_use);
}

static void pay(struct sched *sched, struct claim_use *use, int64_t sign)
{
	int64_t parts = sign * use->paid_parts;
	if (use->payer == NULL || parts == 0)
		return;
	struct pod_claims *claims = use->payer->claims;
	if (use->is_waited) {
		claims->wanted_parts += parts;
		queueing_want_claims(sched, use->payer, parts);
	} else {
		claims->used_parts += parts;
		queueing_use_claims(sched, use->payer, parts);
	}
	ASSERT(claims->wanted_parts >= 0 && claims->used_parts >= 0);
}

// Others of its queue that wait for it, or for a limit, may need less or more now.
static void ease(struct sched *sched, const struct claim_use *use)
{
	const struct claim_ref *waiter = first_of(&use->waiters);
	if (waiter != NULL && !sched->gangs->is_trying)
		queueing_ease(sched, waiter->pod->queue);
}

static void settle(struct sched *sched, struct claim_use *use)
{
	const struct claim_ref *user = first_of(&use->users), *waiter = first_of(&use->waiters);
	const struct claim_ref *payer = user == NULL ? waiter : user;
	struct pod *pod = payer == NULL ? NULL : payer->pod;
	bool is_waited = user == NULL;
	if (pod == use->payer && is_waited == use->is_waited && use->parts == use->paid_parts)
		return;
	pay(sched, use, -1);
	use->payer = pod;
	use->is_waited = is_waited;
	use->paid_parts = use->parts;
	pay(sched, use, 1);
	ease(sched, use);
}

// ---- joining and leaving

static bool is_older(const struct pod *a, const struct pod *b)
{
	if (a->key.created_s != b->key.created_s)
		return a->key.created_s < b->key.created_s;
	return str_cmp(a->uid, b->uid) < 0;
}

// In an order that is no matter of who came back last, so that no question changes who pays.
static void insert(struct link *list, struct claim_ref *ref)
{
	struct link *at = list->next;
	while (at != list && !is_older(ref->pod, LINK_OF(at, struct claim_ref, in_use)->pod))
		at = at->next;
	link_add(at, &ref->in_use); // before it
}

static void drop_unused(struct claim_book *book, struct str key, struct claim_use *use)
{
	if (!link_is_empty(&use->users) || !link_is_empty(&use->waiters))
		return;
	ASSERT(use->payer == NULL);
	(void)map_remove(book->uses, key);
	free(use);
}

void claim_use_join(struct sched *sched, struct pod *pod, claim_role role)
{
	const struct sched_spec *spec = pod->shape->spec;
	struct claim_book *book = sched->claim_book;
	if (spec->device_claim_count == 0)
		return;
	if (pod->claims == NULL)
		pod->claims = core_alloc(1, sizeof *pod->claims);
	ASSERT(pod->claims->refs[role] == NULL);
	pod->claims->refs[role] = core_alloc(spec->device_claim_count, sizeof(struct claim_ref));
	for (size_t i = 0; i < spec->device_claim_count; i++) {
		struct claim_use *use = use_get(book, spec->device_claims[i]);
		struct claim_ref *ref = &pod->claims->refs[role][i];
		struct claim_kept *claim =
			claim_book_find(book, SCHED_DEVICE_CLAIM, spec->device_claims[i]);
		ref->pod = pod;
		ref->use = use;
		insert(role == CLAIM_USERS ? &use->users : &use->waiters, ref);
		use->parts = claim == NULL ? 0 : claim_fit_parts(sched, claim);
		settle(sched, use);
		claim_idle_note(sched, claim);
	}
}

void claim_use_leave(struct sched *sched, struct pod *pod, claim_role role)
{
	const struct sched_spec *spec = pod->shape->spec;
	struct claim_book *book = sched->claim_book;
	struct claim_ref *refs = pod->claims == NULL ? NULL : pod->claims->refs[role];
	if (refs == NULL)
		return;
	for (size_t i = 0; i < spec->device_claim_count; i++) {
		struct claim_use *use = refs[i].use;
		link_drop(&refs[i].in_use);
		settle(sched, use);
		claim_idle_note(sched,
				claim_book_find(book, SCHED_DEVICE_CLAIM, spec->device_claims[i]));
		drop_unused(book, spec->device_claims[i], use);
	}
	free(refs);
	pod->claims->refs[role] = NULL;
	if (pod->claims->refs[CLAIM_USERS] != NULL || pod->claims->refs[CLAIM_WAITERS] != NULL)
		return;
	ASSERT(pod->claims->used_parts == 0 && pod->claims->wanted_parts == 0);
	free(pod->claims);
	pod->claims = NULL;
}

void claim_use_changed(struct sched *sched, struct str key)
{
	struct claim_kept *claim = claim_book_find(sched->claim_book, SCHED_DEVICE_CLAIM, key);
	struct claim_use *use = map_find(sched->claim_book->uses, key);
	if (use == NULL)
		return;
	use->parts = claim == NULL ? 0 : claim_fit_parts(sched, claim);
	settle(sched, use);
}

const struct claim_use *claim_use_find(const struct claim_book *book, struct str key)
{
	return map_find(book->uses, key);
}

bool claim_use_is_used(const struct claim_book *book, struct str key)
{
	const struct claim_use *use = claim_use_find(book, key);
	return use != NULL && !link_is_empty(&use->users);
}

int64_t claim_use_need_parts(const struct pod *pod)
{
	const struct claim_ref *refs = pod->claims == NULL ? NULL
							   : pod->claims->refs[CLAIM_WAITERS];
	size_t count = refs == NULL ? 0 : pod->shape->spec->device_claim_count;
	int64_t sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += link_is_empty(&refs[i].use->users) ? refs[i].use->parts : 0;
	return sum;
}

void claim_uses_free(struct map *uses)
{
	ASSERT(map_count(uses) == 0); // no pods are left
	map_free(uses);
}

const char *claim_use_check(const struct sched *sched)
{
	struct str key;
	void *value;
	for (size_t i = 0; map_next(sched->claim_book->uses, &i, &key, &value);) {
		const struct claim_use *use = value;
		const struct claim_ref *user = first_of(&use->users);
		const struct claim_ref *payer = user == NULL ? first_of(&use->waiters) : user;
		if (payer == NULL || payer->pod != use->payer || use->paid_parts != use->parts)
			return "a claim does not count for the first of its pods";
		if (user != NULL && user->pod->node == NULL)
			return "a claim counts for a pod that is on no node";
	}
	return NULL;
}
