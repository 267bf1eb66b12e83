// SPDX-License-Identifier: Apache-2.0
// PodDisruptionBudgets. The API server counts and decides; what is kept here avoids asking for
// what it would refuse, and counts down what was decided until it tells the next number.
#include "sched/victims.h"

#include <stdlib.h>

enum { BUDGET_ARENA_MAX_BYTES = 2 * 1024 * 1024 };

static struct str copy_text(struct arena *arena, struct str text)
{
	struct str copy = arena_dup(arena, text);
	ASSERT(copy.data != NULL); // the feed bounds what it lets through
	return copy;
}

static void free_budget(struct budget *budget)
{
	arena_free(budget->arena);
	free(budget);
}

static bool requirements_equal(const struct sched_requirement *a, const struct sched_requirement *b)
{
	if (a->op != b->op || a->value_count != b->value_count || !str_eq(a->key, b->key))
		return false;
	for (size_t i = 0; i < a->value_count; i++) {
		if (!str_eq(a->values[i], b->values[i]))
			return false;
	}
	return true;
}

static bool selectors_equal(const struct sched_selector *a, const struct sched_selector *b)
{
	if (a->count != b->count || a->is_nothing != b->is_nothing)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		if (!requirements_equal(&a->items[i], &b->items[i]))
			return false;
	}
	return true;
}

// Those of one namespace hang together.
static void hang_in(struct preempt *preempt, struct budget *budget)
{
	budget->next = map_find(preempt->budget_spaces, budget->in.namespace_);
	(void)map_set(preempt->budget_spaces, budget->in.namespace_, budget);
}

static void take_out(struct preempt *preempt, const struct budget *budget)
{
	struct budget *first = map_find(preempt->budget_spaces, budget->in.namespace_);
	if (first == budget && budget->next == NULL) {
		(void)map_remove(preempt->budget_spaces, budget->in.namespace_);
	} else if (first == budget) {
		(void)map_set(preempt->budget_spaces, budget->in.namespace_, budget->next);
	} else {
		while (first->next != budget)
			first = first->next;
		first->next = budget->next;
	}
}

void sched_budget_set(struct sched *sched, const struct sched_budget *in)
{
	struct preempt *preempt = sched->preempt;
	struct budget *old = map_find(preempt->budgets, in->key);
	int64_t left = max_i64(in->allowed, 0);
	ASSERT(in->key.len > 0);
	bool is_same = old != NULL && str_eq(old->in.namespace_, in->namespace_) &&
		       selectors_equal(&old->in.selector, &in->selector);
	if (is_same && old->in.allowed == in->allowed && old->left == left)
		return;
	preempt->gen++;
	if (is_same) {
		old->in.allowed = in->allowed;
		old->left = left;
		return;
	}
	sched_budget_remove(sched, in->key);
	struct budget *budget = core_alloc(1, sizeof *budget);
	budget->arena = arena_new(BUDGET_ARENA_MAX_BYTES);
	ASSERT(budget->arena != NULL);
	budget->in = *in;
	budget->in.key = copy_text(budget->arena, in->key);
	budget->in.namespace_ = copy_text(budget->arena, in->namespace_);
	shape_copy_selector(budget->arena, &budget->in.selector);
	budget->left = left;
	hang_in(preempt, budget);
	(void)map_set(preempt->budgets, in->key, budget);
}

void sched_budget_remove(struct sched *sched, struct str key)
{
	struct budget *budget = map_remove(sched->preempt->budgets, key);
	if (budget == NULL)
		return;
	take_out(sched->preempt, budget);
	free_budget(budget);
	sched->preempt->gen++;
}

void budgets_free(struct preempt *preempt)
{
	struct str key;
	void *budget;
	for (size_t i = 0; map_next(preempt->budgets, &i, &key, &budget);)
		free_budget(budget);
	map_free(preempt->budgets);
	map_free(preempt->budget_spaces);
}

struct budget *budget_find(const struct sched *sched, const struct pod *pod, size_t *ret_count)
{
	struct budget *found = NULL;
	struct budget *at = map_find(sched->preempt->budget_spaces, pod->key.namespace_);
	size_t count = 0;
	for (; at != NULL; at = at->next) {
		if (!sched_selector_matches(&at->in.selector, &pod->labels))
			continue;
		found = at;
		count++;
	}
	*ret_count = count;
	return found;
}
