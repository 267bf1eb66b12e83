// SPDX-License-Identifier: Apache-2.0
// How much of what there is each of several queues deserves: first what is guaranteed to it, then
// of the rest a part by its weight, never more than it wants or may have; what one does not want
// goes to the others (water-filling). Pure integers, exact: the parts add up to the capacity or to
// all that is wanted, whichever is less, unless somebody's weight is 0. Cannot fail.
#pragma once

#include "base/defs.h"

struct entitle {
	int64_t guaranteed, wanted, limit; // 0 or more; equal units, together below 2^62
	int64_t weight;                    // of the part beyond what is guaranteed
	int64_t deserved;                  // out
};

void entitle_divide(struct entitle *items, size_t count, int64_t capacity);
