// SPDX-License-Identifier: Apache-2.0
// The part of a kubelet that hands out shares: free ids at random, Allocate when a pod is
// admitted, PreStartContainer before each start, several at once, and the two sources that tell
// who holds what. Ids of a pod that ended are free at once. On top of fake_kubelet.
#pragma once

#include "daemons/agent/share_ids.h"
#include "fake_kubelet.h"

enum { FAKE_SHARES_MAX = 64, FAKE_SHARE_UNITS_MAX = 1000 };

typedef enum fake_phase { FAKE_FREE, FAKE_ALLOCATED, FAKE_STARTING, FAKE_ASKED } fake_phase;

struct fake_share { // of one container of one pod
	fake_phase phase;
	char uid[64], pod[64];
	share_kind kind;
	uint32_t units;
	char ids[FAKE_SHARE_UNITS_MAX][SHARE_ID_BYTES];
	char name[FAKE_ID_BYTES]; // of CDI, without its kind
	struct grpc_call *call;
	enum grpc_code code; // of the last answer
	char error[400];
};

struct fake_shares {
	struct fake_kubelet *kubelet;
	struct fake_share items[FAKE_SHARES_MAX];
	uint64_t random;
};

void fake_shares_init(struct fake_shares *shares, struct fake_kubelet *kubelet);
uint32_t fake_random(struct fake_shares *shares, uint32_t below);
size_t fake_shares_offered(const struct fake_shares *shares, share_kind kind); // healthy ids
// NULL: refused, or too few ids are free.
struct fake_share *fake_share_admit(struct fake_shares *shares, const char *uid, const char *pod,
				    share_kind kind, uint32_t units);
void fake_share_start(struct fake_shares *shares, struct fake_share *share); // does not wait
void fake_share_release(struct fake_shares *shares, struct fake_share *share);
// Calls under way are cut, as a kubelet does that dies.
void fake_shares_cut(struct fake_shares *shares);
