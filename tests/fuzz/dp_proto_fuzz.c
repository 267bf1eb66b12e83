// SPDX-License-Identifier: Apache-2.0
// What the kubelet says to the device plugin, and PodResources.
#include "daemons/agent/dp_proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_row(void *arg, const struct podres_row *row)
{
	size_t *rows = arg;
	(*rows)++;
	ASSERT(str_is_utf8(row->id) && str_is_utf8(row->pod));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(arena_freep) struct arena *arena = arena_new(4 << 20);
	struct str message = { (const char *)data, size };
	struct dp_preferred_list preferred = { 0 };
	struct dp_allocate_list allocate = { 0 };
	struct dp_register request;
	size_t rows = 0;
	if (dp_read_preferred(arena, message, &preferred, NULL) == ERR_OK)
		ASSERT(preferred.count <= DP_CONTAINERS_MAX);
	if (dp_read_allocate(arena, message, &allocate, NULL) == ERR_OK)
		ASSERT(allocate.count <= DP_CONTAINERS_MAX);
	if (dp_read_register(message, &request, NULL) == ERR_OK)
		ASSERT(request.endpoint.len <= size);
	if (podres_read_list(message, on_row, &rows, NULL) != ERR_OK)
		ASSERT(rows == 0);
	return 0;
}
