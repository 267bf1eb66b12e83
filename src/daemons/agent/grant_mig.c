// SPDX-License-Identifier: Apache-2.0
// The kubelet's two questions about MIG devices. Preferred are those of the GPU that has the
// fewest left, so that other GPUs stay free for another layout; of shares the policy decides.
#include "daemons/agent/grant.h"

#include <inttypes.h>
#include <stdlib.h>

// One id with what it stands for.
struct item {
	struct str id;
	uint32_t slot, instance_i, share;
	bool is_must;
	uint32_t left_gpu, left_device; // so many ids are to be had of its GPU and its device
};

bool grant_is_mig(struct str id) { return str_starts(id, STR("MIG-")); }

static bool fill(const struct grant *grant, const struct dp_preferred *request, struct item *items)
{
	uint32_t gpus[GPU_MAX] = { 0 }, devices[GPU_MAX][MIG_INSTANCES_MAX] = { 0 };
	for (size_t i = 0; i < request->available.count; i++) {
		struct item *item = &items[i];
		struct str uuid = { 0 };
		*item = (struct item){ .id = request->available.items[i] };
		if (!offer_id_parse(item->id, &uuid, &item->share) ||
		    !monitor_find_mig(grant->monitor, uuid, &item->slot, &item->instance_i))
			return false;
		for (size_t j = 0; j < request->must.count; j++)
			item->is_must = item->is_must || str_eq(item->id, request->must.items[j]);
		gpus[item->slot]++;
		devices[item->slot][item->instance_i]++;
	}
	for (size_t i = 0; i < request->available.count; i++) {
		items[i].left_gpu = gpus[items[i].slot];
		items[i].left_device = devices[items[i].slot][items[i].instance_i];
	}
	return true;
}

static int compare(uint32_t a, uint32_t b) { return (a > b) - (a < b); }

static int by_packing(const void *left, const void *right)
{
	const struct item *a = left, *b = right;
	if (a->is_must != b->is_must)
		return a->is_must ? -1 : 1;
	if (a->left_gpu != b->left_gpu)
		return compare(a->left_gpu, b->left_gpu);
	if (a->slot != b->slot)
		return compare(a->slot, b->slot);
	if (a->left_device != b->left_device)
		return compare(a->left_device, b->left_device);
	if (a->instance_i != b->instance_i)
		return compare(a->instance_i, b->instance_i);
	return compare(a->share, b->share);
}

static int by_spread(const void *left, const void *right)
{
	const struct item *a = left, *b = right;
	if (a->is_must != b->is_must)
		return a->is_must ? -1 : 1;
	if (a->left_device != b->left_device)
		return compare(b->left_device, a->left_device);
	return by_packing(left, right);
}

// One after the other for spreading: what was taken counts at once.
static void take_spread(struct item *items, size_t count, size_t size, struct str *ret_ids)
{
	for (size_t taken = 0; taken < size; taken++) {
		qsort(items + taken, count - taken, sizeof items[0], by_spread);
		ret_ids[taken] = items[taken].id;
		for (size_t i = taken + 1; i < count; i++) {
			if (items[i].slot == items[taken].slot &&
			    items[i].instance_i == items[taken].instance_i)
				items[i].left_device--;
		}
	}
}

// Takes the ids of the devices of a plan, if that is what the question is for.
static bool take_planned(const struct dp_preferred *request, const char *const *uuids, size_t count,
			 struct str *ret_ids)
{
	size_t must = 0;
	if (count != (size_t)request->size)
		return false;
	for (size_t i = 0; i < count; i++) {
		size_t at = 0;
		while (at < request->available.count &&
		       !str_eq_c(request->available.items[at], uuids[i]))
			at++;
		if (at == request->available.count)
			return false;
		ret_ids[i] = request->available.items[at];
		for (size_t j = 0; j < request->must.count; j++)
			must += str_eq(ret_ids[i], request->must.items[j]) ? 1 : 0;
	}
	return must == request->must.count;
}

static bool find_planned(struct grant *grant, const char *resource,
			 const struct dp_preferred *request, struct str *ret_ids)
{
	for (size_t i = 0; grant->pods != NULL && i < pods_count(grant->pods); i++) {
		const struct pods_item *item = pods_at(grant->pods, i);
		if (item->plan == NULL || item->facts.is_terminal)
			continue;
		for (size_t j = 0; j < item->facts.container_count; j++) {
			const char *uuids[PLAN_DEVICES_MAX];
			const char *container = item->facts.containers[j].name;
			size_t count = plan_of(item->plan, container, resource, uuids);
			if (count == 0 || grant_is_served(grant, item->facts.uid, container) ||
			    !take_planned(request, uuids, count, ret_ids))
				continue;
			grant_note_steered(grant, item->facts.uid, container);
			return true;
		}
	}
	return false;
}

