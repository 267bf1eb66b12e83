// SPDX-License-Identifier: Apache-2.0
// A pod as the agent sees it. The first byte chooses the encoding: 'p' protobuf, else JSON.
#include "daemons/agent/pod_facts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum { ARENA_BYTES = 4 * 1024 * 1024 };
	if (size == 0)
		return 0;
	AUTO(arena_freep) struct arena *arena = arena_new(ARENA_BYTES);
	struct pod_facts facts = { 0 };
	struct err err = { 0 };
	err_status status = pod_facts_read(arena, (struct str){ (const char *)data + 1, size - 1 },
					   data[0] == 'p', "nvidia.com/gpu", &facts, &err);
	if (status != ERR_OK) {
		ASSERT(err.text[0] != '\0' && facts.uid[0] == '\0');
		return 0;
	}
	ASSERT(facts.uid[0] != '\0' && facts.name[0] != '\0');
	ASSERT(facts.container_count <= POD_CONTAINERS_MAX);
	ASSERT(!facts.is_all_finished || facts.has_ended);
	for (size_t i = 0; i < facts.container_count; i++)
		ASSERT(facts.containers[i].gpus > 0);
	uint8_t sum = 0; // touches every byte of the annotations
	for (size_t i = 0; i < facts.plan.len; i++)
		sum = (uint8_t)(sum ^ (uint8_t)facts.plan.data[i]);
	for (size_t i = 0; i < facts.plan_mac.len; i++)
		sum = (uint8_t)(sum ^ (uint8_t)facts.plan_mac.data[i]);
	return sum == 0 ? 0 : 0;
}
