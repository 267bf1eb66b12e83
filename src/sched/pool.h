// SPDX-License-Identifier: Apache-2.0
// Pools as people count them: the GPU model of the node that a pod is on. Borrowed until the next
// call of sched.h; nothing fails.
#pragma once

#include "sched/sched.h"

// "none": the pod asks for no GPUs; "unknown": it is on no node, or nobody says the node's model.
struct str sched_pod_pool(const struct sched *sched, struct str uid);
