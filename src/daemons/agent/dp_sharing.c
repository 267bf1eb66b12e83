// SPDX-License-Identifier: Apache-2.0
// `sharing` of file v1: which GPUs are offered several times, and as what.
#include "daemons/agent/dp_reader.h"
#include "daemons/agent/offer.h"
#include "gpu/share.h"

#include <inttypes.h>
#include <stdio.h>

#define PREFIX "nvidia.com/"

// With its prefix, as upstream completes it; false: no name of a resource.
static bool resource_name(struct str text, char out[DP_RESOURCE_BYTES])
{
	struct str prefix = STR(PREFIX);
	struct str name = str_starts(text, prefix) ? str_slice(text, prefix.len, text.len) : text;
	if (!str_is_dns_name(name) || prefix.len + name.len >= DP_RESOURCE_BYTES)
		return false;
	(void)snprintf(out, DP_RESOURCE_BYTES, PREFIX STR_FMT, STR_ARG(name));
	return true;
}

static err_status take_name(const struct dp_reader *reader, const json_t *item, const char *path,
			    const char *key, char out[DP_RESOURCE_BYTES])
{
	char full[DP_KEY_BYTES];
	const json_t *value = json_object_get(item, key);
	if (value == NULL || json_is_null(value))
		return ERR_OK;
	if (!json_is_string(value) || !resource_name(json_text(item, key), out))
		return dp_refuse(reader, dp_path(full, path, key),
				 "must be the name of a resource, such as nvidia.com/gpu, of at "
				 "most %d bytes",
				 DP_RESOURCE_BYTES - 1);
	return ERR_OK;
}

static err_status take_ref(const struct dp_reader *reader, const json_t *value, const char *path,
			   struct dp_shared *shared)
{
	int64_t index = json_is_integer(value) ? json_integer_value(value) : -1;
	struct str text = { json_string_value(value), json_string_length(value) };
	struct dp_ref ref = { .is_index = true };
	if (shared->ref_count == DP_REFS_MAX)
		return dp_refuse(reader, path, "more than %d devices", DP_REFS_MAX);
	if (json_is_string(value) && gpu_is_uuid(text)) {
		ref.is_index = false;
		memcpy(ref.uuid, text.data, text.len);
	} else if ((!json_is_integer(value) && !str_to_i64(text, &index)) || index < 0 ||
		   index >= GPU_MAX) {
		return dp_refuse(reader, path,
				 "must be the index of a GPU (0 to %d) or its UUID (GPU-...)",
				 GPU_MAX - 1);
	}
	ref.index = index < 0 ? 0 : (uint32_t)index;
	for (size_t i = 0; i < shared->ref_count; i++) {
		const struct dp_ref *other = &shared->refs[i];
		if (ref.is_index == other->is_index && ref.index == other->index &&
		    strcmp(ref.uuid, other->uuid) == 0)
			return dp_refuse(reader, path, "names a device twice");
	}
	shared->refs[shared->ref_count++] = ref;
	return ERR_OK;
}

static err_status take_devices(const struct dp_reader *reader, const json_t *devices,
			       const char *path, struct dp_shared *shared)
{
	char full[DP_KEY_BYTES];
	if (devices == NULL || json_is_null(devices) ||
	    (json_is_string(devices) && strcmp(json_string_value(devices), "all") == 0))
		return ERR_OK;
	if (json_is_integer(devices) && json_integer_value(devices) > 0 &&
	    json_integer_value(devices) <= GPU_MAX) {
		shared->first = (uint32_t)json_integer_value(devices);
		return ERR_OK;
	}
	if (json_array_size(devices) == 0)
		return dp_refuse(reader, path,
				 "must be all, a number of GPUs up to %d, or a list of indexes and "
				 "UUIDs",
				 GPU_MAX);
	for (size_t i = 0; i < json_array_size(devices); i++) {
		(void)snprintf(full, sizeof full, "%.200s[%zu]", path, i);
		err_status status = take_ref(reader, json_array_get(devices, i), full, shared);
		if (status != ERR_OK)
			return status;
	}
	return ERR_OK;
}

