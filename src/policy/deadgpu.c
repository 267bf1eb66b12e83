// SPDX-License-Identifier: Apache-2.0
#include "policy/deadgpu.h"

#include "base/timefmt.h"

#include <stdio.h>

enum { ONE_MACHINE = 8 };

static bool is_due(const json_t *thing, const struct dead_gpu_rule *rule, int64_t now_s)
{
	int64_t since_s = 0;
	return json_bool(thing, "fault.dead", false) &&
	       time_parse(json_text(thing, "fault.since"), &since_s, NULL) && since_s <= now_s &&
	       now_s - since_s >= rule->after_s;
}

// One look at all pods of a node's dead things, to find the wanted-th.
struct walk {
	const json_t *node, *device;
	size_t wanted, count;
	struct dead_gpu_pod *ret;
};

// part: the MIG device, or NULL for the whole GPU.
static bool read_pod(const struct walk *walk, const json_t *part, const json_t *pod)
{
	struct dead_gpu_pod found = { .namespace_ = json_text(pod, "namespace"),
				      .name = json_text(pod, "name"),
				      .uid = json_text(pod, "uid") };
	char of[96] = "";
	// They become parts of a path.
	if (!str_is_dns_label(found.namespace_) || !str_is_dns_name(found.name) ||
	    found.uid.len == 0 || found.uid.len > 63)
		return false;
	struct str uuid = json_text(walk->device, "uuid"), part_uuid = json_text(part, "uuid");
	struct str name = json_text(walk->node, "metadata.name");
	struct str reason = json_text(part == NULL ? walk->device : part, "reason");
	if (part != NULL)
		(void)snprintf(of, sizeof of, "MIG device " STR_FMT " of ", STR_ARG(part_uuid));
	(void)snprintf(found.note, sizeof found.note,
		       "%sGPU %d (" STR_FMT ") of " STR_FMT " is dead: " STR_FMT, of,
		       (int)json_int(walk->device, "index", 0), STR_ARG(uuid), STR_ARG(name),
		       STR_ARG(reason));
	if (walk->count == walk->wanted)
		*walk->ret = found;
	return true;
}

static void walk_pods(struct walk *walk, const json_t *part)
{
	size_t i;
	json_t *pod;
	const json_t *fault = json_object_get(part == NULL ? walk->device : part, "fault");
	json_array_foreach(json_object_get(fault, "pods"), i, pod)
		walk->count += read_pod(walk, part, pod) ? 1 : 0;
}

static size_t walk(const json_t *node, const struct dead_gpu_rule *rule, int64_t now_s,
		   size_t wanted, struct dead_gpu_pod *ret)
{
	struct walk walk = { .node = node, .wanted = wanted, .ret = ret };
	size_t i, k;
	json_t *device, *part;
	json_array_foreach(json_at(node, "status.devices"), i, device)
	{
		walk.device = device;
		if (is_due(device, rule, now_s)) {
			walk_pods(&walk, NULL);
			continue; // those on its MIG devices are among them
		}
		json_array_foreach(json_object_get(device, "mig"), k, part)
		{
			if (is_due(part, rule, now_s))
				walk_pods(&walk, part);
		}
	}
	return walk.count;
}

size_t dead_gpu_pods(const json_t *node, const struct dead_gpu_rule *rule, int64_t now_s,
		     size_t wanted, struct dead_gpu_pod *ret)
{
	ASSERT(rule->after_s >= 0);
	return rule->evicts ? walk(node, rule, now_s, wanted, ret) : 0;
}

dead_gpu_taint dead_gpu_taint_of(struct str name)
{
	if (str_eq_c(name, "all"))
		return DEAD_GPU_TAINT_ALL;
	return str_eq_c(name, "any") ? DEAD_GPU_TAINT_ANY : DEAD_GPU_TAINT_NONE;
}

bool dead_gpu_closes(const json_t *node, const struct dead_gpu_rule *rule, int64_t now_s,
		     bool is_closed)
{
	struct dead_gpu_rule now = *rule;
	size_t i, dead = 0, all = 0;
	json_t *device;
	now.after_s = is_closed ? 0 : rule->after_s;
	json_array_foreach(json_at(node, "status.devices"), i, device)
	{
		all++;
		dead += is_due(device, &now, now_s) ? 1 : 0;
	}
	switch (rule->taint) {
	case DEAD_GPU_TAINT_NONE: return false;
	case DEAD_GPU_TAINT_ALL: return all > 0 && dead == all;
	case DEAD_GPU_TAINT_ANY: return dead > 0;
	}
	return false;
}

static bool is_part_dead(const json_t *device)
{
	size_t i;
	json_t *part;
	json_array_foreach(json_object_get(device, "mig"), i, part)
	{
		if (json_bool(part, "fault.dead", false))
			return true;
	}
	return false;
}

void dead_gpu_add(struct dead_gpu_count *count, const json_t *node)
{
	size_t i;
	json_t *device;
	json_array_foreach(json_at(node, "status.devices"), i, device)
	{
		count->all++;
		count->dead += json_bool(device, "fault.dead", false) || is_part_dead(device);
	}
}

bool dead_gpu_is_too_many(const struct dead_gpu_count *count)
{
	ASSERT(count->dead <= count->all);
	return count->dead > ONE_MACHINE && count->dead * 4 > count->all;
}
