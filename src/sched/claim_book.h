// SPDX-License-Identifier: Apache-2.0
// What the core keeps of ResourceClaims, their classes and the devices of nodes, inside of this
// folder. A claim that a decision has given devices keeps them until the API server says so itself
// or the pod leaves its node. A device is given once, to a claim or to a pod of the device plugin.
// An allocated claim that no pod on a node uses is idle: soon free, if its pods have ended; astray,
// if they wait (claim_idle.c).
#pragma once

#include "sched/claim_in.h"
#include "sched/core.h"
#include "sched/queue.h"
#include "sched/share.h"

enum { CLAIM_DEVICE_BYTES = 64, GPU_PARTS = SHARE_WHOLE_MILLI * PARTS_PER_MILLI };
typedef enum claim_role { CLAIM_USERS, CLAIM_WAITERS } claim_role; // of pods: on nodes, or not

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
	bool is_lifted; // its devices count as free for a while
	struct link in_idle;
	int64_t idle_since_ms, stray_due_ms; // due: not told as astray before
	int64_t asked_parts;                 // of a claim without devices, as of asked_gen
	uint64_t asked_gen;
};

struct claim_book {
	struct map *kept[SCHED_CLAIM_KINDS]; // key -> claim_kept
	struct map *pools;                   // node -> its slice, a claim_kept
	struct map *held;                    // "node/device" -> the claim that has it
	struct map *uses;                    // claim key -> who uses it, of claim_use.h
	struct link idle;                    // claims
	uint64_t pools_gen;                  // of changes of slices and classes
	size_t part_count;                   // slices with devices that are less than a GPU
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
// Gives what the claim has back for a while, and takes it again.
void claim_book_lift(struct sched *sched, struct claim_kept *claim);
void claim_book_lower(struct sched *sched, struct claim_kept *claim);
// What slices offer and is not ill.
int64_t claim_book_capacity_parts(const struct sched *sched);

// claim_idle.c
void claim_idle_note(struct sched *sched, struct claim_kept *claim); // who uses it; NULL allowed
void claim_idle_drop(struct claim_kept *claim);
// Claims of a pod that was taken off the ledger for a question, as far as nobody else uses them.
void claim_idle_lift_of(struct sched *sched, const struct pod *pod);
void claim_idle_lower_of(struct sched *sched, const struct pod *pod);
size_t claim_idle_count(const struct sched *sched, const struct node *node); // free soon, there
void claim_idle_lift(struct sched *sched, const struct node *node);
void claim_idle_lower_all(struct sched *sched);
// Whether the claims of the pod would fit if those that count had left; without claims they do.
struct check;
typedef bool claim_counts_fn(const struct check *check, const struct pod *pod);
bool claim_idle_fit_without(const struct check *check, const struct node *node,
			    claim_counts_fn *counts);
int64_t claim_idle_wake_ms(const struct sched *sched);

// claim_fit.c
struct claim_fit; // the claims of one pod against all nodes
struct claim_fit *claim_fit_new(struct sched *sched, const struct pod *pod); // NULL: it has none
void claim_fit_free(struct claim_fit *fit);
uint64_t claim_fit_check(const struct claim_fit *fit, const struct node *node);
// Whether the devices suffice for the pod beside others that are to come to the node.
bool claim_fit_beside(const struct claim_fit *fit, const struct node *node,
		      const struct pod *const *others, size_t other_count);
// GPUs of the claim, in units of queue.h: those it has; or at most will have.
int64_t claim_fit_parts(const struct sched *sched, struct claim_kept *claim);
int64_t claim_fit_device_parts(const struct sched_pool_device *device); // a MIG device's by profile
// Index of the first claim that has the code wherever the pod goes; else the number of claims.
size_t claim_fit_claim(const struct claim_fit *fit, sched_code code);
// For a pod that has just come to its node; fills the book's allots, returns how many.
size_t claim_fit_assume(struct sched *sched, const struct pod *pod);
