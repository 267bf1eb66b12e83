// SPDX-License-Identifier: Apache-2.0
#include "billing/roster.h"

#include <stdlib.h>

static int by_text(const void *left, const void *right)
{
	return str_cmp(*(const struct str *)left, *(const struct str *)right);
}

static int by_id(const void *left, const void *right)
{
	return str_cmp(((const struct roster_gpu *)left)->id,
		       ((const struct roster_gpu *)right)->id);
}

size_t roster_find(const struct roster *roster, struct str name)
{
	const struct str *found =
		bsearch(&name, roster->parties, roster->party_count, sizeof name, by_text);
	return found == NULL ? SIZE_MAX : (size_t)(found - roster->parties);
}

static size_t named_in_pools(const struct pools *pools, struct str *names)
{
	size_t count = 0;
	for (size_t i = 0; i < pools->count; i++) {
		for (size_t k = 0; k < pools->items[i].weight_count; k++, count++)
			if (names != NULL)
				names[count] = pools->items[i].weights[k].tenant;
	}
	return count;
}

static err_status list_parties(struct arena *arena, const struct rate_input *input,
			       struct roster *roster, struct err *err)
{
	const struct names *tenants = usage_tenants(input->usage);
	size_t tenant_count = names_count(tenants);
	size_t count = tenant_count + 1 + named_in_pools(input->pools, NULL);
	struct str *all = ARENA_ARRAY(arena, struct str, count);
	roster->tenant_order = ARENA_ARRAY(arena, uint32_t, max_size(tenant_count, 1));
	if (all == NULL || roster->tenant_order == NULL)
		return err_set(err, ERR_LIMIT, "no memory for %zu tenants", count);
	for (size_t i = 0; i < tenant_count; i++)
		all[i] = names_text(tenants, (uint32_t)i);
	all[tenant_count] = ROSTER_UNALLOCATED;
	(void)named_in_pools(input->pools, all + tenant_count + 1);
	qsort(all, count, sizeof *all, by_text);
	for (size_t i = 0; i < count; i++)
		if (i == 0 || !str_eq(all[i], all[roster->party_count - 1]))
			all[roster->party_count++] = all[i];
	roster->parties = all;
	for (size_t i = 0; i < tenant_count; i++)
		roster->tenant_order[i] =
			(uint32_t)roster_find(roster, names_text(tenants, (uint32_t)i));
	roster->unallocated = (uint32_t)roster_find(roster, ROSTER_UNALLOCATED);
	return ERR_OK;
}

// GPUs of assets and GPUs of usage are both lists without repetition; one in both is joined.
static void join_gpus(struct roster *roster)
{
	size_t kept = 0;
	for (size_t i = 0; i < roster->gpu_count; i++) {
		struct roster_gpu *gpu = &roster->gpus[i];
		if (kept == 0 || !str_eq(roster->gpus[kept - 1].id, gpu->id)) {
			roster->gpus[kept++] = *gpu;
			continue;
		}
		struct roster_gpu *other = &roster->gpus[kept - 1];
		if (gpu->asset != NULL) {
			other->asset = gpu->asset;
			other->asset_gpu_i = gpu->asset_gpu_i;
		} else {
			other->usage = gpu->usage;
		}
	}
	roster->gpu_count = kept;
}

static err_status list_gpus(struct arena *arena, const struct rate_input *input,
			    struct roster *roster, struct err *err)
{
	size_t used_count, count;
	const struct usage_gpu *used = usage_gpus(input->usage, &used_count);
	count = used_count;
	for (size_t i = 0; i < input->assets->count; i++)
		count += input->assets->items[i].gpu_count;
	roster->gpus = ARENA_ARRAY(arena, struct roster_gpu, max_size(count, 1));
	if (roster->gpus == NULL)
		return err_set(err, ERR_LIMIT, "no memory for %zu GPUs", count);
	for (size_t i = 0; i < used_count; i++)
		roster->gpus[roster->gpu_count++] =
			(struct roster_gpu){ .id = used[i].id, .usage = &used[i] };
	for (size_t i = 0; i < input->assets->count; i++) {
		const struct asset *asset = &input->assets->items[i];
		for (size_t k = 0; k < asset->gpu_count; k++)
			roster->gpus[roster->gpu_count++] = (struct roster_gpu){
				.id = asset->gpus[k].id, .asset = asset, .asset_gpu_i = k
			};
	}
	ASSERT(roster->gpu_count == count);
	qsort(roster->gpus, count, sizeof *roster->gpus, by_id);
	join_gpus(roster);
	return ERR_OK;
}

err_status roster_make(struct arena *arena, const struct rate_input *input,
		       struct roster *ret_roster, struct err *err)
{
	struct roster roster = { 0 };
	err_status status = list_parties(arena, input, &roster, err);
	if (status == ERR_OK)
		status = list_gpus(arena, input, &roster, err);
	if (status == ERR_OK)
		*ret_roster = roster;
	return status;
}
