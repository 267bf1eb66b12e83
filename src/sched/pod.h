// SPDX-License-Identifier: Apache-2.0
// Pods of the ledger and their shapes, for the files of this folder only. Pods with equal specs
// share a shape: a shape that fits nowhere parks with all its pods, and only what changed on a
// node wakes it. Both are owned by struct sched; a shape lives as long as a pod refers to it.
#pragma once

#include "sched/durations.h"
#include "sched/learn.h"
#include "sched/link.h"
#include "sched/sched.h"
#include "sched/tree.h"

struct awaited;
struct due;
struct head;
struct hold;
struct hold_cache;
struct gang_memo;
struct member;
struct fate;
struct keep;
struct node;
struct pod_claims;
struct queue;
struct queue_user;

struct why { // a pod went to its node, see why.h
	const struct pod *pod;
	const char *term; // NULL: nobody chose
	uint32_t slot, next_slot;
	bool has_next, is_cost;
	int64_t own, other;
};

struct again { // when a shape asks next whether others can make room
	uint64_t gen;
	int64_t tried_ms, due_ms;
	uint32_t failures;
};

struct gang_asking { // the same of a gang, whose members ask together
	struct again again;
	size_t kept_count;              // waiting members that have a node kept
	uint64_t checked_gen, seen_gen; // of the last look whether these will do
	int64_t checked_ms;
	bool will_do;
	uint64_t trial_no; // of the trial that counts its members now
	int64_t trial_taken;
};

struct shape {
	struct arena *arena; // of spec and key
	const struct sched_spec *spec;
	struct str key;
	uint32_t *dims; // of spec->amounts
	uint64_t dims_gen;
	size_t pod_count;        // references
	struct queue *queue;     // of all its pods
	int64_t gpu_parts;       // that each of them takes from its queue, in units of queue.h
	int64_t gpu_milli;       // the same, rounded up
	struct str slice_tenant; // namespace of all its pods, if they ask for MIG devices
	struct tree waiting;     // its pods that may be tried, in queue order
	struct tree_node active; // in its queue's active under its first pod's key
	struct link in_parked, in_telling;
	struct link in_blocked; // of the queue whose limit it waits for
	struct link in_limited; // a limit of a GPU model keeps it from nodes
	uint32_t models;        // that it asks for, as queues name them at models_gen
	uint64_t models_gen;
	bool is_stale;         // nodes changed since the facts were found
	uint64_t *static_fits; // one bit a slot
	uint32_t static_cap;   // slots
	uint64_t static_gen;
	uint64_t pool;            // hash of the nodes that suit it
	struct gang_memo *memo;   // of gangs whose members are of it; NULL: none yet
	uint64_t unfit_gen;       // sched->gen at which no node could ever hold it
	struct sched_facts facts; // of the last failure
	uint64_t facts_gen;       // of their last change, 0: none yet
	int64_t told_ms;          // when its pods were told last
	int64_t fresh_ms;         // until when its facts are not looked at for their numbers alone
	struct tree_node *cursor; // next pod to be told of the facts
	uint64_t apart_gen;       // sched->apart_gen when its pods were told
	struct hold_cache *holds; // of one that asks for shares; NULL: nothing is known
	struct again again;
};

typedef enum pod_place { // where a waiting pod is kept
	PLACE_NONE,
	PLACE_SHAPE,   // in shape->waiting
	PLACE_HELD,    // failed for reasons of its own labels; tried again with any change
	PLACE_BACKOFF, // a bind failed; tried again at retry_ms
	PLACE_GANG,    // in gang->waiting
} pod_place;

// What only a pod that is not bound yet needs; it goes when the bind has come true, because most
// pods run.
struct waiting {
	struct pod *pod;
	struct tree_node in_queue, in_shape;
	struct link in_scored; // while it waits and factors are used
	struct link in_binds;  // decided with its gang and not handed out yet
	struct link in_place, in_tell, in_nominated;
	struct keep *keep;       // waits with a node kept; NULL: none
	struct head *head;       // its reservation
	struct str nominated;    // the node that is kept for it; empty: none
	struct awaited *awaited; // of forecast.h; NULL: it was not told yet that it waits
	struct due *due;         // of deadline.h; NULL: no deadline that can still be met
	struct node *avoid;      // where the last bind failed
	int64_t again_ms;        // others are not asked for it before
	int64_t retry_ms, scored_ms;
	uint64_t told_hash;  // of the facts it was told last; 0: none
	uint32_t vain_count; // how often others were asked in vain
	uint32_t failures;
};
// The pod around whose member of struct waiting a link or a node of a tree is.
#define POD_OF(ptr, member) (LINK_OF(ptr, struct waiting, member)->pod)

struct pod {
	struct str uid, user_name;
	struct tree_key key;
	struct sched_labels labels;
	struct shape *shape;
	sched_state state;
	pod_place place;
	bool is_ours, is_terminating;
	sched_duration_source duration_source;
	struct waiting *wait; // once bound all zeroes, and nobody may write to it
	struct queue *queue;
	struct queue_user *user; // NULL: its queue has no settings
	struct link in_home;     // of its queue
	struct node *node;       // assumed or bound
	struct why why;
	struct pod_claims *claims; // of claim_use.h; NULL: it uses and awaits none
	struct hold *holds;        // what it holds of GPUs that are shared
	size_t hold_count;
	int64_t bound_ms, end_ms; // expected, if it is on a node
	struct sched_stay stay;
	struct fate *fate;             // leaves for another; NULL: not asked to
	int64_t leaving_ms, spared_ms; // since when, until when
	int64_t since_ms;              // first seen
	int64_t made_s;        // by its own word; the key may have the place of an evicted one
	struct member *member; // of its gang; NULL: none
	struct link on_node, in_apart;
	int64_t asked_priority; // key.priority is at most what its queue allows
	int64_t deadline_s;
	int64_t said_s, max_run_s; // key.duration_s is what is expected by duration_source
	struct learn_kind kind;    // unless nothing is learned
	struct sched_facts *facts; // of its own (held, backoff, refused); NULL: the shape's
	uint64_t told_codes;       // that it was told last, as a set
	char texts[];              // of its key, uid and user_name
};
