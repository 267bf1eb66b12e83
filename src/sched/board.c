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
		free(board->rows[i]->costs);
		free(board->rows[i]->stamps);
		free(board->rows[i]);
	}
	free(board->nodes);
	free(board->stamps);
	free(board->hashes);
	free(board);
}

static void reserve(struct board *board, uint32_t slot)
{
	if (slot < board->slot_cap)
		return;
	uint32_t cap = board->slot_cap == 0 ? SLOTS_MIN : board->slot_cap;
	while (cap <= slot)
		cap *= 2;
	board->nodes = core_grow(board->nodes, board->slot_cap, cap, sizeof *board->nodes);
	board->stamps = core_grow(board->stamps, board->slot_cap, cap, sizeof *board->stamps);
	board->hashes = core_grow(board->hashes, board->slot_cap, cap, sizeof *board->hashes);
	for (size_t i = 0; i < board->row_count; i++) {
		struct board_row *row = board->rows[i];
		row->costs = core_grow(row->costs, board->slot_cap, cap, sizeof *row->costs);
		row->stamps = core_grow(row->stamps, board->slot_cap, cap, sizeof *row->stamps);
	}
	board->slot_cap = cap;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

static uint64_t hash_node(const struct score_node *node)
{
	uint64_t hash = mix(0, (uint64_t)node->cpu_milli_all);
	hash = mix(hash, (uint64_t)node->cpu_milli_left);
	hash = mix(hash, (uint64_t)node->gpu_count << 32 | node->model_i << 1 | node->is_awake);
	for (uint32_t i = 0; i < node->gpu_count; i += 4) {
		uint64_t four = 0;
		for (uint32_t k = i; k < i + 4 && k < node->gpu_count; k++)
			four = four << 16 | (uint16_t)node->milli_left[k];
		hash = mix(hash, four);
	}
	if (node->load_milli != 0)
		hash = mix(hash, (uint64_t)node->load_milli);
	return hash == 0 ? 1 : hash;
}

// Stamp 0 is that of a row that has computed nothing yet.
void board_touch(struct board *board, uint32_t slot)
{
	ASSERT(slot < board->slot_cap);
	board->stamps[slot] = board->stamps[slot] == UINT32_MAX ? 1 : board->stamps[slot] + 1;
}

void board_set(struct board *board, uint32_t slot, const struct score_node *node)
{
	reserve(board, slot);
	board->nodes[slot] = *node;
	board->hashes[slot] = hash_node(node);
	board_touch(board, slot);
}

static void forget(const struct board *board, struct board_row *row)
{
	memset(row->stamps, 0, board->slot_cap * sizeof *row->stamps);
	memset(row->alike, 0, sizeof row->alike);
}

void board_set_score(struct board *board, const struct score *score)
{
	board->score = *score;
	for (size_t i = 0; i < board->row_count; i++)
		forget(board, board->rows[i]);
}

static struct board_row *oldest_row(struct board *board)
{
	struct board_row *oldest = board->rows[0];
	for (size_t i = 1; i < board->row_count; i++) {
		if (board->rows[i]->used_no < oldest->used_no)
			oldest = board->rows[i];
	}
	return oldest;
}

struct board_row *board_row_of(struct board *board, const struct score_ask *ask)
{
	ASSERT(board->slot_cap > 0);
	for (size_t i = 0; i < board->row_count; i++) {
		if (score_asks_equal(&board->rows[i]->ask, ask)) {
			board->rows[i]->used_no = ++board->use_no;
			return board->rows[i];
		}
	}
	struct board_row *row = NULL;
	if (board->row_count < BOARD_ROWS_MAX) {
		row = core_alloc(1, sizeof *row);
		board->rows[board->row_count++] = row;
		row->costs = core_alloc(board->slot_cap, sizeof *row->costs);
		row->stamps = core_alloc(board->slot_cap, sizeof *row->stamps);
	} else {
		row = oldest_row(board);
		forget(board, row);
	}
	row->ask = *ask;
	row->used_no = ++board->use_no;
	return row;
}

int64_t board_compute(struct board *board, struct board_row *row, uint32_t slot)
{
	ASSERT(slot < board->slot_cap && board->stamps[slot] != 0);
	struct board_alike *alike = &row->alike[board->hashes[slot] % BOARD_ALIKE_MAX];
	if (alike->hash != board->hashes[slot]) {
		alike->cost = score_cost(&board->score, &board->nodes[slot], &row->ask, NULL);
		alike->hash = board->hashes[slot];
	}
	row->costs[slot] = alike->cost;
	row->stamps[slot] = board->stamps[slot];
	return row->costs[slot];
}
