// SPDX-License-Identifier: Apache-2.0
// Who may take from whom. Both sides are looked at below the queue that is above both: the
// claimant's side must stay within what is its own with all it claims, the victim's must be beyond
// it before each loss; so neither can claim the same back.
#include "sched/core.h"
#include "sched/queue.h"

typedef enum claim_ground { GUARANTEED, DESERVED } claim_ground;

struct side { // of a claim: a queue, or the pods that are a queue's own beside its children
	int64_t used_parts, guaranteed_parts, deserved_parts;
};

static int64_t taken_of(const struct queue_claim *claim, const struct queue *queue)
{
	return queue->claim_no == claim->queues->claim_no ? queue->taken_parts : 0;
}

static struct side side_of(const struct queue_claim *claim, const struct queue *queue)
{
	return (struct side){ queue->used_parts - taken_of(claim, queue),
			      min_i64(queue->guaranteed_parts, queue->limit_parts),
			      queue->deserved_parts };
}

// The pods of a queue itself have what its children leave of its guarantee.
static struct side own_side(const struct queue_claim *claim, const struct queue *queue)
{
	struct side side = { queue->own_parts, queue->guaranteed_parts, queue->own_deserved_parts };
	if (queue->claim_no == claim->queues->claim_no)
		side.used_parts -= queue->own_taken_parts;
	for (const struct link *at = queue->children.next; at != &queue->children; at = at->next)
		side.guaranteed_parts -=
			LINK_OF((uintptr_t)at, struct queue, in_parent)->guaranteed_parts;
	side.guaranteed_parts = max_i64(side.guaranteed_parts, 0);
	return side;
}

static bool side_may_get(const struct side *side, int64_t parts, claim_ground ground)
{
	int64_t most = ground == GUARANTEED ? side->guaranteed_parts : side->deserved_parts;
	return side->used_parts + parts <= most;
}

static bool side_may_lose(const struct side *side, int64_t parts, claim_ground ground)
{
	if (ground == GUARANTEED)
		return side->used_parts > side->guaranteed_parts;
	return side->used_parts > side->deserved_parts &&
	       side->used_parts - parts >= side->guaranteed_parts;
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
		return side_may_get(ret_side, claim->parts, ground);
	for (const struct queue *at = claim->claimant; at != top; at = at->parent) {
		*ret_side = side_of(claim, at);
		if (!side_may_get(ret_side, claim->parts, ground))
			return false;
	}
	return true;
}

struct loss {
	const struct queue *victim;
	int64_t parts;
};

static bool all_may_lose(const struct queue_claim *claim, struct loss loss, const struct queue *top,
			 claim_ground ground, struct side *ret_side)
{
	*ret_side = own_side(claim, loss.victim);
	if (loss.victim == top)
		return side_may_lose(ret_side, loss.parts, ground);
	for (const struct queue *at = loss.victim; at != top; at = at->parent) {
		*ret_side = side_of(claim, at);
		if (!side_may_lose(ret_side, loss.parts, ground))
			return false;
	}
	return true;
}

// Who has less of what it deserves has so afterwards, too.
static bool keeps_order(const struct sides *sides, int64_t claimed_parts, int64_t lost_parts)
{
	__int128 gets = (__int128)(sides->claimant.used_parts + claimed_parts) *
			sides->victim.deserved_parts;
	__int128 loses =
		(__int128)(sides->victim.used_parts - lost_parts) * sides->claimant.deserved_parts;
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
	return ground == GUARANTEED || keeps_order(&sides, claim->parts, loss.parts);
}

struct queue_claim queue_claim_begin(struct queues *queues, struct queue *claimant, int64_t parts)
{
	queues_settle(queues);
	queues->claim_no++;
	return (struct queue_claim){ queues, claimant, parts };
}

static void note(struct queue_claim *claim, struct queue *victim, int64_t parts)
{
	for (struct queue *at = victim; at != NULL; at = at->parent) {
		if (at->claim_no != claim->queues->claim_no)
			at->taken_parts = at->own_taken_parts = 0;
		at->claim_no = claim->queues->claim_no;
		at->taken_parts += parts;
		at->own_taken_parts += at == victim ? parts : 0;
	}
}

bool queue_claim_take(struct queue_claim *claim, struct queue *victim, int64_t parts)
{
	struct loss loss = { victim, parts };
	if (claim->claimant == victim || claim->claimant->fault != NULL)
		return false;
	bool is_good = may_take(claim, loss, GUARANTEED) ||
		       (claim->queues->claims_deserved && may_take(claim, loss, DESERVED));
	if (is_good)
		note(claim, victim, parts);
	return is_good;
}

void queue_claim_untake(struct queue_claim *claim, struct queue *victim, int64_t parts)
{
	note(claim, victim, -parts);
}

bool queue_may_reclaim(struct queues *queues, struct queue *claimant, int64_t parts,
		       struct queue *victim, int64_t victim_parts)
{
	struct queue_claim claim = queue_claim_begin(queues, claimant, parts);
	return queue_claim_take(&claim, victim, victim_parts);
}
