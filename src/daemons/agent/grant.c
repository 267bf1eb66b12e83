// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/grant.h"

#include "daemons/agent/prefer.h"

#include <stdio.h>
#include <stdlib.h>

static const uint64_t STEERED_FOR_NS = 10 * UINT64_C(1000000000);

struct candidate {
	const struct pods_item *item;
	const char *container;
	const char *uuids[PLAN_DEVICES_MAX];
	size_t count;
};

static bool is_steered(struct grant *grant, const char *uid, const char *container)
{
	uint64_t now_ns = world_mono_ns(grant->world);
	for (size_t i = 0; i < GRANT_STEERED_MAX; i++) {
		struct grant_steered *steered = &grant->steered[i];
		if (steered->at_ns != 0 && now_ns - steered->at_ns > STEERED_FOR_NS)
			steered->at_ns = 0;
		if (steered->at_ns != 0 && strcmp(steered->uid, uid) == 0 &&
		    strcmp(steered->container, container) == 0)
			return true;
	}
	return false;
}

void grant_note_steered(struct grant *grant, const char *uid, const char *container)
{
	size_t oldest = 0;
	for (size_t i = 0; i < GRANT_STEERED_MAX; i++) {
		if (grant->steered[i].at_ns < grant->steered[oldest].at_ns)
			oldest = i;
	}
	struct grant_steered *steered = &grant->steered[oldest];
	(void)snprintf(steered->uid, sizeof steered->uid, "%s", uid);
	(void)snprintf(steered->container, sizeof steered->container, "%s", container);
	steered->at_ns = world_mono_ns(grant->world);
}

// A container with a plan that has its devices already, or was just steered to them.
bool grant_is_served(struct grant *grant, const char *uid, const char *container)
{
	for (size_t i = 0; i < usage_count(grant->usage); i++) {
		const struct usage_allocation *allocation = usage_at(grant->usage, i);
		if (strcmp(allocation->pod_uid, uid) == 0 &&
		    strcmp(allocation->container, container) == 0)
			return true;
	}
	return is_steered(grant, uid, container);
}

// One id of a question, with the GPU it stands for.
struct item {
	uint32_t slot, share;
	bool is_must;
	struct str id;
};

// A question with what its ids stand for.
struct search {
	const struct dp_preferred *request;
	const char *resource;
	struct grant *grant;
	struct item *items; // owned
	size_t count;
	uint32_t available[GPU_MAX], must[GPU_MAX]; // by slot
	bool has_shares;
	struct candidate found;
	uint32_t need[GPU_MAX]; // of found
	bool reserved[GPU_MAX]; // planned for somebody who waits
};

static void search_done(struct search *search) { free(search->items); }

static int by_place(const void *left, const void *right)
{
	const struct item *a = left, *b = right;
	if (a->slot != b->slot)
		return a->slot < b->slot ? -1 : 1;
	if (a->is_must != b->is_must)
		return a->is_must ? -1 : 1;
	return (a->share > b->share) - (a->share < b->share);
}

static int by_id(const void *left, const void *right)
{
	return str_cmp(*(const struct str *)left, *(const struct str *)right);
}

// False: ids that we do not know, or no memory.
static bool search_fill(struct search *search)
{
	const struct dp_ids *available = &search->request->available;
	const struct dp_ids *must = &search->request->must;
	struct str uuids[GPU_MAX] = { { 0 } };
	for (uint32_t slot = 0; slot < monitor_count(search->grant->monitor); slot++)
		uuids[slot] = str_of(monitor_gpu(search->grant->monitor, slot)->info.uuid);
	search->items = calloc(available->count + 1, sizeof search->items[0]);
	if (search->items == NULL)
		return false;
	if (must->count > 0)
		qsort(must->items, must->count, sizeof must->items[0], by_id);
	for (size_t i = 0; i < available->count; i++) {
		struct item *item = &search->items[search->count++];
		struct str uuid = { 0 };
		*item = (struct item){ .id = available->items[i] };
		if (!offer_id_parse(item->id, &uuid, &item->share))
			return false;
		// Most ids are of the GPU of the one before.
		item->slot = i == 0 ? 0 : search->items[i - 1].slot;
		if (!str_eq(uuid, uuids[item->slot]) &&
		    monitor_find(search->grant->monitor, uuid, &item->slot) == NULL)
			return false;
		item->is_must = must->count > 0 && bsearch(&item->id, must->items, must->count,
							   sizeof must->items[0], by_id) != NULL;
		search->available[item->slot]++;
		search->must[item->slot] += item->is_must ? 1 : 0;
		search->has_shares = search->has_shares || item->share != OFFER_WHOLE;
	}
	return true;
}

// Takes so many of each GPU: musts first, then the lowest shares. Only what may be taken is sorted.
static void take_items(const struct search *search, uint32_t take[GPU_MAX], struct str *ret_ids)
{
	size_t count = 0, wanted = 0;
	for (size_t i = 0; i < search->count; i++) {
		if (take[search->items[i].slot] > 0)
			search->items[wanted++] = search->items[i];
	}
	if (wanted > 0)
		qsort(search->items, wanted, sizeof search->items[0], by_place);
	for (size_t i = 0; i < wanted; i++) {
		const struct item *item = &search->items[i];
		if (take[item->slot] == 0)
			continue;
		take[item->slot]--;
		ret_ids[count++] = item->id;
	}
	ASSERT(count == (size_t)search->request->size);
}

