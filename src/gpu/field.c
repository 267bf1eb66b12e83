// SPDX-License-Identifier: Apache-2.0
#include "gpu/field.h"

#include <inttypes.h>

static const struct gpu_field_info infos[GPU_FIELD_COUNT] = {
#define INFO(id, name, type, help, factor) [GPU_FIELD_##id] = { name, type, help, factor },
	GPU_FIELDS(INFO) GPU_FIELDS_ON_REQUEST(INFO)
#undef INFO
};

const struct gpu_field_info *gpu_field_info(enum gpu_field field)
{
	ASSERT((size_t)field < GPU_FIELD_COUNT);
	return &infos[field];
}

bool gpu_reading_has(const struct gpu_reading *reading, enum gpu_field field)
{
	ASSERT((size_t)field < GPU_FIELD_COUNT);
	return (reading->valid >> field & 1) != 0;
}

void gpu_reading_set(struct gpu_reading *reading, enum gpu_field field, int64_t value)
{
	ASSERT((size_t)field < GPU_FIELD_COUNT);
	reading->values[field] = value;
	reading->valid |= UINT64_C(1) << field;
}

void gpu_field_print(struct buf *out, enum gpu_field field, int64_t value)
{
	int factor = gpu_field_info(field)->factor;
	if (factor == 1)
		buf_printf(out, "%" PRId64, value);
	else
		buf_printf(out, "%.6f", (double)value / factor);
}
