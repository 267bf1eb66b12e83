// SPDX-License-Identifier: Apache-2.0
#include "sim/pack.h"

#include "sys/clock.h"

#include <stdlib.h>

struct meter {                          // sums over all nodes, kept as nodes change
	int64_t *frag_nano, *milliwatt; // by node
	bool *is_awake;
	int64_t frag_sum_nano, milliwatt_sum, awake, arrived_milli;
};

static void *must_alloc(size_t count, size_t size_bytes)
{
	void *memory = calloc(count, size_bytes);
	ASSERT(memory != NULL);
	return memory;
}

static void start(struct pack *pack, const struct pack_options *options)
{
	const struct pack_case *from = pack->pack_case;
	struct score score = { .policy = options->policy, .demand = from->demand };
	size_t nodes = from->nodes.count;
	memcpy(score.power, from->power, sizeof score.power);
	pack->board = board_new(&score);
	pack->memory_mib_left = must_alloc(nodes, sizeof *pack->memory_mib_left);
	pack->pod_counts = must_alloc(nodes, sizeof *pack->pod_counts);
	pack->first = must_alloc(nodes, sizeof *pack->first);
	pack->placed = must_alloc(pack->order->count, sizeof *pack->placed);
	for (uint32_t i = 0; i < nodes; i++) {
		const struct openb_node *in = &from->nodes.items[i];
		struct score_node node = { .cpu_milli_all = in->cpu_milli,
					   .cpu_milli_left = in->cpu_milli,
					   .gpu_count = in->gpu_count,
					   .model_i = from->models[i] };
		for (uint32_t k = 0; k < in->gpu_count; k++)
			node.milli_left[k] = SCORE_GPU_MILLI;
		board_set(pack->board, i, &node);
		pack->memory_mib_left[i] = in->memory_mib;
		pack->first[i] = PACK_NONE;
	}
}

static void stop(struct pack *pack)
{
	board_free(pack->board);
	free(pack->memory_mib_left);
	free(pack->pod_counts);
	free(pack->first);
	free(pack->placed);
}

uint32_t pack_best(struct pack *pack, uint32_t pod, uint32_t except)
{
	struct board *board = pack->board;
	struct board_row *row = board_row_of(board, &pack->pack_case->asks[pod]);
	const uint32_t *ranks = pack->order->ranks;
	int64_t memory_mib = pack->pack_case->pods.items[pod].memory_mib, best_cost = SCORE_NEVER;
	uint32_t best = PACK_NONE;
	for (uint32_t i = 0; i < pack->pack_case->nodes.count; i++) {
		int64_t cost = board_cost(board, row, i);
		if (cost > best_cost || cost == SCORE_NEVER || i == except)
			continue;
		if (cost == best_cost && ranks[i] > ranks[best])
			continue;
		if (pack->memory_mib_left[i] >= memory_mib &&
		    pack->pod_counts[i] < PACK_PODS_A_NODE_MAX) {
			best = i;
			best_cost = cost;
		}
	}
	return best;
}

// The pod stands on the node with the GPUs that it has in `placed`.
static void settle(struct pack *pack, uint32_t placed_i, uint32_t node_i)
{
	struct placed *placed = &pack->placed[placed_i];
	struct score_node node = pack->board->nodes[node_i];
	score_take(&node, &pack->pack_case->asks[placed->pod], placed->gpus);
	node.is_awake = true;
	board_set(pack->board, node_i, &node);
	pack->memory_mib_left[node_i] -= pack->pack_case->pods.items[placed->pod].memory_mib;
	pack->pod_counts[node_i]++;
	placed->node = node_i;
	placed->next = pack->first[node_i];
	pack->first[node_i] = placed_i;
}

void pack_put(struct pack *pack, uint32_t placed_i, uint32_t node_i)
{
	struct placed *placed = &pack->placed[placed_i];
	int64_t cost = score_cost(&pack->board->score, &pack->board->nodes[node_i],
				  &pack->pack_case->asks[placed->pod], &placed->gpus);
	ASSERT(cost != SCORE_NEVER);
	settle(pack, placed_i, node_i);
}

void pack_put_back(struct pack *pack, uint32_t placed_i, const struct placed *kept)
{
	pack->placed[placed_i].gpus = kept->gpus;
	settle(pack, placed_i, kept->node);
}

void pack_lift(struct pack *pack, uint32_t placed_i)
{
	struct placed *placed = &pack->placed[placed_i];
	struct score_node node = pack->board->nodes[placed->node];
	uint32_t *at = &pack->first[placed->node];
	while (*at != placed_i)
		at = &pack->placed[*at].next;
	*at = placed->next;
	score_give(&node, &pack->pack_case->asks[placed->pod], placed->gpus);
	node.is_awake = --pack->pod_counts[placed->node] > 0;
	board_set(pack->board, placed->node, &node);
	pack->memory_mib_left[placed->node] += pack->pack_case->pods.items[placed->pod].memory_mib;
}

