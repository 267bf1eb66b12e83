// SPDX-License-Identifier: Apache-2.0
// The record of a change of the MIG layout: what is taken can be written and read again.
#include "daemons/agent/mig_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct mig_apply apply, again;
	AUTO(buf_done) struct buf out = { 0 };
	apply = again = (struct mig_apply){ 0 };
	if (!mig_record_read((struct str){ (const char *)data, size }, &apply))
		return 0;
	ASSERT(apply.gpu_count <= GPU_MAX && apply.interrupts <= MIG_INTERRUPTS_MAX);
	ASSERT(apply.phase == MIG_IDLE || apply.phase == MIG_UNDOING);
	for (uint32_t i = 0; i < apply.gpu_count; i++)
		ASSERT(apply.gpus[i].before.count <= MIG_INSTANCES_MAX);
	mig_record_put(&out, &apply);
	ASSERT(buf_ok(&out) && mig_record_read(buf_str(&out), &again));
	ASSERT(again.phase == apply.phase && strcmp(again.ran, apply.ran) == 0);
	ASSERT(apply.phase == MIG_IDLE || again.gpu_count == apply.gpu_count);
	return 0;
}
