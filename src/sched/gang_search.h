// SPDX-License-Identifier: Apache-2.0
// The search for places of a gang, shared by the files gang_*.c alone. What it allocates is freed
// when gang_place returns. A search is bounded by the looks at nodes that it may take.
#pragma once

#include "sched/gang.h"
#include "sched/stock.h"

enum { SEARCH_LOOKS_MAX = 1 << 18, SEARCH_PODS_MAX = 256, WAYS_CLASSES_MAX = 8, WAYS_MAX = 64 };

struct search {
	struct sched *sched;
	struct gang *gang;
	struct pod **pods; // that wait, hardest first, equal shapes together
	uint32_t *slots;   // where they were put last
	size_t count, need, most, placed, best;
	bool has_groups, is_long, is_limited;
	struct str domain_key, domain_value;
	uint64_t looks;
};

// Ways to give a pod devices of its node that are not alike to the gang.
struct ways {
	uint64_t classes[WAYS_CLASSES_MAX]; // free devices, alike within one
	size_t class_count, tried;
	int64_t takes[WAYS_CLASSES_MAX];
	bool is_over;
};
void ways_begin(const struct search *s, struct pod *pod, struct ways *ret);
bool ways_next(struct ways *ways, struct pod *pod); // gives it others; false: no way is left