static void meter_node(struct meter *meter, const struct pack *pack, uint32_t i)
{
	const struct score_node *node = &pack->board->nodes[i];
	const struct score *score = &pack->board->score;
	int64_t frag_nano = demand_frag_nano(&score->demand, node);
	int64_t milliwatt = score_node_milliwatt(&score->power[node->model_i], node);
	meter->frag_sum_nano += frag_nano - meter->frag_nano[i];
	meter->milliwatt_sum += milliwatt - meter->milliwatt[i];
	meter->awake += node->is_awake - meter->is_awake[i];
	meter->is_awake[i] = node->is_awake;
	meter->frag_nano[i] = frag_nano;
	meter->milliwatt[i] = milliwatt;
}

static int64_t round_half_even(int64_t dividend, int64_t divisor)
{
	int64_t quotient = dividend / divisor, twice = 2 * (dividend % divisor);
	return quotient + (twice > divisor || (twice == divisor && quotient % 2 != 0));
}

static void meter_arrival(struct meter *meter, const struct pack *pack, struct pack_result *ret)
{
	int64_t all = pack->pack_case->gpu_milli;
	int64_t percent = round_half_even(meter->arrived_milli * 100, all);
	if (percent > PACK_PERCENT_MAX)
		return;
	struct pack_point *point = &ret->curve[percent];
	point->allocated_pct += (double)round_half_even(pack->gpu_milli_used * 10000, all) / 100;
	point->frag_pct += (double)meter->frag_sum_nano / 1e6 / (double)all * 100;
	point->awake_nodes += (double)meter->awake;
	point->watts += (double)meter->milliwatt_sum / 1000;
	point->count++;
}

static void average(struct pack_result *ret)
{
	for (size_t i = 0; i <= PACK_PERCENT_MAX; i++) {
		struct pack_point *point = &ret->curve[i];
		double count = (double)point->count;
		if (point->count == 0) {
			if (i > 0)
				*point = ret->curve[i - 1];
			continue;
		}
		point->allocated_pct /= count;
		point->frag_pct /= count;
		point->awake_nodes /= count;
		point->watts /= count;
	}
}

static pack_class class_of(const struct openb_pod *pod)
{
	if (pod->gpu_count == 0)
		return PACK_CPU;
	if (pod->gpu_count == 1)
		return pod->gpu_milli < SCORE_GPU_MILLI ? PACK_SHARE : PACK_ONE;
	return pod->gpu_count <= 4 ? PACK_FEW : PACK_EIGHT;
}

static bool arrive(struct pack *pack, uint32_t pod, uint32_t moves, uint32_t *ret_node)
{
	uint32_t node = pack_best(pack, pod, PACK_NONE);
	if (node == PACK_NONE && (moves == 0 || !pack_make_room(pack, pod, moves, &node)))
		return false;
	pack->placed[pack->placed_count] = (struct placed){ .pod = pod };
	pack_put(pack, (uint32_t)pack->placed_count++, node);
	pack->gpu_milli_used += openb_gpu_milli(&pack->pack_case->pods.items[pod]);
	*ret_node = node;
	return true;
}

static void meter_start(struct meter *meter, const struct pack *pack)
{
	size_t nodes = pack->pack_case->nodes.count;
	meter->frag_nano = must_alloc(nodes, sizeof *meter->frag_nano);
	meter->milliwatt = must_alloc(nodes, sizeof *meter->milliwatt);
	meter->is_awake = must_alloc(nodes, sizeof *meter->is_awake);
	for (uint32_t i = 0; i < nodes; i++)
		meter_node(meter, pack, i);
}

void pack_run(const struct pack_case *pack_case, const struct openb_order *order,
	      const struct pack_options *options, struct pack_result *ret)
{
	struct pack pack = { .pack_case = pack_case, .order = order };
	struct meter meter = { .arrived_milli = 0 };
	*ret = (struct pack_result){ .decisions = order->count };
	start(&pack, options);
	meter_start(&meter, &pack);
	uint64_t started_ns = clock_cpu_ns();
	for (size_t i = 0; i < order->count; i++) {
		const struct openb_pod *pod = &pack_case->pods.items[order->pods[i]];
		uint32_t node;
		uint64_t moved = pack.moved;
		meter.arrived_milli += openb_gpu_milli(pod);
		if (arrive(&pack, order->pods[i], options->moves, &node)) {
			meter_node(&meter, &pack, node);
			for (uint32_t k = 0; moved != pack.moved && k < pack_case->nodes.count; k++)
				meter_node(&meter, &pack, k);
		} else if (meter.arrived_milli <= pack_case->gpu_milli) {
			ret->failures[class_of(pod)]++;
		}
		meter_arrival(&meter, &pack, ret);
	}
	ret->cpu_ns = clock_cpu_ns() - started_ns;
	ret->moved = pack.moved;
	average(ret);
	free(meter.frag_nano);
	free(meter.milliwatt);
	free(meter.is_awake);
	stop(&pack);
}
