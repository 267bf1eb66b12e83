// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/grant.h"

#include "daemons/agent/cdi.h"
#include "daemons/agent/prefer.h"

#include <stdio.h>

static const uint64_t STEERED_FOR_NS = 10 * UINT64_C(1000000000);

struct candidate {
	const struct pods_item *item;
	const char *container;
	const char *uuids[PLAN_DEVICES_MAX];
	size_t count;
};

static bool has_id(const struct dp_ids *ids, const char *id)
{
	for (size_t i = 0; i < ids->count; i++) {
		if (str_eq_c(ids->items[i], id))
			return true;
	}
	return false;
}

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

static void note_steered(struct grant *grant, const struct candidate *candidate)
{
	size_t oldest = 0;
	for (size_t i = 0; i < GRANT_STEERED_MAX; i++) {
		if (grant->steered[i].at_ns < grant->steered[oldest].at_ns)
			oldest = i;
	}
	struct grant_steered *steered = &grant->steered[oldest];
	(void)snprintf(steered->uid, sizeof steered->uid, "%s", candidate->item->facts.uid);
	(void)snprintf(steered->container, sizeof steered->container, "%s", candidate->container);
	steered->at_ns = world_mono_ns(grant->world);
}

// A container with a plan that has its devices already, or was just steered to them.
static bool is_served(struct grant *grant, const struct candidate *candidate)
{
	const char *uid = candidate->item->facts.uid;
	for (size_t i = 0; i < usage_count(grant->usage); i++) {
		const struct usage_allocation *allocation = usage_at(grant->usage, i);
		if (strcmp(allocation->pod_uid, uid) == 0 &&
		    strcmp(allocation->container, candidate->container) == 0)
			return true;
	}
	return is_steered(grant, uid, candidate->container);
}

static bool fits(const struct dp_preferred *request, const struct candidate *candidate)
{
	if (candidate->count != (size_t)request->size)
		return false;
	for (size_t i = 0; i < candidate->count; i++) {
		if (!has_id(&request->available, candidate->uuids[i]))
			return false;
	}
	for (size_t i = 0; i < request->must.count; i++) {
		bool is_in = false;
		for (size_t j = 0; j < candidate->count; j++)
			is_in = is_in || str_eq_c(request->must.items[i], candidate->uuids[j]);
		if (!is_in)
			return false;
	}
	return true;
}

// Calls fn for each container that waits for its planned devices, in the order of arrival.
static void each_waiting(struct grant *grant,
			 bool (*fn)(void *arg, const struct candidate *candidate), void *arg)
{
	for (size_t i = 0; i < pods_count(grant->pods); i++) {
		struct candidate candidate = { .item = pods_at(grant->pods, i) };
		const struct pod_facts *facts = &candidate.item->facts;
		if (candidate.item->plan == NULL || facts->is_terminal)
			continue;
		for (size_t j = 0; j < facts->container_count; j++) {
			candidate.container = facts->containers[j].name;
			candidate.count = plan_of(candidate.item->plan, candidate.container,
						  grant->resource, candidate.uuids);
			if (candidate.count > 0 && !is_served(grant, &candidate) &&
			    !fn(arg, &candidate))
				return;
		}
	}
}

struct search {
	const struct dp_preferred *request;
	struct candidate found;
	bool reserved[GPU_MAX]; // by slot: planned for somebody who waits
	struct grant *grant;
};

static bool on_waiting(void *arg, const struct candidate *candidate)
{
	struct search *search = arg;
	if (search->found.item == NULL && fits(search->request, candidate)) {
		search->found = *candidate;
		return true;
	}
	for (size_t i = 0; i < candidate->count; i++) {
		uint32_t slot = 0;
		if (monitor_find(search->grant->monitor, str_of(candidate->uuids[i]), &slot) !=
		    NULL)
			search->reserved[slot] = true;
	}
	return true;
}

