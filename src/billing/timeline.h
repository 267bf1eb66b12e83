// SPDX-License-Identifier: Apache-2.0
// The life of one GPU as a row of segments in which nobody comes and nobody goes: who held which
// share, added up by tenant, and what was free. Walks forward only. Shares that sum above 1 are
// normalised by their sum. Parties are the tenants of this GPU and the unallocated part,
// numbered in the order of their names.
#pragma once

#include "base/money.h"
#include "billing/usage.h"

struct timeline;

struct segment {
	int64_t from_s, to_s;
	int64_t den;             // shares are nums / den and sum to 1
	const int64_t *nums;     // one a party; valid until the next segment
	const uint32_t *holders; // parties whose num is above 0
	size_t holder_count;
};

struct timeline *timeline_new(void); // NULL: no memory
void timeline_free(struct timeline *timeline);
void timeline_freep(struct timeline **timeline); // for AUTO

// Starts with another GPU (NULL: one that nobody ever held) before its first allocation.
// tenant_order gives the place of each of usage's tenants in the order of names,
// unallocated_order that of the unallocated part.
MUST_USE err_status timeline_start(struct timeline *timeline, const struct usage_gpu *gpu,
				   const uint32_t *tenant_order, uint32_t unallocated_order,
				   struct err *err);
size_t timeline_party_count(const struct timeline *timeline);
// Place of each party in the order of all names.
const uint32_t *timeline_parties(const struct timeline *timeline);
size_t timeline_unallocated(const struct timeline *timeline); // its party

// Last instant not after t_s at which somebody comes or goes; INT64_MIN when there is none.
int64_t timeline_edge_before(const struct timeline *timeline, int64_t t_s);
// The segment that holds at from_s, cut at to_s. from_s never goes back.
MUST_USE err_status timeline_at(struct timeline *timeline, int64_t from_s, int64_t to_s,
				struct segment *ret_segment, struct err *err);
