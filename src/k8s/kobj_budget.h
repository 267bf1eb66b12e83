// SPDX-License-Identifier: Apache-2.0
// Plain structure of a PodDisruptionBudget (policy/v1), filled by the table in kobj_budget.c;
// otherwise as kobj_types.h.
#pragma once

#include "k8s/kobj_types.h"

struct kobj_budget {
	struct kobj_meta meta;
	struct kobj_label_selector *selector; // NULL: of no pods
	int64_t allowed;                      // status.disruptionsAllowed
};

extern const struct kobj_table KOBJ_BUDGET;
