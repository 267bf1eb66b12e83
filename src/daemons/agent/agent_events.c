// SPDX-License-Identifier: Apache-2.0
// Events about the Node when a GPU goes out of use or comes back, with the reason.
#include "daemons/agent/agent.h"

#include <stdio.h>

static bool is_good(const struct agent *agent, uint32_t slot, const char **ret_reason,
		    const char **ret_why)
{
	const struct monitor_gpu *gpu = monitor_gpu(agent->monitor, slot);
	*ret_reason = "GPUUnhealthy";
	*ret_why = gpu->health.reason;
	if (!health_is_offered(&gpu->health))
		return false;
	*ret_reason = "GPUUnclean";
	*ret_why = agent->handovers[slot].reason;
	return !agent->handovers[slot].is_dirty;
}

void agent_tell_health(struct agent *agent)
{
	const char *node = agent->config.node_name;
	const struct event_about about = {
		.api_version = "v1", .kind = "Node", .name = node, .uid = node
	};
	if (agent->events == NULL || !monitor_is_ready(agent->monitor))
		return;
	for (uint32_t slot = 0; slot < monitor_count(agent->monitor); slot++) {
		const struct gpu_info *gpu = &monitor_gpu(agent->monitor, slot)->info;
		const char *reason, *why;
		char note[HEALTH_REASON_BYTES + GPU_UUID_BYTES + 64];
		bool is_out = !is_good(agent, slot, &reason, &why);
		if (!monitor_gpu(agent->monitor, slot)->is_known ||
		    agent->is_told_out[slot] == is_out)
			continue;
		agent->is_told_out[slot] = is_out;
		(void)snprintf(note, sizeof note, "GPU %u (%s) %s%s", gpu->index, gpu->uuid,
			       is_out ? "is given to nobody: " : "is in use again",
			       is_out ? why : "");
		event_put(agent->events, &about, is_out ? "Warning" : "Normal",
			  is_out ? reason : "GPURecovered", "WatchGPUs", note);
	}
}
