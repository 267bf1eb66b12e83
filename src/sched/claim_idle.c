// SPDX-License-Identifier: Apache-2.0
// Claims that have devices and no pod on a node. Those whose pods have ended are free soon: the
// claim controller of Kubernetes takes the allocation back within moments, and until then their
// devices are not given, but are waited for before anybody is asked to leave. Those whose pods wait
// were allocated by a leader that has gone before the bind: the pod goes where its claim is; where
// it does not fit any more, the allocation is to be taken back.
#include "sched/claim_use.h"
#include "sched/gang.h"
#include "sched/victims.h"

enum { STRAY_AGAIN_MS = 5000 };

static struct claim_kept *claim_at(const struct link *link)
{
	return LINK_OF((uintptr_t)link, struct claim_kept, in_idle);
}

void claim_idle_drop(struct claim_kept *claim)
{
	if (link_is_in(&claim->in_idle))
		link_drop(&claim->in_idle);
}

void claim_idle_note(struct sched *sched, struct claim_kept *claim)
{
	if (claim == NULL)
		return;
	bool is_idle = claim->object->claim.is_allocated &&
		       !claim_use_is_used(sched->claim_book, claim->object->key);
	if (is_idle == link_is_in(&claim->in_idle))
		return;
	if (!is_idle) {
		link_drop(&claim->in_idle);
		return;
	}
	link_add(&sched->claim_book->idle, &claim->in_idle);
	if (!sched->gangs->is_trying) // else it was idle before the question, or is not after it
		claim->idle_since_ms = sched->now_ms;
}

// Whether a pod that waits here has it reserved; of those that are not known, none comes any more.
static bool is_awaited(const struct sched *sched, const struct claim_kept *claim)
{
	const struct sched_device_claim_in *in = &claim->object->claim;
	for (size_t i = 0; i < in->reserved_count; i++) {
		const struct pod *pod = map_find(sched->pod_by_uid, in->reserved[i]);
		if (pod != NULL && pod->node == NULL)
			return true;
	}
	return false;
}

// ---- free soon

static bool is_on(const struct claim_kept *claim, const struct node *node)
{
	const struct sched_device_claim_in *in = &claim->object->claim;
	return in->given_count > 0 && str_eq(in->given[0].pool, node->name);
}

static bool is_soon_free(const struct sched *sched, struct claim_kept *claim,
			 const struct node *node)
{
	if (claim->idle_since_ms == 0) // it came before the first decision
		claim->idle_since_ms = sched->now_ms;
	return !claim->is_lifted && is_on(claim, node) &&
	       sched->now_ms <= claim->idle_since_ms + LEAVE_LATE_MS && !is_awaited(sched, claim);
}

size_t claim_idle_count(const struct sched *sched, const struct node *node)
{
	const struct link *idle = &sched->claim_book->idle;
	size_t count = 0;
	for (const struct link *at = idle->next; at != idle; at = at->next)
		count += is_soon_free(sched, claim_at(at), node);
	return count;
}

void claim_idle_lift(struct sched *sched, const struct node *node)
{
	const struct link *idle = &sched->claim_book->idle;
	for (const struct link *at = idle->next; at != idle; at = at->next) {
		if (is_soon_free(sched, claim_at(at), node))
			claim_book_lift(sched, claim_at(at));
	}
}

void claim_idle_lower_all(struct sched *sched)
{
	const struct link *idle = &sched->claim_book->idle;
	for (const struct link *at = idle->next; at != idle; at = at->next) {
		if (claim_at(at)->is_lifted)
			claim_book_lower(sched, claim_at(at));
	}
}

void claim_idle_lift_of(struct sched *sched, const struct pod *pod)
{
	const struct sched_spec *spec = pod->shape->spec;
	for (size_t i = 0; i < spec->device_claim_count; i++) {
		struct claim_kept *claim = claim_book_find(sched->claim_book, SCHED_DEVICE_CLAIM,
							   spec->device_claims[i]);
		if (claim != NULL && !claim->is_lifted &&
		    !claim_use_is_used(sched->claim_book, spec->device_claims[i]) &&
		    !is_awaited(sched, claim))
			claim_book_lift(sched, claim);
	}
}

void claim_idle_lower_of(struct sched *sched, const struct pod *pod)
{
	const struct sched_spec *spec = pod->shape->spec;
	for (size_t i = 0; i < spec->device_claim_count; i++) {
		struct claim_kept *claim = claim_book_find(sched->claim_book, SCHED_DEVICE_CLAIM,
							   spec->device_claims[i]);
		if (claim != NULL && claim->is_lifted)
			claim_book_lower(sched, claim);
	}
}

