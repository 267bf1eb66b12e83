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

static void *copy_array(struct arena *arena, const void *items, size_t count, size_t size_bytes)
{
	void *copy = arena_alloc_array(arena, count, size_bytes);
	ASSERT(copy != NULL);
	if (count > 0)
		memcpy(copy, items, count * size_bytes);
	return copy;
}

static void copy_selector(struct arena *arena, struct sched_selector *selector)
{
	selector->items =
		copy_array(arena, selector->items, selector->count, sizeof *selector->items);
	for (size_t i = 0; i < selector->count; i++) {
		struct sched_requirement *item = &selector->items[i];
		item->key = copy_text(arena, item->key);
		item->values =
			copy_array(arena, item->values, item->value_count, sizeof *item->values);
		for (size_t k = 0; k < item->value_count; k++)
			item->values[k] = copy_text(arena, item->values[k]);
	}
}

static void free_budget(struct budget *budget)
{
	if (budget == NULL)
		return;
	arena_free(budget->arena);
	free(budget);
}

void sched_budget_set(struct sched *sched, const struct sched_budget *in)
{
	ASSERT(in->key.len > 0);
	struct budget *budget = core_alloc(1, sizeof *budget);
	budget->arena = arena_new(BUDGET_ARENA_MAX_BYTES);
	ASSERT(budget->arena != NULL);
	budget->in = *in;
	budget->in.key = copy_text(budget->arena, in->key);
	budget->in.namespace_ = copy_text(budget->arena, in->namespace_);
	copy_selector(budget->arena, &budget->in.selector);
	budget->left = max_i64(in->allowed, 0);
	free_budget(map_set(sched->preempt->budgets, in->key, budget));
	sched->preempt->gen++;
}

void sched_budget_remove(struct sched *sched, struct str key)
{
	free_budget(map_remove(sched->preempt->budgets, key));
	sched->preempt->gen++;
}

void budgets_free(struct map *budgets)
{
	struct str key;
	void *budget;
	for (size_t i = 0; map_next(budgets, &i, &key, &budget);)
		free_budget(budget);
	map_free(budgets);
}

struct budget *budget_find(const struct sched *sched, const struct pod *pod, size_t *ret_count)
{
	struct budget *found = NULL;
	struct str key;
	void *value;
	size_t count = 0;
	for (size_t i = 0; map_next(sched->preempt->budgets, &i, &key, &value);) {
		struct budget *budget = value;
		if (!str_eq(budget->in.namespace_, pod->key.namespace_) ||
		    !sched_selector_matches(&budget->in.selector, &pod->labels))
			continue;
		found = budget;
		count++;
	}
	*ret_count = count;
	return found;
}
