// SPDX-License-Identifier: Apache-2.0
// Conditions of a status, as the Kubernetes API conventions want them: an array of objects, one
// of a type. Pure, and for reading alone: who writes a status makes its conditions anew.
#pragma once

#include "base/json.h"

// Borrowed; NULL when there is none of that type.
json_t *k8s_condition_find(const json_t *conditions, const char *type);
