// SPDX-License-Identifier: Apache-2.0
// Heads: pods, or gangs, that wait at the front of their pool and have nodes reserved, and what
// that means for others. Internal to this folder; a head is the waiting pod's and goes with it.
// Nothing here can fail.
#pragma once

#include "sched/core.h"

struct spare_claim { // of what the members will ask of a node
	uint32_t dim;
	int64_t amount;
};
struct spare { // a node for some of the members of a gang
	struct node *node;
	size_t pod_count;
	struct spare_claim *claims;
	size_t claim_count;
};
struct head { // a waiting pod with a node reserved, or a gang with several
	struct pod *pod;
	struct gang *gang; // whose first the pod is; NULL: it is alone
	struct spare *spares;
	size_t spare_count;
	int64_t settled_ms;
	uint64_t settled_gen;
	struct node *node;  // NULL: not chosen yet
	int64_t start_ms;   // when it fits there; SCHED_NEVER_MS: cannot be told; INT64_MIN: now
	int64_t *starts_ms; // by slot
	uint32_t cap;
	uint64_t load_gen; // up to which starts_ms are current
};
static inline struct node *reserve_node(const struct head *head, size_t i) // NULL: no more
{
	if (head->gang == NULL)
		return i == 0 ? head->node : NULL;
	return i < head->spare_count ? head->spares[i].node : NULL;
}
void reserve_parked(struct sched *sched, const struct pod *pod); // it fits nowhere now
void reserve_leave(struct sched *sched, struct pod *pod);        // it waits no longer
void reserve_drop_node(struct sched *sched, struct node *node);
void reserve_refresh(struct sched *sched); // touches nodes where more may be allowed
// Whether the pod may use its room on the node, by what is reserved there.
bool reserve_allows(struct sched *sched, const struct pod *pod, const struct node *node);
bool reserve_passes(struct sched *sched, const struct pod *pod);
int64_t reserve_window_s(const struct sched *sched, const struct pod *pod, const struct node *node);
int64_t reserve_wake_ms(const struct sched *sched);
int64_t reserve_end_ms(const struct pod *pod, int64_t now_ms); // expected, after now
const char *reserve_check(const struct sched *sched);
