// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/load_view.h"

#include <inttypes.h>

enum { MILLI_A_PERCENT = 10, NS_A_MS = 1000000 };

static void put_holders(const struct load_view *view, const struct monitor_gpu *gpu,
			struct buf *out)
{
	const struct usage_allocation *holder;
	const char *between = "";
	buf_put_c(out, ",\"holders\":[");
	for (size_t at = 0;
	     (holder = usage_next_holder(view->usage, gpu->info.uuid, &at)) != NULL;) {
		buf_printf(out, "%s{\"pod_uid\":", between);
		buf_put_json(out, str_of(holder->pod_uid));
		buf_put_c(out, ",\"container\":");
		buf_put_json(out, str_of(holder->container));
		buf_printf(out, ",\"num\":%" PRIu32 ",\"den\":%" PRIu32 "}", holder->share_num,
			   holder->share_den);
		between = ",";
	}
	buf_put_byte(out, ']');
}

static void put_reading(const struct load_view *view, const struct monitor_gpu *gpu,
			struct buf *out)
{
	const struct gpu_reading *reading = &gpu->reading;
	if (gpu->reading_ns == 0 || gpu->reading_ns > view->now_ns)
		return;
	buf_printf(out, ",\"age_ms\":%" PRIu64, (view->now_ns - gpu->reading_ns) / NS_A_MS);
	if (gpu_reading_has(reading, GPU_FIELD_UTIL_PERCENT))
		buf_printf(out, ",\"util_milli\":%" PRId64,
			   reading->values[GPU_FIELD_UTIL_PERCENT] * MILLI_A_PERCENT);
	if (gpu_reading_has(reading, GPU_FIELD_FB_USED_MIB))
		buf_printf(out, ",\"memory_mib\":%" PRId64, reading->values[GPU_FIELD_FB_USED_MIB]);
}

void load_view_put(const struct load_view *view, struct buf *out)
{
	const char *between = "";
	buf_put_c(out, "{\"node\":");
	buf_put_json(out, str_of(view->node));
	buf_put_c(out, ",\"gpus\":[");
	for (uint32_t slot = 0; slot < view->count; slot++) {
		const struct monitor_gpu *gpu = &view->gpus[slot];
		if (!gpu->is_known)
			continue;
		buf_printf(out, "%s{\"uuid\":", between);
		buf_put_json(out, str_of(gpu->info.uuid));
		buf_printf(out, ",\"healthy\":%s",
			   health_is_offered(&gpu->health) ? "true" : "false");
		put_reading(view, gpu, out);
		put_holders(view, gpu, out);
		buf_put_byte(out, '}');
		between = ",";
	}
	buf_put_c(out, "]}\n");
}
