// SPDX-License-Identifier: Apache-2.0
#include "policy/deadgpu.h"

#include "base/timefmt.h"

#include <stdio.h>

enum { ONE_MACHINE = 8 };

static bool is_due(const json_t *device, const struct dead_gpu_rule *rule, int64_t now_s)
{
	int64_t since_s = 0;
	return json_bool(device, "fault.dead", false) &&
	       time_parse(json_text(device, "fault.since"), &since_s, NULL) && since_s <= now_s &&
	       now_s - since_s >= rule->after_s;
}

static bool read_pod(const json_t *node, const json_t *device, const json_t *pod,
		     struct dead_gpu_pod *ret)
{
	struct dead_gpu_pod found = { .namespace_ = json_text(pod, "namespace"),
				      .name = json_text(pod, "name"),
				      .uid = json_text(pod, "uid") };
	// They become parts of a path.
	if (!str_is_dns_label(found.namespace_) || !str_is_dns_name(found.name) ||
	    found.uid.len == 0 || found.uid.len > 63)
		return false;
	struct str uuid = json_text(device, "uuid"), name = json_text(node, "metadata.name");
	struct str reason = json_text(device, "reason");
	(void)snprintf(found.note, sizeof found.note,
		       "GPU %d (" STR_FMT ") of " STR_FMT " is dead: " STR_FMT,
		       (int)json_int(device, "index", 0), STR_ARG(uuid), STR_ARG(name),
		       STR_ARG(reason));
	*ret = found;
	return true;
}

static size_t walk(const json_t *node, const struct dead_gpu_rule *rule, int64_t now_s,
		   size_t wanted, struct dead_gpu_pod *ret)
{
	size_t i, j, count = 0;
	json_t *device, *pod;
	json_array_foreach(json_at(node, "status.devices"), i, device)
	{
		if (!is_due(device, rule, now_s))
			continue;
		json_array_foreach(json_at(device, "fault.pods"), j, pod)
		{
			struct dead_gpu_pod found;
			if (!read_pod(node, device, pod, &found))
				continue;
			if (count == wanted)
				*ret = found;
			count++;
		}
	}
	return count;
}

size_t dead_gpu_pods(const json_t *node, const struct dead_gpu_rule *rule, int64_t now_s,
		     size_t wanted, struct dead_gpu_pod *ret)
{
	ASSERT(rule->after_s >= 0);
	return rule->evicts ? walk(node, rule, now_s, wanted, ret) : 0;
}

void dead_gpu_add(struct dead_gpu_count *count, const json_t *node)
{
	size_t i;
	json_t *device;
	json_array_foreach(json_at(node, "status.devices"), i, device)
	{
		count->all++;
		count->dead += json_bool(device, "fault.dead", false);
	}
}

bool dead_gpu_is_too_many(const struct dead_gpu_count *count)
{
	ASSERT(count->dead <= count->all);
	return count->dead > ONE_MACHINE && count->dead * 4 > count->all;
}
