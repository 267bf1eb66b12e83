// SPDX-License-Identifier: Apache-2.0
#include "feed/feed_slices.h"

#include "gpu/mig.h"

enum { COUNT_MAX = 256, RESOURCE_BYTES = 64 };

// False: it reserves nothing.
static bool read_slice(const json_t *item, struct sched_slice *ret, char resource[RESOURCE_BYTES])
{
	struct str profile = json_text(item, "profile");
	struct sched_slice slice = { .tenant = json_text(item, "tenant"),
				     .node = json_text(item, "node"),
				     .count = json_int(item, "count", 1) };
	if (slice.tenant.len == 0 || mig_profile_slices(profile) == 0 || slice.count < 1 ||
	    slice.count > COUNT_MAX)
		return false;
	mig_resource_name("nvidia.com/", profile, resource, RESOURCE_BYTES);
	*ret = slice;
	return true;
}

bool feed_slices(struct arena *arena, const json_t *policy, struct sched_slice **ret_slices,
		 size_t *ret_count)
{
	const json_t *list = json_at(policy, "spec.reservations");
	struct sched_slice *slices =
		ARENA_ARRAY(arena, struct sched_slice, json_array_size(list) + 1);
	size_t i, count = 0;
	json_t *item;
	if (slices == NULL)
		return false;
	json_array_foreach(list, i, item)
	{
		char resource[RESOURCE_BYTES];
		if (!read_slice(item, &slices[count], resource))
			continue;
		slices[count].resource = arena_dup(arena, str_of(resource));
		if (slices[count++].resource.data == NULL)
			return false;
	}
	*ret_slices = slices;
	*ret_count = count;
	return true;
}
