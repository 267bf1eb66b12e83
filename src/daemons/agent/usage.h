// SPDX-License-Identifier: Apache-2.0
// Who holds which GPU, and the bound and released events that follow. It is told what the kubelet
// shows (PodResources, checkpoint) and what pods say (times, tenant), in any order and as often
// as one likes, and emits each event once, when it knows all that belongs to it. What it knows
// is rebuilt from the journal after a restart. Pure: time is given, events go to a callback.
// An allocation is one pod on one GPU, whole or a share of it: the shares that its containers
// hold, summed; of a MIG GPU its compute slices are what shares are counted in. Its container is
// the first that holds the device.
#pragma once

#include "daemons/agent/pod_facts.h"
#include "journal/usage_event.h"

struct usage;

struct usage_config {
	bool has_pods; // false: no API server; times are those of what the kubelet shows
	void *arg;
	// Takes the event; anything but ERR_OK: it is emitted again at a later step.
	err_status (*emit)(void *arg, struct usage_event *event);
};

struct usage_holder {       // as a kubelet's source shows it
	struct str pod_uid; // empty: only the name is known
	struct str namespace_, pod, container, gpu;
	uint32_t share, shares; // its number and of how many; shares 0: the whole GPU
	uint32_t share_count;   // so many from that number on; 0: one
	struct str profile;     // of the MIG device; empty: none
	uint32_t mig_start;     // then: its first memory slice
	bool is_of_claim;       // it begins after whoever had the same claim before
	bool is_first_choice;   // of PodResources: its container replaces one of the checkpoint
};

struct usage_allocation {
	char gpu[USAGE_NAME_BYTES], container[USAGE_NAME_BYTES];
	char pod_uid[USAGE_UID_BYTES], pod[USAGE_POD_BYTES], namespace_[USAGE_NAME_BYTES];
	char tenant[USAGE_NAME_BYTES], request[USAGE_NAME_BYTES * 2];
	uint32_t share_num, share_den;  // 1/1: the whole GPU
	char profile[USAGE_NAME_BYTES]; // of the MIG devices; several with commas
	uint32_t mig_starts;            // bit of the start of each; 0: none
	uint64_t *held;                 // bit of each share seen; NULL for a whole GPU; owned
	int64_t grown_s;                // when the last of them was first seen
	uint32_t util_milli;            // of the last sample
	uint64_t memory_mib;
	bool has_sample;
	int64_t first_s, last_s;     // when the kubelet's sources first and last showed it
	int64_t closed_s;            // since when it is told and not shown any more, 0: not
	int64_t bound_s, released_s; // 0: not known yet
	int64_t not_before_s;        // bound_s is not before it
	bool has_pod;                // the pod has been seen
	bool has_tenant;
	bool is_ended; // released_s is final
	bool is_bound_told, is_released_told;
	bool is_shown;   // by the sources now
	bool is_guessed; // a time was not to be had and is the best that was known
};

struct usage *usage_new(const struct usage_config *config); // NULL: no memory
void usage_free(struct usage *usage);

// After a restart: snapshot lines and events of the journal, in order, then lines of what was
// not told; what is known already stays as it is.
void usage_load_line(struct usage *usage, struct str line);
void usage_load_event(struct usage *usage, const struct usage_event *event);
// Lines for usage_load_line; only_untold: of what no event has told yet and the kubelet may
// soon forget.
void usage_save(const struct usage *usage, bool only_untold, struct buf *out);

// One look at the kubelet's sources: begin, each holder, end.
void usage_show_begin(struct usage *usage);
void usage_show(struct usage *usage, const struct usage_holder *holder, int64_t now_s);
void usage_show_end(struct usage *usage, int64_t now_s);

// What is known of a pod.
void usage_pod(struct usage *usage, const struct pod_facts *pod);
// The tenant of a namespace, also of allocations whose pod is gone already.
void usage_tenant(struct usage *usage, const char *namespace_, const char *tenant);
void usage_pod_deleted(struct usage *usage, const struct pod_facts *pod, int64_t now_s);
// While the list of pods is complete: pods of open allocations that it does not name are gone,
// unless the allocation is so young that the list may be older.
void usage_pods_listed(struct usage *usage, int64_t now_s,
		       bool (*is_listed)(void *arg, const char *uid), void *arg);

// Emits what is due.
void usage_step(struct usage *usage, int64_t now_s);
// An event about the allocation, with its names as they are told: its namespace stands for a
// tenant that is not known.
struct usage_event usage_event_of(const struct usage_allocation *item, event_type type,
				  int64_t t_s);

// Keeps the sample with the allocation, which is one of usage.
void usage_sampled(struct usage *usage, const struct usage_allocation *item, uint32_t util_milli,
		   uint64_t memory_mib);

size_t usage_count(const struct usage *usage);
const struct usage_allocation *usage_at(const struct usage *usage, size_t i);
// The next allocation after *at (0 at first) that holds the GPU now, newest first; NULL: no more.
const struct usage_allocation *usage_next_holder(const struct usage *usage, const char *gpu,
						 size_t *at);
// Whether it may have the same device of their GPU: only MIG devices can differ.
bool usage_is_same_part(const struct usage_allocation *item, const struct usage_holder *holder);
// Whether another pod is told to have the device now; what the holder is told to have stays its.
bool usage_is_others(const struct usage *usage, const struct usage_holder *holder);
// Allocations told since the start with a time that was the best that was known.
uint64_t usage_guessed(const struct usage *usage);
