// SPDX-License-Identifier: Apache-2.0
// Objects that say how large a gang is, as one table, so that the daemon and the simulator read
// the same kinds alike. None of them needs to be served: a gang's size may be said by its pods.
#pragma once

#include "feed/feed.h"
#include "k8s/kobj_group.h"

enum { FEED_GROUPS_COUNT = 5 };

union feed_group_object { // room for any of them
	struct kobj_pod_group pod_group;
	struct kobj_cosched_group cosched;
	struct kobj_job job;
};
struct feed_group {
	const char *kind, *api_version, *path;
	const struct kobj_table *table;
	// Key and texts are the arena's or borrowed. A gang without a name: the object is of none,
	// only its key is set. False only at the arena's limit.
	bool (*read)(struct arena *arena, const void *object, struct sched_gang_part *ret_part);
};

extern const struct feed_group FEED_GROUPS[FEED_GROUPS_COUNT];
const struct feed_group *feed_group_find(struct str api_version, struct str kind); // NULL: none
