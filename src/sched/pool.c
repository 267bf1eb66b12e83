// SPDX-License-Identifier: Apache-2.0
#include "sched/pool.h"

#include "sched/parts.h"

struct str pool_of_node(const struct node *node)
{
	struct str model = sched_labels_get(&node->labels, STR("nvidia.com/gpu.product"));
	for (size_t i = 0; i < node->device_count; i++) {
		if (node->devices[i].is_present)
			model = str_of(node->devices[i].model);
	}
	return model;
}

struct str sched_pod_pool(const struct sched *sched, struct str uid)
{
	const struct pod *pod = map_find(sched->pod_by_uid, uid);
	struct str model = STR("");
	if (pod != NULL && pod->shape->gpu_milli == 0)
		return STR("none");
	if (pod != NULL && pod->node != NULL)
		model = pool_of_node(pod->node);
	return model.len > 0 ? model : STR("unknown");
}

size_t sched_pod_position(const struct sched *sched, struct str namespace_, struct str name)
{
	const struct pod *pod = pod_find(sched, namespace_, name);
	return pod == NULL || !tree_has(&pod->wait->in_queue) ? 0
							      : tree_rank(&pod->wait->in_queue) + 1;
}