// How many GPUs an entry selects at least; the node's are not known while a file is read.
static size_t least_gpus(const struct dp_shared *shared)
{
	return shared->ref_count > 0 ? shared->ref_count : max_size(shared->first, 1);
}

static err_status take_replicas(const struct dp_reader *reader, const json_t *item,
				const char *path, struct dp_shared *shared)
{
	char full[DP_KEY_BYTES];
	const json_t *value = json_object_get(item, "replicas");
	int64_t least = reader->config->sharing == DP_MPS ? 1 : 2;
	(void)dp_path(full, path, "replicas");
	if (value == NULL)
		return dp_refuse(reader, path, "replicas is missing");
	if (!json_is_integer(value) || json_integer_value(value) < least)
		return dp_refuse(reader, full,
				 "must be a whole number of at least %" PRId64
				 "; leave the entry out to offer whole GPUs",
				 least);
	int64_t replicas = min_i64(json_integer_value(value), INT32_MAX);
	size_t bytes = offer_list_bytes(least_gpus(shared), (size_t)replicas);
	if (bytes > OFFER_LIST_MAX_BYTES || replicas > DP_REPLICAS_MAX)
		return dp_refuse(reader, full,
				 "the list for the kubelet would have %zu bytes with %zu GPUs, it "
				 "takes at most %d; use at most %zu",
				 bytes, least_gpus(shared), OFFER_LIST_MAX_BYTES,
				 offer_replicas_max(least_gpus(shared)));
	shared->replicas = (uint32_t)replicas;
	return ERR_OK;
}

static err_status read_entry(const struct dp_reader *reader, const json_t *item, const char *path,
			     bool renames)
{
	static const char *const time_keys[] = { "name", "rename", "devices", "replicas", NULL };
	struct dp_config *config = reader->config;
	struct dp_shared shared = { 0 };
	char full[DP_KEY_BYTES];
	if (config->shared_count == DP_SHARED_MAX)
		return dp_refuse(reader, path, "more than %d entries", DP_SHARED_MAX);
	if (dp_only_keys(reader, item, path, time_keys) != ERR_OK ||
	    take_name(reader, item, path, "name", shared.resource) != ERR_OK)
		return ERR_INVALID;
	if (shared.resource[0] == '\0')
		return dp_refuse(reader, path, "name is missing");
	if (take_name(reader, item, path, "rename", shared.renamed) != ERR_OK ||
	    take_devices(reader, json_object_get(item, "devices"), dp_path(full, path, "devices"),
			 &shared) != ERR_OK ||
	    take_replicas(reader, item, path, &shared) != ERR_OK)
		return ERR_INVALID;
	size_t len = strlen(shared.resource);
	if (shared.renamed[0] == '\0' && renames && len + strlen(".shared") >= DP_RESOURCE_BYTES)
		return dp_refuse(reader, path, "%s.shared is longer than %d bytes; set rename",
				 shared.resource, DP_RESOURCE_BYTES - 1);
	if (shared.renamed[0] == '\0' && renames)
		(void)snprintf(shared.renamed, sizeof shared.renamed, "%.56s.shared",
			       shared.resource);
	else if (shared.renamed[0] == '\0')
		memcpy(shared.renamed, shared.resource, sizeof shared.renamed);
	config->shared[config->shared_count++] = shared;
	return ERR_OK;
}

