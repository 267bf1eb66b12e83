// SPDX-License-Identifier: Apache-2.0
// A question to the ledger: what would fit if these pods had left? Of the nodes that are added it
// knows who leaves anyway and who may be asked to leave for the claimant, each with the rest of
// its gang where that must go with it. They are taken off and put back, so that every filter
// answers as it will then; trial_end puts all back as it was, and nobody is woken by a question.
// Internal to the files that look for victims; memory is the trial's. Nothing here fails.
#pragma once

#include "sched/victims.h"

struct candidate {
	struct pod *pod;
	int64_t priority;   // the highest of those that go
	int64_t lost, held; // of all that go
	uint64_t devices;   // that it held
	bool is_off, was_apart;
	size_t mates_from, mate_count; // the rest of its gang, which must go with it
};
struct candidates {
	struct candidate *items;
	size_t count, cap;
};
struct trial_node {
	struct node *node;
	size_t all_from, all_count, items_from, items_count; // items: until trial_settle
};

struct trial {
	struct sched *sched;
	const struct pod *claimant;
	int64_t claim_parts;
	struct candidates leaving, items, mates; // items: the dearest first once it is settled
	struct pod **all;                        // of its nodes, in order
	size_t all_count, all_cap;
	struct trial_node *nodes;
	size_t node_count, node_cap;
	uint64_t no;  // one for each set of nodes
	bool is_move; // set after trial_begin: those that leave go on elsewhere, by move.h
	bool is_moved, was_trying, wakes_all, wakes_volumes, are_heads_stale;
	uint64_t apart_gen;
};

void trial_begin(struct trial *trial, struct sched *sched, const struct pod *claimant,
		 int64_t claim_parts);
void trial_end(struct trial *trial);
// All is back as it was, and no node is known.
void trial_clear(struct trial *trial);
// The pods there; with_items: not only those that leave anyway.
void trial_add(struct trial *trial, struct node *node, bool with_items);
// Leaves out who may not go beside cheaper ones: by budgets, gangs' minimums, queues' own.
void trial_settle(struct trial *trial);
void trial_lift_leaving(struct trial *trial);
void trial_lift(struct trial *trial, size_t i); // an item, off the ledger
void trial_lower(struct trial *trial, size_t i);
// Whether something would be free that is not: also devices of claims that are given back now.
bool trial_frees(const struct trial *trial);
// What of a resource those that leave, and all items, hold.
int64_t trial_held(const struct trial *trial, uint32_t dim);
// Those items that are off, with their mates; false: they are too many.
MUST_USE bool trial_take(const struct trial *trial, struct choice *ret);
