// SPDX-License-Identifier: Apache-2.0
// Who may take from whom. Both sides are looked at below the queue that is above both: the
// claimant's side must stay within what is its own with all it claims, the victim's must be beyond
// it before each loss; so neither can claim the same back. What is guaranteed of a GPU model goes
// before what is guaranteed of all together: the one is claimed whatever the other, the other never
// at its cost, so that no two claims turn in a circle.
#include "sched/core.h"
#include "sched/queue_model.h"

typedef enum claim_kind { CLAIM_GUARANTEED, CLAIM_DESERVED, CLAIM_MODEL } claim_kind;

struct ground { // of a claim
	claim_kind kind;
	size_t model_i; // of CLAIM_MODEL
};

struct side { // of a claim: a queue, or the pods that are a queue's own beside its children
	int64_t used_parts, guaranteed_parts, deserved_parts;
};

static bool is_noted(const struct queue_claim *claim, const struct queue *queue)
{
	return queue->claim_no == claim->queues->claim_no;
}

static struct side model_side(const struct queue_claim *claim, const struct queue *queue, size_t i)
{
	const struct queue_model *model = &queue->models[i];
	int64_t taken_parts = is_noted(claim, queue) ? model->taken_parts : 0;
	return (struct side){ .used_parts = model->used_parts - taken_parts,
			      .guaranteed_parts =
				      min_i64(model->guaranteed_parts, model->limit_parts) };
}

static struct side side_of(const struct queue_claim *claim, const struct queue *queue,
			   struct ground ground)
{
	if (ground.kind == CLAIM_MODEL)
		return model_side(claim, queue, ground.model_i);
	int64_t taken_parts = is_noted(claim, queue) ? queue->taken_parts : 0;
	return (struct side){ queue->used_parts - taken_parts,
			      min_i64(queue->guaranteed_parts, queue->limit_parts),
			      queue->deserved_parts };
}

// The pods of a queue itself have what its children leave of its guarantee.
static struct side own_side(const struct queue_claim *claim, const struct queue *queue,
			    struct ground ground)
{
	struct side side = { queue->own_parts, queue->guaranteed_parts, queue->own_deserved_parts };
	int64_t taken_parts = queue->own_taken_parts;
	bool is_model = ground.kind == CLAIM_MODEL;
	if (is_model) {
		const struct queue_model *model = &queue->models[ground.model_i];
		side = (struct side){ model->own_parts, model->guaranteed_parts, 0 };
		taken_parts = model->own_taken_parts;
	}
	if (is_noted(claim, queue))
		side.used_parts -= taken_parts;
	for (const struct link *at = queue->children.next; at != &queue->children; at = at->next) {
		const struct queue *child = LINK_OF((uintptr_t)at, struct queue, in_parent);
		side.guaranteed_parts -= is_model ? child->models[ground.model_i].guaranteed_parts
						  : child->guaranteed_parts;
	}
	side.guaranteed_parts = max_i64(side.guaranteed_parts, 0);
	return side;
}

static bool side_may_get(const struct side *side, int64_t parts, claim_kind kind)
{
	int64_t most = kind == CLAIM_DESERVED ? side->deserved_parts : side->guaranteed_parts;
	return side->used_parts + parts <= most;
}

static bool side_may_lose(const struct side *side, int64_t parts, claim_kind kind)
{
	if (kind != CLAIM_DESERVED)
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
			struct ground ground, struct side *ret_side)
{
	*ret_side = own_side(claim, claim->claimant, ground);
	if (claim->claimant == top)
		return side_may_get(ret_side, claim->parts, ground.kind);
	for (const struct queue *at = claim->claimant; at != top; at = at->parent) {
		*ret_side = side_of(claim, at, ground);
		if (!side_may_get(ret_side, claim->parts, ground.kind))
			return false;
	}
	return true;
}

static bool all_may_lose(const struct queue_claim *claim, const struct queue_loss *loss,
			 const struct queue *top, struct ground ground, struct side *ret_side)
{
	*ret_side = own_side(claim, loss->victim, ground);
	if (loss->victim == top)
		return side_may_lose(ret_side, loss->parts, ground.kind);
	for (const struct queue *at = loss->victim; at != top; at = at->parent) {
		*ret_side = side_of(claim, at, ground);
		if (!side_may_lose(ret_side, loss->parts, ground.kind))
			return false;
	}
	return true;
}

