// SPDX-License-Identifier: Apache-2.0
// Who may take from whom. Both sides are looked at below the queue that is above both: the
// claimant's side must stay within what is its own with all it claims, the victim's must be beyond
// it before each loss; so neither can claim the same back.
#include "sched/core.h"
#include "sched/queue.h"

typedef enum claim_ground { GUARANTEED, DESERVED } claim_ground;

struct side { // of a claim: a queue, or the pods that are a queue's own beside its children
	int64_t used_milli, guaranteed_milli, deserved_milli;
};

static int64_t taken_of(const struct queue_claim *claim, const struct queue *queue)
{
	return queue->claim_no == claim->queues->claim_no ? queue->taken_milli : 0;
}

static struct side side_of(const struct queue_claim *claim, const struct queue *queue)
{
	return (struct side){ queue->used_milli - taken_of(claim, queue),
			      min_i64(queue->guaranteed_milli, queue->in.limit_milli),
			      queue->deserved_milli };
}

// The pods of a queue itself have what its children leave of its guarantee.
static struct side own_side(const struct queue_claim *claim, const struct queue *queue)
{
	struct side side = { queue->own_milli, queue->guaranteed_milli, queue->own_deserved_milli };
	if (queue->claim_no == claim->queues->claim_no)
		side.used_milli -= queue->own_taken_milli;
	for (const struct link *at = queue->children.next; at != &queue->children; at = at->next)
		side.guaranteed_milli -=
			LINK_OF((uintptr_t)at, struct queue, in_parent)->guaranteed_milli;
	side.guaranteed_milli = max_i64(side.guaranteed_milli, 0);
	return side;
}

static bool side_may_get(const struct side *side, int64_t milli, claim_ground ground)
{
	int64_t most = ground == GUARANTEED ? side->guaranteed_milli : side->deserved_milli;
	return side->used_milli + milli <= most;
}

static bool side_may_lose(const struct side *side, int64_t milli, claim_ground ground)
{
	if (ground == GUARANTEED)
		return side->used_milli > side->guaranteed_milli;
	return side->used_milli > side->deserved_milli &&
	       side->used_milli - milli >= side->guaranteed_milli;
}

static const struct queue *above_both(const struct queue *a, const struct queue *b)
{
	while (a != b) {
		const struct queue *deeper = a->depth >= b->depth ? a : b;
		if (deeper == a)
			a = a->parent;
		else
			b = b->parent;
	}
	return a;
}

struct sides { // the two that stand directly below the queue above both
	struct side claimant, victim;
};

static bool all_may_get(const struct queue_claim *claim, const struct queue *top,
			claim_ground ground, struct side *ret_side)
{
	*ret_side = own_side(claim, claim->claimant);
	if (claim->claimant == top)
		return side_may_get(ret_side, claim->milli, ground);
	for (const struct queue *at = claim->claimant; at != top; at = at->parent) {
		*ret_side = side_of(claim, at);
		if (!side_may_get(ret_side, claim->milli, ground))
			return false;
	}
	return true;
}

struct loss {
	const struct queue *victim;
	int64_t milli;
};

static bool all_may_lose(const struct queue_claim *claim, struct loss loss, const struct queue *top,
			 claim_ground ground, struct side *ret_side)
{
	*ret_side = own_side(claim, loss.victim);
	if (loss.victim == top)
		return side_may_lose(ret_side, loss.milli, ground);
	for (const struct queue *at = loss.victim; at != top; at = at->parent) {
		*ret_side = side_of(claim, at);
		if (!side_may_lose(ret_side, loss.milli, ground))
			return false;
	}
	return true;
}

// Who has less of what it deserves has so afterwards, too.
static bool keeps_order(const struct sides *sides, int64_t claimed_milli, int64_t lost_milli)
{
	__int128 gets = (__int128)(sides->claimant.used_milli + claimed_milli) *
			sides->victim.deserved_milli;
	__int128 loses =
		(__int128)(sides->victim.used_milli - lost_milli) * sides->claimant.deserved_milli;
	return gets <= loses;
}

static bool may_take(const struct queue_claim *claim, struct loss loss, claim_ground ground)
{
	const struct queue *top = above_both(claim->claimant, loss.victim);
	struct sides sides;
	if (ground == DESERVED)
		queues_divide(claim->queues);
	if (!all_may_get(claim, top, ground, &sides.claimant) ||
	    !all_may_lose(claim, loss, top, ground, &sides.victim))
		return false;
	return ground == GUARANTEED || keeps_order(&sides, claim->milli, loss.milli);
}

struct queue_claim queue_claim_begin(struct queues *queues, struct queue *claimant, int64_t milli)
{
	queues_settle(queues);
	queues->claim_no++;
	return (struct queue_claim){ queues, claimant, milli };
}

static void note(struct queue_claim *claim, struct queue *victim, int64_t milli)
{
	for (struct queue *at = victim; at != NULL; at = at->parent) {
		if (at->claim_no != claim->queues->claim_no)
			at->taken_milli = at->own_taken_milli = 0;
		at->claim_no = claim->queues->claim_no;
		at->taken_milli += milli;
		at->own_taken_milli += at == victim ? milli : 0;
	}
}

bool queue_claim_take(struct queue_claim *claim, struct queue *victim, int64_t milli)
{
	struct loss loss = { victim, milli };
	if (claim->claimant == victim || claim->claimant->fault != NULL)
		return false;
	bool is_good = may_take(claim, loss, GUARANTEED) ||
		       (claim->queues->claims_deserved && may_take(claim, loss, DESERVED));
	if (is_good)
		note(claim, victim, milli);
	return is_good;
}

void queue_claim_untake(struct queue_claim *claim, struct queue *victim, int64_t milli)
{
	note(claim, victim, -milli);
}

bool queue_may_reclaim(struct queues *queues, struct queue *claimant, int64_t milli,
		       struct queue *victim, int64_t victim_milli)
{
	struct queue_claim claim = queue_claim_begin(queues, claimant, milli);
	return queue_claim_take(&claim, victim, victim_milli);
}
