// SPDX-License-Identifier: Apache-2.0
#include "feed/feed_budget.h"

#include "feed/spec_parts.h"

// One whose selector cannot be understood guards all pods of its namespace, and lets none go.
bool feed_budget(struct arena *arena, const struct kobj_budget *budget,
		 struct sched_budget *ret_budget)
{
	struct sched_refusal refusal;
	struct sched_spec spec = { .refusals = &refusal };
	struct build build = { .arena = arena, .spec = &spec, .refusal_cap = 1 };
	struct sched_budget in = {
		.key = str_of(arena_printf(arena, STR_FMT "/" STR_FMT,
					   STR_ARG(budget->meta.namespace_),
					   STR_ARG(budget->meta.name))),
		.namespace_ = budget->meta.namespace_,
		.selector = build_label_selector(&build, budget->selector),
		.allowed = max_i64(budget->allowed, 0),
	};
	if (build.failed || in.key.data == NULL)
		return false;
	if (spec.refusal_count > 0) {
		in.selector = (struct sched_selector){ .count = 0 };
		in.allowed = 0;
	}
	*ret_budget = in;
	return true;
}