// How many of each GPU the plan wants; false: it does not fit the question.
static bool fits(const struct search *search, const struct candidate *candidate,
		 uint32_t ret_need[GPU_MAX])
{
	uint32_t need[GPU_MAX] = { 0 };
	if (candidate->count != (size_t)search->request->size)
		return false;
	for (size_t i = 0; i < candidate->count; i++) {
		uint32_t slot = 0;
		if (monitor_find(search->grant->monitor, str_of(candidate->uuids[i]), &slot) ==
		    NULL)
			return false;
		need[slot]++;
	}
	for (uint32_t slot = 0; slot < GPU_MAX; slot++) {
		if (need[slot] > search->available[slot] || search->must[slot] > need[slot])
			return false;
	}
	memcpy(ret_need, need, sizeof need);
	return true;
}

// Calls on_waiting for each container that waits for its planned devices, in order of arrival.
static void on_waiting(struct search *search, const struct candidate *candidate)
{
	if (search->found.item == NULL && fits(search, candidate, search->need)) {
		search->found = *candidate;
		return;
	}
	for (size_t i = 0; i < candidate->count; i++) {
		uint32_t slot = 0;
		if (monitor_find(search->grant->monitor, str_of(candidate->uuids[i]), &slot) !=
		    NULL)
			search->reserved[slot] = true;
	}
}

static void each_waiting(struct search *search)
{
	struct grant *grant = search->grant;
	for (size_t i = 0; i < pods_count(grant->pods); i++) {
		struct candidate candidate = { .item = pods_at(grant->pods, i) };
		const struct pod_facts *facts = &candidate.item->facts;
		if (candidate.item->plan == NULL || facts->is_terminal)
			continue;
		for (size_t j = 0; j < facts->container_count; j++) {
			candidate.container = facts->containers[j].name;
			candidate.count = plan_of(candidate.item->plan, candidate.container,
						  search->resource, candidate.uuids);
			if (candidate.count > 0 &&
			    !grant_is_served(grant, facts->uid, candidate.container))
				on_waiting(search, &candidate);
		}
	}
}

static bool choose_whole(const struct search *search, struct str *ret_ids)
{
	struct grant *grant = search->grant;
	struct prefer_device devices[GPU_MAX];
	uint32_t slots[GPU_MAX], take[GPU_MAX] = { 0 };
	size_t chosen[GPU_MAX], count = 0;
	for (uint32_t slot = 0; slot < monitor_count(grant->monitor); slot++) {
		const struct monitor_gpu *gpu = monitor_gpu(grant->monitor, slot);
		if (!gpu->is_known)
			continue;
		slots[count] = slot;
		devices[count++] = (struct prefer_device){
			.index = slot,
			.is_available = search->available[slot] > 0,
			.is_must = search->must[slot] > 0,
			.is_reserved = search->reserved[slot],
		};
	}
	if (!prefer_choose(devices, count, (size_t)search->request->size,
			   monitor_topology(grant->monitor), chosen))
		return false;
	for (int64_t i = 0; i < search->request->size; i++)
		take[slots[chosen[i]]] = 1;
	take_items(search, take, ret_ids);
	return true;
}

static bool choose_shares(const struct search *search, struct str *ret_ids)
{
	const struct offer *offer = search->grant->offer;
	struct prefer_shared gpus[GPU_MAX] = { 0 };
	uint32_t take[GPU_MAX];
	for (uint32_t slot = 0; slot < offer->count; slot++) {
		uint32_t total = (uint32_t)max_size(offer->gpus[slot].replicas, 1);
		gpus[slot] = (struct prefer_shared){
			.total = (uint32_t)max_size(total, search->available[slot]),
			.available = search->available[slot],
			.must = search->must[slot],
			.is_reserved = search->reserved[slot],
		};
	}
	if (!prefer_shares(gpus, offer->count, (size_t)search->request->size,
			   search->grant->inject.config->policy, offer->sharing == DP_MPS, take))
		return false;
	take_items(search, take, ret_ids);
	return true;
}

