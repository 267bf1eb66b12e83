// SPDX-License-Identifier: Apache-2.0
// Building a sched_spec from the parts of a pod; internal to this folder. Memory is the arena's;
// running out of it sets failed, and the caller gives up at the end.
#pragma once

#include "feed/feed.h"

enum {
	BUILD_ITEMS_MAX = 128,   // of one list that every decision walks
	BUILD_VALUES_MAX = 2048, // of all values to compare in one pod
	FEED_GANG_EXPIRY_MAX_S = 30 * 86400,
};

struct build {
	struct arena *arena;
	const struct kobj_pod *pod;
	struct sched_spec *spec;
	struct sched_gang_in gang; // without a name: it is of none
	size_t refusal_cap, value_count;
	bool failed;
};

void *build_alloc(struct build *build, size_t count, size_t size_bytes); // NULL sets failed
void build_refuse(struct build *build, sched_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);
// The count, or the maximum with a refusal: no tenant's pod may slow the decisions about others.
size_t build_limit(struct build *build, size_t count, const char *what);
// Counts values to compare; a pod with too many is refused. Returns how many are left to take.
size_t build_values(struct build *build, size_t count);
// Refuses a number outside of what Kubernetes allows; such a pod cannot come from its API.
void build_range(struct build *build, const char *field, int64_t value, int64_t least,
		 int64_t most);
struct sched_selector build_pairs(struct build *build, const struct kobj_pairs *pairs);
// where: path of the selector, for the reason.
struct sched_selector build_requirements(struct build *build, const kobj_requirements *items,
					 const char *where);
struct sched_selector build_label_selector(struct build *build,
					   const struct kobj_label_selector *source);
struct sched_node_term build_node_term(struct build *build, const struct kobj_node_term *term);
void build_amounts(struct build *build);
void build_affinity(struct build *build);
void build_spreads(struct build *build);
void build_volumes(struct build *build);
void build_device_claims(struct build *build); // feed_claim.c
void build_gpu(struct build *build);
void build_shares(struct build *build);        // after build_amounts
void build_gang(struct build *build);          // after build_gpu
bool build_gang_name_is_good(struct str text); // of an annotation, which may be anything
