// SPDX-License-Identifier: Apache-2.0
#include "policy/quota.h"

#include "gpu/mig.h"
#include "gpu/share.h"

#include <inttypes.h>
#include <stdlib.h>

static const char what_to_do[] = "; ask for at most that, or have the quota raised";

struct quota_amount quota_need_of(const struct request_spec *spec)
{
	int64_t pods = request_pod_count(spec);
	int64_t milli = spec->mig_profile.len > 0 ? mig_profile_milli(spec->mig_profile)
						  : spec->gpu_milli;
	return (struct quota_amount){ .gpus = pods * spec->gpu_count,
				      .gpu_milli = pods * milli,
				      .cpu_milli = pods * spec->cpu_milli,
				      .memory_bytes = pods * spec->memory_bytes,
				      .pods = pods };
}

// Rounded up: what is a byte too much reads as too much.
static int64_t mib_up(int64_t bytes) { return (bytes >> 20) + ((bytes & ((1 << 20) - 1)) != 0); }

err_status quota_check_alone(const struct tenant_quota *quota, const struct quota_amount *need,
			     struct err *err)
{
	if (quota_gpus(need) > quota->gpus)
		return err_set(err, ERR_LIMIT,
			       "%" PRId64 " GPUs are asked for, the tenant's quota is %" PRId64
			       "%s",
			       quota_gpus(need), quota->gpus, what_to_do);
	if (need->cpu_milli > quota->cpu_milli)
		return err_set(err, ERR_LIMIT,
			       "%" PRId64 ".%03d CPUs are asked for, the tenant's quota is %" PRId64
			       ".%03d%s",
			       need->cpu_milli / 1000, (int)(need->cpu_milli % 1000),
			       quota->cpu_milli / 1000, (int)(quota->cpu_milli % 1000), what_to_do);
	if (need->memory_bytes > quota->memory_bytes)
		return err_set(err, ERR_LIMIT,
			       "%" PRId64 " MiB of memory are asked for, the tenant's quota is "
			       "%" PRId64 " MiB%s",
			       mib_up(need->memory_bytes), quota->memory_bytes >> 20, what_to_do);
	if (need->pods > quota->pods)
		return err_set(err, ERR_LIMIT,
			       "%" PRId64 " pod%s asked for, the tenant's quota is %" PRId64 "%s",
			       need->pods, need->pods == 1 ? " is" : "s are", quota->pods,
			       what_to_do);
	return ERR_OK;
}

int64_t quota_gpus(const struct quota_amount *amount)
{
	return amount->gpus + (amount->gpu_milli + SHARE_WHOLE_MILLI - 1) / SHARE_WHOLE_MILLI;
}

static bool fits_one(int64_t limit, int64_t used, int64_t need)
{
	int64_t sum = 0;
	return !__builtin_add_overflow(used, need, &sum) && sum <= limit;
}

// Whole ones and shares together.
static bool fits_gpus(int64_t gpus, const struct quota_amount *used,
		      const struct quota_amount *need)
{
	int64_t milli, whole, limit;
	return !__builtin_add_overflow(used->gpus, need->gpus, &whole) &&
	       !__builtin_mul_overflow(whole, SHARE_WHOLE_MILLI, &milli) &&
	       !__builtin_add_overflow(milli, used->gpu_milli, &milli) &&
	       !__builtin_mul_overflow(gpus, SHARE_WHOLE_MILLI, &limit) &&
	       fits_one(limit, milli, need->gpu_milli);
}

bool quota_fits(const struct tenant_quota *quota, const struct quota_amount *used,
		const struct quota_amount *need)
{
	return fits_gpus(quota->gpus, used, need) &&
	       fits_one(quota->cpu_milli, used->cpu_milli, need->cpu_milli) &&
	       fits_one(quota->memory_bytes, used->memory_bytes, need->memory_bytes) &&
	       fits_one(quota->pods, used->pods, need->pods);
}

static int entry_order(const void *left, const void *right)
{
	const struct quota_entry *a = left, *b = right;
	if (a->holds != b->holds)
		return a->holds ? -1 : 1;
	if (a->class_ != b->class_)
		return a->class_ < b->class_ ? -1 : 1;
	if (a->created_s != b->created_s)
		return a->created_s < b->created_s ? -1 : 1;
	return str_cmp(a->name, b->name);
}

static void add(struct quota_amount *used, const struct quota_amount *need)
{
	used->gpus += need->gpus;
	used->gpu_milli += need->gpu_milli;
	used->cpu_milli += need->cpu_milli;
	used->memory_bytes += need->memory_bytes;
	used->pods += need->pods;
}

void quota_admit(const struct tenant_quota *quota, struct quota_entry *entries, size_t count,
		 struct quota_amount *ret_used)
{
	ASSERT(quota != NULL && (count == 0 || entries != NULL));
	if (count > 1)
		qsort(entries, count, sizeof *entries, entry_order);
	const struct quota_amount nothing = { 0 };
	struct quota_amount used = { 0 };
	int64_t position = 0;
	for (size_t i = 0; i < count; i++) {
		struct quota_entry *entry = &entries[i];
		entry->is_admitted = entry->holds ||
				     (position == 0 && quota_fits(quota, &used, &entry->need));
		entry->is_too_large = !entry->is_admitted &&
				      !quota_fits(quota, &nothing, &entry->need);
		entry->position = entry->is_admitted || entry->is_too_large ? 0 : ++position;
		if (entry->is_admitted)
			add(&used, &entry->need);
	}
	if (ret_used != NULL)
		*ret_used = used;
}
