// SPDX-License-Identifier: Apache-2.0
// What the core keeps of ResourceClaims, their classes and the devices of nodes, inside of this
// folder. A claim that a decision has given devices keeps them until the API server says so itself
// or the pod leaves its node. A device is given once, to a claim or to a pod of the device plugin.
#pragma once

#include "sched/claim_in.h"
#include "sched/core.h"

enum { CLAIM_DEVICE_BYTES = 64 };

struct claim_pick {
	uint32_t request_i;
	char device[CLAIM_DEVICE_BYTES];
};

struct claim_kept {
	struct sched_claim_object *object;
	const struct pod *assumed_by; // of a claim; NULL: nobody
	struct str assumed_node;
	struct claim_pick *picks;
	size_t pick_count;
};

struct claim_book {
	struct map *kept[SCHED_CLAIM_KINDS]; // key -> claim_kept
	struct map *pools;                   // node -> its slice, a claim_kept
	struct map *held;                    // "node/device" -> the claim that has it
	struct sched_claim_allot allots[SCHED_CLAIM_REQUESTS_MAX]; // lent with the last decision
	struct sched_claim_give gives[SCHED_CLAIM_GIVES_MAX];
};

struct claim_book *claim_book_new(uint64_t seed);
void claim_book_free(struct claim_book *book); // NULL allowed
struct claim_kept *claim_book_find(const struct claim_book *book, sched_claim_kind kind,
				   struct str key);
bool claim_book_is_held(const struct claim_book *book, struct str node, struct str device);
// Gives the devices to the claim for the pod that comes to the node.
void claim_book_assume(struct sched *sched, struct claim_kept *claim, const struct pod *pod,
		       const struct claim_pick *picks, size_t count);
void claim_book_unassume(struct sched *sched, const struct pod *pod);
void claim_book_mark(const struct sched *sched, struct node *node); // which devices claims have

// claim_fit.c
struct claim_fit; // the claims of one pod against all nodes
struct claim_fit *claim_fit_new(struct sched *sched, const struct pod *pod); // NULL: it has none
void claim_fit_free(struct claim_fit *fit);
uint64_t claim_fit_check(const struct claim_fit *fit, const struct node *node);
// Index of the first claim that has the code wherever the pod goes; else the number of claims.
size_t claim_fit_claim(const struct claim_fit *fit, sched_code code);
// For a pod that has just come to its node; fills the book's allots, returns how many.
size_t claim_fit_assume(struct sched *sched, const struct pod *pod);
