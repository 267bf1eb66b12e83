// SPDX-License-Identifier: Apache-2.0
// Room for a pod that fits nowhere: running pods of one node go elsewhere. With one pod the best
// choice over all nodes is taken, with more the first that is found within a bound of tries. Moves
// are paced: they stay below a share of what has been placed.
#include "sim/pack.h"

enum { MOVED_PERMILLE_MAX = 45, TRIES_MAX = 400, LIFTED_MAX = 8, LISTED_MAX = 256 };

static bool may_hold(const struct pack *pack, uint32_t pod, uint32_t node_i)
{
	const struct score_ask *ask = &pack->pack_case->asks[pod];
	const struct score_node *node = &pack->board->nodes[node_i];
	return (ask->models == 0 || (ask->models >> node->model_i & 1) != 0) &&
	       (uint32_t)ask->gpu_count <= node->gpu_count && ask->cpu_milli <= node->cpu_milli_all;
}

static bool fits(const struct pack *pack, uint32_t pod, uint32_t node_i)
{
	return pack->memory_mib_left[node_i] >= pack->pack_case->pods.items[pod].memory_mib &&
	       pack->pod_counts[node_i] < PACK_PODS_A_NODE_MAX &&
	       score_fits(&pack->board->nodes[node_i], &pack->pack_case->asks[pod]);
}

struct choice {
	uint32_t placed_i, target;
	int64_t cost;
};
enum { TARGETS_MAX = 1024 };
struct targets { // best nodes by class of pods, found once for a pod that needs room
	struct {
		struct score_ask ask;
		uint32_t node;
		bool is_found;
	} items[TARGETS_MAX];
};

static uint32_t target_of(struct pack *pack, struct targets *targets, uint32_t placed_i)
{
	const struct placed *placed = &pack->placed[placed_i];
	const struct score_ask *ask = &pack->pack_case->asks[placed->pod];
	uint64_t number = (uint64_t)ask->cpu_milli * 37 + (uint64_t)ask->gpu_milli +
			  (uint64_t)ask->models * 7;
	struct score_ask *kept = &targets->items[number % TARGETS_MAX].ask;
	uint32_t *node = &targets->items[number % TARGETS_MAX].node;
	if (!targets->items[number % TARGETS_MAX].is_found || !score_asks_equal(kept, ask)) {
		targets->items[number % TARGETS_MAX].is_found = true;
		*kept = *ask;
		*node = pack_best(pack, placed->pod, PACK_NONE);
	}
	// Memory is no part of the class.
	if (*node == PACK_NONE || (*node != placed->node && fits(pack, placed->pod, *node)))
		return *node;
	return pack_best(pack, placed->pod, placed->node);
}

// What it costs to move one pod away and put the new one there; SCORE_NEVER when that fails.
static int64_t cost_of_move(struct pack *pack, uint32_t pod, uint32_t placed_i,
			    struct targets *targets, uint32_t *ret_target)
{
	const struct pack_case *from = pack->pack_case;
	const struct placed *placed = &pack->placed[placed_i];
	struct score_node node = pack->board->nodes[placed->node];
	score_give(&node, &from->asks[placed->pod], placed->gpus);
	if (!score_fits(&node, &from->asks[pod]) ||
	    pack->memory_mib_left[placed->node] + from->pods.items[placed->pod].memory_mib <
		    from->pods.items[pod].memory_mib)
		return SCORE_NEVER;
	uint32_t target = target_of(pack, targets, placed_i);
	if (target == PACK_NONE)
		return SCORE_NEVER;
	*ret_target = target;
	struct board_row *row = board_row_of(pack->board, &from->asks[placed->pod]);
	return board_cost(pack->board, row, target) +
	       score_cost(&pack->board->score, &node, &from->asks[pod], NULL);
}

