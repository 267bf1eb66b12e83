// SPDX-License-Identifier: Apache-2.0
// The virtual devices by which the kubelet counts shares. Their ids belong to places of GPUs, so
// that health follows, but stand for no GPU: which one a container gets is bound when it starts
// (late.h). What ties an allocation to its holder is the set of its ids, told in any order by the
// kubelet and kept here as a digest. Pure.
#pragma once

#include "base/buf.h"
#include "gpu/share.h"

enum { SHARE_ID_BYTES = 32 };

struct share_key { // of a set of ids; the order of adding does not matter
	uint64_t a, b;
	uint32_t count;
	share_kind kind;
};

void share_key_add(struct share_key *key, struct str id);
bool share_key_is(const struct share_key *a, const struct share_key *b);

void share_id_format(share_kind kind, uint32_t slot, uint32_t number, char out[SHARE_ID_BYTES]);
MUST_USE bool share_id_parse(struct str id, share_kind kind, uint32_t *ret_slot,
			     uint32_t *ret_number);
// The units of one GPU, as devices of a list for the kubelet.
void share_ids_put(struct buf *out, share_kind kind, uint32_t slot, int64_t units, bool is_healthy);
// Whether a resource is one of the two.
bool share_is_resource(struct str resource);
