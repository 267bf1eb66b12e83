// SPDX-License-Identifier: Apache-2.0
// Who holds which sets of share ids, as the kubelet tells it: PodResources List names pod and
// container of what is admitted (never ordinary init containers), its checkpoint file has the pod
// UIDs. Filled anew from each answer. Pure but for memory.
#pragma once

#include "daemons/agent/share_table.h"

struct share_seen {
	struct share_key key;
	struct share_holder holder; // by List: without uid; by checkpoint: uid and container alone
};
struct share_seen_list {
	struct share_seen *items;
	size_t count, room;
};

void share_seen_done(struct share_seen_list *list);
// Both leave the list as it was when the input is malformed.
MUST_USE err_status share_seen_answer(struct share_seen_list *list, struct str message,
				      struct err *err);
MUST_USE err_status share_seen_checkpoint(struct share_seen_list *list, struct str text,
					  struct err *err);
// The next one of that set after *at (0 at first); NULL: no more.
const struct share_seen *share_seen_next(const struct share_seen_list *list,
					 const struct share_key *key, size_t *at);
