// SPDX-License-Identifier: Apache-2.0
// The file of identities and faults that the agent's monitor keeps over a restart.
#include "daemons/agent/monitor_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct monitor_gpu gpus[GPU_MAX];
	uint32_t count = 0;
	struct err err = { 0 };
	if (monitor_file_parse((struct str){ (const char *)data, size }, gpus, &count, 5, &err) !=
	    ERR_OK) {
		ASSERT(count == 0 && err.text[0] != '\0');
		return 0;
	}
	ASSERT(count <= GPU_MAX);
	for (uint32_t i = 0; i < count; i++) {
		const struct monitor_gpu *gpu = &gpus[i];
		ASSERT(gpu->is_known && gpu_is_uuid(str_of(gpu->info.uuid)));
		ASSERT(health_is_offered(&gpu->health) || gpu->health.reason[0] != '\0');
		ASSERT(str_is_utf8(str_of(gpu->info.model)));
		ASSERT(str_is_utf8(str_of(gpu->health.reason)));
	}
	if (count > 0)
		monitor_file_recall(gpus, &count, 0, gpus[count - 1].info.uuid);
	ASSERT(count <= GPU_MAX);
	return 0;
}
