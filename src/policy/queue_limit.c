// SPDX-License-Identifier: Apache-2.0
#include "policy/queue_limit.h"

#include "gpu/mig.h"
#include "gpu/share.h"

#include <inttypes.h>
#include <stdio.h>

enum { PARTS_PER_MILLI = 7, GPU_PARTS = SHARE_WHOLE_MILLI * PARTS_PER_MILLI, TEXT_BYTES = 40 };

static int64_t parts_of_pod(const struct request_spec *spec)
{
	const struct share ask = { .milli = spec->gpu_milli, .memory_mib = spec->gpu_memory_mib };
	if (spec->mig_profile.len > 0)
		return (int64_t)mig_profile_slices(spec->mig_profile) * SHARE_WHOLE_MILLI;
	if (spec->gpu_count > 0)
		return spec->gpu_count * GPU_PARTS;
	int64_t milli = share_dominant_milli(&ask, SHARE_REFERENCE_MIB);
	return min_i64(milli, SHARE_WHOLE_MILLI) * PARTS_PER_MILLI;
}

static void put_gpus(int64_t parts, char out[TEXT_BYTES])
{
	int64_t milli = (parts + PARTS_PER_MILLI - 1) / PARTS_PER_MILLI;
	if (milli % SHARE_WHOLE_MILLI == 0)
		(void)snprintf(out, TEXT_BYTES, "%" PRId64, milli / SHARE_WHOLE_MILLI);
	else
		(void)snprintf(out, TEXT_BYTES, "%" PRId64 ".%03d", milli / SHARE_WHOLE_MILLI,
			       (int)(milli % SHARE_WHOLE_MILLI));
}

static bool is_above(int64_t parts, const json_t *queue, const char *field, int64_t *ret_limit)
{
	*ret_limit = json_int(queue, field, INT64_MAX);
	return *ret_limit < INT64_MAX / GPU_PARTS && parts > *ret_limit * GPU_PARTS;
}

err_status queue_limit_check(struct str tenant, const struct request_spec *spec,
			     tenant_queue_find_fn *find, const void *arg, struct err *err)
{
	int64_t parts = request_pod_count(spec) * parts_of_pod(spec), limit;
	const json_t *queue = find(arg, tenant);
	char asked[TEXT_BYTES];
	put_gpus(parts, asked);
	if (is_above(parts, queue, "userLimit", &limit))
		return err_set(err, ERR_LIMIT,
			       "%s GPUs are asked for, one person of tenant \"" STR_FMT
			       "\" may hold %" PRId64
			       " at once (queue.user_limit); ask for at most that, or have it "
			       "raised",
			       asked, STR_ARG(tenant), limit);
	for (int depth = 0; queue != NULL && depth < TENANT_QUEUE_DEPTH_MAX; depth++) {
		if (is_above(parts, queue, "limit", &limit))
			return err_set(err, ERR_LIMIT,
				       "%s GPUs are asked for, tenant \"" STR_FMT
				       "\" may hold %" PRId64
				       " at once (queue.limit); ask for at most that, or have it "
				       "raised",
				       asked, STR_ARG(tenant), limit);
		tenant = json_text(queue, "parent");
		queue = tenant.len > 0 ? find(arg, tenant) : NULL;
	}
	return ERR_OK;
}
