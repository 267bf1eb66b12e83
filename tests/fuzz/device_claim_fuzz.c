// SPDX-License-Identifier: Apache-2.0
// ResourceClaims, DeviceClasses and ResourceSlices as the API server tells them, with what the core
// makes of them; the same bytes as an expression about a device.
#include "feed/feed_claim.h"
#include "sched/claim_cel.h"
#include "sched/sched.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take(struct sched *sched, const json_t *json, sched_claim_kind kind)
{
	struct sched_claim_object *object = feed_claim_object(kind, json);
	if (object == NULL)
		return;
	ASSERT(object->key.len > 0);
	sched_claim_object_set(sched, object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sched_attribute attribute = { .domain = { "d", 1 },
						    .name = { "n", 1 },
						    .text = { "t", 1 } };
	const struct sched_pool_device device = { .attributes = &attribute, .attribute_count = 1 };
	struct str text = { (const char *)data, size };
	AUTO(json_decrefp) json_t *json = NULL;
	(void)claim_cel_eval(text, STR("d"), &device);
	if (json_parse(text, &json, NULL) != ERR_OK)
		return 0;
	struct sched *sched = sched_new(0, 0);
	for (int i = 0; i < 2 * SCHED_CLAIM_KINDS; i++) // each twice: made, then changed
		take(sched, json, (sched_claim_kind)(i % SCHED_CLAIM_KINDS));
	sched_free(sched);
	return 0;
}
