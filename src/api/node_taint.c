// SPDX-License-Identifier: Apache-2.0
#include "api/node_taint.h"

static bool is_ours(const json_t *taint)
{
	return str_eq_c(json_text(taint, "key"), DEAD_GPU_TAINT);
}

bool node_has_dead_gpu_taint(const json_t *host)
{
	json_t *taint;
	size_t i;
	json_array_foreach(json_at(host, "spec.taints"), i, taint)
	{
		if (is_ours(taint))
			return true;
	}
	return false;
}

json_t *node_taint_patch(const json_t *host, bool is_wanted)
{
	json_t *taint, *taints;
	size_t i;
	if (node_has_dead_gpu_taint(host) == is_wanted)
		return NULL;
	taints = json_array();
	json_array_foreach(json_at(host, "spec.taints"), i, taint)
	{
		if (!is_ours(taint))
			(void)json_array_append(taints, taint);
	}
	if (is_wanted)
		(void)json_array_append_new(taints,
					    json_pack("{s:s, s:s, s:s}", "key", DEAD_GPU_TAINT,
						      "value", "true", "effect", "NoSchedule"));
	json_t *patch = json_pack("{s:{s:s}, s:{s:o}}", "metadata", "resourceVersion",
				  json_cstr(host, "metadata.resourceVersion"), "spec", "taints",
				  taints);
	ASSERT(patch != NULL);
	return patch;
}
