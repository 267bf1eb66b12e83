// SPDX-License-Identifier: Apache-2.0
// File v1 of the device plugin: what is refused says why and changes nothing; what is taken can
// be planned for some GPUs, within what the kubelet takes.
#include "daemons/agent/offer.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void plan(const struct dp_config *config)
{
	enum { GPUS = 3 };
	static const char *const nothing_held_back[GPU_MAX] = { NULL };
	struct monitor_gpu gpus[GPUS] = { 0 };
	const char *names[OFFER_RESOURCES_MAX];
	struct offer offer;
	struct err err = { 0 };
	for (uint32_t i = 0; i < GPUS; i++) {
		gpus[i].is_known = true;
		gpus[i].info.index = i;
		(void)snprintf(gpus[i].info.uuid, sizeof gpus[i].info.uuid, "GPU-%u", i);
	}
	if (offer_plan(config, "nvidia.com/gpu", gpus, GPUS, &offer, &err) != ERR_OK) {
		ASSERT(err.text[0] != '\0');
		return;
	}
	size_t count = offer_resources(&offer, names);
	ASSERT(count > 0);
	for (size_t i = 0; i < count; i++) {
		AUTO(buf_done) struct buf list = { .limit = OFFER_LIST_MAX_BYTES };
		ASSERT(strlen(names[i]) < DP_RESOURCE_BYTES);
		bool is_small = offer.gpus[0].replicas + offer.gpus[1].replicas < 200;
		if (is_small)
			offer_put_list(&list, &offer, names[i], gpus, nothing_held_back);
		ASSERT(buf_ok(&list));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dp_config config;
	struct err err = { 0 };
	dp_config_init(&config);
	const struct dp_config before = config;
	if (dp_config_read((struct str){ (const char *)data, size }, &config, &err) != ERR_OK) {
		ASSERT(err.text[0] != '\0');
		ASSERT(memcmp(&before, &config, sizeof config) == 0);
		return 0;
	}
	ASSERT(config.lists != 0 && config.note_count <= DP_NOTES_MAX);
	ASSERT((config.sharing == DP_EXCLUSIVE) == (config.shared_count == 0));
	for (size_t i = 0; i < config.shared_count; i++)
		ASSERT(config.shared[i].replicas > 0 && config.shared[i].renamed[0] != '\0');
	if (dp_config_check(&config, &err) == ERR_OK)
		plan(&config);
	return 0;
}