static void consider_node(struct pack *pack, uint32_t pod, uint32_t node, struct targets *targets,
			  struct choice *best)
{
	for (uint32_t at = pack->first[node]; at != PACK_NONE; at = pack->placed[at].next) {
		uint32_t target = PACK_NONE;
		int64_t cost = cost_of_move(pack, pod, at, targets, &target);
		if (cost < best->cost)
			*best = (struct choice){ at, target, cost };
	}
}

static bool move_one(struct pack *pack, uint32_t pod, uint32_t *ret_node)
{
	struct targets targets = { .items = { { .is_found = false } } };
	struct choice best = { .cost = SCORE_NEVER };
	for (uint32_t i = 0; i < pack->pack_case->nodes.count; i++) {
		if (may_hold(pack, pod, i))
			consider_node(pack, pod, i, &targets, &best);
	}
	if (best.cost == SCORE_NEVER)
		return false;
	*ret_node = pack->placed[best.placed_i].node;
	pack_lift(pack, best.placed_i);
	pack_put(pack, best.placed_i, best.target);
	pack->moved++;
	return true;
}

struct attempt {
	struct pack *pack;
	uint32_t pod, node, listed[LISTED_MAX], lifted[LIFTED_MAX];
	size_t listed_count, lifted_count, lifted_max, tries;
};

// All that was lifted finds a place elsewhere while the node keeps room for the pod.
static bool resettle(struct attempt *attempt)
{
	struct pack *pack = attempt->pack;
	size_t done = 0;
	while (done < attempt->lifted_count) {
		uint32_t placed_i = attempt->lifted[done];
		uint32_t target = pack_best(pack, pack->placed[placed_i].pod, attempt->node);
		if (target == PACK_NONE)
			break;
		pack_put(pack, placed_i, target);
		done++;
	}
	if (done == attempt->lifted_count) {
		pack->moved += done;
		return true;
	}
	while (done > 0)
		pack_lift(pack, attempt->lifted[--done]);
	return false;
}

static bool lift_more(struct attempt *attempt, size_t from)
{
	struct pack *pack = attempt->pack;
	for (size_t i = from; i < attempt->listed_count && attempt->tries < TRIES_MAX; i++) {
		uint32_t placed_i = attempt->listed[i];
		const struct placed kept = pack->placed[placed_i];
		attempt->tries++;
		pack_lift(pack, placed_i);
		attempt->lifted[attempt->lifted_count++] = placed_i;
		bool is_done = fits(pack, attempt->pod, attempt->node)
				       ? resettle(attempt)
				       : attempt->lifted_count < attempt->lifted_max &&
						 lift_more(attempt, i + 1);
		if (is_done)
			return true;
		attempt->lifted_count--;
		pack_put_back(pack, placed_i, &kept);
	}
	return false;
}

static bool move_several(struct pack *pack, uint32_t pod, uint32_t moves, uint32_t *ret_node)
{
	struct attempt attempt = { .pack = pack, .pod = pod, .lifted_max = moves };
	for (uint32_t i = 0; i < pack->pack_case->nodes.count; i++) {
		if (!may_hold(pack, pod, i))
			continue;
		attempt.node = i;
		attempt.listed_count = 0;
		for (uint32_t at = pack->first[i];
		     at != PACK_NONE && attempt.listed_count < LISTED_MAX;
		     at = pack->placed[at].next)
			attempt.listed[attempt.listed_count++] = at;
		if (lift_more(&attempt, 0)) {
			*ret_node = i;
			return true;
		}
	}
	return false;
}

bool pack_make_room(struct pack *pack, uint32_t pod, uint32_t moves, uint32_t *ret_node)
{
	uint64_t paced = pack->placed_count * MOVED_PERMILLE_MAX / 1000;
	ASSERT(moves > 0 && moves <= LIFTED_MAX);
	if (pack->moved + moves > paced)
		return false;
	return move_one(pack, pod, ret_node) ||
	       (moves > 1 && move_several(pack, pod, moves, ret_node));
}
