// SPDX-License-Identifier: Apache-2.0
#include "k8s/condition.h"

#include "base/timefmt.h"

json_t *k8s_condition_find(const json_t *conditions, const char *type)
{
	for (size_t i = 0; i < json_array_size(conditions); i++) {
		json_t *item = json_array_get(conditions, i);
		if (strcmp(json_cstr(item, "type"), type) == 0)
			return item;
	}
	return NULL;
}

bool k8s_condition_is_true(const json_t *conditions, const char *type)
{
	const json_t *found = k8s_condition_find(conditions, type);
	return found != NULL && strcmp(json_cstr(found, "status"), "True") == 0;
}

// True when the member changed.
static bool set_text(json_t *object, const char *key, const char *text)
{
	const json_t *old = json_object_get(object, key);
	if (json_is_string(old) && strcmp(json_string_value(old), text) == 0)
		return false;
	int rc = json_object_set_new(object, key, json_string(text));
	ASSERT(rc == 0);
	return true;
}

bool k8s_condition_set(json_t *conditions, const struct k8s_condition *condition, int64_t now_s)
{
	ASSERT(json_is_array(conditions) && condition->reason[0] != '\0');
	json_t *item = k8s_condition_find(conditions, condition->type);
	if (item == NULL) {
		item = json_object();
		int rc = json_array_append_new(conditions, item);
		ASSERT(rc == 0);
	}
	char now[TIME_TEXT_BYTES];
	bool has_changed = set_text(item, "type", condition->type);
	if (set_text(item, "status", condition->status)) {
		has_changed = true;
		(void)set_text(item, "lastTransitionTime", time_format(now_s, now));
	}
	has_changed |= set_text(item, "reason", condition->reason);
	has_changed |= set_text(item, "message", condition->message);
	if (condition->observed_generation != 0 &&
	    json_int(item, "observedGeneration", 0) != condition->observed_generation) {
		int rc = json_object_set_new(item, "observedGeneration",
					     json_integer(condition->observed_generation));
		ASSERT(rc == 0);
		has_changed = true;
	}
	return has_changed;
}
