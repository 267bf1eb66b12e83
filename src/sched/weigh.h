// SPDX-License-Identifier: Apache-2.0
// The core's use of score.h: nodes of the ledger as the score sees them, and the demand, learned
// from the pods that came. Until enough have come there is no demand and no cost, and place.c packs
// by plain keys. Owned by struct sched; ends the program without memory.
#pragma once

#include "sched/board.h"
#include "sched/core.h"

enum { WEIGH_PODS_MIN = 100, WEIGH_HISTORY_MAX = 32768, WEIGH_ITEMS_MAX = 4096 };

struct weigh *weigh_new(void);
// Another policy than default: its costs count from the first pod on, also without a demand.
void weigh_set_policy(struct weigh *weigh, const struct score_policy *policy);
void weigh_free(struct weigh *weigh);
const struct board *weigh_board(const struct weigh *weigh);
// A pod came that this scheduler decides about.
void weigh_note(struct weigh *weigh, const struct sched_spec *spec);
void weigh_touch(struct weigh *weigh, uint32_t slot); // what is on the node, or the node, changed
// Costs for pods of the spec; NULL: the demand is not known yet.
struct board_row *weigh_row(struct sched *sched, const struct sched_spec *spec);
// Of the policy; without one that counts load it is 0 for all.
int32_t weigh_load_weight(const struct weigh *weigh, score_kind kind);
bool weigh_uses_load(const struct weigh *weigh); // of whole nodes
int64_t weigh_cost(struct sched *sched, struct board_row *row, uint32_t slot);