// Nobody loses of a model what is guaranteed of it for a claim of another ground.
static bool keeps_model(const struct queue_claim *claim, const struct queue_loss *loss,
			const struct queue *top, size_t model_i)
{
	const struct ground ground = { CLAIM_MODEL, model_i };
	struct side side = own_side(claim, loss->victim, ground);
	if (loss->victim == top)
		return side.guaranteed_parts == 0 ||
		       side.used_parts - loss->parts >= side.guaranteed_parts;
	for (const struct queue *at = loss->victim; at != top; at = at->parent) {
		side = side_of(claim, at, ground);
		if (side.guaranteed_parts > 0 &&
		    side.used_parts - loss->parts < side.guaranteed_parts)
			return false;
	}
	return true;
}

static bool keeps_models(const struct queue_claim *claim, const struct queue_loss *loss,
			 const struct queue *top)
{
	for (size_t i = 0; i < claim->queues->model_count; i++) {
		if ((loss->any >> i & 1) != 0 && !keeps_model(claim, loss, top, i))
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

static bool may_take(const struct queue_claim *claim, const struct queue_loss *loss,
		     struct ground ground)
{
	const struct queue *top = above_both(claim->claimant, loss->victim);
	struct sides sides;
	if (ground.kind == CLAIM_DESERVED)
		queues_divide(claim->queues);
	if (!all_may_get(claim, top, ground, &sides.claimant) ||
	    !all_may_lose(claim, loss, top, ground, &sides.victim))
		return false;
	if (ground.kind != CLAIM_MODEL && !keeps_models(claim, loss, top))
		return false;
	return ground.kind != CLAIM_DESERVED || keeps_order(&sides, claim->parts, loss->parts);
}

static bool may_take_model(const struct queue_claim *claim, const struct queue_loss *loss)
{
	for (size_t i = 0; i < claim->queues->model_count; i++) {
		if ((loss->all >> i & 1) != 0 &&
		    may_take(claim, loss, (struct ground){ CLAIM_MODEL, i }))
			return true;
	}
	return false;
}

struct queue_claim queue_claim_begin(struct queues *queues, struct queue *claimant, int64_t parts)
{
	queues_settle(queues);
	queues->claim_no++;
	return (struct queue_claim){ queues, claimant, parts };
}

static void begin_notes(const struct queue_claim *claim, struct queue *queue)
{
	if (is_noted(claim, queue))
		return;
	queue->claim_no = claim->queues->claim_no;
	queue->taken_parts = queue->own_taken_parts = 0;
	for (size_t i = 0; i < claim->queues->model_count; i++)
		queue->models[i].taken_parts = queue->models[i].own_taken_parts = 0;
}

static void note(struct queue_claim *claim, const struct queue_loss *loss, int64_t parts)
{
	for (struct queue *at = loss->victim; at != NULL; at = at->parent) {
		int64_t own_parts = at == loss->victim ? parts : 0;
		begin_notes(claim, at);
		at->taken_parts += parts;
		at->own_taken_parts += own_parts;
		for (size_t i = 0; i < claim->queues->model_count; i++) {
			if ((loss->any >> i & 1) == 0)
				continue;
			at->models[i].taken_parts += parts;
			at->models[i].own_taken_parts += own_parts;
		}
	}
}

bool queue_claim_take(struct queue_claim *claim, const struct queue_loss *loss)
{
	if (claim->claimant == loss->victim || claim->claimant->fault != NULL)
		return false;
	bool is_good = may_take(claim, loss, (struct ground){ .kind = CLAIM_GUARANTEED }) ||
		       may_take_model(claim, loss) ||
		       (claim->queues->claims_deserved &&
			may_take(claim, loss, (struct ground){ .kind = CLAIM_DESERVED }));
	if (is_good)
		note(claim, loss, loss->parts);
	return is_good;
}

void queue_claim_untake(struct queue_claim *claim, const struct queue_loss *loss)
{
	note(claim, loss, -loss->parts);
}

bool queue_may_reclaim(struct queues *queues, struct queue *claimant, int64_t parts,
		       const struct queue_loss *loss)
{
	struct queue_claim claim = queue_claim_begin(queues, claimant, parts);
	return queue_claim_take(&claim, loss);
}
