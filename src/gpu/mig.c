// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig.h"

#include <inttypes.h>
#include <stdio.h>

enum { EIGHTHS = 8, GIB_SHIFT = 30 };

// What NVML's number of a profile says beside its width.
static const char *suffix_of(uint32_t nvml_profile)
{
	switch (nvml_profile) {
	case 7:
	case 8: return "+me";
	case 10:
	case 11:
	case 12:
	case 17: return "+gfx";
	case 13:
	case 14: return "-me";
	case 15:
	case 16: return "+me.all";
	default: return "";
	}
}

void mig_profile_name(uint32_t slices, uint32_t nvml_profile, uint64_t memory_mib,
		      uint64_t total_bytes, char out[GPU_PROFILE_BYTES])
{
	uint64_t total_mib = total_bytes >> 20;
	uint64_t total_gib = (total_bytes + (UINT64_C(1) << GIB_SHIFT) - 1) >> GIB_SHIFT;
	// In eighths of the memory, rounded up; then of whole GiB, rounded to the nearest.
	uint64_t eighths = total_mib == 0 ? 0 : (EIGHTHS * memory_mib + total_mib - 1) / total_mib;
	uint64_t gib = (2 * eighths * total_gib + EIGHTHS) / (2 * EIGHTHS);
	(void)snprintf(out, GPU_PROFILE_BYTES, "%" PRIu32 "g.%" PRIu64 "gb%s", slices % 100,
		       gib % 100000, suffix_of(nvml_profile));
}

static size_t skip(struct str text, size_t at, const char *of)
{
	while (at < text.len && strchr(of, text.data[at]) != NULL && text.data[at] != '\0')
		at++;
	return at;
}

uint32_t mig_profile_slices(struct str name)
{
	static const char DIGITS[] = "0123456789", LETTERS[] = "abcdefghijklmnopqrstuvwxyz.";
	if (name.len >= GPU_PROFILE_BYTES || name.len < 6 || name.data[0] < '1' ||
	    name.data[0] > '7' || !str_starts(str_slice(name, 1, name.len), STR("g.")))
		return 0;
	size_t unit = skip(name, 3, DIGITS);
	struct str rest = str_slice(name, unit, name.len);
	if (unit == 3 || !str_starts(rest, STR("gb")))
		return 0;
	bool is_plain = rest.len == 2, is_less = str_eq_c(rest, "gb-me");
	bool is_more = rest.len > 3 && rest.data[2] == '+' && skip(rest, 3, LETTERS) == rest.len;
	return is_plain || is_less || is_more ? (uint32_t)(name.data[0] - '0') : 0;
}

int64_t mig_profile_milli(struct str name)
{
	enum { WHOLE_MILLI = 1000, SLICES = 7 };
	return (int64_t)mig_profile_slices(name) * WHOLE_MILLI / SLICES;
}

void mig_resource_name(const char *prefix, struct str profile, char *out, size_t out_bytes)
{
	(void)snprintf(out, out_bytes, "%smig-" STR_FMT, prefix, STR_ARG(profile));
	for (char *c = out; *c != '\0'; c++)
		*c = *c == '+' ? '.' : *c;
}

const struct mig_profile *mig_profile_find(const struct mig_state *mig, struct str name)
{
	ASSERT(mig->profile_count <= MIG_PROFILES_MAX);
	for (uint32_t i = 0; i < mig->profile_count; i++) {
		if (str_eq_c(name, mig->profiles[i].name))
			return &mig->profiles[i];
	}
	return NULL;
}

const struct mig_instance *mig_instance_find(const struct mig_state *mig, struct str uuid)
{
	ASSERT(mig->instance_count <= MIG_INSTANCES_MAX);
	for (uint32_t i = 0; i < mig->instance_count; i++) {
		if (uuid.len > 0 && str_eq_c(uuid, mig->instances[i].uuid))
			return &mig->instances[i];
	}
	return NULL;
}

bool mig_is_same(const struct mig_state *a, const struct mig_state *b)
{
	if (a->is_enabled != b->is_enabled || a->is_pending != b->is_pending ||
	    a->profile_count != b->profile_count || a->instance_count != b->instance_count)
		return false;
	for (uint32_t i = 0; i < a->instance_count; i++) {
		const struct mig_instance *x = &a->instances[i], *y = &b->instances[i];
		if (strcmp(x->uuid, y->uuid) != 0 || x->gi != y->gi || x->ci != y->ci ||
		    x->profile_id != y->profile_id || x->start != y->start)
			return false;
	}
	return true;
}

static bool is_text(const char *text, size_t text_bytes)
{
	size_t len = strnlen(text, text_bytes);
	return len < text_bytes && str_is_utf8((struct str){ text, len });
}

static bool is_span(uint32_t start, uint32_t size)
{
	return size >= 1 && size <= MIG_SLICES_MAX && start <= MIG_SLICES_MAX - size;
}

static bool check_profile(const struct mig_profile *profile)
{
	uint32_t starts = profile->starts;
	if (!is_text(profile->name, sizeof profile->name) || profile->slices == 0 ||
	    profile->slices > profile->size || profile->count_max > MIG_INSTANCES_MAX ||
	    starts >> MIG_SLICES_MAX != 0)
		return false;
	return starts == 0 ? is_span(0, profile->size)
			   : is_span(31 - (uint32_t)__builtin_clz(starts), profile->size);
}

bool mig_state_check(const struct mig_state *mig)
{
	if (mig->is_enabled > 1 || mig->is_pending > 1 || mig->has_places > 1 ||
	    mig->slices > MIG_SLICES_MAX || mig->profile_count > MIG_PROFILES_MAX ||
	    mig->instance_count > MIG_INSTANCES_MAX)
		return false;
	for (uint32_t i = 0; i < mig->profile_count; i++) {
		if (!check_profile(&mig->profiles[i]))
			return false;
	}
	for (uint32_t i = 0; i < mig->instance_count; i++) {
		const struct mig_instance *instance = &mig->instances[i];
		if (!is_text(instance->uuid, sizeof instance->uuid) ||
		    !is_text(instance->profile, sizeof instance->profile) ||
		    (instance->uuid[0] != '\0' && !gpu_is_uuid(str_of(instance->uuid))) ||
		    !is_span(instance->start, instance->size) || instance->slices == 0 ||
		    instance->has_use > 1 || instance->use_milli > 1000 ||
		    instance->slices > instance->size)
			return false;
	}
	return true;
}
