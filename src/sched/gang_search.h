// SPDX-License-Identifier: Apache-2.0
// The search for places of a gang, shared by the files gang_*.c alone. What it allocates is freed
// when gang_place returns. A search is bounded by the looks at nodes that it may take.
#pragma once

#include "sched/gang.h"
#include "sched/stock.h"

enum { SEARCH_LOOKS_MAX = 1 << 18, SEARCH_PODS_MAX = 256, WAYS_CLASSES_MAX = 8, WAYS_MAX = 64 };
enum { GREEDY_LOOKS_MAX = 1 << 26 };

struct subgroup { // of the members
	struct str name;
	int64_t least, there;
};

struct search {
	struct sched *sched;
	struct gang *gang;
	struct pod **pods; // that wait, hardest first, equal shapes together
	uint32_t *slots;   // where they were put last
	size_t count, need, most, placed, best;
	bool is_long, is_trial, is_limited;
	struct str domain_key, domain_value;
	struct subgroup *groups; // by member->group_i
	size_t group_count;
	uint64_t looks, deep_looks; // in all; of them by the search of all ways, over all domains
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
