// SPDX-License-Identifier: Apache-2.0
// The annotation that holds the scheduler's plan.
#include "daemons/agent/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct plan plan;
	const char *uuids[PLAN_DEVICES_MAX];
	if (plan_parse((struct str){ (const char *)data, size }, &plan, NULL) != ERR_OK)
		return 0;
	ASSERT(plan.count <= PLAN_DEVICES_MAX);
	for (size_t i = 0; i < plan.count; i++) {
		const struct plan_device *device = &plan.devices[i];
		ASSERT(gpu_is_uuid(str_of(device->uuid)));
		ASSERT(plan_of(&plan, device->container, device->resource, uuids) > 0);
		share_kind kind;
		const char *uuid;
		struct share share, sum = plan_share_sum(&plan, device->uuid);
		if (!share_kind_of(str_of(device->resource), &kind))
			continue;
		ASSERT(plan_share(&plan, device->container, kind, &uuid, &share));
		ASSERT(share_fits(&device->share, &sum));
	}
	return 0;
}
