// SPDX-License-Identifier: Apache-2.0
// Who uses ResourceClaims: pods on nodes, and pods that wait for them, claim by claim, also of
// claims that are not known yet. GPUs of a claim count in the books of queues once: for the oldest
// of its pods on nodes, or, if none is there, for the oldest that waits. Owned by the claim book; a
// pod's part ends with its stay in the queue or on its node. Internal to this folder.
#pragma once

#include "sched/claim_book.h"

struct claim_use {
	struct link users, waiters; // by in_use of struct claim_ref, the oldest first
	int64_t parts;              // that it counts, in units of queue.h
	struct pod *payer;          // for whom it counts; NULL: for nobody
	bool is_waited;             // the payer waits
	int64_t paid_parts;
};
struct claim_ref {
	struct pod *pod;
	struct claim_use *use;
	struct link in_use;
};

struct pod_claims {
	struct claim_ref *refs[2]; // by role, while it has that one; as many as its spec has claims
	int64_t used_parts, wanted_parts; // GPUs of claims that count for it, by role
};

static inline int64_t claim_use_held_parts(const struct pod *pod)
{
	return pod->claims == NULL ? 0 : pod->claims->used_parts;
}
static inline int64_t claim_use_wanted_parts(const struct pod *pod)
{
	return pod->claims == NULL ? 0 : pod->claims->wanted_parts;
}
void claim_use_join(struct sched *sched, struct pod *pod, claim_role role);
void claim_use_leave(struct sched *sched, struct pod *pod, claim_role role); // may be none
void claim_use_changed(struct sched *sched, struct str key); // what it has, or will have
const struct claim_use *claim_use_find(const struct claim_book *book, struct str key);
bool claim_use_is_used(const struct claim_book *book, struct str key); // by a pod on a node
// GPUs that a waiting pod would add by claims that nobody uses yet.
int64_t claim_use_need_parts(const struct pod *pod);
void claim_uses_free(struct map *uses);
const char *claim_use_check(const struct sched *sched); // NULL, or what is broken
