// SPDX-License-Identifier: Apache-2.0
// Where a pod is, in people's terms: in which pool (the GPU model of its node), at which place of
// its queue. Borrowed until the next call of sched.h; nothing fails.
#pragma once

#include "sched/sched.h"

struct node;

// "none": the pod asks for no GPUs; "unknown": it is on no node, or nobody says the node's model.
struct str sched_pod_pool(const struct sched *sched, struct str uid);
struct str pool_of_node(const struct node *node); // its model; empty: nobody says it
// 1 is the head of its queue; 0: it does not wait.
size_t sched_pod_position(const struct sched *sched, struct str namespace_, struct str name);
