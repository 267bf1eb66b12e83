// SPDX-License-Identifier: Apache-2.0
#include "sched/board.h"

#include "sched/core.h"

#include <stdlib.h>

enum { SLOTS_MIN = 64 };

struct board *board_new(const struct score *score)
{
	struct board *board = core_alloc(1, sizeof *board);
	board->score = *score;
	return board;
}

void board_free(struct board *board)
{
	if (board == NULL)
		return;
	for (size_t i = 0; i < board->row_count; i++) {
		free(board->rows[i].costs);
		free(board->rows[i].stamps);
	}
	free(board->nodes);
	free(board->stamps);
	free(board);
}

// Grown copy with zeroes behind; the old one is freed.
static void *grow(void *old, size_t old_count, size_t count, size_t size_bytes)
{
	char *grown = core_alloc(count, size_bytes);
	if (old_count > 0)
		memcpy(grown, old, old_count * size_bytes);
	free(old);
	return grown;
}

static void reserve(struct board *board, uint32_t slot)
{
	if (slot < board->slot_cap)
		return;
	uint32_t cap = board->slot_cap == 0 ? SLOTS_MIN : board->slot_cap;
	while (cap <= slot)
		cap *= 2;
	board->nodes = grow(board->nodes, board->slot_cap, cap, sizeof *board->nodes);
	board->stamps = grow(board->stamps, board->slot_cap, cap, sizeof *board->stamps);
	for (size_t i = 0; i < board->row_count; i++) {
		struct board_row *row = &board->rows[i];
		row->costs = grow(row->costs, board->slot_cap, cap, sizeof *row->costs);
		row->stamps = grow(row->stamps, board->slot_cap, cap, sizeof *row->stamps);
	}
	board->slot_cap = cap;
}

// Stamp 0 is that of a row that has computed nothing yet.
void board_set(struct board *board, uint32_t slot, const struct score_node *node)
{
	reserve(board, slot);
	board->nodes[slot] = *node;
	board->stamps[slot] = board->stamps[slot] == UINT32_MAX ? 1 : board->stamps[slot] + 1;
}

void board_set_score(struct board *board, const struct score *score)
{
	board->score = *score;
	for (size_t i = 0; i < board->row_count; i++)
		memset(board->rows[i].stamps, 0, board->slot_cap * sizeof(uint32_t));
}

static bool asks_equal(const struct score_ask *a, const struct score_ask *b)
{
	return a->cpu_milli == b->cpu_milli && a->gpu_count == b->gpu_count &&
	       a->gpu_milli == b->gpu_milli && a->models == b->models;
}

static struct board_row *oldest_row(struct board *board)
{
	struct board_row *oldest = &board->rows[0];
	for (size_t i = 1; i < board->row_count; i++) {
		if (board->rows[i].used_no < oldest->used_no)
			oldest = &board->rows[i];
	}
	return oldest;
}

struct board_row *board_row_of(struct board *board, const struct score_ask *ask)
{
	ASSERT(board->slot_cap > 0);
	for (size_t i = 0; i < board->row_count; i++) {
		if (asks_equal(&board->rows[i].ask, ask)) {
			board->rows[i].used_no = ++board->use_no;
			return &board->rows[i];
		}
	}
	struct board_row *row = NULL;
	if (board->row_count < BOARD_ROWS_MAX) {
		row = &board->rows[board->row_count++];
		row->costs = core_alloc(board->slot_cap, sizeof *row->costs);
		row->stamps = core_alloc(board->slot_cap, sizeof *row->stamps);
	} else {
		row = oldest_row(board);
		memset(row->stamps, 0, board->slot_cap * sizeof *row->stamps);
	}
	row->ask = *ask;
	row->used_no = ++board->use_no;
	return row;
}

int64_t board_compute(struct board *board, struct board_row *row, uint32_t slot)
{
	ASSERT(slot < board->slot_cap && board->stamps[slot] != 0);
	row->costs[slot] = score_cost(&board->score, &board->nodes[slot], &row->ask, NULL);
	row->stamps[slot] = board->stamps[slot];
	return row->costs[slot];
}
