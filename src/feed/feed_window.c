// SPDX-License-Identifier: Apache-2.0
#include "feed/feed_window.h"

#include "base/timefmt.h"

static bool read_window(const json_t *item, struct sched_window_in *ret)
{
	struct sched_window_in in = { .name = json_text(item, "name"),
				      .model = json_text(item, "model"),
				      .gpu_count = json_int(item, "gpus", 0) };
	if (in.name.len == 0 || in.gpu_count < 1 || in.gpu_count > SCHED_WINDOW_GPUS_MAX ||
	    !time_parse(json_text(item, "start"), &in.start_s, NULL) ||
	    !time_parse(json_text(item, "end"), &in.end_s, NULL) || in.end_s <= in.start_s)
		return false;
	*ret = in;
	return true;
}

size_t feed_windows(const json_t *tenant, struct sched_window_in ret_windows[FEED_WINDOWS_MAX])
{
	const json_t *list = json_at(tenant, "spec.windows"), *item;
	size_t i, count = 0;
	json_array_foreach(list, i, item)
	{
		if (count < FEED_WINDOWS_MAX && read_window(item, &ret_windows[count]))
			count++;
	}
	return count;
}
