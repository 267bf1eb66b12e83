// SPDX-License-Identifier: Apache-2.0
#include "daemons/server/mig_names.h"

#include "gpu/mig.h"

#include <stdio.h>

static bool learn(struct mig_names *names, struct str profile)
{
	ASSERT(names->count <= MIG_NAMES_MAX);
	if (mig_profile_slices(profile) == 0)
		return false;
	for (size_t i = 0; i < names->count; i++) {
		if (str_eq_c(profile, names->items[i]))
			return false;
	}
	if (names->count == MIG_NAMES_MAX)
		return false;
	(void)snprintf(names->items[names->count++], GPU_PROFILE_BYTES, STR_FMT, STR_ARG(profile));
	return true;
}

bool mig_names_learn(struct mig_names *names, const json_t *node)
{
	bool is_new = false;
	json_t *device, *item;
	size_t i, k;
	json_array_foreach(json_at(node, "status.devices"), i, device)
	{
		json_array_foreach(json_object_get(device, "migProfiles"), k, item)
		{
			struct str name = { json_string_value(item), json_string_length(item) };
			is_new = learn(names, name) || is_new;
		}
	}
	return is_new;
}
