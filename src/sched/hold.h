// SPDX-License-Identifier: Apache-2.0
// Shares in the ledger: what pods hold of devices that are given out in shares, and where an ask
// finds its place: on the device that it leaves the least of (best fit), larger asks first. A
// device is given whole or in shares, never both; which, its node's agent says. Internal to this
// folder; what a pod holds is the pod's and ends with its stay on the node.
#pragma once

#include "gpu/gpu.h"
#include "sched/core.h"

struct hold { // of one ask of a pod
	char uuid[GPU_UUID_BYTES];
	struct share share;
	uint32_t ask_i;                  // of the spec
	bool is_by_load;                 // chosen with regard to its load, which was:
	int32_t load_milli, load_age_ms; // -1: not known, or too old
};

struct hold_room { // what is left of the devices of a node, by their place there
	struct share left[SCHED_DEVICES_MAX];
};

void hold_room_now(const struct node *node, struct hold_room *ret);
void hold_room_add(const struct node *node, const struct pod *leaving, struct hold_room *room);
// Whether all asks of the spec find their place; without asks they do.
bool hold_room_has(const struct sched_spec *spec, const struct node *node,
		   const struct hold_room *room);
bool hold_fits(const struct sched_spec *spec, const struct node *node); // now
// Whether they would if nobody held anything.
bool hold_could_fit(const struct sched_spec *spec, const struct node *node);
// Thousandths that the asks leave on the fullest device they take, and what its load counts; less
// is better. Kept by shape and node, and computed anew only where something has changed.
int64_t hold_cost(const struct sched *sched, struct shape *shape, uint32_t slot);
void hold_cache_free(struct hold_cache *cache); // NULL allowed
// Takes the devices for a pod on the node and fills grants; returns how many.
size_t hold_place(struct sched *sched, struct pod *pod);
size_t hold_granted(struct sched *sched, const struct pod *pod); // the grants again
void hold_adopt(struct pod *pod, const struct sched_hold *holds, size_t count);
void hold_release(struct pod *pod);
// What it holds counts for a while as if it were not there, and again.
void hold_lift(const struct pod *pod);
void hold_lower(const struct pod *pod);
// The largest ask, and the most that a device has left for it: of thousandths, or of MiB.
void hold_short(const struct sched_spec *spec, const struct node *node, bool *ret_is_memory,
		int64_t *ret_need, int64_t *ret_have);
const char *hold_check(const struct node *node); // NULL, or what is broken
