// SPDX-License-Identifier: Apache-2.0
// Lists in openb's form: nodes, NUL, pods, NUL, order, NUL, ranks. What is read is packed.
#include "sim/pack.h"

enum { PARTS = 4, NODES_SHOWN_MAX = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool read_lists(struct arena *arena, const struct openb_file *files, struct pack_case *ret,
		       struct openb_order *ret_order)
{
	struct err err = { .status = ERR_OK };
	struct openb_nodes nodes;
	struct openb_pods pods;
	bool is_good = openb_nodes_parse(arena, files[0], &nodes, &err) == ERR_OK &&
		       openb_pods_parse(arena, files[1], &pods, &err) == ERR_OK &&
		       pack_case_init(arena, nodes, pods, ret, &err) == ERR_OK &&
		       openb_order_parse(arena, files[2], &pods, ret_order, &err) == ERR_OK &&
		       openb_ranks_parse(arena, files[3], nodes.count, &ret_order->ranks, &err) ==
			       ERR_OK;
	ASSERT(is_good || err.text[0] != '\0');
	return is_good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct openb_file files[PARTS] = { { "nodes", STR("") },
					   { "pods", STR("") },
					   { "order", STR("") },
					   { "ranks", STR("") } };
	struct str rest = { (const char *)data, size };
	for (size_t i = 0; i < PARTS && str_split_next(&rest, '\0', &files[i].text); i++)
		;
	struct arena *arena = arena_new(64 << 20);
	struct pack_case pack_case;
	struct openb_order order;
	if (arena != NULL && read_lists(arena, files, &pack_case, &order) &&
	    pack_case.nodes.count <= NODES_SHOWN_MAX) {
		static struct pack_result result;
		struct pack_options options = { .moves = 1 };
		bool is_known = score_policy_find(STR("default"), &options.policy);
		ASSERT(is_known);
		pack_run(&pack_case, &order, &options, &result);
		for (int i = 0; i <= PACK_PERCENT_MAX; i++)
			ASSERT(result.curve[i].allocated_pct >= 0 &&
			       result.curve[i].allocated_pct <= 100);
	}
	arena_free(arena);
	return 0;
}
