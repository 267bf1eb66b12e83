// SPDX-License-Identifier: Apache-2.0
// Costs that are kept: one row a class of pods, one column a node slot. A cost is computed when it
// is asked for and its node has changed since, so that a decision pays for what changed and not for
// how many nodes there are. Rows are bounded: the one used longest ago makes room. Owned by its
// caller; ends the program without memory.
#pragma once

#include "sched/score.h"

enum { BOARD_ROWS_MAX = 512, BOARD_ALIKE_MAX = 128 };
struct board_row {
	struct score_ask ask;
	uint64_t used_no;
	int64_t *costs; // by slot
	uint32_t *stamps;
	struct board_alike { // nodes in the same state cost the same; hash 0: free
		uint64_t hash;
		int64_t cost;
	} alike[BOARD_ALIKE_MAX];
};
struct board {
	struct score score;
	struct score_node *nodes; // by slot
	uint32_t *stamps;         // of their last change
	uint64_t *hashes;         // of their state
	uint32_t slot_cap;
	struct board_row *rows[BOARD_ROWS_MAX];
	size_t row_count;
	uint64_t use_no;
};

struct board *board_new(const struct score *score);
void board_free(struct board *board); // NULL allowed
// The node in the slot is this now; grows as needed.
void board_set(struct board *board, uint32_t slot, const struct score_node *node);
void board_touch(struct board *board, uint32_t slot); // it is about to be set anew
// All costs are computed anew when asked for: another demand, another policy.
void board_set_score(struct board *board, const struct score *score);
struct board_row *board_row_of(struct board *board, const struct score_ask *ask);
int64_t board_compute(struct board *board, struct board_row *row, uint32_t slot);

static inline int64_t board_cost(struct board *board, struct board_row *row, uint32_t slot)
{
	if (row->stamps[slot] == board->stamps[slot])
		return row->costs[slot];
	return board_compute(board, row, slot);
}
