// SPDX-License-Identifier: Apache-2.0
#include "gpu/share.h"

static const char *const resources[SHARE_KINDS] = { SHARE_MILLI_RESOURCE, SHARE_MEMORY_RESOURCE };

const char *share_resource(share_kind kind)
{
	ASSERT((int)kind < SHARE_KINDS);
	return resources[kind];
}

bool share_kind_of(struct str resource, share_kind *ret_kind)
{
	for (int i = 0; i < SHARE_KINDS; i++) {
		if (!str_eq_c(resource, resources[i]))
			continue;
		*ret_kind = (share_kind)i;
		return true;
	}
	return false;
}

struct share share_ask(share_kind kind, int64_t units)
{
	if (kind == SHARE_BY_MILLI)
		return (struct share){ .milli = units };
	return (struct share){ .memory_mib = units * SHARE_UNIT_MIB };
}

int64_t share_units(share_kind kind, int64_t gpu_memory_mib)
{
	return kind == SHARE_BY_MILLI ? SHARE_WHOLE_MILLI : gpu_memory_mib / SHARE_UNIT_MIB;
}

struct share share_of(const struct share *ask, int64_t gpu_memory_mib)
{
	struct share part = *ask;
	if (part.memory_mib == 0)
		part.memory_mib = gpu_memory_mib * ask->milli / SHARE_WHOLE_MILLI;
	if (part.milli == 0 && gpu_memory_mib > 0)
		part.milli = max_i64(1, ask->memory_mib * SHARE_WHOLE_MILLI / gpu_memory_mib);
	return part;
}

struct share share_whole(int64_t gpu_memory_mib)
{
	return (struct share){ SHARE_WHOLE_MILLI, gpu_memory_mib };
}

bool share_fits(const struct share *need, const struct share *left)
{
	return need->milli <= left->milli && need->memory_mib <= left->memory_mib;
}

void share_add(struct share *sum, const struct share *part)
{
	sum->milli += part->milli;
	sum->memory_mib += part->memory_mib;
}

void share_sub(struct share *sum, const struct share *part)
{
	sum->milli -= part->milli;
	sum->memory_mib -= part->memory_mib;
}

int64_t share_dominant_milli(const struct share *part, int64_t gpu_memory_mib)
{
	if (gpu_memory_mib <= 0)
		return part->milli;
	return max_i64(part->milli, part->memory_mib * SHARE_WHOLE_MILLI / gpu_memory_mib);
}
