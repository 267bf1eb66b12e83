// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/offer.h"

#include "daemons/agent/dp_proto.h"

#include <inttypes.h>
#include <stdio.h>

// A device at its largest: both lengths of its message, "Unhealthy", a NUMA node, the UUID.
// Clients of one MPS server: since Volta, and before.
enum { MPS_CLIENTS_MAX = 48, MPS_CLIENTS_OLD_MAX = 16, MPS_CLIENTS_MAJOR = 7 };
enum { DEVICE_BYTES = 2 + 2 + 40 + 11 + 8 };

static size_t digits(size_t value)
{
	size_t count = 1;
	for (; value >= 10; value /= 10)
		count++;
	return count;
}

size_t offer_list_bytes(size_t gpus, size_t replicas)
{
	size_t share = replicas == 0 ? 0 : 2 + digits(replicas - 1);
	return gpus * (DEVICE_BYTES + share) * max_size(replicas, 1);
}

size_t offer_replicas_max(size_t gpus)
{
	size_t low = 0, high = DP_REPLICAS_MAX;
	while (low < high) {
		size_t middle = (low + high + 1) / 2;
		if (offer_list_bytes(gpus, middle) <= OFFER_LIST_MAX_BYTES)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

static bool names(const struct dp_shared *shared, const struct gpu_info *gpu, size_t place)
{
	if (shared->first > 0)
		return place < shared->first;
	for (size_t i = 0; i < shared->ref_count; i++) {
		const struct dp_ref *ref = &shared->refs[i];
		if (ref->is_index ? ref->index == gpu->index : strcmp(ref->uuid, gpu->uuid) == 0)
			return true;
	}
	return shared->ref_count == 0;
}

static err_status find(const struct dp_config *config, const char *resource,
		       const struct gpu_info *gpu, size_t place, const struct dp_shared **ret,
		       struct err *err)
{
	const struct dp_shared *found = NULL;
	for (size_t i = 0; i < config->shared_count; i++) {
		const struct dp_shared *shared = &config->shared[i];
		if (strcmp(shared->resource, resource) != 0 || !names(shared, gpu, place))
			continue;
		if (found != NULL)
			return err_set(err, ERR_INVALID,
				       "GPU %" PRIu32 " (%s) is selected by two entries of "
				       "sharing; let their devices exclude each other",
				       gpu->index, gpu->uuid);
		found = shared;
	}
	*ret = found;
	return ERR_OK;
}

static err_status assign(const struct dp_config *config, const char *resource,
			 const struct gpu_info *gpu, size_t place, struct offer_gpu *ret,
			 struct err *err)
{
	const struct dp_shared *found = NULL;
	if (find(config, resource, gpu, place, &found, err) != ERR_OK)
		return err->status;
	uint32_t clients_max = gpu->compute_major >= MPS_CLIENTS_MAJOR ? MPS_CLIENTS_MAX
								       : MPS_CLIENTS_OLD_MAX;
	bool is_late = found != NULL && strcmp(found->renamed, SHARE_MILLI_RESOURCE) == 0;
	if (found != NULL && !is_late && config->sharing == DP_MPS && found->replicas > clients_max)
		return err_set(err, ERR_INVALID,
			       "GPU %" PRIu32 " (%s) serves at most %" PRIu32 " clients by MPS, "
			       "not %" PRIu32 " replicas",
			       gpu->index, gpu->uuid, clients_max, found->replicas);
	*ret = (struct offer_gpu){ .replicas = found == NULL ? 0 : found->replicas };
	(void)snprintf(ret->resource, sizeof ret->resource, "%.63s",
		       found == NULL ? resource : found->renamed);
	return ERR_OK;
}

static err_status check_size(const struct offer *offer, const char *resource, struct err *err)
{
	size_t bytes = 0, devices = 0;
	for (uint32_t slot = 0; slot < offer->count; slot++) {
		const struct offer_gpu *gpu = &offer->gpus[slot];
		if (strcmp(gpu->resource, resource) == 0) {
			bytes += offer_list_bytes(1, gpu->replicas);
			devices += max_size(gpu->replicas, 1);
		}
		for (size_t i = 0; gpu->has_parts && i < MIG_INSTANCES_MAX; i++) {
			if (strcmp(gpu->parts[i].resource, resource) != 0)
				continue;
			bytes += offer_list_bytes(1, gpu->parts[i].replicas);
			devices += max_size(gpu->parts[i].replicas, 1);
		}
	}
	if (bytes <= OFFER_LIST_MAX_BYTES)
		return ERR_OK;
	return err_set(err, ERR_LIMIT,
		       "%s: the list of %zu devices would have %zu bytes, the kubelet takes at "
		       "most %d; use fewer replicas",
		       resource, devices, bytes, OFFER_LIST_MAX_BYTES);
}

err_status offer_plan(const struct dp_config *config, const char *resource,
		      const struct monitor_gpu *gpus, uint32_t count, struct offer *ret,
		      struct err *err)
{
	struct offer offer = { .count = count,
			       .sharing = config->sharing,
			       .fails_above_one = config->fails_above_one };
	const char *resources[OFFER_RESOURCES_MAX];
	size_t place = 0;
	ASSERT(count <= GPU_MAX);
	for (uint32_t slot = 0; slot < count; slot++) {
		if (!gpus[slot].is_known)
			continue;
		err_status status =
			assign(config, resource, &gpus[slot].info, place++, &offer.gpus[slot], err);
		if (status != ERR_OK)
			return status;
	}
	if (config->mig != DP_MIG_NONE &&
	    offer_plan_parts(config, resource, gpus, find, &offer, err) != ERR_OK)
		return err->status;
	if (offer_check_late(&offer, gpus, err) != ERR_OK)
		return err->status;
	size_t resource_count = offer_resources(&offer, resources);
	for (size_t i = 0; i < resource_count; i++) {
		err_status status = check_size(&offer, resources[i], err);
		if (status != ERR_OK)
			return status;
	}
	*ret = offer;
	return ERR_OK;
}

// Keeps the names sorted and each once; returns how many there are then.
static size_t add_name(const char *names[OFFER_RESOURCES_MAX], size_t count, const char *name)
{
	size_t at = 0;
	while (at < count && strcmp(names[at], name) < 0)
		at++;
	if (name[0] == '\0' || (at < count && strcmp(names[at], name) == 0))
		return count;
	ASSERT(count < OFFER_RESOURCES_MAX);
	memmove(&names[at + 1], &names[at], (count - at) * sizeof names[0]);
	names[at] = name;
	return count + 1;
}

size_t offer_resources(const struct offer *offer, const char *ret_names[OFFER_RESOURCES_MAX])
{
	size_t count = 0;
	for (uint32_t slot = 0; slot < offer->count; slot++) {
		const struct offer_gpu *gpu = &offer->gpus[slot];
		if (!offer_is_late(gpu)) {
			count = add_name(ret_names, count, gpu->resource);
		} else if (!offer->hides_shares) {
			count = add_name(ret_names, count, SHARE_MILLI_RESOURCE);
			count = add_name(ret_names, count, SHARE_MEMORY_RESOURCE);
		}
		for (size_t i = 0; gpu->has_parts && i < MIG_INSTANCES_MAX; i++)
			count = add_name(ret_names, count, gpu->parts[i].resource);
	}
	return count;
}

void offer_put_list(struct buf *out, const struct offer *offer, const char *resource,
		    const struct monitor_gpu *gpus, const char *const held_back[GPU_MAX])
{
	if (offer_put_late(out, offer, resource, gpus, held_back))
		return;
	for (uint32_t slot = 0; slot < offer->count; slot++) {
		const struct offer_gpu *offered = &offer->gpus[slot];
		const struct monitor_gpu *gpu = &gpus[slot];
		if (offered->has_parts)
			offer_put_parts(out, offered, resource, gpu, held_back[slot]);
		if (strcmp(offered->resource, resource) != 0)
			continue;
		for (uint32_t i = 0; i < max_size(offered->replicas, 1); i++) {
			char id[OFFER_ID_BYTES];
			int n = snprintf(id, sizeof id, "%s", gpu->info.uuid);
			if (offered->replicas > 0)
				n = snprintf(id, sizeof id, "%s::%" PRIu32, gpu->info.uuid, i);
			ASSERT(n > 0 && (size_t)n < sizeof id);
			const struct dp_device device = {
				.id = { id, (size_t)n },
				.is_healthy = health_is_offered(&gpu->health) &&
					      held_back[slot] == NULL,
				.numa_node = gpu->info.numa_node,
			};
			dp_put_list(out, &device, 1);
		}
	}
}

bool offer_id_parse(struct str id, struct str *ret_uuid, uint32_t *ret_share)
{
	size_t colon = str_find_byte(id, ':', 0);
	uint64_t share = OFFER_WHOLE;
	struct str uuid = colon == SIZE_MAX ? id : str_slice(id, 0, colon);
	struct str rest = colon == SIZE_MAX ? STR("") : str_slice(id, colon, id.len);
	bool is_share = str_starts(rest, STR("::"));
	if (!gpu_is_uuid(uuid) || (rest.len > 0 && !is_share))
		return false;
	if (is_share &&
	    (!str_to_u64(str_slice(rest, 2, rest.len), &share) || share >= DP_REPLICAS_MAX))
		return false;
	*ret_uuid = uuid;
	*ret_share = (uint32_t)share;
	return true;
}

bool offer_is_ours(struct str name, const char *resource)
{
	const char *slash = strchr(resource, '/');
	if (slash == NULL)
		return str_eq_c(name, resource);
	return str_starts(name, (struct str){ resource, (size_t)(slash + 1 - resource) });
}

bool offer_is_held_otherwise(const struct offer_gpu *offered, const struct usage *usage,
			     const char *uuid)
{
	size_t at = 0;
	uint32_t den = offered->replicas == 0 ? 1 : offered->replicas;
	for (;;) {
		const struct usage_allocation *holder = usage_next_holder(usage, uuid, &at);
		if (holder == NULL)
			return false;
		bool is_in_parts = holder->profile[0] != '\0'; // which ones may come later
		if (is_in_parts != offered->has_parts)
			return true;
		if (!is_in_parts && holder->share_den != den)
			return true;
	}
}
