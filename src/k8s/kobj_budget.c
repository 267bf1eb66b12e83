// SPDX-License-Identifier: Apache-2.0
#include "k8s/kobj_budget.h"

#include "k8s/kobj_tables.h"

static const struct kobj_field SPEC_ROWS[] = {
	KOBJ_SUB("selector", 2, KOBJ_OBJECT, struct kobj_budget, selector, &KOBJ_LABEL_SELECTOR),
};
static const struct kobj_table SPEC =
	KOBJ_TABLE_OF("PodDisruptionBudgetSpec", struct kobj_budget, SPEC_ROWS, true);

static const struct kobj_field STATUS_ROWS[] = {
	KOBJ_ROW("disruptionsAllowed", 3, KOBJ_INT, struct kobj_budget, allowed),
};
static const struct kobj_table STATUS =
	KOBJ_TABLE_OF("PodDisruptionBudgetStatus", struct kobj_budget, STATUS_ROWS, true);

static const struct kobj_field BUDGET_ROWS[] = {
	KOBJ_SUB("metadata", 1, KOBJ_PART, struct kobj_budget, meta, &KOBJ_META),
	{ "spec", 2, KOBJ_PART, 0, &SPEC },
	{ "status", 3, KOBJ_PART, 0, &STATUS },
};
const struct kobj_table KOBJ_BUDGET =
	KOBJ_TABLE_OF("PodDisruptionBudget", struct kobj_budget, BUDGET_ROWS, true);