// Without a plan: neighbours, away from what is planned for others.
static bool choose_neighbours(struct grant *grant, const struct search *search, struct str *ret_ids)
{
	struct prefer_device devices[GPU_MAX];
	uint32_t slots[GPU_MAX];
	size_t chosen[GPU_MAX], count = 0;
	for (uint32_t slot = 0; slot < monitor_count(grant->monitor); slot++) {
		const struct monitor_gpu *gpu = monitor_gpu(grant->monitor, slot);
		if (!gpu->is_known)
			continue;
		slots[count] = slot;
		devices[count++] = (struct prefer_device){
			.index = slot,
			.numa_node = gpu->info.numa_node,
			.is_available = has_id(&search->request->available, gpu->info.uuid),
			.is_must = has_id(&search->request->must, gpu->info.uuid),
			.is_reserved = search->reserved[slot],
		};
	}
	if (!prefer_choose(devices, count, (size_t)search->request->size, chosen))
		return false;
	for (int64_t i = 0; i < search->request->size; i++)
		ret_ids[i] = str_of(monitor_gpu(grant->monitor, slots[chosen[i]])->info.uuid);
	return true;
}

plugin_choice grant_prefer(struct grant *grant, const struct dp_preferred *request, bool is_last,
			   struct str *ret_ids)
{
	struct search search = { .request = request, .grant = grant };
	ASSERT(request->size >= 0 && (size_t)request->size <= request->available.count);
	if (grant->pods != NULL)
		each_waiting(grant, on_waiting, &search);
	if (search.found.item != NULL) {
		for (size_t i = 0; i < search.found.count; i++)
			ret_ids[i] = str_of(search.found.uuids[i]);
		note_steered(grant, &search.found);
		grant->planned++;
		return PLUGIN_CHOSEN;
	}
	bool is_all = (size_t)request->size == request->available.count;
	if (!is_last && !is_all && grant->expects_plans && pods_is_synced(grant->pods))
		return PLUGIN_LATER;
	grant->unplanned++;
	if (request->size > 0 && choose_neighbours(grant, &search, ret_ids))
		return PLUGIN_CHOSEN;
	// Devices that we do not know: any answer is as good as the kubelet's own.
	for (int64_t i = 0; i < request->size; i++)
		ret_ids[i] = request->available.items[i];
	return PLUGIN_CHOSEN;
}

static err_status check_id(struct grant *grant, struct str id, struct err *err)
{
	const struct monitor_gpu *gpu = monitor_find(grant->monitor, id, NULL);
	if (gpu == NULL)
		return err_set(err, ERR_INVALID, "no device \"" STR_FMT "\" on this node",
			       STR_ARG(str_slice(id, 0, GPU_UUID_BYTES)));
	if (!health_is_offered(&gpu->health))
		return err_set(err, ERR_UNAVAILABLE, "device %s is unhealthy: %s", gpu->info.uuid,
			       gpu->health.reason);
	return ERR_OK;
}

err_status grant_allocate(struct grant *grant, const struct dp_allocate_list *request,
			  struct buf *out, struct err *err)
{
	static const struct dp_pair envs[] = {
		{ { "NVIDIA_VISIBLE_DEVICES", 22 }, { "void", 4 } },
	};
	for (size_t i = 0; i < request->count; i++) {
		for (size_t j = 0; j < request->items[i].count; j++) {
			err_status status = check_id(grant, request->items[i].items[j], err);
			if (status != ERR_OK)
				return status;
		}
	}
	for (size_t i = 0; i < request->count; i++) {
		char texts[GPU_MAX][sizeof CDI_KIND + GPU_UUID_BYTES + 1];
		struct str names[GPU_MAX];
		const struct dp_ids *ids = &request->items[i];
		if (ids->count > GPU_MAX)
			return err_set(err, ERR_LIMIT, "more than %d devices", GPU_MAX);
		for (size_t j = 0; j < ids->count; j++) {
			(void)snprintf(texts[j], sizeof texts[j], CDI_KIND "=" STR_FMT,
				       STR_ARG(ids->items[j]));
			names[j] = str_of(texts[j]);
		}
		const struct dp_allocated container = { .envs = envs,
							.env_count = ARRAY_COUNT(envs),
							.cdi_names = names,
							.cdi_count = ids->count };
		dp_put_allocated(out, &container);
	}
	return ERR_OK;
}