static err_status read_kind(const struct dp_reader *reader, const json_t *kind, const char *path)
{
	static const char *const keys[] = { "renameByDefault", "failRequestsGreaterThanOne",
					    "resources", NULL };
	bool renames = false;
	char full[DP_KEY_BYTES];
	struct dp_config *config = reader->config;
	config->fails_above_one = config->sharing == DP_MPS;
	if (dp_only_keys(reader, kind, path, keys) != ERR_OK ||
	    dp_take_bool(reader, kind, path, "renameByDefault", &renames) != ERR_OK ||
	    dp_take_bool(reader, kind, path, "failRequestsGreaterThanOne",
			 &config->fails_above_one) != ERR_OK)
		return ERR_INVALID;
	const json_t *list = json_object_get(kind, "resources");
	if (!json_is_array(list) || json_array_size(list) == 0)
		return dp_refuse(reader, path,
				 "resources is missing; list the resources to share, or leave %s "
				 "out",
				 path);
	for (size_t i = 0; i < json_array_size(list); i++) {
		(void)snprintf(full, sizeof full, "%.100s.resources[%zu]", path, i);
		if (read_entry(reader, json_array_get(list, i), full, renames) != ERR_OK)
			return ERR_INVALID;
	}
	return ERR_OK;
}

static const char *const limit_names[] = { [DP_LIMIT_NONE] = "none", [DP_LIMIT_MPS] = "mps" };

const char *dp_limit_name(dp_limit limit) { return limit_names[limit]; }

static err_status take_limit(const struct dp_reader *reader, const json_t *shares)
{
	const json_t *value = json_object_get(shares, "memoryLimit");
	if (value == NULL || json_is_null(value))
		return ERR_OK;
	for (size_t i = 0; i < ARRAY_COUNT(limit_names); i++) {
		if (!json_is_string(value) || strcmp(json_string_value(value), limit_names[i]) != 0)
			continue;
		reader->config->share_limit = (dp_limit)i;
		return ERR_OK;
	}
	return dp_refuse(reader, "sharing.shares.memoryLimit", "must be none or mps");
}

// GPUs that are set aside for gpuaas.io/gpu-milli and gpuaas.io/gpu-memory.
static err_status read_shares(const struct dp_reader *reader, const json_t *shares)
{
	static const char *const keys[] = { "devices", "memoryLimit", NULL };
	struct dp_config *config = reader->config;
	struct dp_shared shared = { .resource = PREFIX "gpu",
				    .renamed = SHARE_MILLI_RESOURCE,
				    .replicas = SHARE_WHOLE_MILLI };
	config->has_shares = shares != NULL && !json_is_null(shares);
	config->share_limit = DP_LIMIT_NONE;
	if (!config->has_shares)
		return ERR_OK;
	if (config->shared_count == DP_SHARED_MAX)
		return dp_refuse(reader, "sharing.shares", "more than %d entries", DP_SHARED_MAX);
	if (dp_only_keys(reader, shares, "sharing.shares", keys) != ERR_OK ||
	    take_devices(reader, json_object_get(shares, "devices"), "sharing.shares.devices",
			 &shared) != ERR_OK ||
	    take_limit(reader, shares) != ERR_OK)
		return ERR_INVALID;
	config->shared[config->shared_count++] = shared;
	return ERR_OK;
}

err_status dp_read_sharing(const struct dp_reader *reader, const json_t *sharing)
{
	static const char *const keys[] = { "timeSlicing", "mps", "shares", NULL };
	struct dp_config *config = reader->config;
	if (sharing == NULL || json_is_null(sharing))
		return ERR_OK;
	if (dp_only_keys(reader, sharing, "sharing", keys) != ERR_OK)
		return ERR_INVALID;
	const json_t *time = json_object_get(sharing, "timeSlicing");
	const json_t *mps = json_object_get(sharing, "mps");
	bool has_time = time != NULL && !json_is_null(time);
	bool has_mps = mps != NULL && !json_is_null(mps);
	if (has_time && has_mps)
		return dp_refuse(reader, "sharing.mps",
				 "not together with sharing.timeSlicing; remove one of them");
	config->shared_count = 0;
	config->sharing = has_mps ? DP_MPS : has_time ? DP_TIME_SLICED : DP_EXCLUSIVE;
	if (has_time && read_kind(reader, time, "sharing.timeSlicing") != ERR_OK)
		return ERR_INVALID;
	if (has_mps && read_kind(reader, mps, "sharing.mps") != ERR_OK)
		return ERR_INVALID;
	return read_shares(reader, json_object_get(sharing, "shares"));
}
