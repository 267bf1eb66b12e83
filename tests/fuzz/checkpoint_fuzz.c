// SPDX-License-Identifier: Apache-2.0
// The kubelet's checkpoint file.
#include "daemons/agent/checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_row(void *arg, const struct checkpoint_row *row)
{
	size_t *rows = arg;
	(*rows)++;
	ASSERT(row->pod_uid.len > 0 && row->container.len > 0 && row->resource.len > 0);
	ASSERT(row->id.len == 0 || row->id.data != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t rows = 0;
	err_status status =
		checkpoint_read((struct str){ (const char *)data, size }, on_row, &rows, NULL);
	ASSERT(status == ERR_OK || rows == 0);
	return 0;
}
