// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/plan.h"

#include "base/json.h"
#include "journal/usage_event.h"

enum { PLAN_TEXT_MAX_BYTES = 64 * 1024 };

static bool take_text(char *out, size_t out_bytes, struct str text)
{
	return text.len > 0 && usage_text(out, out_bytes, text);
}

err_status plan_parse(struct str text, struct plan *ret, struct err *err)
{
	AUTO(json_decrefp) json_t *list = NULL;
	struct plan plan = { 0 };
	struct err local;
	err = err == NULL ? &local : err;
	if (text.len > PLAN_TEXT_MAX_BYTES)
		return err_set(err, ERR_LIMIT, "plan is longer than %d bytes", PLAN_TEXT_MAX_BYTES);
	if (json_parse(text, &list, err) != ERR_OK)
		return err_wrap(err, "plan");
	if (!json_is_array(list))
		return err_set(err, ERR_INVALID, "plan is no list");
	if (json_array_size(list) > PLAN_DEVICES_MAX)
		return err_set(err, ERR_LIMIT, "plan has more than %d devices", PLAN_DEVICES_MAX);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *item = json_array_get(list, i);
		struct plan_device *device = &plan.devices[plan.count++];
		struct str uuid = json_text(item, "uuid");
		if (!gpu_is_uuid(uuid) || !take_text(device->uuid, sizeof device->uuid, uuid) ||
		    !take_text(device->container, sizeof device->container,
			       json_text(item, "container")) ||
		    !take_text(device->resource, sizeof device->resource,
			       json_text(item, "resource")))
			return err_set(err, ERR_INVALID,
				       "plan: device %zu needs container, resource and uuid", i);
		device->share = (struct share){ json_int(item, "milli", 0),
						json_int(item, "memory_mib", 0) };
		if (device->share.milli < 0 || device->share.milli > SHARE_WHOLE_MILLI ||
		    device->share.memory_mib < 0 || device->share.memory_mib > INT32_MAX)
			return err_set(err, ERR_INVALID, "plan: device %zu has no possible share",
				       i);
	}
	*ret = plan;
	return ERR_OK;
}

size_t plan_of(const struct plan *plan, const char *container, const char *resource,
	       const char *ret_uuids[PLAN_DEVICES_MAX])
{
	size_t count = 0;
	ASSERT(plan->count <= PLAN_DEVICES_MAX);
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_device *device = &plan->devices[i];
		if (strcmp(device->container, container) == 0 &&
		    strcmp(device->resource, resource) == 0)
			ret_uuids[count++] = device->uuid;
	}
	return count;
}

bool plan_share(const struct plan *plan, const char *container, share_kind kind,
		const char **ret_uuid, struct share *ret_share)
{
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_device *device = &plan->devices[i];
		if (strcmp(device->container, container) != 0 ||
		    strcmp(device->resource, share_resource(kind)) != 0)
			continue;
		*ret_uuid = device->uuid;
		*ret_share = device->share;
		return true;
	}
	return false;
}

struct share plan_share_sum(const struct plan *plan, const char *uuid)
{
	struct share sum = { 0 };
	share_kind kind;
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_device *device = &plan->devices[i];
		if (strcmp(device->uuid, uuid) == 0 &&
		    share_kind_of(str_of(device->resource), &kind))
			share_add(&sum, &device->share);
	}
	return sum;
}
