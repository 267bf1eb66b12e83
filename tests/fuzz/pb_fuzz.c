// SPDX-License-Identifier: Apache-2.0
#include "base/pb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pb_reader reader = pb_reader_of((struct str){ (const char *)data, size });
	struct pb_field field;
	size_t bytes = 0;
	while (pb_next(&reader, &field)) {
		ASSERT(field.number > 0);
		if (field.wire == PB_BYTES)
			bytes += field.bytes.len;
	}
	ASSERT(bytes <= size);
	return 0;
}