plugin_choice grant_prefer(struct grant *grant, const char *resource,
			   const struct dp_preferred *request, bool is_last, struct str *ret_ids)
{
	AUTO(search_done)
	struct search search = { .request = request, .resource = resource, .grant = grant };
	ASSERT(request->size >= 0 && (size_t)request->size <= request->available.count);
	if (request->size > 0 && grant_is_mig(request->available.items[0]))
		return grant_prefer_mig(grant, resource, request, is_last, ret_ids);
	bool is_known = search_fill(&search);
	if (is_known && grant->pods != NULL)
		each_waiting(&search);
	if (search.found.item != NULL) {
		take_items(&search, search.need, ret_ids);
		grant_note_steered(grant, search.found.item->facts.uid, search.found.container);
		grant->planned++;
		return PLUGIN_CHOSEN;
	}
	bool is_all = (size_t)request->size == request->available.count;
	if (!is_last && !is_all && grant->expects_plans && pods_is_synced(grant->pods))
		return PLUGIN_LATER;
	grant->unplanned++;
	if (is_known && request->size > 0 &&
	    (search.has_shares ? choose_shares(&search, ret_ids) : choose_whole(&search, ret_ids)))
		return PLUGIN_CHOSEN;
	// Devices that we do not know: any answer is as good as the kubelet's own.
	for (int64_t i = 0; i < request->size; i++)
		ret_ids[i] = request->available.items[i];
	return PLUGIN_CHOSEN;
}

// The slot of an id that is offered under this resource in this form and can be given.
static err_status check_id(struct grant *grant, const char *resource, struct str id,
			   uint32_t *ret_slot, struct err *err)
{
	struct str uuid = { 0 };
	uint32_t share = OFFER_WHOLE, slot = 0;
	const struct monitor_gpu *gpu = NULL;
	if (offer_id_parse(id, &uuid, &share))
		gpu = monitor_find(grant->monitor, uuid, &slot);
	const struct offer_gpu *offered = &grant->offer->gpus[slot];
	bool is_offered =
		gpu != NULL && strcmp(offered->resource, resource) == 0 &&
		(offered->replicas == 0 ? share == OFFER_WHOLE : share < offered->replicas);
	if (!is_offered)
		return err_set(err, ERR_INVALID, "no device \"" STR_FMT "\" of %s on this node",
			       STR_ARG(str_slice(id, 0, OFFER_ID_BYTES)), resource);
	if (!health_is_offered(&gpu->health))
		return err_set(err, ERR_UNAVAILABLE, "device %s is unhealthy: %s", gpu->info.uuid,
			       gpu->health.reason);
	if (grant->held_back[slot] != NULL)
		return err_set(err, ERR_UNAVAILABLE, "device %s: %s", gpu->info.uuid,
			       grant->held_back[slot]);
	*ret_slot = slot;
	return ERR_OK;
}

static err_status check_container(struct grant *grant, const char *resource,
				  const struct dp_ids *ids, bool ret_slots[GPU_MAX],
				  struct err *err)
{
	size_t shares = 0, gpus = 0;
	for (size_t i = 0; i < ids->count; i++) {
		uint32_t slot = 0;
		err_status status = check_id(grant, resource, ids->items[i], &slot, err);
		if (status != ERR_OK)
			return status;
		shares += grant->offer->gpus[slot].replicas > 0 ? 1 : 0;
		gpus += ret_slots[slot] ? 0 : 1;
		ret_slots[slot] = true;
	}
	if (shares > 0 && ids->count > 1 && grant->offer->fails_above_one)
		return err_set(err, ERR_INVALID,
			       "%zu of %s: a container may ask for one share "
			       "(failRequestsGreaterThanOne)",
			       ids->count, resource);
	if (shares > 0 && gpus > 1 && grant->offer->sharing == DP_MPS)
		return err_set(err, ERR_INVALID, "%zu of %s: shares under MPS must be of one GPU",
			       ids->count, resource);
	for (uint32_t slot = 0; slot < GPU_MAX && grant->offer->sharing == DP_MPS; slot++) {
		uint32_t replicas = grant->offer->gpus[slot].replicas;
		if (ret_slots[slot] && replicas > 0 && ids->count > replicas)
			return err_set(err, ERR_INVALID, "%zu of %s: its GPU has %u shares",
				       ids->count, resource, (unsigned)replicas);
	}
	return ERR_OK;
}

err_status grant_allocate(struct grant *grant, const char *resource,
			  const struct dp_allocate_list *request, struct buf *out, struct err *err)
{
	for (size_t i = 0; i < request->count; i++) {
		bool slots[GPU_MAX] = { false };
		struct mig_device migs[INJECT_MIGS_MAX];
		struct inject_request container = { .resource = resource, .migs = migs };
		const struct dp_ids *ids = &request->items[i];
		bool is_mig = ids->count > 0 && grant_is_mig(ids->items[0]);
		err_status status = is_mig ? grant_check_mig(grant, resource, ids, migs,
							     &container.mig_count, err)
					   : check_container(grant, resource, ids, slots, err);
		if (status != ERR_OK)
			return status;
		for (uint32_t slot = 0; slot < GPU_MAX; slot++) {
			if (!slots[slot])
				continue;
			container.gpus[container.count++] =
				&monitor_gpu(grant->monitor, slot)->info;
			if (grant->offer->sharing != DP_MPS ||
			    grant->offer->gpus[slot].replicas == 0)
				continue;
			container.mps_shares = (uint32_t)request->items[i].count;
			container.mps_of = grant->offer->gpus[slot].replicas;
		}
		if (!inject_put(&grant->inject, &container, out))
			return err_set(err, ERR_LIMIT, "no memory for the answer");
	}
	return ERR_OK;
}
