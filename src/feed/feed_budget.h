// SPDX-License-Identifier: Apache-2.0
// PodDisruptionBudgets into the scheduling core. Pure, as feed.h: results lie in the caller's arena
// and borrow from the decoded object.
#pragma once

#include "k8s/kobj_budget.h"
#include "sched/preempt.h"

#define FEED_BUDGETS_PATH "/apis/policy/v1/poddisruptionbudgets"

// False only at the arena's limit.
MUST_USE bool feed_budget(struct arena *arena, const struct kobj_budget *budget,
			  struct sched_budget *ret_budget);
