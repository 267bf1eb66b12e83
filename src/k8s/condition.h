// SPDX-License-Identifier: Apache-2.0
// Conditions of a status (type, status, reason, message, lastTransitionTime,
// observedGeneration) as the Kubernetes API conventions want them: one of a type, the transition
// time moves only when the status changes. Works on JSON arrays; pure.
#pragma once

#include "base/json.h"

struct k8s_condition {
	const char *type;            // "Ready"
	const char *status;          // "True", "False", "Unknown"
	const char *reason;          // CamelCase, not empty
	const char *message;         // for people
	int64_t observed_generation; // 0: left out
};

// Sets it in conditions (a JSON array). True when anything changed, so that an unchanged status
// need not be written.
bool k8s_condition_set(json_t *conditions, const struct k8s_condition *condition, int64_t now_s);
// Borrowed; NULL when there is none of that type.
json_t *k8s_condition_find(const json_t *conditions, const char *type);
bool k8s_condition_is_true(const json_t *conditions, const char *type);