static bool choose(const struct grant *grant, const struct dp_preferred *request,
		   struct str *ret_ids)
{
	size_t count = request->available.count, size = (size_t)request->size;
	struct item *items = calloc(count, sizeof items[0]);
	bool is_known = items != NULL && fill(grant, request, items);
	bool is_shared = is_known && items[0].share != OFFER_WHOLE;
	if (is_shared && grant->inject.config->policy == DP_DISTRIBUTED) {
		take_spread(items, count, size, ret_ids);
	} else if (is_known) {
		qsort(items, count, sizeof items[0], by_packing);
		for (size_t i = 0; i < size; i++)
			ret_ids[i] = items[i].id;
	}
	free(items);
	return is_known;
}

plugin_choice grant_prefer_mig(struct grant *grant, const char *resource,
			       const struct dp_preferred *request, bool is_last,
			       struct str *ret_ids)
{
	if (find_planned(grant, resource, request, ret_ids)) {
		grant->planned++;
		return PLUGIN_CHOSEN;
	}
	// Only MIG devices that are called GPUs are planned one by one.
	bool may_come = grant->inject.config->mig == DP_MIG_SINGLE && grant->expects_plans &&
			(size_t)request->size < request->available.count;
	if (!is_last && may_come && pods_is_synced(grant->pods))
		return PLUGIN_LATER;
	grant->unplanned++;
	// Devices that we do not know: any answer is as good as the kubelet's own.
	if (choose(grant, request, ret_ids))
		return PLUGIN_CHOSEN;
	for (int64_t i = 0; i < request->size; i++)
		ret_ids[i] = request->available.items[i];
	return PLUGIN_CHOSEN;
}

static err_status check_id(struct grant *grant, const char *resource, struct str id,
			   struct mig_device *ret, struct err *err)
{
	struct str uuid = { 0 };
	uint32_t share = OFFER_WHOLE, slot = 0, i = 0;
	bool is_known = offer_id_parse(id, &uuid, &share) &&
			monitor_find_mig(grant->monitor, uuid, &slot, &i);
	const struct offer_gpu *offered = &grant->offer->gpus[slot];
	const struct offer_part *part = &offered->parts[i];
	bool is_offered = is_known && offered->has_parts && strcmp(part->resource, resource) == 0 &&
			  (part->replicas == 0 ? share == OFFER_WHOLE : share < part->replicas);
	if (!is_offered)
		return err_set(err, ERR_INVALID, "no device \"" STR_FMT "\" of %s on this node",
			       STR_ARG(str_slice(id, 0, OFFER_ID_BYTES)), resource);
	const struct monitor_gpu *gpu = monitor_gpu(grant->monitor, slot);
	const char *held_back = grant->held_back[slot] != NULL ? grant->held_back[slot]
							       : part->held_back;
	if (!monitor_is_part_offered(gpu, i))
		return err_set(err, ERR_UNAVAILABLE, "device " STR_FMT " is unhealthy: %s",
			       STR_ARG(uuid), monitor_part_reason(gpu, i));
	if (held_back != NULL)
		return err_set(err, ERR_UNAVAILABLE, "device " STR_FMT ": %s", STR_ARG(uuid),
			       held_back);
	*ret = (struct mig_device){ .gpu = &gpu->info, .instance = &gpu->mig.instances[i] };
	return ERR_OK;
}

static int by_place(const void *left, const void *right)
{
	const struct mig_device *a = left, *b = right;
	int order = compare(a->gpu->index, b->gpu->index);
	return order != 0 ? order : compare(a->instance->start, b->instance->start);
}

err_status grant_check_mig(struct grant *grant, const char *resource, const struct dp_ids *ids,
			   struct mig_device ret_migs[INJECT_MIGS_MAX], size_t *ret_count,
			   struct err *err)
{
	size_t count = 0, shares = 0;
	for (size_t i = 0; i < ids->count; i++) {
		struct mig_device device;
		struct str uuid = { 0 };
		uint32_t share = OFFER_WHOLE;
		err_status status = check_id(grant, resource, ids->items[i], &device, err);
		if (status != ERR_OK)
			return status;
		shares += offer_id_parse(ids->items[i], &uuid, &share) && share != OFFER_WHOLE;
		size_t at = 0;
		while (at < count && ret_migs[at].instance != device.instance)
			at++;
		if (at == INJECT_MIGS_MAX)
			return err_set(err, ERR_LIMIT, "more than %d MIG devices in one container",
				       INJECT_MIGS_MAX);
		count += at == count ? 1 : 0;
		ret_migs[at] = device;
	}
	if (shares > 1 && grant->offer->fails_above_one)
		return err_set(err, ERR_INVALID,
			       "%zu of %s: a container may ask for one share "
			       "(failRequestsGreaterThanOne)",
			       shares, resource);
	qsort(ret_migs, count, sizeof ret_migs[0], by_place);
	*ret_count = count;
	return ERR_OK;
}
