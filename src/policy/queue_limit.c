// SPDX-License-Identifier: Apache-2.0
#include "policy/queue_limit.h"

#include "gpu/mig.h"
#include "gpu/model.h"
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

// How many of its pods the models' limits of one queue admit on GPUs that go by this name.
static int64_t most_pods(const json_t *queue, struct str name, int64_t parts_of_one)
{
	int64_t most = INT64_MAX;
	const json_t *entry;
	size_t i;
	json_array_foreach(json_object_get(queue, "byModel"), i, entry)
	{
		int64_t limit = json_int(entry, "limit", INT64_MAX);
		if (limit < INT64_MAX / GPU_PARTS && parts_of_one > 0 &&
		    gpu_model_matches(json_text(entry, "model"), name))
			most = min_i64(most, limit * GPU_PARTS / parts_of_one);
	}
	return most;
}

// Of a request that names models; another one may go where there is no limit.
static err_status check_models(struct str tenant, const struct request_spec *spec,
			       const json_t *queue, struct err *err)
{
	int64_t pods = 0, parts = parts_of_pod(spec);
	char asked[TEXT_BYTES], most[TEXT_BYTES];
	for (size_t i = 0; i < spec->model_count; i++) {
		int64_t of_model = most_pods(queue, spec->models[i], parts);
		pods = min_i64(pods, INT64_MAX - of_model) + of_model;
	}
	if (spec->model_count == 0 || pods >= request_pod_count(spec))
		return ERR_OK;
	put_gpus(request_pod_count(spec) * parts, asked);
	put_gpus(pods * parts, most);
	return err_set(err, ERR_LIMIT,
		       "%s GPUs of the models are asked for, tenant \"" STR_FMT
		       "\" may hold %s of them in such pods at once (queue.by_model); ask for at "
		       "most that, allow another model, or have the limit raised",
		       asked, STR_ARG(tenant), most);
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
		if (check_models(tenant, spec, queue, err) != ERR_OK)
			return ERR_LIMIT;
		tenant = json_text(queue, "parent");
		queue = tenant.len > 0 ? find(arg, tenant) : NULL;
	}
	return ERR_OK;
}
