// SPDX-License-Identifier: Apache-2.0
#include "k8s/condition.h"

json_t *k8s_condition_find(const json_t *conditions, const char *type)
{
	for (size_t i = 0; i < json_array_size(conditions); i++) {
		json_t *item = json_array_get(conditions, i);
		if (strcmp(json_cstr(item, "type"), type) == 0)
			return item;
	}
	return NULL;
}
