// SPDX-License-Identifier: Apache-2.0
// What the core keeps of storage, inside of this folder. Each object lies in one block of memory,
// texts and lists behind it. A claim and a volume that a decision has joined stay joined until
// the API server says so itself or the pod leaves its node.
#pragma once

#include "sched/core.h"
#include "sched/storage.h"

struct stored {
	struct sched_storage_in in; // its texts lie in the same block
	const struct pod *assumed_by;
	struct stored *assumed;      // the claim's volume or the volume's claim; NULL: to be made
	struct stored *next_on_node; // of attachments
	struct str assumed_node;     // of a claim
};

struct stock {
	struct map *stored[SCHED_STORAGES]; // key -> stored
	struct map *claim_users;            // claim key -> number of pods on nodes that mount it
	struct map *attached;               // node -> first attachment
	struct sched_claim_bind binds[SCHED_CLAIMS_MAX]; // lent with the last decision
	size_t bind_count;
};

struct stock *stock_new(uint64_t seed);
void stock_free(struct stock *stock); // NULL allowed
struct stored *stock_find(const struct stock *stock, sched_storage kind, struct str key);
size_t stock_users(const struct stock *stock, struct str claim_key);
// A pod came to a node (+1) or left it (-1).
void stock_use(struct sched *sched, const struct pod *pod, int change);
// Drops what was assumed for the pod.
void stock_unassume(struct sched *sched, const struct pod *pod);
struct str stock_claim_key(const struct sched_claim_ref *ref, struct buf *out);

// volume.c
struct volumes; // of one pod against all nodes
struct volumes *volumes_new(struct sched *sched, const struct pod *pod); // NULL: nothing to do
void volumes_free(struct volumes *volumes);
uint64_t volumes_check(const struct volumes *volumes, const struct node *node);
// Index of the first claim that has the code wherever the pod goes; else the number of claims.
size_t volumes_claim(const struct volumes *volumes, sched_code code);
// Joins claims and volumes for a pod that has just come to its node, for which volumes_check gave
// no code; fills stock->binds.
size_t volumes_assume(struct sched *sched, struct pod *pod);

// attach.c: whether the drivers of the node allow the pod's volumes beside those that are there.
bool attach_fits(const struct sched *sched, const struct sched_spec *spec, const struct node *node);
