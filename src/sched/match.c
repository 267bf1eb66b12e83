// SPDX-License-Identifier: Apache-2.0
#include "sched/spec.h"

struct str sched_labels_get(const struct sched_labels *labels, struct str key)
{
	size_t low = 0, high = labels->count;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = str_cmp(labels->items[mid].key, key);
		if (order == 0) {
			struct str value = labels->items[mid].value;
			return value.data == NULL ? STR("") : value;
		}
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return (struct str){ NULL, 0 };
}

static bool is_one_of(const struct sched_requirement *requirement, struct str value)
{
	for (size_t i = 0; i < requirement->value_count; i++) {
		if (str_eq(requirement->values[i], value))
			return true;
	}
	return false;
}

static bool compares(const struct sched_requirement *requirement, struct str value)
{
	int64_t have, bound;
	if (requirement->value_count != 1 || !str_to_i64(value, &have) ||
	    !str_to_i64(requirement->values[0], &bound))
		return false;
	return requirement->op == SCHED_GREATER ? have > bound : have < bound;
}

// value.data is NULL when the label is absent.
bool sched_requirement_matches(const struct sched_requirement *requirement, struct str value)
{
	bool is_there = value.data != NULL;
	switch (requirement->op) {
	case SCHED_IN: return is_there && is_one_of(requirement, value);
	case SCHED_NOT_IN: return !is_there || !is_one_of(requirement, value);
	case SCHED_EXISTS: return is_there;
	case SCHED_NOT_EXISTS: return !is_there;
	case SCHED_GREATER:
	case SCHED_LESS: return is_there && compares(requirement, value);
	}
	ASSERT(false && "an operator is missing");
	return false;
}

bool sched_selector_matches(const struct sched_selector *selector,
			    const struct sched_labels *labels)
{
	if (selector->is_nothing)
		return false;
	for (size_t i = 0; i < selector->count; i++) {
		const struct sched_requirement *item = &selector->items[i];
		if (!sched_requirement_matches(item, sched_labels_get(labels, item->key)))
			return false;
	}
	return true;
}

bool sched_tolerates(const struct sched_spec *spec, struct str key, struct str value,
		     struct str effect)
{
	for (size_t i = 0; i < spec->toleration_count; i++) {
		const struct sched_toleration *t = &spec->tolerations[i];
		if (t->effect.len > 0 && !str_eq(t->effect, effect))
			continue;
		if (t->key.len > 0 && !str_eq(t->key, key))
			continue;
		if (t->any_value || str_eq(t->value, value))
			return true;
	}
	return false;
}

bool sched_version_parse(struct str text, struct sched_version *ret_version)
{
	struct sched_version version = { .is_set = true };
	struct str part;
	size_t count = 0;
	while (str_split_next(&text, '.', &part)) {
		int64_t number;
		if (count == ARRAY_COUNT(version.parts) || !str_to_i64(part, &number) ||
		    number < 0 || number >= SCHED_PARTS_MAX)
			return false;
		version.parts[count++] = number;
	}
	if (count == 0)
		return false;
	*ret_version = version;
	return true;
}

int sched_version_cmp(const struct sched_version *a, const struct sched_version *b)
{
	for (size_t i = 0; i < ARRAY_COUNT(a->parts); i++) {
		if (a->parts[i] != b->parts[i])
			return a->parts[i] < b->parts[i] ? -1 : 1;
	}
	return 0;
}
