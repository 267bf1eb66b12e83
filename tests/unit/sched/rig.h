// SPDX-License-Identifier: Apache-2.0
// The scheduling core fed with YAML, for tests: objects are nodes, GPUNodes, namespaces and pods
// as people write them. Decisions come back as one line of text each.
#pragma once

#include "feed/feed_group.h"
#include "feed/feed_storage.h"

struct rig {
	struct sched *sched;
	struct sched_decision decision; // the last one; what it lends may be gone
	struct arena *arena;            // of texts; lives as long as the rig
	int64_t now_ms;
	char line[1024];
};

void rig_init(struct rig *rig);
void rig_done(struct rig *rig);
// Adds or changes all objects of the text, in order. Ends the test program on bad YAML.
void rig_put(struct rig *rig, const char *yaml);
// The same of a text shorter than 4096 bytes.
void rig_putf(struct rig *rig, const char *fmt, ...) PRINTF_LIKE(2, 3);
void rig_put_object(struct rig *rig, const json_t *value); // lives as long as the rig
// What the core is told about a pod; in the rig's arena.
void rig_read_pod(struct rig *rig, const json_t *value, struct sched_pod_in *ret_in);
void rig_remove_pod(struct rig *rig, const char *uid);
// Next decision: "bind POD NODE [0,1]", "wait POD Code:nodes need/have ..." or "-".
const char *rig_next(struct rig *rig);
