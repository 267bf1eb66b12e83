// SPDX-License-Identifier: Apache-2.0
// Packets between agent and the child that calls the driver, in both directions.
#include "daemons/agent/nvml_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nvml_request request;
	struct nvml_reply reply;
	if (nvml_request_check(data, size, &request))
		ASSERT(request.slot < GPU_MAX && nvml_answer_of(request.type) > 0);
	if (!nvml_reply_check(data, size, &reply))
		return 0;
	ASSERT(nvml_reply_bytes(reply.type) == size);
	if (reply.type == NVML_SAY_INFO)
		ASSERT(strlen(reply.body.info.uuid) < sizeof reply.body.info.uuid);
	if (reply.type == NVML_SAY_PROCESSES)
		ASSERT(reply.body.processes.count <= NVML_PROCESSES_MAX);
	return 0;
}