// ---- as if some had left

static void take_out(const struct check *check, struct node *node, claim_counts_fn *counts,
		     struct pod *ret_holders[SCHED_DEVICES_MAX])
{
	for (size_t i = 0; i < node->device_count; i++) {
		struct pod *holder = ret_holders[i] = node->devices[i].holder;
		if (holder != NULL && counts(check, holder))
			node->devices[i].holder = NULL;
	}
	for (const struct link *at = node->pods.next; at != &node->pods; at = at->next) {
		struct pod *pod = LINK_OF((uintptr_t)at, struct pod, on_node);
		if (!counts(check, pod))
			continue;
		claim_use_leave(check->sched, pod, CLAIM_USERS);
		claim_idle_lift_of(check->sched, pod);
	}
}

static void put_back(const struct check *check, struct node *node,
		     struct pod *const holders[SCHED_DEVICES_MAX])
{
	for (size_t i = 0; i < node->device_count; i++)
		node->devices[i].holder = holders[i];
	for (const struct link *at = node->pods.next; at != &node->pods; at = at->next) {
		struct pod *pod = LINK_OF((uintptr_t)at, struct pod, on_node);
		bool is_out = pod->shape->spec->device_claim_count > 0 &&
			      (pod->claims == NULL || pod->claims->refs[CLAIM_USERS] == NULL);
		if (!is_out)
			continue;
		claim_idle_lower_of(check->sched, pod);
		claim_use_join(check->sched, pod, CLAIM_USERS);
	}
}

bool claim_idle_fit_without(const struct check *check, const struct node *node,
			    claim_counts_fn *counts)
{
	const struct claim_fit *fit = affinity_claims(check->affinity);
	struct sched *sched = check->sched;
	struct pod *holders[SCHED_DEVICES_MAX];
	if (fit == NULL || claim_fit_check(fit, node) == 0)
		return true;
	bool was_trying = sched->gangs->is_trying;
	sched->gangs->is_trying = true;
	take_out(check, sched->nodes[node->slot], counts, holders);
	bool fits = claim_fit_check(fit, node) == 0;
	put_back(check, sched->nodes[node->slot], holders);
	sched->gangs->is_trying = was_trying;
	return fits;
}

// ---- astray

// It was tried where its claim is, and does not fit there now.
static bool is_in_vain(const struct pod *pod)
{
	if (pod->place == PLACE_GANG)
		return link_is_in(&gang_of(pod)->in_parked);
	return pod->place == PLACE_HELD ||
	       (pod->place == PLACE_SHAPE && link_is_in(&pod->shape->in_parked));
}

static bool is_astray(const struct sched *sched, const struct claim_kept *claim)
{
	const struct sched_device_claim_in *in = &claim->object->claim;
	const struct claim_use *use = claim_use_find(sched->claim_book, claim->object->key);
	bool has_waiter = use != NULL && !link_is_empty(&use->waiters);
	for (const struct link *at = has_waiter ? use->waiters.next : NULL;
	     has_waiter && at != &use->waiters; at = at->next) {
		const struct pod *pod = LINK_OF((uintptr_t)at, struct claim_ref, in_use)->pod;
		if (!is_in_vain(pod))
			return false;
	}
	for (size_t i = 0; i < in->reserved_count; i++) { // others may be on their way to it
		const struct pod *pod = map_find(sched->pod_by_uid, in->reserved[i]);
		if (pod == NULL || pod->state != SCHED_STATE_WAITING)
			return false;
	}
	return has_waiter && in->trouble.len == 0;
}

bool sched_claim_stray_next(struct sched *sched, struct sched_claim_stray *ret)
{
	const struct link *idle = &sched->claim_book->idle;
	for (const struct link *at = idle->next; at != idle; at = at->next) {
		struct claim_kept *claim = claim_at(at);
		if (sched->now_ms < claim->stray_due_ms || !is_astray(sched, claim))
			continue;
		claim->stray_due_ms = sched->now_ms + STRAY_AGAIN_MS;
		*ret = (struct sched_claim_stray){ .key = claim->object->key,
						   .uid = claim->object->claim.uid,
						   .version = claim->object->claim.version };
		return true;
	}
	return false;
}

int64_t claim_idle_wake_ms(const struct sched *sched)
{
	const struct link *idle = &sched->claim_book->idle;
	int64_t wake_ms = INT64_MAX;
	for (const struct link *at = idle->next; at != idle; at = at->next) {
		if (is_astray(sched, claim_at(at)))
			wake_ms = min_i64(wake_ms, claim_at(at)->stray_due_ms);
	}
	return wake_ms;
}
