// SPDX-License-Identifier: Apache-2.0
// The inside of window.h, for the files of this folder: window.c keeps the windows and when to look
// at them again, window_plan.c chooses their nodes, window_fit.c says what that means for a pod.
// Owned by struct sched; a part lies in its window's array and is linked to its node, so both are
// forgotten together. Nothing here can fail.
#pragma once

#include "sched/parts.h"
#include "sched/window.h"

struct window_part {
	struct node *node;
	struct window *window;
	struct window_part *next; // on the node
	int64_t count;
};
struct window {
	struct str *texts; // memory of the texts below
	struct str tenant;
	struct sched_window_in in;
	uint32_t id; // never used again
	int64_t start_ms, end_ms;
	bool has_begun; // and its nodes were looked at since
	struct window_part *parts;
	size_t part_count;
	int64_t held_count;
};
struct windows {
	struct window *items[SCHED_WINDOWS_MAX]; // by start, tenant, name
	size_t count;
	uint32_t last_id;
	bool is_stale;
	uint64_t gen;   // sched->gen of the last plan
	int64_t due_ms; // when to plan again
};

// window.c
void windows_free(struct sched *sched);
void windows_tick(struct sched *sched); // before anybody is tried
int64_t windows_wake_ms(const struct sched *sched);
void windows_drop_node(struct sched *sched, struct node *node); // it is gone
// Whether the tenant has windows: its pods share shapes with nobody.
bool windows_concern(const struct sched *sched, struct str tenant);
// Texts of such a fact; false when it is none.
bool windows_fact_text(const struct sched *sched, const struct sched_fact *fact,
		       struct arena *arena, struct sched_reason *ret_reason);
const char *windows_check(const struct sched *sched);

// window_plan.c
void windows_plan(struct sched *sched); // all anew, as far as they can stay where they are
void windows_unplan(struct sched *sched, struct window *window); // it lies nowhere
void window_part_drop(struct window_part *part);

// window_fit.c
// GPUs of the node's pods that will be there at that instant: of the tenant, or of all others.
struct window_use {
	int64_t own, others, last_ms; // of others: when the last leaves
};
struct window_use window_use_at(const struct sched *sched, const struct node *node,
				struct str tenant, int64_t at_ms);
// What keeps the pod from starting there now and staying as long as it is expected to; NULL: none.
const struct window *window_against(const struct sched *sched, const struct pod *pod,
				    const struct node *node);
// How long it may stay at most if it starts now; 0: not at all; INT64_MAX: for ever.
int64_t window_most_s(const struct sched *sched, const struct pod *pod, const struct node *node);
// The first instant from which so many GPUs for pods like it may be taken there until they end.
int64_t window_open_ms(const struct sched *sched, const struct pod *pod, int64_t gpu_count,
		       const struct node *node, int64_t from_ms);
// The longest that a pod of the shape of this one may stay on a node of a window with room for it.
int64_t windows_most_s(struct sched *sched, const struct pod *pod);
bool windows_pass(struct sched *sched, const struct pod *pod);       // it may start on one of these
bool windows_draw(const struct sched *sched, const struct pod *pod); // now, to some node
// Whether a window of its tenant keeps there, now, all that it needs.
bool window_covers(const struct sched *sched, const struct pod *pod, const struct node *node);
